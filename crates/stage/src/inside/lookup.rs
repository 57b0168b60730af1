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

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{format, fs as files};

    use pipkin_sys::fs::resolve;

    use super::*;

    /// A directory that is removed with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = format!("pipkin-lookup-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(path);
            files::create_dir_all(path.join("root")).unwrap();
            Self(path)
        }

        fn root(&self) -> Fd {
            directory(&self.0.join("root"))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = files::remove_dir_all(&self.0);
        }
    }

    fn directory(path: &std::path::Path) -> Fd {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        let flags = oflag::PATH | oflag::DIRECTORY;
        fs::openat(pipkin_sys::AT_FDCWD, &path, flags, 0).unwrap()
    }

    /// The inode that was found, and then forgotten.
    fn identity(found: Result<Fd>) -> Result<((u32, u32), u64)> {
        let place = found?;
        let stat = fs::stat_fd(place);
        fs::close(place);
        stat.map(|stat| (stat.dev, stat.inode))
    }

    /// The kernel's answer and the walk's must be the same.
    fn compare(root: Fd, path: &str) {
        let path = CString::new(path).unwrap();
        let place = oflag::PATH;
        for flags in [
            place,
            place | oflag::DIRECTORY,
            place | oflag::NOFOLLOW,
            place | oflag::NOFOLLOW | oflag::DIRECTORY,
            oflag::RDONLY | oflag::NONBLOCK,
        ] {
            for links in [true, false] {
                let how = match links {
                    true => resolve::NO_MAGICLINKS,
                    false => resolve::NO_SYMLINKS,
                };
                let kernel = fs::openat2(root, &path, flags, 0, how | resolve::IN_ROOT);
                let (kernel, walk) = (identity(kernel), identity(open(root, &path, flags, links)));
                assert_eq!(walk, kernel, "{path:?}, flags {flags:o}, links {links}");
            }
        }
    }

    #[test]
    fn the_walk_finds_what_the_kernel_finds() {
        let scratch = Scratch::new("same");
        let root = scratch.0.join("root");
        files::create_dir_all(root.join("a/b/c")).unwrap();
        files::write(root.join("a/f"), "").unwrap();
        files::write(scratch.0.join("outside"), "").unwrap();
        for (name, target) in [
            ("up", ".."),
            ("link", "a"),
            ("abs", "/a/b"),
            ("chain", "link/b"),
            ("loop", "loop"),
            ("gone", "missing/x"),
            ("slash", "a/"),
            ("file", "/a/f"),
            ("notdir", "a/f/"),
            ("dot", "."),
            ("out", "../../../outside"),
            ("far", "/../a/../outside"),
            ("a/b/up", "../.."),
            ("a/b/out", "../../../outside"),
            ("a/b/c/abs", "/link/./b//c/.."),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        let names = [
            "a", "b", "c", "f", "up", "link", "abs", "chain", "loop", "gone", "slash", "file",
            "notdir", "dot", "out", "far", "..", "..", ".", "", "outside",
        ];
        let root = scratch.root();
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..20_000 {
            let mut path = std::string::String::new();
            for _ in 0..=random(6) {
                path += names[random(names.len())];
                path += "/";
            }
            if random(4) != 0 {
                path.pop();
            }
            // An empty path is an error of its own.
            if !path.is_empty() {
                compare(root, &path);
            }
        }
        for path in ["/", ".", "..", "//", "a/b/c/../../../../a", "/a/b/c/abs/.."] {
            compare(root, path);
        }
        compare(root, &"x".repeat(256));
        compare(root, &"a/../".repeat(600));
        fs::close(root);
    }

    /// What procfs leads to elsewhere is not entered; its ordinary links are followed.
    #[test]
    fn magic_links_are_refused() {
        let root = directory("/".as_ref());
        for path in [
            "/proc/self/status",
            "/proc/thread-self/status",
            "/proc/mounts",
            "/proc/net/unix",
            "/proc/self/exe",
            "/proc/self/root",
            "/proc/self/root/etc",
            "/proc/self/cwd/..",
            "/proc/self/fd/0",
            "/proc/self/ns/mnt",
            "/proc/thread-self/root/proc",
        ] {
            compare(root, path);
        }
        for path in [c"/proc/self/root/", c"/proc/self/cwd/x", c"/proc/self/fd/0"] {
            let found = open(root, path, oflag::PATH, true);
            assert_eq!(identity(found), Err(Errno::ELOOP), "{path:?}");
        }
        fs::close(root);
    }

    /// Says that it is the end, also where a test fails.
    struct End<'a>(&'a AtomicBool);

    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Directories turn into links to elsewhere, and are moved out of the root, while paths
    /// through them are looked up.
    #[test]
    fn an_image_that_changes_meanwhile() {
        let scratch = Scratch::new("race");
        let (image, outside) = (scratch.0.join("root"), scratch.0.join("elsewhere"));
        files::create_dir_all(image.join("a/b/c")).unwrap();
        files::create_dir_all(outside.join("b/c")).unwrap();
        // What is reached by leaving: upwards from the root, and from a directory outside.
        for place in [scratch.0.join("secret"), outside.join("secret")] {
            files::write(place, "").unwrap();
        }
        let up = "../".repeat(9);
        symlink(format!("{up}{}", outside.display()), image.join("evil")).unwrap();
        symlink(&outside, image.join("absolute")).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // The directory gives way to each of the links, and leaves the root.
                    for link in ["evil", "absolute"] {
                        let _ = files::rename(image.join("a"), outside.join("a"));
                        let _ = files::rename(image.join(link), image.join("a"));
                        let _ = files::rename(image.join("a"), image.join(link));
                        let _ = files::rename(outside.join("a"), image.join("a"));
                    }
                }
            });
            let _end = End(&stop);
            let root = scratch.root();
            let (mut found, mut failed) = (0, 0);
            for _ in 0..30_000 {
                for path in [
                    c"a/b/c/../../../secret",
                    c"a/b/../../secret",
                    c"a/../secret",
                    c"a/b/c/../../../../secret",
                ] {
                    let secret = open(root, path, oflag::PATH, true);
                    assert!(secret.is_err(), "{path:?} was found");
                }
                match open(root, c"a/b/c", oflag::PATH, true) {
                    Ok(place) => {
                        found += 1;
                        fs::close(place);
                    }
                    Err(_) => failed += 1,
                }
            }
            fs::close(root);
            assert!(found > 0 && failed > 0, "{found} found, {failed} not");
        });
    }
}
