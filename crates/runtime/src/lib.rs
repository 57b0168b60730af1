//! Probes the host, performs the runtime's steps, keeps the state.

#![forbid(unsafe_code)]

mod attempt;
pub mod caller;
pub mod cgroup;
pub mod config;
pub mod error;
mod foreground;
pub mod image;
mod launch;
pub mod lifecycle;
pub mod log;
mod pin;
mod pointer;
pub mod probe;
pub mod request;
pub mod store;
pub mod time;

pub use error::Error;

/// What a command gives.
pub type Result<T> = std::result::Result<T, Error>;

pub use pipkin_sys::arena::Arena;
pub use pipkin_sys::entry;
use pipkin_sys::own as owned;

/// The same error number in the form of the system calls.
fn errno(error: rustix::io::Errno) -> pipkin_sys::Errno {
    pipkin_sys::Errno::new(error.raw_os_error())
}

/// Writes text to standard output.
///
/// # Errors
/// What write(2) says.
pub fn print(text: &str) -> std::result::Result<(), pipkin_sys::Errno> {
    pipkin_sys::fs::write_all(1, text.as_bytes())
}
