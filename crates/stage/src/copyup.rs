//! `tmpcopyup`: a new tmpfs begins with what it covers.

use core::ffi::CStr;

use pipkin_sys::fs::{self, Stat, mode, oflag};
use pipkin_sys::{Errno, Fd, Result};

use crate::inside::{self, Place};

/// Deepest directory that is copied.
const MAX_DEPTH: u32 = 128;

/// Copies what lies at a path of the root into a detached mount: directories, files, links,
/// devices and FIFOs with their modes and owners. A path that is not there leaves it empty.
#[inline(never)]
pub fn copy_up(root: Fd, path: &CStr, mounted: Fd) -> Result<()> {
    let place = match inside::resolve(root, path, oflag::DIRECTORY) {
        Err(Errno::ENOENT) => return Ok(()),
        other => Place::new(other?),
    };
    let from = Place::new(fs::openat(
        place.fd(),
        c".",
        oflag::RDONLY | oflag::DIRECTORY,
        0,
    )?);
    let to = Place::new(fs::openat(
        mounted,
        c".",
        oflag::RDONLY | oflag::DIRECTORY,
        0,
    )?);
    let stat = fs::stat_fd(from.fd())?;
    fs::fchownat(to.fd(), c"", stat.uid, stat.gid)?;
    fs::fchmod(to.fd(), stat.mode & 0o7777)?;
    copy_directory(from.fd(), to.fd(), 0)
}

/// A file of what is copied, of which there may be any number: it is closed at once.
struct Open(Fd);

impl Drop for Open {
    fn drop(&mut self) {
        fs::close(self.0);
    }
}

fn copy_directory(from: Fd, to: Fd, depth: u32) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Errno::ELOOP);
    }
    let mut buffer = [0u8; 2048];
    loop {
        let length = fs::getdents(from, &mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        for name in fs::entries(buffer.get(..length).unwrap_or_default()) {
            copy_entry(from, to, name, depth)?;
        }
    }
}

#[inline(never)]
fn copy_entry(from: Fd, to: Fd, name: &CStr, depth: u32) -> Result<()> {
    let stat = fs::stat_at(from, name)?;
    match stat.mode & mode::TYPE {
        mode::DIRECTORY => {
            fs::mkdirat(to, name, stat.mode & 0o7777)?;
            let flags = oflag::RDONLY | oflag::DIRECTORY | oflag::NOFOLLOW;
            let below = Open(fs::openat(from, name, flags, 0)?);
            let copy = Open(fs::openat(to, name, flags, 0)?);
            fs::fchownat(to, name, stat.uid, stat.gid)?;
            copy_directory(below.0, copy.0, depth + 1)
        }
        mode::REGULAR => copy_file(from, to, name, stat),
        mode::SYMLINK => {
            let mut buffer = [0u8; 4097];
            let length = fs::readlinkat(from, name, &mut buffer[..4096])?.len();
            let target = buffer.get(..=length).unwrap_or_default();
            let target = CStr::from_bytes_until_nul(target).map_err(|_| Errno::ENAMETOOLONG)?;
            fs::symlinkat(target, to, name)?;
            fs::fchownat(to, name, stat.uid, stat.gid)
        }
        _ => {
            fs::mknodat(to, name, stat.mode, stat.rdev.0, stat.rdev.1)?;
            fs::fchownat(to, name, stat.uid, stat.gid)
        }
    }
}

fn copy_file(from: Fd, to: Fd, name: &CStr, stat: Stat) -> Result<()> {
    let source = Open(fs::openat(
        from,
        name,
        oflag::RDONLY | oflag::NOFOLLOW | oflag::NONBLOCK,
        0,
    )?);
    let flags = oflag::WRONLY | oflag::CREAT | oflag::EXCL | oflag::NOFOLLOW;
    let copy = Open(fs::openat(to, name, flags, 0o600)?);
    while fs::sendfile(copy.0, source.0, 1 << 20)? > 0 {}
    fs::fchownat(copy.0, c"", stat.uid, stat.gid)?;
    fs::fchmod(copy.0, stat.mode & 0o7777)
}
