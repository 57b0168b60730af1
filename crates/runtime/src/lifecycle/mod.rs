//! The life of a container, a function for each command. None is inlined into what chooses
//! between them: each would pay, in pages of its stack, for what all others need.

mod end;
mod hooks;

use std::cell::OnceCell;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use pipkin_op::{Message, MessageKind, PlanOp};
use pipkin_plan::{Plan, Request, Until};
use pipkin_spec::{Config, ContainerState, OCI_VERSION, Status};
use pipkin_sys::Errno;

use crate::config::{self, Bundle};
use crate::launch::{self, Launch, Launched, explain, hint_for};
use crate::log::Level;
use crate::probe::{self, Probed, Touch};
use crate::request::{
    CreateRequest, Global, ListEntry, PlanRequest, Rootless, RunRequest, TryRequest,
};
use crate::store::{self, Entry, Pending, SOCKET, State};
use crate::{Error, Result, attempt as throwaway, caller, foreground, time};

pub use end::{delete, kill};
use end::{end, remove};
use hooks::{is_hook, poststart, poststop};

/// A start that is planned.
struct Planned {
    bundle: Bundle,
    request: Request,
    probed: Probed,
    plan: Plan,
}

impl Planned {
    /// Makes the plan anew for an older host, where the failure of a launch says that one is
    /// needed: the kernel has mount_setattr, and a seccomp filter around this process hides it.
    /// That is found out by failing, so that an ordinary start need not ask. The first to need
    /// the call is a tree that is opened, and that is before anything is done that cannot be
    /// undone, such as a hook.
    fn make_older(&mut self, failure: Error) -> Result<()> {
        let step = failure.step.and_then(|(number, _)| number.checked_sub(1));
        let step = step.and_then(|index| self.plan.steps.get(index));
        let opens_tree = step.is_some_and(|step| match &step.op {
            PlanOp::OpenRoot { attr, .. } | PlanOp::OpenTree { attr, .. } => !attr.is_empty(),
            _ => false,
        });
        let is = |errno: Errno| failure.errno == Some(errno.number());
        if !opens_tree || !is(Errno::ENOSYS) && !is(Errno::EPERM) {
            return Err(failure);
        }
        self.probed.host.filtered = true;
        let plan = pipkin_plan::create(&self.bundle.config, &self.request, &self.probed.host);
        match plan {
            Ok(plan) => self.plan = plan,
            Err(invalid) if is(Errno::ENOSYS) => return Err(invalid.into()),
            // It may be a right that is missing.
            Err(_) => return Err(failure),
        }
        Ok(())
    }
}

/// Reads the configuration, looks at the host and makes the plan. Nothing is changed.
fn make_plan(
    global: &Global,
    create: &CreateRequest,
    until: Until,
    touch: Touch,
) -> Result<Planned> {
    let bundle = config::read(create)?;
    plan_bundle(global, create, bundle, until, touch)
}

fn plan_bundle(
    global: &Global,
    create: &CreateRequest,
    bundle: Bundle,
    until: Until,
    touch: Touch,
) -> Result<Planned> {
    store::check_id(&create.id)?;
    let probed = probe::probe(global, &bundle.config, &create.id, touch)?;
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let request = Request {
        id: create.id.clone(),
        bundle: text(&bundle.path),
        until,
        pid_file: create.pid_file.as_deref().map(text),
        console_socket: create.console_socket.as_deref().map(text),
        no_pivot: create.no_pivot,
        no_new_keyring: create.no_new_keyring,
        preserve_fds: preserved(create),
        listen_fds: listen_fds(),
        cgroup: probed
            .host
            .hierarchies
            .first()
            .map(|h| h.group.clone())
            .unwrap_or_default(),
    };
    let plan = pipkin_plan::create(&bundle.config, &request, &probed.host)?;
    Ok(Planned {
        bundle,
        request,
        probed,
        plan,
    })
}

/// Performs a plan, and where that needs calls which are hidden, once more one without them.
fn perform(
    global: &Global,
    create: &CreateRequest,
    planned: &mut Planned,
) -> Result<(Entry, Launched)> {
    let console = OnceCell::new();
    match perform_once(global, create, planned, &console) {
        Err(failure) => {
            planned.make_older(failure)?;
            perform_once(global, create, planned, &console)
        }
        launched => launched,
    }
}

/// Performs a plan. The container's directory is made first and removed when it fails.
fn perform_once(
    global: &Global,
    create: &CreateRequest,
    planned: &Planned,
    console: &OnceCell<UnixStream>,
) -> Result<(Entry, Launched)> {
    let preserved = preserved(create);
    check_preserved(preserved)?;
    // What the caller left open is neither the hooks' nor the container's.
    pipkin_sys::fs::cloexec_from(3u32.saturating_add(preserved))
        .map_err(|error| Error::errno("close_range", error))?;
    let entry = Entry::create(&global.root, &create.id)?;
    let launched = launch::launch(Launch {
        plan: &planned.plan,
        entry: &entry,
        state: new_state(create, planned),
        group: planned.probed.group.as_ref(),
        pinned: planned.probed.pinned.as_ref(),
        console,
        needs_group: global.rootless == Rootless::False,
        fault: global.inject_fault.unwrap_or(0),
    });
    match launched {
        Ok(launched) => Ok((entry, launched)),
        Err(error) => {
            if let Err(left) = entry.remove() {
                global.log.record(Level::Warning, &left.to_string());
            }
            if is_hook(&error) {
                // runtime.md, "Lifecycle": on to steps 12 and 13.
                poststop(global, &new_state(create, planned));
            }
            Err(error)
        }
    }
}

/// How many sockets the caller has handed over, sd_listen_fds(3). Whose process LISTEN_PID
/// names does not matter: engines start the runtime through a monitor.
fn listen_fds() -> u32 {
    let count = std::env::var("LISTEN_FDS").ok();
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn preserved(create: &CreateRequest) -> u32 {
    listen_fds().saturating_add(create.preserve_fds)
}

/// Descriptors that are to be passed on must be there. One that is closed on execution was not
/// handed over: it is this program's own, with the number of one that is missing.
fn check_preserved(count: u32) -> Result<()> {
    for fd in 3..3u32.saturating_add(count) {
        let number = i32::try_from(fd).unwrap_or(-1);
        if pipkin_sys::fs::is_cloexec(number) != Ok(false) {
            return Err(Error::new(format!(
                "--preserve-fds {count}: descriptor {fd} is not open"
            ))
            .with_hint("it counts the descriptors after standard error"));
        }
    }
    Ok(())
}

fn new_state(create: &CreateRequest, planned: &Planned) -> State {
    let config = &planned.bundle.config;
    let hooks = config.hooks.clone().unwrap_or_default();
    State {
        oci_version: OCI_VERSION.to_owned(),
        id: create.id.clone(),
        bundle: planned.bundle.path.to_string_lossy().into_owned(),
        rootfs: rootfs(&planned.bundle),
        created: time::rfc3339_nanos(time::now()),
        owner: caller::ids().0,
        annotations: config.annotations.clone(),
        own_pid_namespace: has_own_pid_namespace(config),
        poststart: hooks.poststart,
        poststop: hooks.poststop,
        pending: pending(&planned.plan),
        steps: planned.plan.steps.len(),
        start_limit: (launch::PATIENCE + launch::hook_time(&planned.plan)).as_secs(),
        ..State::default()
    }
}

fn rootfs(bundle: &Bundle) -> String {
    let path = bundle
        .config
        .root
        .as_ref()
        .map(|root| root.path.as_str())
        .unwrap_or_default();
    bundle.path.join(path).to_string_lossy().into_owned()
}

fn has_own_pid_namespace(config: &Config) -> bool {
    let namespaces = config.linux.iter().flat_map(|linux| &linux.namespaces);
    namespaces.into_iter().any(|namespace| {
        namespace.kind == "pid" && namespace.path.as_deref().is_none_or(str::is_empty)
    })
}

/// The steps that come after the wait for `start`.
fn pending(plan: &Plan) -> Vec<Pending> {
    let steps = plan.steps.iter().enumerate();
    steps
        .skip_while(|(_, step)| !matches!(step.op, PlanOp::AwaitStart { .. }))
        .skip(1)
        .map(|(index, step)| Pending {
            step: index + 1,
            pointer: step.pointer.to_string(),
            text: step.op.to_string(),
        })
        .collect()
}

/// Makes a container; its process waits for [`start`].
///
/// # Errors
/// What is wrong with the configuration, or the step that failed; nothing is left behind.
#[inline(never)]
pub fn create(global: &Global, request: &CreateRequest) -> Result<()> {
    let mut planned = make_plan(global, request, Until::Created, Touch::Pin)?;
    let made = perform(global, request, &mut planned)?;
    // What is open is closed and what is in memory is freed by the end of the process, in one go.
    std::mem::forget((made, planned));
    Ok(())
}

/// Lets the process of a created container execute.
///
/// # Errors
/// A container that does not wait for it; the step that failed.
#[inline(never)]
pub fn start(global: &Global, id: &str) -> Result<()> {
    let (entry, state) = find(global, id)?;
    entry.lock()?;
    match state.status(&entry) {
        Status::Created => {}
        Status::Stopped => {
            return Err(Error::new("cannot start a container that has stopped"));
        }
        status => {
            return Err(Error::new(format!(
                "cannot start a container that is {}: it was started already",
                status.as_str()
            )));
        }
    }
    let path = format!("/proc/self/fd/{}/{SOCKET}", entry.fd().as_raw_fd());
    let socket = UnixStream::connect(path)
        .map_err(|error| Error::io("the container's process does not wait for start", &error))?;
    let failed = release(socket, &state).err();
    entry.forget_start();
    match failed {
        // A container whose start a hook refuses is removed; one whose program cannot be
        // executed stays, stopped, for the engine to look at.
        Some(error) if is_hook(&error) => {
            end(global, &entry, &state);
            Err(error)
        }
        Some(error) => Err(error),
        None => poststart(global, &entry, &state),
    }
}

/// Tells the waiting process to go on, and waits until it has executed or failed.
fn release(mut socket: UnixStream, state: &State) -> Result<()> {
    let message = Message::new(MessageKind::Start, 0);
    socket
        .write_all(&message.encode())
        .map_err(|error| Error::io("the container's process does not wait for start", &error))?;
    let mut buffer = [0; Message::LENGTH];
    let limit = Duration::from_secs(state.start_limit.max(1));
    socket
        .set_read_timeout(Some(limit))
        .map_err(|error| Error::io("start socket", &error))?;
    let answer = socket.read_exact(&mut buffer);
    if answer
        .as_ref()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    {
        let message = format!(
            "the container's process has not answered for {} s",
            limit.as_secs()
        );
        return Err(Error::new(message).with_hint("is its cgroup frozen?"));
    }
    let failed = match (answer, Message::decode(&buffer)) {
        (Ok(()), Some(message)) if message.kind == MessageKind::Failed => message,
        // End of file: the process was executed, or has ended, which closed its end.
        _ if store::ended_as_init(state.pid) => {
            return Err(Error::new(
                "the container has stopped before its program was executed",
            ));
        }
        _ => return Ok(()),
    };
    let number = usize::try_from(failed.step).unwrap_or(0);
    let pending = state.pending.iter().find(|pending| pending.step == number);
    let (text, is_errno) = explain(
        failed.value,
        failed.detail,
        &String::from_utf8_lossy(failed.name.as_bytes()),
    );
    let what = pending.map_or("the container's process", |pending| pending.text.as_str());
    Err(Error {
        message: format!("{what}: {text}"),
        subject: None,
        step: Some((number, state.steps)),
        actor: Some(crate::error::Actor::Container),
        pointer: pending
            .map(|pending| pending.pointer.clone())
            .filter(|text| !text.is_empty()),
        errno: is_errno.then_some(failed.value),
        hint: hint_for(failed.value, failed.detail),
    })
}

/// Makes a container, starts it and, unless detached, waits for it; returns the exit
/// status for the caller to exit with.
///
/// # Errors
/// Those of [`create`] and [`start`].
#[inline(never)]
pub fn run(global: &Global, request: &RunRequest) -> Result<u8> {
    let planned = make_plan(global, &request.create, Until::Running, Touch::Pin)?;
    run_planned(global, request, planned)
}

/// The same with a plan that is made.
fn run_planned(global: &Global, request: &RunRequest, mut planned: Planned) -> Result<u8> {
    if !request.detach {
        foreground::prepare()?;
    }
    let (entry, launched) = perform(global, &request.create, &mut planned)?;
    let Launched { state, pidfd } = launched;
    poststart(global, &entry, &state)?;
    if request.detach {
        return Ok(0);
    }
    let status = foreground::wait(state.pid, &pidfd)?;
    if let Some(path) = request.create.pid_file.as_ref().filter(|_| !request.keep) {
        // The engine may have removed it.
        let _ = std::fs::remove_file(path);
    }
    if !request.keep {
        remove(global, &entry, &state)?;
    }
    std::mem::forget((entry, state, pidfd, planned));
    Ok(status)
}

/// A command in a throwaway container; returns its exit status.
///
/// # Errors
/// Those of [`run`].
#[inline(never)]
pub fn attempt(global: &Global, request: &TryRequest) -> Result<u8> {
    let (create, bundle) = throwaway::bundle(global, request)?;
    let planned = plan_bundle(global, &create, bundle, Until::Running, Touch::Pin)?;
    let run = RunRequest {
        create,
        detach: false,
        keep: false,
    };
    run_planned(global, &run, planned)
}

/// The steps of a `create` as text.
///
/// # Errors
/// What is wrong with the configuration.
#[inline(never)]
pub fn plan(global: &Global, request: &PlanRequest) -> Result<String> {
    let mut create = request.create.clone();
    if create.id.is_empty() {
        "plan".clone_into(&mut create.id);
    }
    Ok(make_plan(global, &create, Until::Created, Touch::Nothing)?
        .plan
        .to_string())
}

/// A container that exists.
pub(super) fn find(global: &Global, id: &str) -> Result<(Entry, State)> {
    let entry = Entry::open(&global.root, id)?;
    match entry.read()? {
        Some(state) => Ok((entry, state)),
        None => Err(
            Error::new(format!("container {id:?} is still being created"))
                .with_hint("if nobody creates it any more, remove it with `delete --force`"),
        ),
    }
}

pub(super) fn describe(state: &State, status: Status) -> ContainerState {
    ContainerState {
        oci_version: state.oci_version.clone(),
        id: state.id.clone(),
        status,
        pid: if status == Status::Stopped {
            0
        } else {
            state.pid
        },
        bundle: state.bundle.clone(),
        annotations: state.annotations.clone(),
    }
}

/// The state of a container.
///
/// # Errors
/// A container that does not exist.
#[inline(never)]
pub fn state(global: &Global, id: &str) -> Result<ContainerState> {
    let (entry, state) = find(global, id)?;
    Ok(describe(&state, state.status(&entry)))
}

/// All containers, by name.
///
/// # Errors
/// Those of reading the state root.
#[inline(never)]
pub fn list(global: &Global) -> Result<Vec<ListEntry>> {
    let mut entries = Vec::new();
    for id in store::ids(&global.root)? {
        // One that is removed or made meanwhile is not listed.
        let Ok(Some(entry)) = Entry::find(&global.root, &id) else {
            continue;
        };
        let Ok(Some(state)) = entry.read() else {
            continue;
        };
        let status = state.status(&entry);
        entries.push(ListEntry {
            oci_version: state.oci_version.clone(),
            id,
            pid: if status == Status::Stopped {
                0
            } else {
                state.pid
            },
            status,
            bundle: state.bundle.clone(),
            rootfs: state.rootfs.clone(),
            created: state.created.clone(),
            owner: caller::name(state.owner),
        });
    }
    Ok(entries)
}
