//! System calls in the style of the kernel: descriptors and C strings in, [`Errno`]
//! out. The only crate of pipkin with unsafe code.
//!
//! There is no libc below it, so that a process which was just cloned, and the
//! container's first program, may call anything here.
//!
//! A descriptor is a number here. Who opened it decides when it is closed: the runtime
//! keeps descriptors as `OwnedFd`, the container's first program in its slots until it
//! executes the container's process, which closes them all.

#![no_std]

#[cfg(feature = "std")]
extern crate std;

mod errno;
mod raw;

pub mod arena;
pub mod bpf;
pub mod entry;
pub mod fs;
#[cfg(feature = "measure")]
pub mod measure;
#[cfg(any(
    test,
    feature = "freestanding",
    all(target_arch = "x86_64", target_env = "musl")
))]
mod memory;
pub mod mount;
pub mod process;
pub mod program;
pub mod socket;
pub mod tty;

pub use errno::Errno;

/// What a system call gives.
pub type Result<T> = core::result::Result<T, Errno>;

/// A file descriptor.
pub type Fd = i32;

/// The current directory, for calls that take a directory.
pub const AT_FDCWD: Fd = -100;

/// Hands a descriptor that a call of this crate has just given over to the standard
/// library, which closes it when it is dropped.
#[cfg(feature = "std")]
#[must_use]
pub fn own(fd: Fd) -> std::os::fd::OwnedFd {
    use std::os::fd::FromRawFd as _;
    // SAFETY: what the calls of this crate give is new and nobody else's; a number that is
    // none of theirs would be closed, which harms no memory.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) }
}

/// A descriptor as an argument: sign-extended, as the C convention has it.
const fn fd(fd: Fd) -> usize {
    fd as isize as usize
}

/// A descriptor as a result.
const fn as_fd(result: usize) -> Fd {
    result as Fd
}

/// Up to six arguments of a system call; what is not given is 0.
#[allow(
    clippy::indexing_slicing,
    reason = "both indices are below their lengths"
)]
const fn pad<const N: usize>(given: [usize; N]) -> [usize; 6] {
    let mut args = [0; 6];
    let mut at = 0;
    while at < N && at < 6 {
        args[at] = given[at];
        at += 1;
    }
    args
}

macro_rules! call {
    ($nr:ident $(, $arg:expr)* $(,)?) => {
        $crate::raw::syscall($crate::raw::nr::$nr, $crate::pad([$($arg),*]))
    };
}
use call;
