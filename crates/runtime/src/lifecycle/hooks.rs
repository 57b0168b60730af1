//! The hooks that the runtime runs around a start and an end.

use pipkin_plan::state_text;
use pipkin_spec::Status;
use pipkin_spec::config::Hook;
use pipkin_stage::hook;

use super::describe;
use super::end::end;
use crate::launch::explain;
use crate::log::Level;
use crate::request::Global;
use crate::store::{Entry, State};
use crate::{Error, Result};

/// Whether a hook's failure is what an error tells of.
pub(super) fn is_hook(error: &Error) -> bool {
    error
        .pointer
        .as_deref()
        .is_some_and(|pointer| pointer.starts_with("/hooks/"))
}

/// Runs the hooks of a start; when one fails the container is ended and removed (runtime.md,
/// "Lifecycle", step 9).
pub(super) fn poststart(global: &Global, entry: &Entry, state: &State) -> Result<()> {
    let result = run_hooks(state, &state.poststart, Status::Running, "poststart");
    if result.is_err() {
        end(global, entry, state);
    }
    result
}

/// Runs the hooks of an end. The container is gone, so one that fails is told and stops
/// nothing.
pub(super) fn poststop(global: &Global, state: &State) {
    for (index, hook) in state.poststop.iter().enumerate() {
        if let Err(error) = run_hook(state, hook, Status::Stopped, ("poststop", index)) {
            global.log.record(Level::Warning, &error.to_string());
        }
    }
}

/// Runs hooks in the runtime's namespaces; the first that fails ends it.
fn run_hooks(state: &State, hooks: &[Hook], status: Status, kind: &str) -> Result<()> {
    let mut hooks = hooks.iter().enumerate();
    hooks.try_for_each(|(index, hook)| run_hook(state, hook, status, (kind, index)))
}

fn run_hook(
    state: &State,
    hook: &Hook,
    status: Status,
    (kind, index): (&str, usize),
) -> Result<()> {
    let text = state_text(&describe(state, status));
    let pid = if status == Status::Stopped {
        0
    } else {
        state.pid
    };
    let path = std::ffi::CString::new(hook.path.as_str()).unwrap_or_default();
    let args = if hook.args.is_empty() {
        pipkin_op::wire::pack([hook.path.as_str()])
    } else {
        pipkin_op::wire::pack(hook.args.iter().map(String::as_str))
    };
    let env = pipkin_op::wire::pack(hook.env.iter().map(String::as_str));
    let timeout = hook
        .timeout
        .and_then(|seconds| u32::try_from(seconds).ok())
        .unwrap_or(0);
    hook::run(&hook::Hook {
        path: &path,
        args: &args,
        env: &env,
        timeout,
        state: &text,
        pid,
    })
    .map_err(|failure| {
        let (text, is_errno) = explain(failure.value, failure.detail, "");
        Error {
            message: format!("{kind} hook {}: {text}", path.to_string_lossy()),
            actor: Some(crate::error::Actor::Runtime),
            pointer: Some(format!("/hooks/{kind}/{index}")),
            errno: is_errno.then_some(failure.value),
            ..Error::default()
        }
    })
}
