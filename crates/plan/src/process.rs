//! `process`: who it is, what it may do, and its execution.

use pipkin_op::{PlanOp, wire};
use pipkin_spec::config::{IoPriority, Process, Rlimit, Scheduler};

use crate::build::{Builder, c_string};
use crate::capabilities::{SYS_ADMIN, Sets};
use crate::mounts::normalised;
use crate::namespaces::flag;
use crate::seccomp::Filter;
use crate::{Invalid, Until};

/// Checks what every process must have.
pub fn check(process: &Process) -> Result<(), Invalid> {
    if process.args.is_empty() {
        return Err(
            Invalid::new("/process/args", "there is no command to execute")
                .hint("the first of args is the executable"),
        );
    }
    if !process.cwd.starts_with('/') {
        return Err(Invalid::new(
            "/process/cwd",
            format!("the working directory {:?} is not absolute", process.cwd),
        )
        .hint("\"/\" for the root"));
    }
    if process
        .user
        .username
        .as_deref()
        .is_some_and(|name| !name.is_empty())
    {
        return Err(
            Invalid::new("/process/user/username", "names are for Windows")
                .hint("use /process/user/uid"),
        );
    }
    Ok(())
}

/// `RLIMIT_*` of `asm-generic/resource.h`.
const RLIMITS: [&str; 16] = [
    "RLIMIT_CPU",
    "RLIMIT_FSIZE",
    "RLIMIT_DATA",
    "RLIMIT_STACK",
    "RLIMIT_CORE",
    "RLIMIT_RSS",
    "RLIMIT_NPROC",
    "RLIMIT_NOFILE",
    "RLIMIT_MEMLOCK",
    "RLIMIT_AS",
    "RLIMIT_LOCKS",
    "RLIMIT_SIGPENDING",
    "RLIMIT_MSGQUEUE",
    "RLIMIT_NICE",
    "RLIMIT_RTPRIO",
    "RLIMIT_RTTIME",
];

/// `process.rlimits`. In a user namespace the container has no right to raise a limit, so
/// the runtime sets them.
pub fn rlimits(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    let by_runtime = builder.namespaces.has(flag::USER);
    let mut seen = 0u32;
    for (index, limit) in builder.process.rlimits.iter().enumerate() {
        let pointer = format!("/process/rlimits/{index}");
        let resource = rlimit(&pointer, limit)?;
        if seen & 1 << resource != 0 {
            return Err(Invalid::new(
                pointer,
                format!("{} is set twice", limit.kind),
            ));
        }
        seen |= 1 << resource;
        let op = PlanOp::Rlimit {
            resource,
            soft: limit.soft,
            hard: limit.hard,
        };
        if by_runtime {
            builder.runtime(pointer, op);
        } else {
            builder.container(pointer, op);
        }
    }
    Ok(())
}

fn rlimit(pointer: &str, limit: &Rlimit) -> Result<u32, Invalid> {
    let known = RLIMITS.iter().position(|name| *name == limit.kind);
    let Some(resource) = known.and_then(|at| u32::try_from(at).ok()) else {
        return Err(Invalid::new(
            format!("{pointer}/type"),
            format!("unknown resource {:?}", limit.kind),
        )
        .hint(format!("one of {}", RLIMITS.join(", "))));
    };
    if limit.soft > limit.hard {
        return Err(Invalid::new(
            format!("{pointer}/soft"),
            format!("{} is more than the hard limit {}", limit.soft, limit.hard),
        ));
    }
    Ok(resource)
}

/// `process.scheduler` and `process.ioPriority`.
pub fn scheduling(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    if let Some(scheduler) = &builder.process.scheduler {
        let op = scheduler_op(scheduler)?;
        builder.container("/process/scheduler", op);
    }
    if let Some(priority) = &builder.process.io_priority {
        let value = io_priority(priority)?;
        builder.container("/process/ioPriority", PlanOp::IoPriority { value });
    }
    Ok(())
}

fn scheduler_op(scheduler: &Scheduler) -> Result<PlanOp, Invalid> {
    const POLICIES: [(&str, u32); 7] = [
        ("SCHED_OTHER", 0),
        ("SCHED_FIFO", 1),
        ("SCHED_RR", 2),
        ("SCHED_BATCH", 3),
        ("SCHED_ISO", 4),
        ("SCHED_IDLE", 5),
        ("SCHED_DEADLINE", 6),
    ];
    const FLAGS: [(&str, u64); 7] = [
        ("SCHED_FLAG_RESET_ON_FORK", 0x01),
        ("SCHED_FLAG_RECLAIM", 0x02),
        ("SCHED_FLAG_DL_OVERRUN", 0x04),
        ("SCHED_FLAG_KEEP_POLICY", 0x08),
        ("SCHED_FLAG_KEEP_PARAMS", 0x10),
        ("SCHED_FLAG_UTIL_CLAMP_MIN", 0x20),
        ("SCHED_FLAG_UTIL_CLAMP_MAX", 0x40),
    ];
    let policy = POLICIES.iter().find(|(name, _)| *name == scheduler.policy);
    let Some(&(_, policy)) = policy else {
        let message = format!("unknown policy {:?}", scheduler.policy);
        return Err(
            Invalid::new("/process/scheduler/policy", message).hint(format!(
                "one of {}",
                POLICIES.map(|(name, _)| name).join(", ")
            )),
        );
    };
    let mut flags = 0;
    for (index, name) in scheduler.flags.iter().enumerate() {
        let flag = FLAGS.iter().find(|(known, _)| known == name);
        let Some(&(_, flag)) = flag else {
            let pointer = format!("/process/scheduler/flags/{index}");
            return Err(Invalid::new(pointer, format!("unknown flag {name:?}"))
                .hint(format!("one of {}", FLAGS.map(|(name, _)| name).join(", "))));
        };
        flags |= flag;
    }
    let priority = u32::try_from(scheduler.priority).map_err(|_| {
        let message = format!("{} is not a priority", scheduler.priority);
        Invalid::new("/process/scheduler/priority", message).hint("0 to 99")
    })?;
    let Scheduler {
        nice,
        runtime,
        deadline,
        period,
        ..
    } = *scheduler;
    Ok(PlanOp::Scheduler {
        policy,
        flags,
        nice,
        priority,
        runtime,
        deadline,
        period,
    })
}

fn io_priority(priority: &IoPriority) -> Result<u32, Invalid> {
    const CLASSES: [(&str, u32); 3] = [
        ("IOPRIO_CLASS_RT", 1),
        ("IOPRIO_CLASS_BE", 2),
        ("IOPRIO_CLASS_IDLE", 3),
    ];
    let class = CLASSES.iter().find(|(name, _)| *name == priority.class);
    let Some(&(_, class)) = class else {
        let message = format!("unknown class {:?}", priority.class);
        return Err(
            Invalid::new("/process/ioPriority/class", message).hint(format!(
                "one of {}",
                CLASSES.map(|(name, _)| name).join(", ")
            )),
        );
    };
    match u32::try_from(priority.priority) {
        Ok(level) if level <= 7 => Ok(class << 13 | level),
        _ => {
            let message = format!("{} is not a level", priority.priority);
            Err(Invalid::new("/process/ioPriority/priority", message).hint("0 to 7"))
        }
    }
}

/// `linux.personality`.
pub fn personality(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    let Some(personality) = &builder.linux.personality else {
        return Ok(());
    };
    let persona = match personality.domain.as_str() {
        "LINUX" => 0,
        "LINUX32" => 8,
        other => {
            return Err(Invalid::new(
                "/linux/personality/domain",
                format!("unknown domain {other:?}"),
            )
            .hint("LINUX or LINUX32"));
        }
    };
    if let Some(flag) = personality.flags.first() {
        let message = format!("unknown flag {flag:?}: the specification names none");
        return Err(Invalid::new("/linux/personality/flags/0", message));
    }
    builder.container("/linux/personality/domain", PlanOp::Personality { persona });
    Ok(())
}

/// The environment: the last of two lines for one name wins, in the place of the first.
pub fn environment(process: &Process) -> Result<Vec<&str>, Invalid> {
    let mut env: Vec<&str> = Vec::with_capacity(process.env.len());
    for (index, line) in process.env.iter().enumerate() {
        let pointer = format!("/process/env/{index}");
        c_string(&pointer, line)?;
        let Some((name, _)) = line.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Invalid::new(pointer, format!("{line:?} is not NAME=value")));
        };
        let same = |known: &&mut &str| {
            known
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('='))
        };
        match env.iter_mut().find(same) {
            Some(known) => *known = line,
            None => env.push(line),
        }
    }
    Ok(env)
}

fn variable<'e>(env: &[&'e str], name: &str) -> Option<&'e str> {
    env.iter()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// Where executables are looked for when the container has no PATH.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The working directory is made where the image lacks it, while the root can be written to.
pub fn make_directory(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    let path = normalised(&builder.process.cwd);
    if path != "/" {
        let path = c_string("/process/cwd", &path)?;
        let op = PlanOp::Mkdir {
            dir: builder.root,
            path,
            mode: 0o755,
        };
        builder.container("/process/cwd", op);
    }
    Ok(())
}

/// From the user to what may be done, up to the point where the container is created.
pub fn become_user(builder: &mut Builder<'_>, filter: Option<&Filter>) -> Result<Sets, Invalid> {
    let process = builder.process;
    let user = &process.user;
    let sets = Sets::new(process.capabilities.as_ref())?;
    let path = c_string("/process/cwd", &process.cwd)?;
    let op = PlanOp::Chdir {
        path: path.clone(),
        late: false,
    };
    builder.container("/process/cwd", op);
    builder.container(
        "/process/capabilities/bounding",
        PlanOp::BoundingSet {
            keep: sets.bounding,
        },
    );
    if builder.namespaces.is_new(flag::USER) && !builder.host.privileged {
        if !user.additional_gids.is_empty() {
            return Err(Invalid::new(
                "/process/user/additionalGids",
                "supplementary groups cannot be set by an ordinary user",
            )
            .hint("run as root, or take them out"));
        }
    } else {
        let groups = user
            .additional_gids
            .iter()
            .flat_map(|gid| gid.to_ne_bytes())
            .collect();
        builder.container("/process/user/additionalGids", PlanOp::Groups { groups });
    }
    builder.container(
        "/process/user",
        PlanOp::User {
            uid: user.uid,
            gid: user.gid,
        },
    );
    // Loading a filter without no_new_privs needs CAP_SYS_ADMIN up to the last moment.
    let extra = if filter.is_some() && !process.no_new_privileges {
        SYS_ADMIN
    } else {
        0
    };
    builder.container(
        "/process/capabilities",
        PlanOp::Capabilities {
            effective: sets.effective | extra,
            permitted: sets.permitted | extra,
            inheritable: sets.inheritable,
        },
    );
    if sets.ambient != 0 {
        let op = PlanOp::Ambient { set: sets.ambient };
        builder.container("/process/capabilities/ambient", op);
    }
    builder.container("/process/cwd", PlanOp::Chdir { path, late: true });
    let mask = user.umask.unwrap_or(0o022);
    if mask > 0o777 {
        return Err(
            Invalid::new("/process/user/umask", format!("{mask} is not a umask"))
                .hint("0 to 511 (octal 777)"),
        );
    }
    builder.container("/process/user/umask", PlanOp::Umask { mask });
    Ok(sets)
}

/// Finds the executable and HOME.
pub fn find(builder: &mut Builder<'_>, env: &[&str]) -> Result<(), Invalid> {
    let name = builder
        .process
        .args
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    let name = c_string("/process/args/0", name)?;
    let search = c_string(
        "/process/env",
        variable(env, "PATH").unwrap_or(DEFAULT_PATH),
    )?;
    let search = (!name.as_bytes().contains(&b'/')).then_some(search);
    let hooks = builder.config.hooks.as_ref();
    let last = builder.request.until == Until::Running
        && hooks.is_none_or(|hooks| hooks.start_container.is_empty());
    let op = PlanOp::FindExecutable { name, search, last };
    builder.container("/process/args/0", op);
    if variable(env, "HOME").is_none_or(str::is_empty) {
        let uid = builder.process.user.uid;
        builder.container("/process/env", PlanOp::Home { uid });
    }
    Ok(())
}

/// The filter and the execution, after everything else.
pub fn execute(
    builder: &mut Builder<'_>,
    env: &[&str],
    filter: Option<Filter>,
    sets: Sets,
) -> Result<(), Invalid> {
    let process = builder.process;
    if process.no_new_privileges {
        builder.container("/process/noNewPrivileges", PlanOp::NoNewPrivs {});
    }
    if let Some(filter) = filter {
        let program = filter.to_bytes();
        let op = PlanOp::Seccomp {
            program,
            flags: filter.flags,
        };
        builder.container("/linux/seccomp", op);
        if !process.no_new_privileges && sets.permitted & SYS_ADMIN == 0 {
            builder.container(
                "/process/capabilities",
                PlanOp::Capabilities {
                    effective: sets.effective,
                    permitted: sets.permitted,
                    inheritable: sets.inheritable,
                },
            );
        }
    }
    for (index, arg) in process.args.iter().enumerate() {
        c_string(&format!("/process/args/{index}"), arg)?;
    }
    let args = wire::pack(process.args.iter().map(String::as_str));
    let listen = match builder.request.listen_fds {
        0 => Vec::new(),
        count => vec![format!("LISTEN_FDS={count}"), "LISTEN_PID=1".to_owned()],
    };
    // HOME that is set but empty is replaced, not followed by another.
    let env = env.iter().copied().filter(|line| *line != "HOME=");
    let env = wire::pack(env.chain(listen.iter().map(String::as_str)));
    let ignored = builder.host.ignored_signals;
    builder.container("/process/args", PlanOp::Exec { args, env, ignored });
    Ok(())
}
