//! Mounts. Data that is absent reaches the kernel as NULL: an empty string would make it
//! allocate and copy a page on each call.

use core::ffi::CStr;

use crate::{Errno, Fd, Result, as_fd, call, fd};

const AT_EMPTY_PATH: usize = 0x1000;
const AT_RECURSIVE: usize = 0x8000;
const AT_SYMLINK_NOFOLLOW: usize = 0x100;
const CLOEXEC: usize = crate::fs::oflag::CLOEXEC as usize;

fn pointer(string: Option<&CStr>) -> usize {
    string.map_or(0, |string| string.as_ptr() as usize)
}

/// mount(2). `data` is either absent or says something.
pub fn mount(
    source: Option<&CStr>,
    target: &CStr,
    fstype: Option<&CStr>,
    flags: u64,
    data: Option<&CStr>,
) -> Result<()> {
    let data = data.filter(|data| !data.is_empty());
    // SAFETY: every string ends with a NUL or is NULL, as mount(2) allows.
    unsafe {
        call!(
            MOUNT,
            pointer(source),
            target.as_ptr() as usize,
            pointer(fstype),
            flags as usize,
            pointer(data)
        )
        .map(drop)
    }
}

/// umount2(2).
pub fn umount(target: &CStr, flags: u32) -> Result<()> {
    // SAFETY: `target` ends with a NUL.
    unsafe { call!(UMOUNT2, target.as_ptr() as usize, flags as usize).map(drop) }
}

/// `MNT_DETACH` of umount2(2).
pub const MNT_DETACH: u32 = 2;

/// open_tree(2) with `OPEN_TREE_CLONE`: a detached copy of the mount at a path; an empty
/// path is the directory itself.
pub fn open_tree(dir: Fd, path: &CStr, recursive: bool, nofollow: bool) -> Result<Fd> {
    let flags = tree_flags(path, recursive, nofollow);
    // SAFETY: `path` ends with a NUL.
    unsafe { call!(OPEN_TREE, fd(dir), path.as_ptr() as usize, flags).map(as_fd) }
}

fn tree_flags(path: &CStr, recursive: bool, nofollow: bool) -> usize {
    const OPEN_TREE_CLONE: usize = 1;
    let mut flags = OPEN_TREE_CLONE | CLOEXEC;
    if path.is_empty() {
        flags |= AT_EMPTY_PATH;
    }
    if recursive {
        flags |= AT_RECURSIVE;
    }
    if nofollow {
        flags |= AT_SYMLINK_NOFOLLOW;
    }
    flags
}

/// [`open_tree`] and [`mount_setattr`] of the copy, of all its mounts if it is `recursive`:
/// `set`, `clear` and `propagation` as there. One call since Linux 6.15 (open_tree_attr), two
/// where that is not known or not allowed.
pub fn open_tree_attr(
    dir: Fd,
    path: &CStr,
    (recursive, nofollow): (bool, bool),
    (set, clear, propagation): (u64, u64, u64),
) -> Result<Fd> {
    if set | clear | propagation == 0 {
        return open_tree(dir, path, recursive, nofollow);
    }
    let attributes = [set, clear, propagation, 0];
    // SAFETY: `path` ends with a NUL; `attributes` is a `struct mount_attr` of 32 bytes.
    let tree = unsafe {
        call!(
            OPEN_TREE_ATTR,
            fd(dir),
            path.as_ptr() as usize,
            tree_flags(path, recursive, nofollow),
            attributes.as_ptr() as usize,
            size_of_val(&attributes)
        )
    };
    match tree {
        // A seccomp filter that does not know a call may say either.
        Err(Errno::ENOSYS | Errno::EPERM) => {}
        other => return other.map(as_fd),
    }
    let tree = open_tree(dir, path, recursive, nofollow)?;
    match mount_setattr(tree, set, clear, propagation, 0, recursive) {
        Ok(()) => Ok(tree),
        Err(error) => {
            crate::fs::close(tree);
            Err(error)
        }
    }
}

/// move_mount(2) of the mount that `from` holds onto what `to` and `path` name; an empty
/// path is `to` itself.
pub fn move_mount(from: Fd, to: Fd, path: &CStr) -> Result<()> {
    const F_EMPTY_PATH: usize = 0x4;
    const T_EMPTY_PATH: usize = 0x40;
    let flags = F_EMPTY_PATH | if path.is_empty() { T_EMPTY_PATH } else { 0 };
    // SAFETY: both strings end with a NUL.
    unsafe {
        call!(
            MOVE_MOUNT,
            fd(from),
            c"".as_ptr() as usize,
            fd(to),
            path.as_ptr() as usize,
            flags
        )
        .map(drop)
    }
}

/// mount_setattr(2) on the mount that `mount` holds. `userns` is the user namespace of
/// `MOUNT_ATTR_IDMAP`, else 0.
pub fn mount_setattr(
    mount: Fd,
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
    recursive: bool,
) -> Result<()> {
    let attributes = [set, clear, propagation, userns];
    let flags = AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: the path ends with a NUL; `attributes` is a `struct mount_attr` of 32 bytes.
    unsafe {
        call!(
            MOUNT_SETATTR,
            fd(mount),
            c"".as_ptr() as usize,
            flags,
            attributes.as_ptr() as usize,
            size_of_val(&attributes)
        )
        .map(drop)
    }
}

/// fsopen(2).
pub fn fsopen(fstype: &CStr) -> Result<Fd> {
    const FSOPEN_CLOEXEC: usize = 1;
    // SAFETY: `fstype` ends with a NUL.
    unsafe { call!(FSOPEN, fstype.as_ptr() as usize, FSOPEN_CLOEXEC).map(as_fd) }
}

fn fsconfig(context: Fd, command: usize, key: usize, value: usize) -> Result<()> {
    // SAFETY: the callers below pass NULL or strings that end with a NUL.
    unsafe { call!(FSCONFIG, fd(context), command, key, value, 0).map(drop) }
}

/// fsconfig(2) `FSCONFIG_SET_FLAG`.
pub fn fsconfig_flag(context: Fd, key: &CStr) -> Result<()> {
    fsconfig(context, 0, key.as_ptr() as usize, 0)
}

/// fsconfig(2) `FSCONFIG_SET_STRING`.
pub fn fsconfig_string(context: Fd, key: &CStr, value: &CStr) -> Result<()> {
    fsconfig(context, 1, key.as_ptr() as usize, value.as_ptr() as usize)
}

/// fsconfig(2) `FSCONFIG_CMD_CREATE`.
pub fn fsconfig_create(context: Fd) -> Result<()> {
    fsconfig(context, 6, 0, 0)
}

/// fsmount(2): a detached mount with these `MOUNT_ATTR_*`.
pub fn fsmount(context: Fd, attributes: u64) -> Result<Fd> {
    const FSMOUNT_CLOEXEC: usize = 1;
    // SAFETY: no memory is passed.
    unsafe { call!(FSMOUNT, fd(context), FSMOUNT_CLOEXEC, attributes as usize).map(as_fd) }
}

/// pivot_root(2) of the current directory, with the old root stacked on the same place.
pub fn pivot_root_here() -> Result<()> {
    // SAFETY: both strings end with a NUL.
    unsafe { call!(PIVOT_ROOT, c".".as_ptr() as usize, c".".as_ptr() as usize).map(drop) }
}

/// chroot(2).
pub fn chroot(path: &CStr) -> Result<()> {
    // SAFETY: `path` ends with a NUL.
    unsafe { call!(CHROOT, path.as_ptr() as usize).map(drop) }
}
