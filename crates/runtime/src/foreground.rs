//! `run` in the foreground: waits for the container, passes signals on, reaps.

use std::os::fd::{AsRawFd, OwnedFd};

use pipkin_sys::process as sys;

use crate::{Error, Result};

const SIGCHLD: i32 = 17;
const SIGURG: i32 = 23;

/// Blocks every signal, so that none is lost between the clone and the wait, and makes this
/// process the one that gets the container's orphans.
///
/// # Errors
/// Those of the system calls.
pub fn prepare() -> Result<()> {
    sys::block_signals().map_err(|error| Error::errno("sigprocmask", error))?;
    // Any number but 0 means yes.
    rustix::process::set_child_subreaper(Some(rustix::process::Pid::INIT))
        .map_err(|error| Error::errno("PR_SET_CHILD_SUBREAPER", crate::errno(error)))
}

/// Waits until the process ends, passing every signal on to it; its exit status, 128 and
/// the signal's number where a signal ended it.
///
/// # Errors
/// Those of the system calls.
pub fn wait(pid: i32, pidfd: &OwnedFd) -> Result<u8> {
    // SIGCHLD has been blocked since before the process was made: it waits for us if that has
    // ended already.
    loop {
        let signal = sys::wait_signal(u64::MAX).map_err(|error| Error::errno("sigwait", error))?;
        if signal == SIGCHLD {
            if let Some(status) = reap(pid)? {
                return Ok(status);
            }
        } else if signal != SIGURG {
            // One that has just ended needs no signal.
            let _ = sys::pidfd_send_signal(pidfd.as_raw_fd(), signal);
        }
    }
}

/// Takes the status of every child that has ended; that of `pid`, if it is among them.
fn reap(pid: i32) -> Result<Option<u8>> {
    while let Some((ended, status)) = sys::reap().map_err(|error| Error::errno("wait4", error))? {
        if ended == pid {
            return Ok(Some(exit_status(status)));
        }
    }
    Ok(None)
}

fn exit_status(ended: sys::Ended) -> u8 {
    let status = match ended {
        sys::Ended::Exited(status) => status,
        sys::Ended::Signalled(signal) => 128 + signal,
    };
    u8::try_from(status & 0xff).unwrap_or(u8::MAX)
}
