//! Performing a plan: the runtime's steps here, the container's in the process that the
//! clone makes, and undoing what was done when one fails.
//!
//! ```text
//! runtime                                container
//! steps before the clone
//! clone3, execveat ───────────────────▶ begins with its first step
//! steps up to the next of the container
//!              ◀── Reached ────────────── steps up to the next of the runtime
//! steps
//!              ─── Go ─────────────────▶ ...
//!              ◀── Failed, or end of file when the container's process is executed
//! ```

mod error;
mod runtime;
mod undo;

use std::cell::OnceCell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use pipkin_op::{Actor, Message, MessageKind, PlanOp};
use pipkin_plan::{Fds, Plan, Step, turn};
use pipkin_sys::Errno;
use pipkin_sys::process::{self, Ahead, AheadMemory, Arg, Program, Spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::cgroup::{Dir, Group, Layout, Location};
use crate::store::{Entry, State};
use crate::{Result, image};

pub use error::{Failed, explain, hint_for, sentence};
use runtime::Performer;
pub use undo::Undo;

/// What a launch needs besides its plan.
pub struct Launch<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The container's directory.
    pub entry: &'a Entry,
    /// What will be written as its state; the process is filled in.
    pub state: State,
    /// Where the cgroup goes.
    pub group: Option<&'a (Layout, Location)>,
    /// The empty mount namespace that the container may begin from.
    pub pinned: Option<&'a OwnedFd>,
    /// The connection to the console socket, once it is made: a launch that fails cannot take it
    /// back, and the next is given the same.
    pub console: &'a OnceCell<UnixStream>,
    /// Whether a hierarchy of control groups that may not be written to is a failure even
    /// where no limit needs it: `--rootless=false`.
    pub needs_group: bool,
    /// The step that fails instead of being performed, 0 for none.
    pub fault: usize,
}

/// A container that was made, or that runs.
pub struct Launched {
    /// Its state.
    pub state: State,
    /// Its process.
    pub pidfd: OwnedFd,
}

/// How long the container's process may take between two messages, beside the hooks that it
/// runs. Nothing but pipkin's own code runs in it, but the files it works on are not ours.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Performs a plan; when a step fails, what was done is undone.
///
/// # Errors
/// The step that failed.
pub fn launch(launch: Launch<'_>) -> Result<Launched> {
    let mut undo = Undo::default();
    let result = Walk::new(&launch, &mut undo).and_then(Walk::finish);
    match result {
        Ok(launched) => Ok(launched),
        Err(failed) => {
            let pid = undo.pid();
            let left = undo.undo();
            Err(sentence(launch.plan, failed, pid, left))
        }
    }
}

struct Walk<'a, 'u> {
    launch: &'a Launch<'a>,
    performer: Performer<'a>,
    undo: &'u mut Undo,
    socket: OwnedFd,
    /// The process, if it may not have executed the init program yet.
    ahead: Option<Ahead>,
    /// What the kernel may call the init program: the memory file's name, or before Linux
    /// 6.14 the number of its descriptor.
    init_names: [String; 2],
    /// Index of the first step after the clone.
    next: usize,
}

impl<'a, 'u> Walk<'a, 'u> {
    /// Performs the steps up to the clone.
    fn new(launch: &'a Launch<'a>, undo: &'u mut Undo) -> std::result::Result<Self, Failed> {
        let mut performer = Performer::new(launch);
        for (index, step) in launch.plan.steps.iter().enumerate() {
            if launch.fault == index + 1 {
                return Err(Failed::injected(index));
            }
            let PlanOp::Clone {
                flags,
                cgroup,
                user,
                pid,
            } = &step.op
            else {
                performer
                    .perform(&step.op, undo)
                    .map_err(|failed| failed.at(index))?;
                continue;
            };
            let cloned = clone(launch, &performer, *flags, [*cgroup, *user, *pid]);
            let cloned = cloned.map_err(|failed| failed.at(index))?;
            performer.started(cloned.pid);
            undo.process(cloned.pid, cloned.pidfd);
            let init_names = [format!("memfd:{}", image::NAME), cloned.program.to_string()];
            let next = index + 1;
            return Ok(Self {
                launch,
                performer,
                undo,
                socket: cloned.socket,
                ahead: cloned.ahead,
                init_names,
                next,
            });
        }
        Err(Failed::message("the plan has no clone"))
    }

    /// Performs the steps after the clone, in turn with the container.
    fn finish(mut self) -> std::result::Result<Launched, Failed> {
        let steps = &self.launch.plan.steps;
        let mut index = self.next;
        let mut container_is_ahead = false;
        while let Some(step) = steps.get(index) {
            if step.actor == Actor::Container {
                if matches!(step.op, PlanOp::AwaitStart { .. }) {
                    // It waits for `start` now; this process has nothing left to do.
                    return self.launched();
                }
                container_is_ahead = true;
                index += 1;
                continue;
            }
            let turn = turn(steps.get(index..).unwrap_or_default());
            if turn.waits && container_is_ahead {
                self.wait_for(index)?;
            }
            if turn.waits || turn.holds {
                container_is_ahead = false;
            }
            index = self.runtime_steps(index)?;
            if turn.holds {
                self.tell_go(index)?;
            }
        }
        self.wait_executed()?;
        self.launched()
    }

    fn launched(self) -> std::result::Result<Launched, Failed> {
        let pidfd = self.undo.forget().ok_or(Failed::from(Errno::ESRCH))?;
        Ok(Launched {
            state: self.performer.into_state(),
            pidfd,
        })
    }

    /// Performs the runtime's steps from `index` on, up to the next of the container's.
    fn runtime_steps(&mut self, mut index: usize) -> std::result::Result<usize, Failed> {
        while let Some(Step {
            actor: Actor::Runtime,
            op,
            ..
        }) = self.launch.plan.steps.get(index)
        {
            if self.launch.fault == index + 1 {
                return Err(Failed::injected(index));
            }
            self.performer
                .perform(op, self.undo)
                .map_err(|failed| failed.at(index))?;
            index += 1;
        }
        Ok(index)
    }

    fn tell_go(&self, index: usize) -> std::result::Result<(), Failed> {
        let step = u32::try_from(index).unwrap_or(0);
        let mut message = Message::new(MessageKind::Go, step);
        message.value = i32::from_le_bytes(self.performer.without_group().to_le_bytes());
        match rustix::net::send(&self.socket, &message.encode(), SendFlags::NOSIGNAL) {
            Ok(_) => Ok(()),
            // It failed meanwhile, and has said why. After any other error it still waits.
            Err(error @ (rustix::io::Errno::NOBUFS | rustix::io::Errno::NOMEM)) => {
                Err(error.into())
            }
            Err(_) => Err(self
                .wait_message()
                .map_or_else(|failed| failed, |_| self.gone())),
        }
    }

    /// Waits until the container has reached the runtime's step at `index`.
    fn wait_for(&self, index: usize) -> std::result::Result<(), Failed> {
        match self.wait_message()? {
            Some(Message {
                kind: MessageKind::Reached,
                step,
                ..
            }) if usize::try_from(step) == Ok(index + 1) => Ok(()),
            Some(_) => Err(Failed::message("the container's process is out of step")),
            None => Err(self.gone()),
        }
    }

    /// Waits until the container's process is executed, which closes its end of the socket.
    fn wait_executed(&self) -> std::result::Result<(), Failed> {
        match self.wait_message()? {
            Some(_) => Err(Failed::message("the container's process is out of step")),
            // An end of file is an execution, or an end before it: the latter leaves a
            // process that has never been anything but the init program.
            None if self.ended_early() => Err(self.gone()),
            None => Ok(()),
        }
    }

    /// Whether the process ended before its execution. It closes what it has open a moment
    /// before it can be waited for, so that does not tell; what it executes does, and once it has
    /// ended its name, which is still that of the init program.
    fn ended_early(&self) -> bool {
        if self.not_executed().is_some() {
            return true;
        }
        let pid = self.performer.pid();
        match rustix::fs::readlink(format!("/proc/{pid}/exe"), Vec::new()) {
            Ok(program) => image::is_link_to_one(program.as_bytes()),
            Err(_) => self.ended_as_init(),
        }
    }

    /// Whether a process that has ended did so as the init program does without a word: by a
    /// signal or with its own status. A program may have its name as well.
    fn ended_as_init(&self) -> bool {
        /// What the init program exits with where it can tell nobody.
        const UNTOLD: i32 = 70;
        self.wait_for_end();
        let status = self.wait_status();
        if status.is_none_or(|status| {
            status.terminating_signal().is_none() && status.exit_status() != Some(UNTOLD)
        }) {
            return false;
        }
        let comm = crate::cgroup::file::read(format!("/proc/{}/comm", self.performer.pid()));
        comm.is_ok_and(|name| self.init_names.iter().any(|own| own == name.trim_end()))
    }

    /// Waits until a process that has closed its socket can be waited for, a moment later.
    fn wait_for_end(&self) {
        if let Some(pidfd) = self.undo.pidfd() {
            let _ = wait_readable(pidfd, Duration::from_secs(5));
        }
    }

    /// How the process ended; `None` while it lives.
    fn wait_status(&self) -> Option<rustix::process::WaitIdStatus> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pidfd = self.undo.pidfd()?;
        waitid(WaitId::PidFd(pidfd), options).ok().flatten()
    }

    /// The signal that ended the process, 0 for none; `None` while it lives.
    fn status(&self) -> Option<i32> {
        let status = self.wait_status()?;
        Some(status.terminating_signal().unwrap_or(0))
    }

    /// The next message; `None` at the end of file.
    fn wait_message(&self) -> std::result::Result<Option<Message>, Failed> {
        let limit = PATIENCE + hook_time(self.launch.plan);
        wait_readable(&self.socket, limit)?;
        let mut buffer = [0; Message::LENGTH];
        let length = loop {
            match rustix::net::recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                // A process that ends without having read what it was sent resets the
                // connection, once; what it has said itself can still be read.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
                other => break other.map_err(Failed::from)?.0,
            }
        };
        match buffer.get(..length).and_then(Message::decode) {
            Some(message) if message.kind == MessageKind::Failed => Err(Failed::remote(&message)),
            other => Ok(other),
        }
    }

    /// Why the init program was not executed.
    fn not_executed(&self) -> Option<Failed> {
        let error = self.ahead.as_ref().and_then(Ahead::error)?;
        Some(Failed::from(error).at(self.next - 1))
    }

    /// Why the container's process is gone without a word.
    fn gone(&self) -> Failed {
        self.wait_for_end();
        if let Some(failed) = self.not_executed() {
            return failed;
        }
        Failed::gone(self.status().filter(|signal| *signal != 0))
    }
}

/// Waits until a descriptor can be read from.
fn wait_readable(fd: impl AsFd, limit: Duration) -> std::result::Result<(), Failed> {
    let timeout =
        Timespec::try_from(limit).map_err(|_| Failed::message("the limit is too long"))?;
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => {
                let seconds = limit.as_secs();
                return Err(Failed::message(format!(
                    "the container's process has not answered for {seconds} s"
                )));
            }
            other => return other.map(drop).map_err(Failed::from),
        }
    }
}

/// How long the hooks in the container may take.
#[must_use]
pub fn hook_time(plan: &Plan) -> Duration {
    let seconds = plan.steps.iter().map(|step| match (step.actor, &step.op) {
        (Actor::Container, PlanOp::Hook { timeout: 0, .. }) => {
            u64::from(pipkin_stage::hook::DEFAULT_TIMEOUT)
        }
        (Actor::Container, PlanOp::Hook { timeout, .. }) => u64::from(*timeout),
        _ => 0,
    });
    Duration::from_secs(seconds.sum())
}

/// The container's process.
struct Cloned {
    socket: OwnedFd,
    pid: i32,
    pidfd: OwnedFd,
    /// The number that the init program's descriptor had.
    program: i32,
    ahead: Option<Ahead>,
}

/// Makes the container's process.
fn clone(
    launch: &Launch<'_>,
    performer: &Performer<'_>,
    flags: u64,
    places: [Option<pipkin_op::Slot>; 3],
) -> std::result::Result<Cloned, Failed> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut slots = performer.descriptors();
    for step in &launch.plan.steps {
        for slot in runtime_slots(&step.op).into_iter().flatten() {
            if let Some(place) = slots.get_mut(slot) {
                *place = -1;
            }
        }
    }
    let fds = Fds {
        socket: theirs.as_raw_fd(),
        slots: &slots,
    };
    let fault = u32::try_from(launch.fault).unwrap_or(0);
    let plan = pipkin_plan::encode(launch.plan, fds, fault);
    let program = image::compose(image::NAME, &plan)?;
    const ARGS: &[Arg<'static>] = &[Arg::new(c"pipkin-init"), Arg::END];
    let keep: Vec<i32> = slots
        .iter()
        .copied()
        .filter(|&fd| fd >= 0)
        .chain([theirs.as_raw_fd()])
        .collect();
    let [cgroup, user, pid_namespace] =
        places.map(|place| place.and_then(|slot| performer.descriptor(slot)));
    // What a process that is not waited for uses is never given back; neither is anything else.
    let spawn = Spawn {
        flags,
        // A unified side that cannot be written to has no group of the container's.
        cgroup,
        user,
        pid: pid_namespace,
        program: Program::File(program.as_raw_fd()),
        args: ARGS,
        env: &[Arg::END],
        keep: Vec::leak(keep),
        stdin: None,
        own_group: false,
        reset_signals: false,
    };
    let program = program.as_raw_fd();
    let is_awaited = user.is_some() || flags & process::clone::NEWUSER != 0;
    let (pid, pidfd, ahead) = if is_awaited {
        let (pid, pidfd) = process::spawn(&spawn)?;
        (pid, pidfd, None)
    } else {
        let memory =
            AheadMemory::first().unwrap_or_else(|| Box::leak(Box::new(AheadMemory::new())));
        let ahead = process::spawn_ahead(spawn, memory)?;
        (ahead.pid, ahead.pidfd, Some(ahead))
    };
    Ok(Cloned {
        socket: ours,
        pid,
        pidfd: crate::owned(pidfd),
        program,
        ahead,
    })
}

/// The slots of a step whose descriptors only the runtime uses.
fn runtime_slots(op: &PlanOp) -> [Option<usize>; 3] {
    let places = match op {
        PlanOp::Clone {
            cgroup, user, pid, ..
        } => [*cgroup, *user, *pid],
        PlanOp::EnterNamespace { slot, .. } => [Some(*slot), None, None],
        _ => [None; 3],
    };
    places.map(|place| place.map(|slot| usize::from(slot.0)))
}

/// A group whose directories are known, whether or not they exist.
#[must_use]
pub fn expected_group(group: &(Layout, Location)) -> Group {
    let (layout, location) = group;
    let all = layout.v1.iter().chain(&layout.v2);
    let dirs = all.map(|hierarchy| Dir {
        hierarchy: hierarchy.name.clone(),
        path: hierarchy.dir(location, layout.kind),
    });
    Group {
        dirs: dirs.collect(),
    }
}
