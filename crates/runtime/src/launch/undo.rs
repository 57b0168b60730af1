//! What was done and has to be undone when a later step fails, in reverse order.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use crate::cgroup::Created;

/// What was done and has to be undone.
#[derive(Default)]
pub struct Undo {
    process: Option<(i32, OwnedFd)>,
    group: Option<Created>,
    files: Vec<PathBuf>,
}

impl Undo {
    /// A process that was made.
    pub fn process(&mut self, pid: i32, pidfd: OwnedFd) {
        self.process = Some((pid, pidfd));
    }

    /// The id of that process.
    pub fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(|(pid, _)| *pid)
    }

    /// A cgroup that was made.
    pub fn group(&mut self, created: Created) {
        self.group = Some(created);
    }

    /// A file that was written.
    pub fn file(&mut self, path: PathBuf) {
        self.files.push(path);
    }

    /// A descriptor of that process.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(|(_, pidfd)| pidfd.as_fd())
    }

    /// Nothing has to be undone any more; gives the process's descriptor back.
    pub fn forget(&mut self) -> Option<OwnedFd> {
        std::mem::take(self).process.map(|(_, pidfd)| pidfd)
    }

    /// Undoes all of it; what could not be undone is told.
    pub fn undo(self) -> Vec<String> {
        let mut left = Vec::new();
        for path in self.files.iter().rev() {
            // One that is gone already is what is wanted.
            let _ = std::fs::remove_file(path);
        }
        if let Some((pid, pidfd)) = &self.process {
            end(*pid, pidfd, &mut left);
        }
        if let Some(Err(error)) = self.group.map(Created::undo) {
            left.push(error.to_string());
        }
        left
    }
}

/// Ends a child, which takes its namespaces and mounts with it.
fn end(pid: i32, pidfd: &OwnedFd, left: &mut Vec<String>) {
    const LIMIT: Duration = Duration::from_secs(10);
    let _ = pidfd_send_signal(pidfd, Signal::KILL);
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let limit = Timespec::try_from(LIMIT).ok();
    let ended = loop {
        match poll(&mut fds, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.is_ok_and(|ready| ready > 0),
        }
    };
    if ended {
        // Already waited for is what is wanted.
        let _ = pipkin_sys::process::wait(pid);
    } else {
        left.push(format!(
            "process {pid} has not ended {} s after SIGKILL",
            LIMIT.as_secs()
        ));
    }
}
