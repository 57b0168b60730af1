//! The plan of `create` and `run`.

use pipkin_op::{Actor, HookKind, PlanOp};
use pipkin_spec::config::{Linux, Mount};
use pipkin_spec::{Config, Status};

use crate::build::{Builder, c_string};
use crate::cgroup::{self, Version, Write};
use crate::namespaces::{self, Namespaces, flag};
use crate::{
    Host, Invalid, Plan, Request, Until, devices, hooks, mounts, older, process, rootfs, seccomp,
    sysctl, unsupported,
};

/// Makes the plan of a start.
///
/// # Errors
/// What cannot be carried out, with its place in the configuration.
pub fn create(config: &Config, request: &Request, host: &Host) -> Result<Plan, Invalid> {
    unsupported::refuse(config, host)?;
    let Some(process) = &config.process else {
        return Err(Invalid::new("/process", "there is no process to start"));
    };
    process::check(process)?;
    let none = Linux::default();
    let linux = config.linux.as_ref().unwrap_or(&none);
    let mut namespaces = Namespaces::new(linux)?;
    check(config, &namespaces)?;
    namespaces.pinned = starts_empty(config, request, host, &namespaces);
    let env = process::environment(process)?;
    let filter = match &linux.seccomp {
        Some(profile) => Some(seccomp::compile(profile, seccomp::Arch::NATIVE)?),
        None => None,
    };
    if filter.as_ref().is_some_and(|filter| filter.notify) {
        let message = "SCMP_ACT_NOTIFY needs a listener, which is not supported yet";
        return Err(Invalid::new("/linux/seccomp", message));
    }
    let b = &mut Builder::new(config, linux, process, request, host, namespaces);
    let group_mounts = config
        .mounts
        .iter()
        .any(|mount| matches!(mount.kind.as_deref(), Some("cgroup" | "cgroup2")));
    // A process is born in a group of v2, and shows its group where it has no cgroup namespace.
    b.group_first = !b.namespaces.pinned
        || host.v2().is_some()
        || group_mounts && !b.namespaces.has(flag::CGROUP)
        || host.v1().count() > 32;

    rootfs::open(b)?;
    console_socket(b)?;
    let limits = limits(linux, host)?;
    let clone_into = if b.group_first { make_cgroup(b)? } else { None };
    if !b.namespaces.pinned {
        limit_cgroup(b, &limits)?;
    }
    // Nothing of the runtime's is left to a hook or to the container's process.
    let first = 3u32.saturating_add(request.preserve_fds);
    b.container("", PlanOp::CloseRange { first });
    let (user, pid) = namespaces::open(b)?;
    namespaces::map_ids(b)?;
    if b.namespaces.pinned {
        isolate(b)?;
        b.sources_here();
        if !b.group_first {
            make_cgroup(b)?;
        }
        limit_cgroup(b, &limits)?;
    }
    oom_score(b)?;
    if b.namespaces.pinned {
        b.runtime("", PlanOp::WriteState {});
    }
    join_cgroup(b, clone_into)?;
    namespaces::set_time(b, host)?;
    let cgroup_namespace = b.namespaces.new & flag::CGROUP;
    if cgroup_namespace != 0 {
        b.container(
            "/linux/namespaces",
            PlanOp::Unshare {
                flags: cgroup_namespace,
            },
        );
    }
    if !b.namespaces.pinned {
        isolate(b)?;
    }

    b.container("", PlanOp::Umask { mask: 0 });
    rootfs::attach(b)?;
    mounts::add(b)?;
    devices::add(b)?;
    process::make_directory(b)?;
    terminal(b)?;
    if !linux.sysctl.is_empty() {
        rootfs::ensure_proc(b)?;
    }
    let before_pivot = [
        (HookKind::Prestart, Actor::Runtime),
        (HookKind::CreateRuntime, Actor::Runtime),
        (HookKind::CreateContainer, Actor::Container),
    ];
    for (kind, actor) in before_pivot {
        let steps = hooks::steps(b, kind, actor, Status::Creating)?;
        b.after.extend(steps);
    }
    rootfs::enter(b);
    sysctl::set(b)?;
    rootfs::hide(b)?;
    mounts::finish_readonly(b)?;
    rootfs::finish(b);

    process::personality(b)?;
    process::scheduling(b)?;
    process::rlimits(b)?;
    let start = match request.until {
        Until::Created => {
            let (listener, lock) = (b.slot("")?, b.slot("")?);
            b.open(
                "",
                PlanOp::ListenStart {
                    slot: listener,
                    lock,
                },
            );
            Some((listener, lock))
        }
        Until::Running => None,
    };
    let keep = start.iter().flat_map(|(one, other)| [one.0, other.0]);
    let keep = keep.flat_map(u16::to_le_bytes).collect();
    let proc = None;
    b.container("", PlanOp::CloseRest { first, keep, proc });
    let sets = process::become_user(b, filter.as_ref())?;
    process::find(b, &env)?;
    record(b)?;
    if let Some((listener, lock)) = start {
        b.container("", PlanOp::AwaitStart { listener, lock });
    }
    let steps = hooks::steps(
        b,
        HookKind::StartContainer,
        Actor::Container,
        Status::Created,
    )?;
    b.after.extend(steps);
    process::execute(b, &env, filter, sets)?;
    for kind in [HookKind::Poststart, HookKind::Poststop] {
        hooks::steps(b, kind, Actor::Runtime, Status::Running)?;
    }
    if !host.has_mount_setattr() {
        older::without_mount_setattr(b)?;
    }

    let clone = PlanOp::Clone {
        flags: b.namespaces.cloned(),
        cgroup: clone_into,
        user,
        pid,
    };
    let builder = std::mem::replace(
        b,
        Builder::new(config, linux, process, request, host, Namespaces::default()),
    );
    let mut plan = builder.finish(clone);
    plan.limits = limits.0;
    Ok(plan)
}

/// What the process leaves behind or gets of its own without the root file system. All but the
/// pid and user namespaces, into which a process must be born, it makes itself: it is a process
/// of its own by then, and a network namespace takes as long as everything else together.
fn isolate(b: &mut Builder<'_>) -> Result<(), Invalid> {
    let own = b.namespaces.unshared();
    if own != 0 {
        b.container("/linux/namespaces", PlanOp::Unshare { flags: own });
    }
    b.container("", PlanOp::Setsid {});
    if !b.request.no_new_keyring {
        let name = c_string("", &format!("_ses.{}", b.request.id))?;
        b.container("", PlanOp::Keyring { name });
    }
    name_host(b)?;
    if b.namespaces.is_new(flag::NETWORK) {
        b.container("/linux/namespaces", PlanOp::LoopbackUp {});
    }
    Ok(())
}

/// Whether the container begins from the pinned mount namespace. The kernel lets nobody of
/// another user namespace in; createContainer hooks and file systems such as overlay need the
/// host's files; and --no-pivot is for a root that has to stay where it is.
fn starts_empty(config: &Config, request: &Request, host: &Host, namespaces: &Namespaces) -> bool {
    let hooks = config
        .hooks
        .as_ref()
        .is_some_and(|hooks| !hooks.create_container.is_empty());
    let names_host_paths = config.mounts.iter().any(mounts::names_host_paths);
    host.pinned
        && namespaces.is_new(flag::MOUNT)
        && !namespaces.has(flag::USER)
        && !host.in_user_namespace
        && !hooks
        && !names_host_paths
        && !request.no_pivot
}

/// What depends on several parts of the configuration.
fn check(config: &Config, namespaces: &Namespaces) -> Result<(), Invalid> {
    if let Some(joined) = namespaces.joined(flag::MOUNT) {
        return Err(Invalid::new(
            joined.pointer.clone(),
            "a container cannot be made in a mount namespace that exists",
        )
        .hint("leave the path out: its root file system needs a mount namespace of its own"));
    }
    if !namespaces.is_new(flag::MOUNT) && !config.mounts.is_empty() {
        return Err(Invalid::new(
            "/mounts",
            "mounts need a mount namespace of the container's own",
        )
        .hint("add {\"type\": \"mount\"} to /linux/namespaces"));
    }
    for (pointer, name) in [
        ("/hostname", &config.hostname),
        ("/domainname", &config.domainname),
    ] {
        let Some(name) = name.as_deref().filter(|name| !name.is_empty()) else {
            continue;
        };
        if !namespaces.has(flag::UTS) {
            return Err(Invalid::new(
                pointer,
                format!(
                    "{name:?} would change the host: the container has no uts namespace of its own"
                ),
            )
            .hint("add {\"type\": \"uts\"} to /linux/namespaces"));
        }
        if name.len() > 64 {
            return Err(Invalid::new(
                pointer,
                format!("{name:?} is longer than 64 characters"),
            ));
        }
    }
    for (index, mount) in config.mounts.iter().enumerate() {
        if !mount.destination.starts_with('/') {
            relative(index, mount)?;
        }
    }
    Ok(())
}

/// A relative destination is taken from the root, as runtime-spec 1.0 had it; an empty one is
/// none.
fn relative(index: usize, mount: &Mount) -> Result<(), Invalid> {
    if mount.destination.is_empty() {
        let pointer = format!("/mounts/{index}/destination");
        return Err(Invalid::new(pointer, "there is no destination"));
    }
    Ok(())
}

fn console_socket(b: &mut Builder<'_>) -> Result<(), Invalid> {
    let terminal = b.process.terminal;
    match (&b.request.console_socket, terminal) {
        (Some(_), false) => Err(Invalid::new(
            "/process/terminal",
            "is false, but --console-socket is given",
        )
        .hint("set it to true, or leave --console-socket out")),
        (None, true) if b.request.until == Until::Created => Err(Invalid::new(
            "/process/terminal",
            "a terminal needs a console socket",
        )
        .hint("give --console-socket, or set it to false")),
        (None, true) => Err(Invalid::new(
            "/process/terminal",
            "a terminal in the foreground is not supported yet",
        )
        .hint("give --console-socket, or set it to false")),
        _ => Ok(()),
    }
}

/// The terminal. Its socket is connected before anything is made.
fn terminal(b: &mut Builder<'_>) -> Result<(), Invalid> {
    const POINTER: &str = "/process/terminal";
    let Some(path) = b.request.console_socket.clone() else {
        return Ok(());
    };
    let socket = b.slot(POINTER)?;
    let path = c_string(POINTER, &path)?;
    b.open(POINTER, PlanOp::ConnectConsole { slot: socket, path });
    let size = b.process.console_size.unwrap_or_default();
    let op = PlanOp::Console {
        socket,
        dir: b.root,
        rows: size.height,
        columns: size.width,
        uid: b.process.user.uid,
        mount: b.namespaces.is_new(flag::MOUNT) && b.dev.is_some(),
    };
    b.container(POINTER, op);
    Ok(())
}

/// The writes and, on v2, the device program.
fn limits(linux: &Linux, host: &Host) -> Result<(Vec<Write>, Option<Vec<u8>>), Invalid> {
    let none = pipkin_spec::Resources::default();
    let resources = linux.resources.as_ref().unwrap_or(&none);
    let mut writes = cgroup::writes(&cgroup::normalise(resources)?, &host.cgroup)?;
    let policy = cgroup::devices::policy(&resources.devices)?;
    let mut program = None;
    match host.cgroup.side(cgroup::Controller::Devices) {
        Some(Version::V1) => writes.extend(policy.v1_writes()?),
        _ if host.cgroup.v2.is_some() && !policy.allows_all() => program = Some(policy.program()),
        _ => {}
    }
    Ok((writes, program))
}

/// A step of the runtime on the group: before there is the container's process, or while that is
/// at work.
fn on_cgroup(b: &mut Builder<'_>, first: bool, pointer: &'static str, op: PlanOp) {
    if first {
        b.open(pointer, op);
    } else {
        b.runtime(pointer, op);
    }
}

/// Makes the group. What it gives is the slot of its directory, where the process can be born in
/// it.
fn make_cgroup(b: &mut Builder<'_>) -> Result<Option<pipkin_op::Slot>, Invalid> {
    const POINTER: &str = "/linux/cgroupsPath";
    if b.host.hierarchies.is_empty() {
        return Ok(None);
    }
    let path = c_string(POINTER, &b.request.cgroup)?;
    on_cgroup(b, b.group_first, POINTER, PlanOp::CgroupCreate { path });
    let born = b.host.v2().is_some() && b.host.has_clone_into_cgroup();
    Ok(born.then_some(b.slot(POINTER)?))
}

/// Writes the limits of the group.
fn limit_cgroup(
    b: &mut Builder<'_>,
    (writes, program): &(Vec<Write>, Option<Vec<u8>>),
) -> Result<(), Invalid> {
    const RESOURCES: &str = "/linux/resources";
    if b.host.hierarchies.is_empty() {
        return Ok(());
    }
    let first = !b.namespaces.pinned;
    if !writes.is_empty() {
        let text: Vec<String> = writes
            .iter()
            .map(|write| format!("{}={}", write.file, write.value))
            .collect();
        let writes = c_string(RESOURCES, &text.join(", "))?;
        on_cgroup(b, first, RESOURCES, PlanOp::CgroupLimits { writes });
    }
    if let Some(program) = program.clone() {
        let op = PlanOp::CgroupDevices { program };
        on_cgroup(b, first, "/linux/resources/devices", op);
    }
    Ok(())
}

/// Joins the group: the unified side by birth, each v1 hierarchy by a write of its own.
fn join_cgroup(b: &mut Builder<'_>, unified: Option<pipkin_op::Slot>) -> Result<(), Invalid> {
    const POINTER: &str = "/linux/cgroupsPath";
    if b.host.hierarchies.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = b
        .host
        .v1()
        .map(|hierarchy| hierarchy.name.clone())
        .collect();
    let mut joins = Vec::new();
    if !b.namespaces.pinned {
        for name in &names {
            joins.push((b.slot(POINTER)?, c_string(POINTER, name)?));
        }
    }
    let first = joins.first().map_or(b.root, |(slot, _)| *slot);
    let count = u16::try_from(joins.len()).unwrap_or(u16::MAX);
    if count > 0 || unified.is_some() {
        let op = PlanOp::CgroupOpen {
            first,
            count,
            unified,
        };
        b.open(POINTER, op);
    }
    for (slot, hierarchy) in joins {
        b.container(POINTER, PlanOp::CgroupJoin { slot, hierarchy });
    }
    if b.host.v2().is_some() && unified.is_none() {
        b.runtime(POINTER, PlanOp::CgroupMove {});
    }
    if b.namespaces.pinned {
        let host = b.host;
        for (index, hierarchy) in (0u32..).zip(host.v1()) {
            let tasks = format!("{}{}/tasks", hierarchy.mount, hierarchy.group);
            let tasks = c_string(POINTER, &tasks)?;
            b.container(POINTER, PlanOp::CgroupEnter { tasks, index });
        }
    }
    Ok(())
}

fn oom_score(b: &mut Builder<'_>) -> Result<(), Invalid> {
    const POINTER: &str = "/process/oomScoreAdj";
    let Some(score) = b.process.oom_score_adj else {
        return Ok(());
    };
    if !(-1000..=1000).contains(&score) {
        return Err(Invalid::new(POINTER, format!("{score} is not a score")).hint("-1000 to 1000"));
    }
    let value = c_string(POINTER, &score.to_string())?;
    b.runtime(
        POINTER,
        PlanOp::WriteProc {
            file: c"oom_score_adj".into(),
            value,
        },
    );
    Ok(())
}

fn name_host(b: &mut Builder<'_>) -> Result<(), Invalid> {
    if let Some(name) = b.config.hostname.as_deref().filter(|name| !name.is_empty()) {
        let name = c_string("/hostname", name)?;
        b.container("/hostname", PlanOp::Hostname { name });
    }
    if let Some(name) = b
        .config
        .domainname
        .as_deref()
        .filter(|name| !name.is_empty())
    {
        let name = c_string("/domainname", name)?;
        b.container("/domainname", PlanOp::Domainname { name });
    }
    Ok(())
}

/// What is left for whoever asks: the state and the process's id.
fn record(b: &mut Builder<'_>) -> Result<(), Invalid> {
    if !b.namespaces.pinned {
        b.runtime("", PlanOp::WriteState {});
    }
    b.runtime("", PlanOp::PublishState {});
    if let Some(path) = b.request.pid_file.clone() {
        let path = c_string("", &path)?;
        b.runtime("", PlanOp::WritePidFile { path });
    }
    Ok(())
}
