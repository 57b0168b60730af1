//! Pure functions from what is wanted and what is there to the list of steps of a
//! container's start. Nothing here reads a file, the environment or a process.

#![forbid(unsafe_code)]

mod invalid;

pub mod cgroup;
pub mod seccomp;

pub use invalid::Invalid;
