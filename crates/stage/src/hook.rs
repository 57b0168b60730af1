//! Hooks: a program with the container's state on its standard input. Both actors run them
//! this way.

use core::ffi::CStr;

use pipkin_op::Detail;
use pipkin_sys::process::{self, Ended, Program, Spawn};
use pipkin_sys::{Errno, Fd, Result, fs};

use crate::Failure;
use crate::exec::vector;
use crate::inside::Place;

/// Seconds after which a hook without a timeout of its own is ended: nothing waits for
/// another program without a limit.
pub const DEFAULT_TIMEOUT: u32 = 900;

/// A hook that is to be run.
#[derive(Debug, Clone, Copy)]
pub struct Hook<'a> {
    /// Its executable.
    pub path: &'a CStr,
    /// Its arguments, packed.
    pub args: &'a [u8],
    /// Its environment, packed.
    pub env: &'a [u8],
    /// Seconds after which it is ended; 0 means [`DEFAULT_TIMEOUT`].
    pub timeout: u32,
    /// The container's state; a NUL stands where the process's id belongs.
    pub state: &'a [u8],
    /// That id, as whoever runs the hook sees it (runtime.md, "State").
    pub pid: i32,
}

/// Runs a hook to its end; a status other than 0 is a failure.
pub fn run(hook: &Hook<'_>) -> core::result::Result<(), Failure> {
    let stdin = Place::new(state_file(hook.state, hook.pid)?);
    let args = vector(hook.args, None)?;
    let env = vector(hook.env, None)?;
    let (pid, pidfd) = process::spawn(&Spawn {
        flags: 0,
        cgroup: None,
        user: None,
        pid: None,
        program: Program::Path(hook.path),
        args,
        env,
        keep: &[],
        stdin: Some(stdin.fd()),
        own_group: true,
        reset_signals: true,
    })?;
    let pidfd = Place::new(pidfd);
    let seconds = if hook.timeout == 0 {
        DEFAULT_TIMEOUT
    } else {
        hook.timeout
    };
    if !wait_ended(pidfd.fd(), seconds)? {
        // With all that it has started and that did not leave its group.
        process::kill(-pid, SIGKILL)?;
        process::wait(pid)?;
        return Err(Failure::new(Errno::ETIMEDOUT, Detail::HookTimeout));
    }
    match process::wait(pid)? {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(status) => Err(Failure::status(status, Detail::HookStatus)),
        Ended::Signalled(signal) => Err(Failure::status(signal, Detail::HookSignal)),
    }
}

const SIGKILL: i32 = 9;

/// Waits until a process has ended, a second at a time.
fn wait_ended(pidfd: Fd, seconds: u32) -> Result<bool> {
    for _ in 0..seconds {
        if process::wait_readable(pidfd, 1000)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A file with the state: whoever does not read it keeps nobody waiting.
fn state_file(state: &[u8], pid: i32) -> Result<Fd> {
    let file = fs::memfd(c"state", false, false)?;
    let mut parts = state.splitn(2, |&byte| byte == 0);
    let mut digits = [0u8; 12];
    fs::write_all(file, parts.next().unwrap_or_default())?;
    if let Some(after) = parts.next() {
        fs::write_all(file, decimal(pid, &mut digits))?;
        fs::write_all(file, after)?;
    }
    fs::rewind(file)?;
    Ok(file)
}

/// The digits of a number that is not negative.
pub fn decimal(number: i32, buffer: &mut [u8; 12]) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut start = buffer.len();
    for place in buffer.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
        start -= 1;
        if rest == 0 {
            break;
        }
    }
    buffer.get(start..).unwrap_or_default()
}
