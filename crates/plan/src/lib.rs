//! Pure functions from what is wanted and what is there to the list of steps of a
//! container's start. Nothing here reads a file, the environment or a process.
//!
//! ```text
//! Config ─┐
//! Request ┼─▶ create() ─▶ Plan ─▶ encode() ─▶ the container's first program
//! Host ───┘
//! ```

#![forbid(unsafe_code)]

mod build;
mod capabilities;
mod create;
mod devices;
mod encode;
mod hooks;
mod host;
mod invalid;
mod mounts;
mod namespaces;
mod older;
mod plan;
mod process;
mod request;
mod rootfs;
mod sysctl;
mod unsupported;

pub mod cgroup;
pub mod seccomp;

pub use capabilities::NAMES as CAPABILITIES;
pub use create::create;
pub use encode::{Fds, Turn, encode, turn};
pub use hooks::state_text;
pub use host::{Hierarchy, Host};
pub use invalid::Invalid;
pub use mounts::OPTIONS as MOUNT_OPTIONS;
pub use plan::{Plan, Step};
pub use request::{Request, Until};
