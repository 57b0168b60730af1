//! From a failed step to a sentence.

use pipkin_op::{Actor, Detail, Message, PlanOp};
use pipkin_plan::Plan;
use pipkin_sys::Errno;

use crate::Error;
use crate::error::Actor as Who;

/// A step that failed.
#[derive(Debug, Clone, Default)]
pub struct Failed {
    /// Index of the step; none where no step is to blame.
    pub index: Option<usize>,
    /// The kernel's error, or what `detail` says.
    pub value: Option<i32>,
    /// What the error does not tell.
    pub detail: Option<Detail>,
    /// What of the image it is about.
    pub name: String,
    /// What failed, where it says more than the step's own text.
    pub what: Option<String>,
    /// A more exact place in the configuration.
    pub pointer: Option<String>,
    /// What may help.
    pub hint: Option<String>,
}

impl Failed {
    /// A failure that no errno tells of.
    pub fn message(what: impl Into<String>) -> Self {
        Self {
            what: Some(what.into()),
            ..Self::default()
        }
    }

    /// The fault that was asked for.
    pub fn injected(index: usize) -> Self {
        let (value, detail) = (Some(Errno::EIO.number()), Some(Detail::Injected));
        Self {
            index: Some(index),
            value,
            detail,
            ..Self::default()
        }
    }

    /// A failure that the container told.
    pub fn remote(message: &Message) -> Self {
        let index = usize::try_from(message.step)
            .ok()
            .and_then(|step| step.checked_sub(1));
        Self {
            index,
            value: Some(message.value),
            detail: Some(message.detail),
            name: String::from_utf8_lossy(message.name.as_bytes()).into_owned(),
            ..Self::default()
        }
    }

    /// The container's process ended without a word.
    pub fn gone(signal: Option<i32>) -> Self {
        let mut failed = Self::message(match signal {
            Some(signal) => format!("the container's process was ended by signal {signal}"),
            None => "the container's process ended before it executed its program".to_owned(),
        });
        if signal == Some(9) {
            let hint = "SIGKILL is also what the kernel sends when a memory limit is too small \
                        to start: see /linux/resources/memory/limit";
            failed.hint = Some(hint.to_owned());
        }
        if signal.is_some_and(|signal| [4, 5, 31].contains(&signal)) {
            let hint = "the filter of /linux/seccomp may forbid execve, or the calls that tell of \
                        its failure";
            failed.hint = Some(hint.to_owned());
        }
        failed
    }

    /// The same, of this step unless another one is known.
    pub fn at(mut self, index: usize) -> Self {
        self.index.get_or_insert(index);
        self
    }
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self {
            value: Some(errno.number()),
            ..Self::default()
        }
    }
}

impl From<pipkin_stage::Failure> for Failed {
    fn from(failure: pipkin_stage::Failure) -> Self {
        Self {
            value: Some(failure.value),
            detail: Some(failure.detail),
            ..Self::default()
        }
    }
}

impl From<rustix::io::Errno> for Failed {
    fn from(errno: rustix::io::Errno) -> Self {
        Errno::new(errno.raw_os_error()).into()
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Errno::new(number).into(),
            None => Self::message(error.to_string()),
        }
    }
}

impl From<crate::cgroup::Error> for Failed {
    fn from(error: crate::cgroup::Error) -> Self {
        let what = match error.errno {
            Some(errno) => {
                let text = error.to_string();
                text.strip_suffix(&format!(": {errno}"))
                    .unwrap_or(&text)
                    .to_owned()
            }
            None => error.to_string(),
        };
        let parts = error.into_parts();
        Self {
            value: parts.errno.map(Errno::number),
            what: Some(what),
            pointer: parts.pointer,
            hint: parts.hint,
            ..Self::default()
        }
    }
}

/// The sentence of a failed step. `left` is what could not be undone.
#[must_use]
pub fn sentence(plan: &Plan, failed: Failed, pid: Option<i32>, left: Vec<String>) -> Error {
    let step = failed.index.and_then(|index| plan.steps.get(index));
    let mut message = match (&failed.what, step) {
        (Some(what), _) => what.clone(),
        (None, Some(step)) => step.op.to_string(),
        (None, None) => format!("process {}", pid.unwrap_or(0)),
    };
    let mut errno = None;
    if let Some(value) = failed.value {
        let (text, is_errno) = explain(value, failed.detail.unwrap_or(Detail::None), &failed.name);
        message = format!("{message}: {text}");
        errno = is_errno.then_some(value);
    }
    for left in left {
        message = format!("{message}; what is left behind: {left}");
    }
    let hint = failed
        .hint
        .or_else(|| hint(step.map(|step| &step.op)?, errno, failed.detail));
    let pointer = failed.pointer.or_else(|| {
        let pointer = &step?.pointer;
        (!pointer.is_empty()).then(|| pointer.to_string())
    });
    Error {
        message,
        subject: None,
        step: failed.index.map(|index| (index + 1, plan.steps.len())),
        actor: step.map(|step| match step.actor {
            Actor::Runtime => Who::Runtime,
            Actor::Container => Who::Container,
        }),
        pointer,
        errno,
        hint,
    }
}

/// The words of an errno in lower case.
fn lower(errno: Errno) -> String {
    errno.to_string().to_lowercase()
}

/// The words for an error, and whether its number is an errno.
#[must_use]
pub fn explain(value: i32, detail: Detail, name: &str) -> (String, bool) {
    let errno = Errno::new(value);
    match detail {
        // What engines take an exit status of 126 or 127 from is written in lower case.
        Detail::NoInterpreter if !name.is_empty() => {
            (format!("its interpreter {name}: {}", lower(errno)), true)
        }
        Detail::NoExecutable | Detail::NotExecutable | Detail::NoInterpreter => {
            (lower(errno), true)
        }
        Detail::None => (errno.to_string(), true),
        Detail::NotInPath => (format!("executable file not found in $PATH: {errno}"), true),
        Detail::OutsideRoot => (format!("it leads outside the root: {errno}"), true),
        Detail::HookStatus => (format!("it ended with status {value}"), false),
        Detail::HookSignal => (format!("it was ended by signal {value}"), false),
        Detail::HookTimeout => (format!("it took longer than its timeout: {errno}"), true),
        Detail::OtherDevice => (format!("another file is there: {errno}"), true),
        Detail::NotDirectory => (
            format!("the image has a link or a file there, not a directory: {errno}"),
            true,
        ),
        Detail::Injected => (format!("a fault was asked for: {errno}"), true),
        Detail::Malformed => (format!("the plan is not well formed: {errno}"), true),
        Detail::TooLarge => (format!("the file is too large: {errno}"), true),
        Detail::Unmapped => (format!("the id is not mapped: {errno}"), true),
    }
}

/// What may help with a failure after `start`, whose step is known by its text alone.
#[must_use]
pub fn hint_for(value: i32, detail: Detail) -> Option<String> {
    hint(
        &PlanOp::Exec {
            args: Vec::new(),
            env: Vec::new(),
            ignored: 0,
        },
        Some(value),
        Some(detail),
    )
}

/// What may help.
fn hint(op: &PlanOp, errno: Option<i32>, detail: Option<Detail>) -> Option<String> {
    let errno = Errno::new(errno?);
    let text = match (op, errno, detail) {
        (_, _, Some(Detail::Injected)) => return None,
        (_, _, Some(Detail::NoInterpreter)) => {
            "the file exists: the interpreter of its first line, or its dynamic loader, does not"
        }
        (_, _, Some(Detail::NotInPath)) => "see PATH in /process/env, or give an absolute path",
        (PlanOp::FindExecutable { .. }, Errno::ENOENT, _) => {
            "the path is looked up in the container's root file system"
        }
        (PlanOp::FindExecutable { .. }, Errno::EACCES, _) => {
            "the container's user may not execute it: see its mode, and noexec mounts"
        }
        (PlanOp::Exec { .. }, Errno::ENOEXEC, _) => {
            "it is no program for this machine: another architecture, or a script without #!"
        }
        (PlanOp::OpenRoot { .. }, Errno::ENOENT, _) => {
            "the path is relative to the bundle; is the image unpacked?"
        }
        (PlanOp::OpenTree { .. }, Errno::ENOENT, _) => {
            "the source of a bind mount must exist on the host"
        }
        (PlanOp::Rlimit { .. }, Errno::EPERM, _) => {
            "raising a hard limit needs CAP_SYS_RESOURCE: lower it, or raise the caller's"
        }
        (PlanOp::Mount { fstype, .. } | PlanOp::NewMount { fstype, .. }, Errno::EPERM, _) => {
            match fstype.to_bytes() {
                b"proc" | b"sysfs" | b"mqueue" => {
                    "in a user namespace this needs a pid, network or ipc namespace of the \
                     container's own, and a host that does not hide parts of it"
                }
                _ => "the runtime may not mount this: it needs CAP_SYS_ADMIN",
            }
        }
        (PlanOp::Mount { .. } | PlanOp::NewMount { .. }, Errno::ENODEV, _) => {
            "the kernel does not have this file system: see /proc/filesystems"
        }
        (PlanOp::Mount { .. } | PlanOp::NewMount { .. }, Errno::EINVAL, _) => {
            "the file system does not know one of the options"
        }
        (PlanOp::Clone { .. }, Errno::EPERM, _) => {
            "namespaces need CAP_SYS_ADMIN, or a user namespace of the container's own"
        }
        (PlanOp::Clone { .. }, Errno::ENOSPC | Errno::EUSERS, _) => {
            "a limit of /proc/sys/user/max_*_namespaces is reached"
        }
        (PlanOp::Clone { .. }, Errno::EACCES, _) => {
            "a memory file may not be executed here: see the sysctl vm.memfd_noexec"
        }
        (PlanOp::WriteProc { file, .. }, Errno::EPERM | Errno::EINVAL, _)
            if file.to_bytes().ends_with(b"_map") =>
        {
            "an ordinary user may map only its own id"
        }
        (PlanOp::WriteProc { file, .. }, Errno::EACCES, _)
            if file.to_bytes() == b"oom_score_adj" =>
        {
            "lowering the score needs CAP_SYS_RESOURCE"
        }
        (PlanOp::Seccomp { .. }, Errno::EINVAL, _) => {
            "the kernel does not know one of the filter's actions or flags"
        }
        (
            PlanOp::OpenRoot { .. }
            | PlanOp::OpenTree { .. }
            | PlanOp::OpenNull { .. }
            | PlanOp::NewMount { .. }
            | PlanOp::Clone { .. },
            Errno::ENOSYS,
            _,
        ) => {
            "this needs Linux 5.4; on a newer one, a seccomp filter around pipkin hides the call: \
             see the engine that runs pipkin"
        }
        (PlanOp::Sysctl { .. }, Errno::ENOENT, _) => {
            "this kernel has no such parameter, or its module is not loaded"
        }
        (PlanOp::Chdir { .. }, Errno::ENOENT, _) => {
            "the working directory must exist in the container's root file system"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docker takes 127 from "executable file not found" and "no such file or directory", 126
    /// from "permission denied" and "is a directory"; podman does in either case.
    #[test]
    fn engines_find_their_words() {
        for (errno, detail, words) in [
            (
                Errno::ENOENT,
                Detail::NotInPath,
                "executable file not found in $PATH",
            ),
            (
                Errno::ENOENT,
                Detail::NoExecutable,
                "no such file or directory",
            ),
            (
                Errno::ENOENT,
                Detail::NoInterpreter,
                "no such file or directory",
            ),
            (Errno::EACCES, Detail::NotExecutable, "permission denied"),
            (Errno::EISDIR, Detail::NotExecutable, "is a directory"),
        ] {
            let (text, is_errno) = explain(errno.number(), detail, "");
            assert!(text.contains(words), "{text}");
            assert!(is_errno);
        }
        let (text, _) = explain(2, Detail::NoInterpreter, "/lib/ld.so");
        assert_eq!(
            text,
            "its interpreter /lib/ld.so: no such file or directory"
        );
    }

    #[test]
    fn a_hooks_status_is_no_errno() {
        let (text, is_errno) = explain(3, Detail::HookStatus, "");
        assert_eq!((text.as_str(), is_errno), ("it ended with status 3", false));
    }
}
