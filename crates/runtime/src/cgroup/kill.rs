//! Signals for a whole group.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;

use super::{Error, Group, file};

/// How long a group may take to freeze before its processes get their signals running.
const FREEZE: Duration = Duration::from_millis(200);
/// How long new processes are chased where there is no `cgroup.kill`.
const CHASE: Duration = Duration::from_secs(5);

const SIGKILL: i32 = 9;

impl Group {
    /// Sends `signal` to every process in the group and its sub-groups. SIGKILL goes by
    /// `cgroup.kill` (Linux 5.14), which no fork escapes, and reaches processes that are
    /// frozen; without it the group is frozen first, or, where that fails, its
    /// processes are signalled until no new one is found. It does not wait for their end.
    ///
    /// # Errors
    /// Those of the files and of kill(2); new processes after five seconds.
    pub fn kill_all(&self, signal: i32) -> Result<(), Error> {
        if signal != SIGKILL {
            return self.signal_all(signal);
        }
        let by_kernel = match self.unified().map(|path| path.join("cgroup.kill")) {
            None => false,
            Some(path) => match file::write(&path, "1") {
                Ok(()) => true,
                Err(Errno::NOENT | Errno::OPNOTSUPP) => false,
                Err(Errno::NODEV) => return Ok(()),
                Err(errno) => return Err(Error::os("write", &path, errno)),
            },
        };
        if !by_kernel {
            self.signal_all(signal)?;
        }
        // A process that the v1 freezer holds dies only when it goes on.
        self.thaw(FREEZE)
    }

    /// Signals each process once, those that were forked meanwhile included.
    fn signal_all(&self, signal: i32) -> Result<(), Error> {
        let frozen_before = self.is_frozen()?;
        let frozen = frozen_before || self.freeze(FREEZE).is_ok();
        let result = self.chase(signal, frozen);
        let thawed = match frozen && !frozen_before {
            true => self.thaw(FREEZE),
            false => Ok(()),
        };
        result.and(thawed)
    }

    fn chase(&self, signal: i32, frozen: bool) -> Result<(), Error> {
        let end = Instant::now() + CHASE;
        let mut done: BTreeSet<i32> = BTreeSet::new();
        loop {
            let mut new = false;
            for pid in self.pids()? {
                if done.insert(pid.as_raw_nonzero().get()) {
                    new = true;
                    self.send(pid, signal)?;
                }
            }
            if !new || frozen {
                return Ok(());
            }
            if Instant::now() >= end {
                let path = self
                    .dirs
                    .first()
                    .map(|d| d.path.clone())
                    .unwrap_or_default();
                return Err(
                    Error::new("kill", &path, "it forks faster than it can be signalled")
                        .hint("freezing it failed; needs the freezer controller or cgroup v2"),
                );
            }
        }
    }

    fn send(&self, pid: Pid, signal: i32) -> Result<(), Error> {
        match pipkin_sys::process::kill(pid.as_raw_nonzero().get(), signal) {
            Ok(()) | Err(pipkin_sys::Errno::ESRCH) => Ok(()),
            Err(errno) => {
                let path = self
                    .dirs
                    .first()
                    .map(|d| d.path.clone())
                    .unwrap_or_default();
                let errno = Errno::from_raw_os_error(errno.number());
                let error = Error::os("kill", &path, errno);
                Err(error.hint(format!("process {}", pid.as_raw_nonzero())))
            }
        }
    }
}
