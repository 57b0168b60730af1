//! A container's group.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use pipkin_plan::cgroup::Write;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::Error;

/// The group's directory in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dir {
    /// The hierarchy, as in /proc/self/cgroup; empty for the unified one.
    pub hierarchy: String,
    /// The directory.
    pub path: PathBuf,
}

/// A container's group in all hierarchies: what State keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// One a hierarchy, v1 first.
    pub dirs: Vec<Dir>,
}

impl Group {
    /// Writes the limits, in order.
    ///
    /// # Errors
    /// The file, value, pointer and errno of the first that fails.
    pub fn apply(&self, _writes: &[Write]) -> Result<(), Error> {
        Ok(())
    }

    /// Attaches a device program to the v2 side, in place of the one that is there.
    ///
    /// # Errors
    /// Those of bpf(2).
    pub fn attach_devices(&self, _program: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    /// The `tasks` file of every v1 hierarchy, open for writing: a single-threaded
    /// process that writes `0` into each has joined the group there.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn join_files(&self) -> Result<Vec<OwnedFd>, Error> {
        Ok(Vec::new())
    }

    /// The unified side's directory, for CLONE_INTO_CGROUP.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn unified_dir(&self) -> Result<Option<OwnedFd>, Error> {
        Ok(None)
    }

    /// Moves another process (all its threads) into the group: slow, see the module.
    ///
    /// # Errors
    /// Those of write(2).
    pub fn join(&self, _pid: Pid) -> Result<(), Error> {
        Ok(())
    }

    /// Every process in the group and its sub-groups.
    ///
    /// # Errors
    /// Those of reading the directories.
    pub fn pids(&self) -> Result<Vec<Pid>, Error> {
        Ok(Vec::new())
    }

    /// Sends `signal` to every process in the group; SIGKILL by `cgroup.kill` if there.
    ///
    /// # Errors
    /// Those of the signal, or processes that remain.
    pub fn kill_all(&self, _signal: Signal) -> Result<(), Error> {
        Ok(())
    }

    /// Stops every process in the group.
    ///
    /// # Errors
    /// Not frozen in `limit`: it is then thawed again.
    pub fn freeze(&self, _limit: Duration) -> Result<(), Error> {
        Ok(())
    }

    /// Lets them go on.
    ///
    /// # Errors
    /// Those of the files, or not thawed in `limit`.
    pub fn thaw(&self, _limit: Duration) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the group is frozen.
    ///
    /// # Errors
    /// Those of the files.
    pub fn is_frozen(&self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Removes the group and all its sub-groups.
    ///
    /// # Errors
    /// What still holds it after `limit`.
    pub fn remove(&self, _limit: Duration) -> Result<(), Error> {
        Ok(())
    }
}
