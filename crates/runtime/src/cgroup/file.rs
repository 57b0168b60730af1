//! Reading and writing the small files of a control group.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

/// Larger than any file that is read here but `cgroup.procs`, which is read to its end.
const ROOM: usize = 4096;

pub(super) fn open(dir: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(dir, path, flags | OFlags::CLOEXEC, Mode::empty())
}

pub(super) fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    open(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// The whole text of a file.
pub(super) fn read_at(dir: impl AsFd, path: impl AsRef<Path>) -> Result<String, Errno> {
    let file = open(dir, path.as_ref(), OFlags::RDONLY)?;
    let text = read_to_end(&file)?;
    Ok(String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// What is left of an open file, with no more memory than that needs: what is not written to
/// is not touched either, and is given back.
pub(crate) fn read_to_end(file: impl AsFd) -> Result<Vec<u8>, Errno> {
    let mut text = Vec::with_capacity(ROOM);
    loop {
        let count = rustix::io::retry_on_intr(|| {
            rustix::io::read(&file, rustix::buffer::spare_capacity(&mut text))
        })?;
        // A small file of the kernel's comes whole in one read, and so does what is left of any
        // other file that is smaller than the room.
        if count < ROOM / 2 {
            break;
        }
        text.reserve(ROOM);
    }
    text.shrink_to_fit();
    Ok(text)
}

pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, Errno> {
    read_at(CWD, path)
}

/// Writes into an open file, by one write(2): a file of the kernel takes it as a whole.
pub(super) fn put(file: impl AsFd, value: &str) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| rustix::io::write(&file, value.as_bytes())).map(drop)
}

pub(super) fn write(path: impl AsRef<Path>, value: &str) -> Result<(), Errno> {
    put(open(CWD, path.as_ref(), OFlags::WRONLY)?, value)
}

/// The number behind `key` in a file of lines `key number`.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}
