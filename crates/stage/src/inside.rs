//! Paths inside the root file system.
//!
//! The root and everything in it is the image's: a path is looked up once, under the
//! root's descriptor, with links resolved as if the root were `/` and without the magic
//! links of /proc, and then used as a descriptor. What is missing is made on the pinned
//! parent (CVE-2021-30465, CVE-2024-45310, CVE-2019-18837).

mod lookup;

use core::ffi::CStr;

use pipkin_op::Detail;
use pipkin_sys::fs::{self, mode, oflag, resolve};
use pipkin_sys::{Errno, Fd, Result};

use crate::Failure;
use crate::walk::Walk;

/// Longest path, `PATH_MAX`.
const PATH_MAX: usize = 4096;

/// How many links a walk follows, as the kernel's `MAXSYMLINKS`.
const MAX_LINKS: usize = 40;

/// Permissions of a mount point that is made.
pub const MOUNT_POINT: u32 = 0o755;

/// Opens a path under `root`, with links followed inside it, and no magic link.
pub fn open(root: Fd, path: &CStr, flags: u32) -> Result<Fd> {
    open_how(root, path, flags, resolve::IN_ROOT | resolve::NO_MAGICLINKS)
}

/// openat2(2), or the walk that does the same where the kernel or a seccomp filter (which may
/// also say EPERM) does not let that be. It is asked each time: a refusal costs a fraction of
/// the walk, a variable would cost every container's process a page.
fn open_how(root: Fd, path: &CStr, flags: u32, how: u64) -> Result<Fd> {
    match fs::openat2(root, path, flags, 0, how) {
        Err(Errno::ENOSYS | Errno::EPERM) => {
            lookup::open(root, path, flags, how & resolve::NO_SYMLINKS == 0)
        }
        other => other,
    }
}

/// Looks a path up under `root`; what it gives is a place (`O_PATH`).
pub fn resolve(root: Fd, path: &CStr, flags: u32) -> Result<Fd> {
    open(root, path, oflag::PATH | flags)
}

/// Looks a path up under `root` and refuses every symbolic link on the way.
pub fn resolve_strict(root: Fd, path: &CStr, flags: u32) -> Result<Fd> {
    let how = resolve::IN_ROOT | resolve::NO_SYMLINKS;
    open_how(root, path, oflag::PATH | flags, how)
}

/// How many descriptors may be open before one that is not needed any more is closed: execve(2)
/// and [`Walk::close_rest`] close all at once, without a call for each.
const LEFT_OPEN: Fd = 64;

/// A place that was looked up, given back when it is dropped.
pub struct Place(Fd);

impl Place {
    /// Takes a descriptor over.
    pub const fn new(file: Fd) -> Self {
        Self(file)
    }

    /// The descriptor.
    pub const fn fd(&self) -> Fd {
        self.0
    }

    /// The descriptor, which then is not given back.
    pub const fn keep(self) -> Fd {
        let file = self.0;
        core::mem::forget(self);
        file
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.0 >= LEFT_OPEN {
            fs::close(self.0);
        }
    }
}

/// A path that is put together.
struct Path {
    bytes: [u8; PATH_MAX],
    length: usize,
}

impl Path {
    const fn new() -> Self {
        Self {
            bytes: [0; PATH_MAX],
            length: 0,
        }
    }

    /// Appends `/` and `part`; there is always room for the NUL.
    fn push(&mut self, part: &[u8]) -> Result<()> {
        let end = self.length + 1 + part.len();
        let place = self
            .bytes
            .get_mut(self.length..end + 1)
            .ok_or(Errno::ENAMETOOLONG)?;
        let (slash, rest) = place.split_at_mut(1);
        slash.fill(b'/');
        let (name, nul) = rest.split_at_mut(part.len());
        name.copy_from_slice(part);
        nul.fill(0);
        self.length = end;
        Ok(())
    }

    fn truncate(&mut self, length: usize) {
        self.length = length;
        if let Some(byte) = self.bytes.get_mut(length) {
            *byte = 0;
        }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn as_c_str(&self) -> Result<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::ENAMETOOLONG)
    }
}

/// The first component of a path and what follows it; the component is empty at the end.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let start = path
        .iter()
        .position(|&byte| byte != b'/')
        .unwrap_or(path.len());
    let path = path.get(start..).unwrap_or_default();
    let end = path
        .iter()
        .position(|&byte| byte == b'/')
        .unwrap_or(path.len());
    path.split_at(end)
}

/// Whether nothing but slashes is left.
fn is_end(path: &[u8]) -> bool {
    path.iter().all(|&byte| byte == b'/')
}

/// Makes the last component of a path.
type Make<'f> = dyn Fn(Fd, &CStr) -> Result<()> + 'f;

/// Looks a path up under `root` and makes what is missing of it: directories on the way,
/// and the last component with `make`. A link that leads nowhere is followed to where it
/// leads, inside the root, and that is made.
fn resolve_or_make(root: Fd, path: &CStr, make: &Make<'_>) -> Result<Place> {
    match resolve(root, path, 0) {
        Err(Errno::ENOENT) => make_missing(root, path, make),
        other => other.map(Place::new),
    }
}

#[inline(never)]
fn make_missing(root: Fd, path: &CStr, make: &Make<'_>) -> Result<Place> {
    // Mostly the last component alone is missing.
    if let Some(made) = make_last(root, path, make)? {
        return Ok(made);
    }
    let mut rest = Path::new();
    rest.push(path.to_bytes())?;
    let mut done = Path::new();
    let mut parent = Place::new(resolve(root, c"/", 0)?);
    let mut links = 0;
    loop {
        let (name, after) = split(rest.as_bytes());
        if name.is_empty() {
            return Ok(parent);
        }
        let before = done.length;
        done.push(name)?;
        let found = match resolve(root, done.as_c_str()?, 0) {
            Err(Errno::ENOENT) => {
                let mut buffer = [0u8; 256];
                let name = component(name, &mut buffer)?;
                let made = if is_end(after) {
                    make(parent.fd(), name)
                } else {
                    fs::mkdirat(parent.fd(), name, MOUNT_POINT)
                };
                match made {
                    Ok(()) => fs::openat(parent.fd(), name, oflag::PATH | oflag::NOFOLLOW, 0),
                    // Something is there after all: a link that leads nowhere.
                    Err(Errno::EEXIST) => {
                        links += 1;
                        if links > MAX_LINKS {
                            return Err(Errno::ELOOP);
                        }
                        let mut buffer = [0u8; PATH_MAX];
                        let target = fs::readlinkat(parent.fd(), name, &mut buffer)?;
                        let mut next = Path::new();
                        if target.first() != Some(&b'/') {
                            done.truncate(before);
                            next.push(done.as_bytes())?;
                        }
                        next.push(target)?;
                        next.push(after)?;
                        rest = next;
                        done = Path::new();
                        parent = Place::new(resolve(root, c"/", 0)?);
                        continue;
                    }
                    Err(error) => Err(error),
                }
            }
            other => other,
        };
        parent = Place::new(found?);
        let mut next = Path::new();
        next.push(after)?;
        rest = next;
    }
}

/// Makes the last component of a path whose directory is there; `None` where that is not so,
/// or where something with that name is there after all.
#[inline(never)]
fn make_last(root: Fd, path: &CStr, make: &Make<'_>) -> Result<Option<Place>> {
    let Some((above, name)) = split_last(path.to_bytes()) else {
        return Ok(None);
    };
    let mut directory = Path::new();
    directory.push(above)?;
    let Ok(parent) = resolve(root, directory.as_c_str()?, oflag::DIRECTORY).map(Place::new) else {
        return Ok(None);
    };
    let mut buffer = [0u8; 256];
    let name = component(name, &mut buffer)?;
    match make(parent.fd(), name) {
        Err(Errno::EEXIST) => return Ok(None),
        other => other?,
    }
    let flags = oflag::PATH | oflag::NOFOLLOW;
    fs::openat(parent.fd(), name, flags, 0).map(|file| Some(Place::new(file)))
}

/// The directory part of a path and its last component, unless that is none that can be made.
fn split_last(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().rposition(|&byte| byte != b'/')? + 1;
    let path = path.get(..end)?;
    let start = path
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1);
    let (above, name) = path.split_at_checked(start)?;
    (name != b"." && name != b"..").then_some((above, name))
}

/// A component with its NUL.
fn component<'b>(name: &[u8], buffer: &'b mut [u8; 256]) -> Result<&'b CStr> {
    let place = buffer.get_mut(..=name.len()).ok_or(Errno::ENAMETOOLONG)?;
    let (text, nul) = place.split_at_mut(name.len());
    text.copy_from_slice(name);
    nul.fill(0);
    CStr::from_bytes_until_nul(place).map_err(|_| Errno::ENAMETOOLONG)
}

/// A directory of the root, made where it is missing.
pub fn directory(root: Fd, path: &CStr) -> Result<Place> {
    resolve_or_make(root, path, &|parent: Fd, name: &CStr| {
        fs::mkdirat(parent, name, MOUNT_POINT)
    })
}

/// A file of the root, made where it is missing.
pub fn file(root: Fd, path: &CStr) -> Result<Place> {
    resolve_or_make(root, path, &|parent: Fd, name: &CStr| {
        fs::mknodat(parent, name, mode::REGULAR | MOUNT_POINT, 0, 0)
    })
}

/// Makes a place to mount something on that is known to be missing: a directory or a file.
pub fn mount_point(root: Fd, path: &CStr, is_directory: bool) -> Result<Place> {
    make_missing(root, path, &|parent: Fd, name: &CStr| {
        make_point(parent, name, is_directory)
    })
}

/// Makes what is mounted on: a directory or a file.
pub fn make_point(parent: Fd, name: &CStr, is_directory: bool) -> Result<()> {
    if is_directory {
        fs::mkdirat(parent, name, MOUNT_POINT)
    } else {
        fs::mknodat(parent, name, mode::REGULAR | MOUNT_POINT, 0, 0)
    }
}

/// The directory that a path lies in, made where it is missing, and its last component.
#[inline(never)]
pub fn parent<'b>(root: Fd, path: &CStr, buffer: &'b mut [u8; 256]) -> Result<(Parent, &'b CStr)> {
    let (directories, name) = split_last(path.to_bytes()).ok_or(Errno::EINVAL)?;
    let name = component(name, buffer)?;
    if is_end(directories) {
        return Ok((Parent::Root(root), name));
    }
    let mut above = Path::new();
    above.push(directories)?;
    Ok((Parent::Below(directory(root, above.as_c_str()?)?), name))
}

/// The directory that a path lies in.
pub enum Parent {
    /// The one that the path begins at.
    Root(Fd),
    /// One below it.
    Below(Place),
}

impl Parent {
    /// Its descriptor.
    pub const fn fd(&self) -> Fd {
        match self {
            Self::Root(file) => *file,
            Self::Below(place) => place.fd(),
        }
    }
}

/// A device node or FIFO that is made.
#[derive(Clone, Copy)]
pub struct Node {
    /// Type and permissions.
    pub mode: u32,
    /// Major and minor number.
    pub device: (u32, u32),
    /// User and group.
    pub owner: (u32, u32),
}

/// mknodat(2) on the pinned parent. What is there already must be the same.
pub fn mknod(root: Fd, path: &CStr, node: Node) -> core::result::Result<(), Failure> {
    let mut buffer = [0; 256];
    let (parent, name) = parent(root, path, &mut buffer)?;
    match fs::mknodat(parent.fd(), name, node.mode, node.device.0, node.device.1) {
        Err(Errno::EEXIST) => {
            let stat = fs::stat_at(parent.fd(), name)?;
            if !stat.is(node.mode & mode::TYPE) || stat.rdev != node.device {
                return Err(Failure::new(Errno::EEXIST, Detail::OtherDevice));
            }
        }
        other => other?,
    }
    if node.owner != (0, 0) {
        fs::fchownat(parent.fd(), name, node.owner.0, node.owner.1)?;
    }
    Ok(())
}

/// symlinkat(2) on the pinned parent; what is there already stays.
pub fn symlink(root: Fd, path: &CStr, target: &CStr) -> Result<()> {
    let mut buffer = [0; 256];
    let (parent, name) = parent(root, path, &mut buffer)?;
    match fs::symlinkat(target, parent.fd(), name) {
        Err(Errno::EEXIST) => Ok(()),
        other => other,
    }
}

/// A directory and those above it.
pub fn mkdir(root: Fd, path: &CStr, mode: u32) -> Result<()> {
    resolve_or_make(root, path, &|parent: Fd, name: &CStr| {
        fs::mkdirat(parent, name, mode)
    })
    .map(drop)
}

/// Writes a file below a procfs of our own; no link is followed, nothing above is reached.
pub fn write_kernel_file(proc: Fd, path: &CStr, value: &[u8]) -> Result<()> {
    let how = resolve::BENEATH | resolve::NO_SYMLINKS;
    let file = Place::new(open_how(proc, path, oflag::WRONLY, how)?);
    fs::write(file.fd(), value).map(drop)
}

impl Walk {
    /// chdir(2). Root may be refused what the user may, on a network file system: it is then
    /// tried again as that user.
    pub fn change_directory(
        &mut self,
        path: &CStr,
        late: bool,
    ) -> core::result::Result<(), Failure> {
        if late && self.in_directory {
            return Ok(());
        }
        self.leave();
        match change_directory(path) {
            Err(Failure { value, .. }) if !late && value == Errno::EACCES.number() => Ok(()),
            Err(failure) => Err(failure),
            Ok(()) => {
                self.in_directory = true;
                Ok(())
            }
        }
    }
}

/// chdir(2), checked to end inside the root (CVE-2024-21626).
fn change_directory(path: &CStr) -> core::result::Result<(), Failure> {
    fs::chdir(path)?;
    if path == c"/" {
        return Ok(());
    }
    match fs::cwd_is_inside() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::new(Errno::ENOENT, Detail::OutsideRoot)),
        Err(error) => Err(error.into()),
    }
}
