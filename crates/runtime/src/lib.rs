//! Probes the host, performs the runtime's steps, keeps the state.

#![forbid(unsafe_code)]

pub mod caller;
pub mod cgroup;
pub mod error;
pub mod image;
pub mod lifecycle;
pub mod log;
pub mod request;
pub mod time;

pub use error::Error;

/// What a command gives.
pub type Result<T> = std::result::Result<T, Error>;
