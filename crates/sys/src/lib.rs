//! System calls in the style of the kernel: descriptors and C strings in, [`Errno`]
//! out. The only crate of pipkin with unsafe code.
//!
//! There is no libc below it, so that a process which was just cloned, and the
//! container's first program, may call anything here.

#![no_std]

mod errno;
mod raw;

pub mod bpf;

pub use errno::Errno;

/// What a system call gives.
pub type Result<T> = core::result::Result<T, Errno>;
