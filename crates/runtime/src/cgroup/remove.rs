//! Removing a group, with what the container made below it.

use std::path::Path;
use std::time::{Duration, Instant};

use pipkin_plan::cgroup::Version;
use rustix::io::Errno;

use super::{Error, Group, file, freeze, walk};

impl Group {
    /// Removes the group and all its sub-groups in every hierarchy; groups above it
    /// stay, as with runc and crun, for others may be about to use them. A group that is
    /// already gone is removed.
    ///
    /// # Errors
    /// What still holds it after `limit`.
    pub fn remove(&self, limit: Duration) -> Result<(), Error> {
        // The unified side notifies when the last process has ended, in all hierarchies.
        let (v2, v1): (Vec<_>, Vec<_>) = self.dirs.iter().partition(|d| d.version() == Version::V2);
        let dirs = v2.into_iter().chain(v1);
        // Mostly nothing holds them, and the clock is not needed.
        let held: Vec<_> = dirs.filter(|dir| attempt(&dir.path).is_err()).collect();
        if held.is_empty() {
            return Ok(());
        }
        let end = Instant::now() + limit;
        let mut first = Ok(());
        for dir in held {
            first = first.and(one(
                &dir.path,
                end.saturating_duration_since(Instant::now()),
            ));
        }
        first
    }
}

/// Removes one directory and what is below it.
pub(super) fn one(path: &Path, limit: Duration) -> Result<(), Error> {
    let mut end = None;
    let mut pause = Duration::from_micros(250);
    loop {
        let errno = match attempt(path) {
            Ok(()) => return Ok(()),
            Err(errno @ (Errno::BUSY | Errno::NOTEMPTY)) => errno,
            Err(errno) => return Err(Error::os("rmdir", path, errno)),
        };
        let end = *end.get_or_insert_with(|| Instant::now() + limit);
        if Instant::now() >= end {
            return Err(held(path, errno));
        }
        let left = end.saturating_duration_since(Instant::now());
        let events = path.join("cgroup.events");
        let empty = |text: &str| file::keyed(text, "populated ") == Some(0);
        match freeze::wait_event(&events, left, empty) {
            // Empty and busy yet: the kernel is about to let it go. On v1 nothing tells.
            Ok(true) | Err(_) => std::thread::sleep(pause.min(left)),
            Ok(false) => {}
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn attempt(path: &Path) -> Result<(), Errno> {
    match rustix::fs::rmdir(path) {
        Err(Errno::BUSY | Errno::NOTEMPTY) => {}
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    match walk::remove_below(path) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    match rustix::fs::rmdir(path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Who is still in there, by name.
fn held(path: &Path, errno: Errno) -> Error {
    let pids = walk::pids(path).unwrap_or_default();
    let mut names: Vec<String> = pids
        .iter()
        .take(5)
        .map(|pid| {
            let number = pid.as_raw_nonzero();
            let name = file::read(format!("/proc/{number}/comm")).unwrap_or_default();
            format!("{number} ({})", name.trim())
        })
        .collect();
    if pids.len() > names.len() {
        names.push(format!("and {} more", pids.len() - names.len()));
    }
    let error = Error::os("rmdir", path, errno);
    match names.is_empty() {
        true => error.hint("it has no process that is visible here, but the kernel holds it"),
        false => error.hint(format!("still in it: {}", names.join(", "))),
    }
}
