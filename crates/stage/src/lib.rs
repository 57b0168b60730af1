//! **Stage**: performs the container's steps, in the container's first process.
//!
//! No std and no allocation: this runs in a program without a C library, whose only input
//! is the plan behind it and the descriptors that it was given.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod console;
mod copyup;
mod exec;
mod failure;
pub mod hook;
mod identity;
mod inside;
mod mounts;
mod perform;
pub mod source;
mod walk;

pub use failure::Failure;
pub use walk::run;
