//! A mount namespace whose only mount is an empty, read-only file system, kept for all
//! containers.
//!
//! A container that begins from a copy of it does not copy the host's mounts, of which a node
//! has thousands, and has no old root to leave, which would unmount them all and wait for an
//! RCU grace period. What is shown of the host was opened before as detached trees.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use pipkin_op::ms;
use pipkin_sys::{Errno, fs, mount, process};
use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::owned;

/// Where it is kept; below the directory of root's containers, where no id can be.
const DIRECTORY: &str = "/run/pipkin";
const NAME: &std::ffi::CStr = c"/run/pipkin/@empty";

/// `NSFS_MAGIC` of `linux/magic.h`.
const NSFS: u64 = 0x6e73_6673;

/// How often it is tried: the kernel refuses to bind a mount namespace whose number is not
/// larger than the current one's, and takes numbers from a batch for each processor.
const TRIES: u32 = 16;

/// Opens it; `None` where it is not there, which is so in a mount namespace that does not see
/// the host's.
#[must_use]
pub fn open() -> Option<OwnedFd> {
    // Whatever is there instead is neither followed nor waited for.
    let flags = fs::oflag::RDONLY | fs::oflag::NOFOLLOW | fs::oflag::NONBLOCK;
    let file = owned(fs::openat(pipkin_sys::AT_FDCWD, NAME, flags, 0).ok()?);
    (fs::filesystem(file.as_raw_fd()) == Ok(NSFS)).then_some(file)
}

/// Opens it, and makes it where it is not there. Two runtimes that do so at once are kept
/// apart by a lock; where it cannot be made, containers begin from a copy of the host's mounts.
#[must_use]
pub fn open_or_make() -> Option<OwnedFd> {
    open().or_else(|| {
        let lock = lock().ok()?;
        let pinned = open().or_else(|| make().ok().and_then(|()| open()));
        drop(lock);
        pinned
    })
}

fn lock() -> std::io::Result<File> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(DIRECTORY)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(Path::new(DIRECTORY), flags, Mode::empty())?;
    // Whoever holds it makes a few system calls.
    rustix::fs::flock(&directory, FlockOperation::LockExclusive)?;
    Ok(File::from(directory))
}

fn make() -> Result<(), Errno> {
    let file = fs::openat(
        pipkin_sys::AT_FDCWD,
        NAME,
        fs::oflag::RDONLY | fs::oflag::CREAT,
        0o400,
    )?;
    fs::close(file);
    let mut last = Errno::EINVAL;
    for _ in 0..TRIES {
        let bound = process::with_empty_mount_namespace(|pid| {
            let source = std::ffi::CString::new(format!("/proc/{pid}/ns/mnt"));
            let source = source.map_err(|_| Errno::EINVAL)?;
            mount::mount(Some(&source), NAME, None, ms::BIND, None)
        })?;
        match bound {
            Err(Errno::EINVAL) => last = Errno::EINVAL,
            other => return other,
        }
    }
    Err(last)
}
