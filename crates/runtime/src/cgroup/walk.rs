//! Walking over a group and its sub-groups, which the container may have made, as deep
//! and as many as it liked: one descriptor and no recursion.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::file;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Calls `enter` with each group, from the top; after what lies below, `leave` with the
/// parent and the name of each but the top. A group that vanishes is passed over.
pub(super) fn walk(
    top: OwnedFd,
    mut enter: impl FnMut(BorrowedFd<'_>) -> Result<(), Errno>,
    mut leave: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    enter(top.as_fd())?;
    let mut open: Vec<CString> = Vec::new();
    let mut waiting = vec![children(top.as_fd())?];
    let mut here = top;
    while let Some(list) = waiting.last_mut() {
        if let Some(name) = list.pop() {
            match rustix::fs::openat(&here, &name, DIRECTORY, Mode::empty()) {
                Ok(below) => here = below,
                Err(Errno::NOENT | Errno::NOTDIR) => continue,
                Err(errno) => return Err(errno),
            }
            enter(here.as_fd())?;
            waiting.push(children(here.as_fd())?);
            open.push(name);
        } else {
            waiting.pop();
            if let Some(name) = open.pop() {
                here = rustix::fs::openat(&here, c"..", DIRECTORY, Mode::empty())?;
                leave(here.as_fd(), &name)?;
            }
        }
    }
    Ok(())
}

/// The names of the sub-groups. The kernel counts them in the number of links, which
/// saves listing the files of a group that has none.
fn children(dir: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    if rustix::fs::fstat(dir)?.st_nlink == 2 {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    let list = match Dir::read_from(dir) {
        Ok(list) => list,
        Err(Errno::NOENT) => return Ok(names),
        Err(errno) => return Err(errno),
    };
    for entry in list {
        let entry = match entry {
            Ok(entry) => entry,
            // The group was removed meanwhile.
            Err(Errno::NOENT | Errno::NODEV) => break,
            Err(errno) => return Err(errno),
        };
        if entry.file_type() == FileType::Directory
            && !matches!(entry.file_name().to_bytes(), b"." | b"..")
        {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Every process in a directory and below; none if it does not exist.
pub(super) fn pids(path: &Path) -> Result<Vec<Pid>, Errno> {
    let top = match file::open_dir(path) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    };
    let mut all = Vec::new();
    let add = |dir: BorrowedFd<'_>| {
        match file::read_at(dir, "cgroup.procs") {
            Ok(text) => {
                all.extend(text.lines().filter_map(|l| Pid::from_raw(l.parse().ok()?)));
                Ok(())
            }
            // Gone, or a threaded group, whose processes are listed in its domain.
            Err(Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP) => Ok(()),
            Err(errno) => Err(errno),
        }
    };
    walk(top, add, |_, _| Ok(()))?;
    Ok(all)
}

/// Removes what lies below a directory, the deepest first. What still has processes is
/// left, and the first such error given.
pub(super) fn remove_below(path: &Path) -> Result<(), Errno> {
    let mut busy = None;
    let top = file::open_dir(path)?;
    walk(
        top,
        |_| Ok(()),
        |parent, name| match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => {
                busy.get_or_insert(errno);
                Ok(())
            }
        },
    )?;
    busy.map_or(Ok(()), Err)
}
