//! Hooks, config.md "POSIX-platform Hooks".

use pipkin_op::{Actor, HookKind, PlanOp, wire};
use pipkin_spec::config::Hook;
use pipkin_spec::{ContainerState, OCI_VERSION, Status};

use crate::build::{Builder, c_string};
use crate::{Invalid, Step};

/// The container's state as a hook reads it, with a NUL where the process's id belongs: it
/// is not known before the process is.
#[must_use]
pub fn state_text(state: &ContainerState) -> Vec<u8> {
    let state = ContainerState {
        pid: 0,
        ..state.clone()
    };
    let text = serde_json::to_string(&state).unwrap_or_default();
    text.replacen("\"pid\":0", "\"pid\":\0", 1).into_bytes()
}

/// The steps of the hooks of one kind.
pub fn steps(
    builder: &Builder<'_>,
    kind: HookKind,
    actor: Actor,
    status: Status,
) -> Result<Vec<Step>, Invalid> {
    let Some(hooks) = &builder.config.hooks else {
        return Ok(Vec::new());
    };
    let list = match kind {
        HookKind::Prestart => &hooks.prestart,
        HookKind::CreateRuntime => &hooks.create_runtime,
        HookKind::CreateContainer => &hooks.create_container,
        HookKind::StartContainer => &hooks.start_container,
        HookKind::Poststart => &hooks.poststart,
        HookKind::Poststop => &hooks.poststop,
    };
    let state = || {
        state_text(&ContainerState {
            oci_version: OCI_VERSION.to_owned(),
            id: builder.request.id.clone(),
            status,
            pid: 0,
            bundle: builder.request.bundle.clone(),
            annotations: builder.config.annotations.clone(),
        })
    };
    (0u32..)
        .zip(list)
        .map(|(index, hook)| step(kind, index, actor, hook, state()))
        .collect()
}

fn step(
    kind: HookKind,
    index: u32,
    actor: Actor,
    hook: &Hook,
    state: Vec<u8>,
) -> Result<Step, Invalid> {
    let pointer = format!("/hooks/{}/{index}", kind.name());
    if !hook.path.starts_with('/') {
        let message = format!("the path {:?} is not absolute", hook.path);
        return Err(Invalid::new(pointer + "/path", message));
    }
    let timeout = match hook.timeout {
        None => 0,
        Some(seconds) => match u32::try_from(seconds) {
            Ok(seconds) if seconds > 0 => seconds,
            _ => {
                return Err(Invalid::new(
                    pointer + "/timeout",
                    format!("{seconds} is not a timeout"),
                )
                .hint("a number of seconds greater than zero"));
            }
        },
    };
    for (field, list) in [("args", &hook.args), ("env", &hook.env)] {
        for (at, text) in list.iter().enumerate() {
            c_string(&format!("{pointer}/{field}/{at}"), text)?;
        }
    }
    let path = c_string(&pointer, &hook.path)?;
    let args = if hook.args.is_empty() {
        wire::pack([hook.path.as_str()])
    } else {
        wire::pack(hook.args.iter().map(String::as_str))
    };
    let env = wire::pack(hook.env.iter().map(String::as_str));
    let op = PlanOp::Hook {
        kind,
        index,
        path,
        args,
        env,
        timeout,
        state,
    };
    Ok(Step {
        actor,
        pointer: pointer.into(),
        op,
    })
}
