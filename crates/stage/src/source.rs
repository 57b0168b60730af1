//! Trees of the host that the container gets: opened in the host's mount namespace, by the
//! runtime or, where it may as well, by the container's process before it leaves.

use core::ffi::CStr;

use pipkin_op::{Detail, MountAttr};
use pipkin_sys::fs::{self, mode, oflag};
use pipkin_sys::{AT_FDCWD, Errno, Fd, Result, mount};

use crate::Failure;

/// Longest path, `PATH_MAX`, and the slash behind it.
const PATH_MAX: usize = 4096 + 1;

/// The root file system, which must be a directory: a detached copy of its mounts with these
/// attributes, or the directory itself.
///
/// # Errors
/// Those of open(2), open_tree(2) and mount_setattr(2).
#[inline(never)]
pub fn open_root(path: &CStr, clone: bool, attr: MountAttr) -> Result<Fd> {
    if !clone {
        let flags = oflag::PATH | oflag::DIRECTORY;
        return fs::openat(AT_FDCWD, path, flags, 0);
    }
    // Only a directory can have a slash behind it.
    let mut buffer = [0; PATH_MAX];
    let length = path.count_bytes();
    let place = buffer.get_mut(..=length).ok_or(Errno::ENAMETOOLONG)?;
    let (text, slash) = place.split_at_mut(length);
    text.copy_from_slice(path.to_bytes());
    slash.fill(b'/');
    let path = CStr::from_bytes_until_nul(&buffer).map_err(|_| Errno::ENAMETOOLONG)?;
    open_tree(path, (true, false), attr)
}

/// A detached copy of the mounts at a path, `(recursive, nofollow)`, with these attributes.
///
/// # Errors
/// Those of open_tree(2) and mount_setattr(2).
pub fn open_tree(path: &CStr, how: (bool, bool), attr: MountAttr) -> Result<Fd> {
    let change = (attr.set, attr.clear, attr.propagation);
    mount::open_tree_attr(AT_FDCWD, path, how, change)
}

/// The host's /proc, through which mounts are named that only a descriptor names.
///
/// # Errors
/// Those of open(2) and fstatfs(2); ENODEV where another file system is there.
pub fn open_proc() -> Result<Fd> {
    let proc = fs::openat(AT_FDCWD, c"/proc", oflag::PATH | oflag::DIRECTORY, 0)?;
    let is = fs::filesystem(proc);
    if is == Ok(fs::PROC_MAGIC) {
        return Ok(proc);
    }
    fs::close(proc);
    is?;
    Err(Errno::ENODEV)
}

/// A detached copy of the mount of the host's null device, with these attributes.
///
/// # Errors
/// Those of [`open_device`].
pub fn open_null(attr: MountAttr) -> core::result::Result<Fd, Failure> {
    open_device(c"/dev/null", mode::CHARACTER, (1, 3), attr)
}

/// A detached copy of the mount of a device node of the host, with these attributes, which must be
/// the device that is meant: its type and numbers.
///
/// # Errors
/// Those of [`open_tree`] and statx(2); another file is there.
pub fn open_device(
    path: &CStr,
    kind: u32,
    device: (u32, u32),
    attr: MountAttr,
) -> core::result::Result<Fd, Failure> {
    let tree = open_tree(path, (false, true), attr)?;
    let stat = fs::stat_fd(tree);
    match stat {
        Ok(stat) if stat.is(kind) && stat.rdev == device => Ok(tree),
        other => {
            fs::close(tree);
            other?;
            Err(Failure::new(Errno::EINVAL, Detail::OtherDevice))
        }
    }
}
