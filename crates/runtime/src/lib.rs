//! Probes the host, performs the runtime's steps, keeps the state.

#![forbid(unsafe_code)]

pub mod cgroup;
pub mod image;
