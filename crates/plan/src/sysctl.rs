//! `linux.sysctl`: only what a namespace of the container's own has.

use pipkin_op::PlanOp;

use crate::Invalid;
use crate::build::{Builder, c_string, escape};
use crate::namespaces::flag;

/// Parameters of the IPC namespace, besides those below `fs.mqueue.`.
const IPC: [&str; 13] = [
    "kernel.auto_msgmni",
    "kernel.msg_next_id",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.sem_next_id",
    "kernel.shm_next_id",
    "kernel.shm_rmid_forced",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "fs.mqueue.",
];

/// Adds a step for each parameter.
pub fn set(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    for (name, value) in &builder.linux.sysctl {
        let pointer = format!("/linux/sysctl/{}", escape(name));
        let path = path(name);
        check(builder, &pointer, &path.replace('/', "."))?;
        let Some(proc) = builder.proc else {
            return Err(Invalid::new(
                pointer,
                "a kernel parameter needs a mount namespace",
            ));
        };
        let path = c_string(&pointer, &format!("sys/{path}"))?;
        let value = c_string(&pointer, value)?;
        builder.container(pointer, PlanOp::Sysctl { proc, path, value });
    }
    Ok(())
}

/// The path below /proc/sys: dots separate, and slashes stand for dots; where a slash comes
/// first it is the other way round, sysctl(8).
fn path(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(at) if name.as_bytes().get(at) == Some(&b'/') => name.to_owned(),
        _ => name
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                other => other,
            })
            .collect(),
    }
}

fn check(builder: &Builder<'_>, pointer: &str, name: &str) -> Result<(), Invalid> {
    let (needed, kind) = if IPC
        .iter()
        .any(|known| name == *known || (known.ends_with('.') && name.starts_with(known)))
    {
        (flag::IPC, "ipc")
    } else if name.starts_with("net.") {
        (flag::NETWORK, "network")
    } else if name == "kernel.domainname" {
        (flag::UTS, "uts")
    } else if name.starts_with("user.") {
        (flag::USER, "user")
    } else if name == "kernel.hostname" {
        return Err(
            Invalid::new(pointer, "the host name is not set as a kernel parameter")
                .hint("use /hostname"),
        );
    } else {
        return Err(Invalid::new(
            pointer,
            format!("kernel parameter {name:?} belongs to the whole host, not to a namespace"),
        )
        .hint("set it on the host"));
    };
    if builder.namespaces.has(needed) {
        return Ok(());
    }
    Err(Invalid::new(
        pointer,
        format!("kernel parameter {name:?} would change the host: the container has no {kind} namespace of its own"),
    )
    .hint(format!("add {{\"type\": \"{kind}\"}} to /linux/namespaces")))
}
