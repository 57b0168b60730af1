//! Mounts, by descriptor.

use core::ffi::CStr;

use pipkin_op::wire::unpack;
use pipkin_op::{Covered, Detail, MountAttr, Slot, Target, attr, ms};
use pipkin_sys::fs::{self, mode, oflag};
use pipkin_sys::mount::{self, MNT_DETACH};
use pipkin_sys::{Errno, Fd, Result};

use crate::Failure;
use crate::hook::decimal;
use crate::inside::{self, Place};
use crate::walk::Walk;

/// A new file system, the arguments of mount(2).
pub struct New<'a> {
    pub source: &'a CStr,
    pub fstype: &'a CStr,
    pub flags: u64,
    pub data: Option<&'a CStr>,
}

impl New<'_> {
    fn mount_on(&self, path: &CStr) -> Result<()> {
        let (source, fstype) = (Some(self.source), Some(self.fstype));
        mount::mount(source, path, fstype, self.flags, self.data)
    }
}

/// mount(2) on a directory of the root: it, or the one that it lies in, is made the current
/// directory, so that no path of the image is looked up again.
pub fn mount(
    walk: &mut Walk,
    mut dir: Fd,
    path: &CStr,
    mut target: Target,
    new: &New<'_>,
) -> core::result::Result<(), Failure> {
    if target == Target::New {
        let name = last_component(path);
        if is_made(walk, || inside::make_point(dir, name, true))? {
            walk.enter(dir)?;
            return Ok(new.mount_on(name)?);
        }
        (dir, target) = (walk.fd(Slot::ROOT)?, Target::Follow);
    }
    let place = match target {
        Target::NoLinks => kernel_directory(dir, path)?,
        _ => match follow(walk, dir, path) {
            Err(Errno::ENOENT) => inside::mount_point(dir, path, true)?,
            other => other?,
        },
    };
    walk.leave();
    fs::fchdir(place.fd())?;
    Ok(new.mount_on(c".")?)
}

/// Makes a name in a file system that the plan has made. Not where that may be hidden, or where
/// the name is there after all, by a link to it: then the path says what is meant.
fn is_made(walk: &Walk, make: impl FnOnce() -> Result<()>) -> Result<bool> {
    if walk.astray {
        return Ok(false);
    }
    match make() {
        Err(Errno::EEXIST) => Ok(false),
        other => other.map(|()| true),
    }
}

/// Looks the place of a mount up, and notes whether links lead to it.
fn follow(walk: &mut Walk, root: Fd, path: &CStr) -> Result<Place> {
    let found = match inside::resolve_strict(root, path, 0) {
        Err(Errno::ELOOP) => {
            walk.astray = true;
            inside::resolve(root, path, 0)
        }
        other => other,
    };
    found.map(Place::new)
}

/// What follows the last slash of a path.
fn last_component(path: &CStr) -> &CStr {
    let bytes = path.to_bytes_with_nul();
    let start = bytes
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1);
    let name = bytes.get(start..).unwrap_or_default();
    CStr::from_bytes_with_nul(name).unwrap_or_default()
}

/// What follows the first component of an absolute path.
fn after_first(path: &CStr) -> &CStr {
    let bytes = path.to_bytes_with_nul();
    let slash = bytes.iter().skip(1).position(|&byte| byte == b'/');
    let rest = slash.and_then(|slash| bytes.get(slash + 2..));
    CStr::from_bytes_with_nul(rest.unwrap_or_default()).unwrap_or_default()
}

/// Where a file system is mounted. What the kernel shows of itself must not be behind a
/// link of the image (CVE-2023-27561, CVE-2025-54867).
fn kernel_directory(root: Fd, path: &CStr) -> core::result::Result<Place, Failure> {
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
    walk: &mut Walk,
    mounted: Fd,
    mut dir: Fd,
    path: &CStr,
    mut target: Target,
) -> core::result::Result<(), Failure> {
    if target == Target::New {
        let name = last_component(path);
        let is_directory = fs::stat_fd(mounted)?.is(mode::DIRECTORY);
        if is_made(walk, || inside::make_point(dir, name, is_directory))? {
            return Ok(mount::move_mount(mounted, dir, name)?);
        }
        (dir, target) = (walk.fd(Slot::ROOT)?, Target::Follow);
    }
    let place = match target {
        Target::NoLinks => kernel_directory(dir, path)?,
        Target::Nofollow => {
            walk.astray = true;
            let mut buffer = [0; 256];
            let (parent, name) = inside::parent(dir, path, &mut buffer)?;
            let flags = oflag::PATH | oflag::NOFOLLOW;
            Place::new(fs::openat(parent.fd(), name, flags, 0)?)
        }
        Target::Follow | Target::New => match follow(walk, dir, path) {
            Err(Errno::ENOENT) => {
                inside::mount_point(dir, path, fs::stat_fd(mounted)?.is(mode::DIRECTORY))?
            }
            other => other?,
        },
    };
    Ok(mount::move_mount(mounted, place.fd(), c"")?)
}

/// mount_setattr(2), or with `proc` mount(2) once for the propagation and once for the rest.
pub fn set_attr(walk: &mut Walk, mounted: Fd, attr: MountAttr, proc: Option<Slot>) -> Result<()> {
    let Some(proc) = proc else {
        let MountAttr {
            set,
            clear,
            propagation,
            recursive,
        } = attr;
        return mount::mount_setattr(mounted, set, clear, propagation, 0, recursive);
    };
    // The host's procfs was opened before anything of the container was there, and a link below
    // self/fd leads to the descriptor's own mount: no path of the image is looked up.
    let mut buffer = [0; 24];
    let path = descriptor_path(mounted, &mut buffer)?;
    walk.enter(walk.fd(proc)?)?;
    if attr.propagation != 0 {
        let recursive = if attr.recursive { ms::REC } else { 0 };
        mount::mount(None, path, None, attr.propagation | recursive, None)?;
    }
    if attr.set | attr.clear == 0 {
        return Ok(());
    }
    // mount(2) sets all of a mount's flags. Those that it has are kept: they may be locked, in a
    // user namespace, and nobody asked to lose them.
    let has = attributes(fs::statfs(mounted)?.flags);
    let flags = flags((has & !attr.clear) | attr.set);
    mount::mount(None, path, None, ms::REMOUNT | ms::BIND | flags, None)
}

/// `self/fd/` and the number of a descriptor.
fn descriptor_path(file: Fd, buffer: &mut [u8; 24]) -> Result<&CStr> {
    const DIRECTORY: &[u8] = b"self/fd/";
    let mut digits = [0; 12];
    let digits = decimal(file, &mut digits);
    let (text, rest) = buffer.split_at_mut(DIRECTORY.len());
    text.copy_from_slice(DIRECTORY);
    let place = rest.get_mut(..digits.len()).ok_or(Errno::ENAMETOOLONG)?;
    place.copy_from_slice(digits);
    CStr::from_bytes_until_nul(buffer).map_err(|_| Errno::ENAMETOOLONG)
}

/// Attributes of a mount and how others number them: `MOUNT_ATTR_*`, `ST_*` of statfs(2), `MS_*`
/// of mount(2).
const FLAGS: [(u64, u64, u64); 6] = [
    (attr::RDONLY, 0x1, ms::RDONLY),
    (attr::NOSUID, 0x2, ms::NOSUID),
    (attr::NODEV, 0x4, ms::NODEV),
    (attr::NOEXEC, 0x8, ms::NOEXEC),
    (attr::NODIRATIME, 0x800, ms::NODIRATIME),
    (attr::NOSYMFOLLOW, 0x2000, ms::NOSYMFOLLOW),
];

/// `MOUNT_ATTR_*` of a mount's `ST_*`.
fn attributes(flags: u64) -> u64 {
    const ST_NOATIME: u64 = 0x400;
    const ST_RELATIME: u64 = 0x1000;
    let atime = match (flags & ST_RELATIME, flags & ST_NOATIME) {
        (0, 0) => attr::STRICTATIME,
        (0, _) => attr::NOATIME,
        _ => 0,
    };
    let one = |&(attr, st, _): &(u64, u64, u64)| if flags & st == 0 { 0 } else { attr };
    FLAGS.iter().map(one).sum::<u64>() | atime
}

/// The `MS_*` of `MOUNT_ATTR_*`.
fn flags(attributes: u64) -> u64 {
    let atime = match attributes & attr::ATIME {
        attr::NOATIME => ms::NOATIME,
        attr::STRICTATIME => ms::STRICTATIME,
        _ => ms::RELATIME,
    };
    let one = |&(attr, _, ms): &(u64, u64, u64)| if attributes & attr == 0 { 0 } else { ms };
    FLAGS.iter().map(one).sum::<u64>() | atime
}

/// Hides a path: a file below the null device, a directory below an empty one. What is not
/// there needs no mask.
pub fn mask(
    walk: &mut Walk,
    dir: Fd,
    path: &CStr,
    (null, empty): (Slot, Slot),
    (is, proc): (Covered, Option<Slot>),
) -> Result<()> {
    let place;
    let (is_directory, place, name) = match is {
        Covered::Directory | Covered::File => (is == Covered::Directory, dir, after_first(path)),
        Covered::Unknown => {
            place = match inside::resolve(dir, path, 0) {
                Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
                other => Place::new(other?),
            };
            let is_directory = fs::stat_fd(place.fd())?.is(mode::DIRECTORY);
            (is_directory, place.fd(), c"")
        }
    };
    let original = walk.fd(if is_directory { empty } else { null })?;
    let cover = if is_directory {
        &mut walk.empty
    } else {
        &mut walk.null
    };
    let cover_now = cover.take(original)?;
    match mount::move_mount(cover_now, place, name) {
        Err(Errno::ENOENT | Errno::ENOTDIR) if is != Covered::Unknown => Ok(()),
        // A file where a directory was thought to be, or the other way round.
        Err(Errno::EINVAL) if is != Covered::Unknown => {
            mask(walk, dir, name, (null, empty), (Covered::Unknown, proc))
        }
        other => {
            other?;
            cover.attached();
            if proc.is_none() || cover_now != original {
                return Ok(());
            }
            // Copies of it are private as well.
            let private = MountAttr {
                propagation: ms::PRIVATE,
                ..MountAttr::default()
            };
            set_attr(walk, original, private, proc)
        }
    }
}

/// Makes a path and, without `proc`, the mounts below it read-only; what is not there needs
/// nothing.
pub fn readonly_path(
    walk: &mut Walk,
    dir: Fd,
    path: &CStr,
    plain: bool,
    proc: Option<Slot>,
) -> Result<()> {
    let place;
    let (at, name) = if plain {
        (dir, after_first(path))
    } else {
        place = match inside::resolve(dir, path, 0) {
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
            other => Place::new(other?),
        };
        (place.fd(), c"")
    };
    let set = if proc.is_none() { attr::RDONLY } else { 0 };
    let copy = match mount::open_tree_attr(at, name, (true, true), (set, 0, 0)) {
        Err(Errno::ENOENT | Errno::ENOTDIR) if plain => return Ok(()),
        other => Place::new(other?),
    };
    mount::move_mount(copy.fd(), at, name)?;
    if proc.is_none() {
        return Ok(());
    }
    let readonly = MountAttr {
        set: attr::RDONLY,
        ..MountAttr::default()
    };
    set_attr(walk, copy.fd(), readonly, proc)
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

/// chroot(2) to an open directory, which is then the working directory as well.
pub fn change_root(root: Fd) -> Result<()> {
    fs::fchdir(root)?;
    mount::chroot(c".")
}
