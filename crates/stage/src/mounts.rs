//! Mounts, by descriptor.

use core::ffi::CStr;

use pipkin_op::wire::unpack;
use pipkin_op::{Detail, MountAttr, Slot, attr};
use pipkin_sys::fs::{self, mode, oflag};
use pipkin_sys::mount::{self, MNT_DETACH};
use pipkin_sys::{Errno, Fd, Result};

use crate::Failure;
use crate::inside::{self, Place};
use crate::walk::Walk;

/// mount(2) on a directory of the root: it is made the current directory, so that no path
/// is looked up again.
pub fn mount(
    root: Fd,
    path: &CStr,
    source: &CStr,
    fstype: &CStr,
    flags: u64,
    data: Option<&CStr>,
) -> core::result::Result<(), Failure> {
    let place = kernel_directory(root, path, fstype)?;
    fs::fchdir(place.fd())?;
    Ok(mount::mount(Some(source), c".", Some(fstype), flags, data)?)
}

/// Where a file system is mounted. What the kernel shows of itself must not be behind a
/// link of the image (CVE-2023-27561, CVE-2025-54867).
fn kernel_directory(root: Fd, path: &CStr, fstype: &CStr) -> core::result::Result<Place, Failure> {
    if fstype != c"proc" && fstype != c"sysfs" {
        return Ok(inside::directory(root, path)?);
    }
    match inside::resolve_strict(root, path, oflag::DIRECTORY) {
        Ok(place) => Ok(Place::new(place)),
        Err(Errno::ENOENT) => {
            drop(inside::directory(root, path)?);
            Ok(Place::new(inside::resolve_strict(
                root,
                path,
                oflag::DIRECTORY,
            )?))
        }
        Err(error @ (Errno::ELOOP | Errno::ENOTDIR)) => {
            Err(Failure::new(error, Detail::NotDirectory))
        }
        Err(error) => Err(error.into()),
    }
}

/// fsopen(2), fsconfig(2) and fsmount(2). `options` are packed `key` or `key=value`.
pub fn new_mount(
    fstype: &CStr,
    source: Option<&CStr>,
    options: &[u8],
    attributes: u64,
) -> Result<Fd> {
    let context = Place::new(mount::fsopen(fstype)?);
    if let Some(source) = source {
        mount::fsconfig_string(context.fd(), c"source", source)?;
    }
    for option in unpack(options) {
        configure(context.fd(), option)?;
    }
    mount::fsconfig_create(context.fd())?;
    mount::fsmount(context.fd(), attributes)
}

fn configure(context: Fd, option: &CStr) -> Result<()> {
    let bytes = option.to_bytes_with_nul();
    let Some(equals) = bytes.iter().position(|&byte| byte == b'=') else {
        return mount::fsconfig_flag(context, option);
    };
    let mut buffer = [0u8; 256];
    let place = buffer.get_mut(..equals).ok_or(Errno::ENAMETOOLONG)?;
    place.copy_from_slice(bytes.get(..equals).unwrap_or_default());
    let key = CStr::from_bytes_until_nul(&buffer).map_err(|_| Errno::ENAMETOOLONG)?;
    let value = CStr::from_bytes_until_nul(bytes.get(equals + 1..).unwrap_or_default())
        .map_err(|_| Errno::EINVAL)?;
    mount::fsconfig_string(context, key, value)
}

/// move_mount(2) of a detached mount to a path of the root.
pub fn attach(
    mounted: Fd,
    root: Fd,
    path: &CStr,
    nofollow: bool,
) -> core::result::Result<(), Failure> {
    let stat = fs::stat_fd(mounted)?;
    let place = if nofollow {
        let mut buffer = [0; 256];
        let (parent, name) = inside::parent(root, path, &mut buffer)?;
        Place::new(fs::openat(
            parent.fd(),
            name,
            oflag::PATH | oflag::NOFOLLOW,
            0,
        )?)
    } else if fs::filesystem(mounted)? == PROC_SUPER_MAGIC {
        kernel_directory(root, path, c"proc")?
    } else {
        inside::mount_point(root, path, stat)?
    };
    Ok(mount::move_mount(mounted, place.fd(), c"")?)
}

/// `PROC_SUPER_MAGIC` of `linux/magic.h`.
const PROC_SUPER_MAGIC: u64 = 0x9fa0;

/// mount_setattr(2).
pub fn set_attr(mounted: Fd, attr: MountAttr) -> Result<()> {
    mount::mount_setattr(
        mounted,
        attr.set,
        attr.clear,
        attr.propagation,
        0,
        attr.recursive,
    )
}

/// Hides a path: a file below the null device, a directory below an empty one. What is not
/// there needs no mask. The first of each kind is the detached mount itself, the others are
/// copies of it: one device and one empty file system serve all (CVE-2025-31133).
pub fn mask(walk: &mut Walk, root: Fd, path: &CStr, null: Slot, empty: Slot) -> Result<()> {
    let place = match inside::resolve(root, path, 0) {
        Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
        other => Place::new(other?),
    };
    let is_directory = fs::stat_fd(place.fd())?.is(mode::DIRECTORY);
    let cover = walk.fd(if is_directory { empty } else { null })?;
    let (null_attached, empty_attached) = &mut walk.masks_attached;
    let attached = if is_directory {
        empty_attached
    } else {
        null_attached
    };
    if !*attached {
        *attached = true;
        return mount::move_mount(cover, place.fd(), c"");
    }
    let copy = Place::new(mount::open_tree(cover, c"", false, false)?);
    mount::move_mount(copy.fd(), place.fd(), c"")
}

/// Makes a path and the mounts below it read-only; what is not there needs nothing.
pub fn readonly_path(root: Fd, path: &CStr) -> Result<()> {
    let place = match inside::resolve(root, path, 0) {
        Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
        other => Place::new(other?),
    };
    let copy = Place::new(mount::open_tree(place.fd(), c"", true, false)?);
    mount::mount_setattr(copy.fd(), attr::RDONLY, 0, 0, 0, true)?;
    mount::move_mount(copy.fd(), place.fd(), c"")
}

/// pivot_root(2) to a root that is attached over the old one, and the end of the old one.
pub fn pivot_root(root: Fd) -> Result<()> {
    fs::fchdir(root)?;
    mount::pivot_root_here()?;
    mount::umount(c".", MNT_DETACH)?;
    fs::chdir(c"/")
}

/// chroot(2) to a root that is attached over one that cannot be pivoted (an initial
/// ramfs). The old proc and sysfs, which would stay below it, are taken away.
pub fn move_root(root: Fd) -> Result<()> {
    for kernel in [c"/proc", c"/sys"] {
        match mount::umount(kernel, MNT_DETACH) {
            Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => {}
            Err(error) => return Err(error),
        }
    }
    change_root(root)
}

/// chroot(2) to an open directory.
pub fn change_root(root: Fd) -> Result<()> {
    fs::fchdir(root)?;
    mount::chroot(c".")?;
    fs::chdir(c"/")
}
