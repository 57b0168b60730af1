//! `linux.resources`: normalised once into [`Limits`], then turned into writes of v1
//! or v2 files ([`writes`]), and the device rules into one [`devices::Policy`].
//!
//! The order of the words is the same everywhere: a limit that is absent, or zero where
//! engines write zero for "not set", is `None`; -1 is [`Max::Unlimited`]; what the
//! kernel would refuse is refused here, with its JSON pointer. Formulas stand in
//! [`convert`] and nowhere else.

pub mod convert;
pub mod devices;
pub mod program;

mod controller;
mod limits;
mod lists;
mod normalise;
mod v1;
mod v2;
mod write;

pub use controller::{Controller, Controllers, Host, Version};
pub use limits::{
    Block, BlockDevice, Cpu, Hugepage, Limits, Max, Memory, Network, Rdma, Throttle, Unified,
    Weight,
};
pub use normalise::normalise;
pub use write::{Missing, Write, controllers, v1_writes, v2_writes, writes};

#[cfg(test)]
mod tests;
