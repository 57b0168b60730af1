//! `kill` and `delete`, and what is taken away when a container ends.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use pipkin_spec::Status;
use pipkin_sys::process as sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::find;
use super::hooks::poststop;
use crate::log::Level;
use crate::request::{DeleteRequest, Global, KillRequest, Target};
use crate::store::{self, Entry, State};
use crate::{Error, Result, owned};

const SIGKILL: i32 = 9;

/// How long what was killed may take to end.
const END: Duration = Duration::from_secs(10);

/// Sends a signal.
///
/// # Errors
/// A container that does not exist or is stopped.
#[inline(never)]
pub fn kill(global: &Global, request: &KillRequest) -> Result<()> {
    for id in targets(global, &request.target)? {
        kill_one(global, &id, request).map_err(|error| error.about(format!("kill {id}")))?;
    }
    Ok(())
}

fn kill_one(global: &Global, id: &str, request: &KillRequest) -> Result<()> {
    let (entry, state) = find(global, id)?;
    if request.all && !state.group.dirs.is_empty() {
        if state.own_pid_namespace && state.status(&entry) == Status::Stopped {
            return Err(not_running());
        }
        return Ok(state.group.kill_all(request.signal)?);
    }
    // Whether it waits or is frozen does not matter yet, and is not looked at.
    let pidfd = open_process(&state)?.ok_or_else(not_running)?;
    match sys::pidfd_send_signal(pidfd.as_raw_fd(), request.signal) {
        Ok(()) => {}
        Err(pipkin_sys::Errno::ESRCH) => return Err(not_running()),
        Err(error) => return Err(Error::errno(format!("signal {}", request.signal), error)),
    }
    if request.signal == SIGKILL && state.group.is_frozen().unwrap_or(false) {
        // What is frozen does not end.
        state.group.thaw(END)?;
    }
    Ok(())
}

fn not_running() -> Error {
    Error::new("the container is not running")
}

/// The container's process; `None` when it has ended. Its beginning is looked at after it is
/// held, so that another process that got its id is never signalled.
pub(super) fn open_process(state: &State) -> Result<Option<OwnedFd>> {
    let pidfd = match sys::pidfd_open(state.pid) {
        Ok(pidfd) => owned(pidfd),
        Err(pipkin_sys::Errno::ESRCH) => return Ok(None),
        Err(error) => return Err(Error::errno(format!("process {}", state.pid), error)),
    };
    Ok((store::start_time(state.pid) == Some(state.start_time)).then_some(pidfd))
}

/// Removes what a stopped container left.
///
/// # Errors
/// A container that does not exist, unless forced; one that is not stopped.
#[inline(never)]
pub fn delete(global: &Global, request: &DeleteRequest) -> Result<()> {
    for id in targets(global, &request.target)? {
        delete_one(global, &id, request.force)
            .map_err(|error| error.about(format!("delete {id}")))?;
    }
    Ok(())
}

fn delete_one(global: &Global, id: &str, force: bool) -> Result<()> {
    let Some(entry) = Entry::find(&global.root, id)? else {
        return if force {
            Ok(())
        } else {
            Err(Error::missing(id))
        };
    };
    entry.lock()?;
    let Some(state) = entry.read()? else {
        if !force {
            return Err(Error::new("the container is still being created")
                .with_hint("if nobody creates it any more, add --force"));
        }
        if let Some(group) = entry.read_group() {
            group.kill_all(SIGKILL)?;
            group.remove(END)?;
        }
        return entry.remove();
    };
    let status = state.status(&entry);
    match status {
        Status::Stopped => {}
        Status::Created => {}
        _ if force => {}
        status => {
            return Err(Error::new(format!(
                "cannot delete a container that is not stopped: it is {}",
                status.as_str()
            ))
            .with_hint("kill it first, or add --force"));
        }
    }
    if status == Status::Stopped {
        return remove(global, &entry, &state);
    }
    let pidfd = open_process(&state)?;
    end_and_remove(global, &entry, &state, pidfd.as_ref())
}

/// Ends the container's process and removes the container.
pub(super) fn end_and_remove(
    global: &Global,
    entry: &Entry,
    state: &State,
    pidfd: Option<&OwnedFd>,
) -> Result<()> {
    if let Some(pidfd) = pidfd {
        // One that has ended meanwhile is what is wanted.
        let _ = sys::pidfd_send_signal(pidfd.as_raw_fd(), SIGKILL);
        if state.group.is_frozen().unwrap_or(false) {
            state.group.thaw(END)?;
        }
        wait_ended(state.pid, pidfd)?;
        // Where it is a child of this process, it is waited for; else its parent does that.
        let _ = sys::reap();
    }
    remove(global, entry, state)
}

fn wait_ended(pid: i32, pidfd: &OwnedFd) -> Result<()> {
    let limit = Timespec::try_from(END).ok();
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    loop {
        match poll(&mut fds, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => {
                let message = format!(
                    "process {pid} has not ended {} s after SIGKILL",
                    END.as_secs()
                );
                return Err(Error::new(message)
                    .with_hint("it may be in an uninterruptible call: see /proc/PID/stack"));
            }
            _ => return Ok(()),
        }
    }
}

/// Removes a container whose process has ended: what is left of its processes, its cgroup,
/// its directory; then the hooks of its end.
pub(super) fn remove(global: &Global, entry: &Entry, state: &State) -> Result<()> {
    if !state.own_pid_namespace && !state.group.dirs.is_empty() {
        state.group.kill_all(SIGKILL)?;
    }
    state.group.remove(END)?;
    entry.remove()?;
    poststop(global, state);
    Ok(())
}

/// Ends and removes a container whose start has failed; what stays is told.
pub(super) fn end(global: &Global, entry: &Entry, state: &State) {
    let removed =
        open_process(state).and_then(|pidfd| end_and_remove(global, entry, state, pidfd.as_ref()));
    if let Err(left) = removed {
        global.log.record(Level::Warning, &left.to_string());
    }
}

/// The ids that a command is about.
fn targets(global: &Global, target: &Target) -> Result<Vec<String>> {
    let pattern = match target {
        Target::Id(id) => return Ok(vec![id.clone()]),
        Target::Regex(pattern) => pattern,
    };
    let expression = regex_lite::Regex::new(pattern).map_err(|error| {
        Error::new(format!(
            "--regex {pattern:?} is not a regular expression: {error}"
        ))
    })?;
    let ids = store::ids(&global.root)?;
    Ok(ids
        .into_iter()
        .filter(|id| expression.is_match(id))
        .collect())
}
