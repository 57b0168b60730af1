//! Looking a path up without openat2(2): before Linux 5.6, or where a seccomp filter hides it.
//!
//! The walk goes from directory to directory, each opened by one name (`O_PATH | O_NOFOLLOW`)
//! in the descriptor of the one above. What the kernel is given is never more than one name, and
//! never `..` or a link, so that it can lead nowhere but down, whatever the image turns into what
//! meanwhile:
//!
//! - A link is read, by the descriptor that was found to be one, and its text walked like the
//!   path itself: an absolute one from the root. What a magic link of /proc leads to is never
//!   entered, only its text could be, and that is refused as well.
//! - `..` means the way that was come: the walk begins anew at the root with the names so far but
//!   the last. A directory that was moved elsewhere meanwhile, out of the root even, has no say
//!   in what is above it; the kernel's own walk answers that case with EAGAIN.
//! - What is found is used by its descriptor, so nothing is looked up twice.

use core::ffi::CStr;

use pipkin_sys::fs::{self, mode, oflag};
use pipkin_sys::{Errno, Fd, Result};

use super::{MAX_LINKS, PATH_MAX, Parent, Path, Place, component, split};

/// How many names a walk may open. Only a path that goes down and up again and again needs more
/// than a path has characters, and that many take milliseconds.
const MAX_STEPS: usize = 2 * PATH_MAX;

/// What openat(2) does not follow or look into.
const PLACE: u32 = oflag::PATH | oflag::NOFOLLOW;

/// openat2(2) with `RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS`, or, where it is not to follow
/// `links`, with `RESOLVE_NO_SYMLINKS`.
pub fn open(root: Fd, path: &CStr, flags: u32, links: bool) -> Result<Fd> {
    let mut rest = Path::new();
    rest.push(path.to_bytes())?;
    // How much of `rest` was walked, and what is above it in the root, without links.
    let mut start = 0;
    let mut above = Path::new();
    let mut directory = Parent::Root(root);
    let (mut steps, mut followed) = (0, 0);
    loop {
        let (name, after) = split(rest.as_bytes().get(start..).unwrap_or_default());
        start = rest.as_bytes().len() - after.len();
        match name {
            b"" => return fs::openat(directory.fd(), c".", flags, 0),
            b"." => continue,
            b".." => {
                let mut next = Path::new();
                let names = above.as_bytes();
                let last = names.iter().rposition(|&byte| byte == b'/');
                next.push(names.get(..last.unwrap_or(0)).unwrap_or_default())?;
                next.push(after)?;
                (rest, start) = (next, 0);
                (above, directory) = (Path::new(), Parent::Root(root));
                continue;
            }
            _ => {}
        }
        steps += 1;
        if steps > MAX_STEPS {
            return Err(Errno::ELOOP);
        }
        let mut buffer = [0; 256];
        let name = component(name, &mut buffer)?;
        // A slash behind it makes it a directory, and a link that shall lead to one.
        let is_last = after.is_empty();
        if !is_last {
            // Also what mounts itself when it is entered.
            match fs::openat(directory.fd(), name, PLACE | oflag::DIRECTORY, 0) {
                Err(Errno::ENOTDIR) => {}
                other => {
                    directory = Parent::Below(Place::new(other?));
                    above.push(name.to_bytes())?;
                    continue;
                }
            }
        }
        let place = Place::new(fs::openat(directory.fd(), name, PLACE, 0)?);
        let stat = fs::stat_fd(place.fd())?;
        if stat.is(mode::SYMLINK) && (!is_last || flags & oflag::NOFOLLOW == 0) {
            followed += 1;
            if !links || followed > MAX_LINKS || !is_ordinary(directory.fd(), place.fd())? {
                return Err(Errno::ELOOP);
            }
            let mut buffer = [0; PATH_MAX];
            let target = fs::readlinkat(place.fd(), c"", &mut buffer)?;
            if target.first() == Some(&b'/') {
                (above, directory) = (Path::new(), Parent::Root(root));
            }
            let mut next = Path::new();
            next.push(target)?;
            if !is_last {
                next.push(after)?;
            }
            (rest, start) = (next, 0);
            continue;
        }
        if !stat.is(mode::DIRECTORY) && (!is_last || flags & oflag::DIRECTORY != 0) {
            return Err(Errno::ENOTDIR);
        }
        if !is_last {
            directory = Parent::Below(place);
            above.push(name.to_bytes())?;
        } else if flags & oflag::PATH != 0 {
            return Ok(place.keep());
        } else {
            return fs::openat(directory.fd(), name, flags | oflag::NOFOLLOW, 0);
        }
    }
}

/// Whether a link has no more to it than its text. In procfs only those of its root are known to
/// be like that (`self`, `mounts`, `net`); the magic ones are below the processes.
fn is_ordinary(directory: Fd, link: Fd) -> Result<bool> {
    /// `ST_NOSYMFOLLOW` of statfs(2).
    const NOSYMFOLLOW: u64 = 0x2000;
    /// `PROC_ROOT_INO` of `linux/proc_ns.h`.
    const PROC_ROOT: u64 = 1;
    let is = fs::statfs(link)?;
    Ok(is.flags & NOSYMFOLLOW == 0
        && (is.magic != fs::PROC_MAGIC || fs::stat_fd(directory)?.inode == PROC_ROOT))
}
