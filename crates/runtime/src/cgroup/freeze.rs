//! Stopping a group and letting it go on. Nothing here waits without a limit: a process
//! in the kernel's depths can hold off freezing for as long as it likes.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use pipkin_plan::cgroup::Controller;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;

use super::{Error, Group, file};

impl Group {
    /// Stops every process in the group: by the unified side where there is one (its
    /// processes can still be killed), else by the v1 freezer.
    ///
    /// # Errors
    /// Not frozen in `limit`: it is then thawed again. No freezer.
    pub fn freeze(&self, limit: Duration) -> Result<(), Error> {
        let Some((path, way)) = self.freezer() else {
            return Err(Error::new(
                "freeze",
                Path::new("/"),
                "the container has no cgroup that can",
            )
            .hint("freezing needs cgroup v2 (Linux 5.2) or the v1 freezer controller"));
        };
        let result = way.set(path, true, limit);
        if result.is_err() {
            // Better running than half stopped; the first error explains.
            let _ = way.ask(path, false);
        }
        result
    }

    /// Lets its processes go on, whoever stopped them.
    ///
    /// # Errors
    /// Those of the files, or not thawed in `limit`.
    pub fn thaw(&self, limit: Duration) -> Result<(), Error> {
        let end = Instant::now() + limit;
        for (path, way) in self.freezers() {
            if way.is_frozen(path)? {
                way.set(path, false, end.saturating_duration_since(Instant::now()))?;
            }
        }
        Ok(())
    }

    /// Whether the group itself is frozen, or about to be.
    ///
    /// # Errors
    /// Those of the files.
    pub fn is_frozen(&self) -> Result<bool, Error> {
        for (path, way) in self.freezers() {
            if way.is_frozen(path)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn freezers(&self) -> impl Iterator<Item = (&Path, Way)> {
        let v2 = self.unified().map(|path| (path, Way::V2));
        let v1 = self.v1(Controller::Freezer).map(|path| (path, Way::V1));
        v2.into_iter().chain(v1)
    }

    /// The one to use: the v1 freezer only where the unified side cannot (before 5.2).
    fn freezer(&self) -> Option<(&Path, Way)> {
        self.freezers()
            .find(|(path, way)| *way == Way::V1 || path.join(Way::V2.file()).exists())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    V1,
    V2,
}

impl Way {
    const fn file(self) -> &'static str {
        match self {
            Self::V1 => "freezer.state",
            Self::V2 => "cgroup.freeze",
        }
    }

    fn ask(self, dir: &Path, frozen: bool) -> Result<(), Error> {
        let value = match (self, frozen) {
            (Self::V1, true) => "FROZEN",
            (Self::V1, false) => "THAWED",
            (Self::V2, true) => "1",
            (Self::V2, false) => "0",
        };
        let path = dir.join(self.file());
        file::write(&path, value).map_err(|errno| Error::os(doing(frozen), &path, errno))
    }

    /// A group that is gone is not frozen.
    fn is_frozen(self, dir: &Path) -> Result<bool, Error> {
        let path = dir.join(self.file());
        match file::read(&path) {
            Ok(text) => Ok(match self {
                Self::V1 => text.trim() != "THAWED",
                Self::V2 => text.trim() == "1",
            }),
            Err(Errno::NOENT | Errno::NODEV) => Ok(false),
            Err(errno) => Err(Error::os("read", &path, errno)),
        }
    }

    fn set(self, dir: &Path, frozen: bool, limit: Duration) -> Result<(), Error> {
        self.ask(dir, frozen)?;
        let done = match self {
            Self::V1 => self.retry(dir, frozen, limit)?,
            Self::V2 => {
                let path = dir.join("cgroup.events");
                let key = if frozen { "frozen 1" } else { "frozen 0" };
                wait_event(&path, limit, |text| text.lines().any(|l| l == key))
                    .map_err(|errno| Error::os(doing(frozen), &path, errno))?
            }
        };
        if done {
            return Ok(());
        }
        let message = format!("not done after {} ms", limit.as_millis());
        let hint = match frozen {
            true => "a process in uninterruptible sleep (state D) holds it off",
            false => "a group above it may be frozen",
        };
        Err(Error::new(doing(frozen), dir, message).hint(hint))
    }

    /// v1 tells nobody when it is done, and a process that was just forked may need to
    /// be asked again.
    fn retry(self, dir: &Path, frozen: bool, limit: Duration) -> Result<bool, Error> {
        let path = dir.join(self.file());
        let want = if frozen { "FROZEN" } else { "THAWED" };
        let end = Instant::now() + limit;
        let mut pause = Duration::from_micros(100);
        loop {
            let text = file::read(&path).map_err(|errno| Error::os("read", &path, errno))?;
            if text.trim() == want {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
            self.ask(dir, frozen)?;
        }
    }
}

const fn doing(frozen: bool) -> &'static str {
    if frozen { "freeze" } else { "thaw" }
}

/// Waits until the text of an events file is as wanted; the kernel notifies by POLLPRI.
/// Says whether it came in time.
pub(super) fn wait_event(
    path: &Path,
    limit: Duration,
    wanted: impl Fn(&str) -> bool,
) -> Result<bool, Errno> {
    let end = Instant::now() + limit;
    let events = file::open(CWD, path, OFlags::RDONLY)?;
    loop {
        if wanted(&text(&events)?) {
            return Ok(true);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let time = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        let mut fds = [PollFd::new(&events, PollFlags::PRI)];
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn text(events: &OwnedFd) -> Result<String, Errno> {
    let mut room = [0; 256];
    let count = rustix::io::retry_on_intr(|| rustix::io::pread(events, &mut room, 0))?;
    Ok(String::from_utf8_lossy(room.get(..count).unwrap_or_default()).into_owned())
}
