//! The error of every command.

use std::fmt;

use pipkin_sys::Errno;

/// The error of every command: a sentence, and what is known about it in fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Error {
    /// The sentence, with the kernel's own words for the error number at its end.
    pub message: String,
    /// What was being done: `create web`.
    pub subject: Option<String>,
    /// The step of the plan, counted from 1, and how many there are.
    pub step: Option<(usize, usize)>,
    /// Which process performed it.
    pub actor: Option<Actor>,
    /// The place in the configuration that it comes from, a JSON pointer.
    pub pointer: Option<String>,
    /// Error number of the kernel.
    pub errno: Option<i32>,
    /// What may help.
    pub hint: Option<String>,
}

/// Which process performs a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The runtime's.
    Runtime,
    /// The container's.
    Container,
}

impl Actor {
    /// The word for it in a log record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Container => "container",
        }
    }
}

impl Error {
    /// An error that is a sentence and no more.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// A failed operation on a file: what was tried, and the system's words.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::errno(what, Errno::new(number)),
            None => Self::new(format!("{what}: {error}")),
        }
    }

    /// A failed system call: what was tried, and the kernel's words.
    pub fn errno(what: impl fmt::Display, errno: Errno) -> Self {
        Self {
            errno: Some(errno.number()),
            ..Self::new(format!("{what}: {errno}"))
        }
    }

    /// A container that does not exist.
    #[must_use]
    pub fn missing(id: &str) -> Self {
        Self::new(format!("container {id:?} does not exist"))
            .with_hint("`list` shows those that do; --root says where they are kept")
    }

    /// Adds what was being done, unless it is known.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject.get_or_insert_with(|| subject.into());
        self
    }

    /// Adds what may help.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<pipkin_plan::Invalid> for Error {
    fn from(invalid: pipkin_plan::Invalid) -> Self {
        Self {
            message: invalid.message,
            pointer: Some(invalid.pointer),
            hint: invalid.hint,
            ..Self::default()
        }
    }
}

impl From<crate::cgroup::Error> for Error {
    fn from(error: crate::cgroup::Error) -> Self {
        let message = error.to_string();
        let parts = error.into_parts();
        Self {
            message,
            pointer: parts.pointer,
            errno: parts.errno.map(Errno::number),
            hint: parts.hint,
            ..Self::default()
        }
    }
}

/// One line; the hint is not part of it.
impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(subject) = &self.subject {
            write!(to, "{subject}: ")?;
        }
        match (self.step, &self.pointer) {
            (Some((step, steps)), Some(pointer)) => {
                write!(to, "step {step} of {steps} ({pointer})")?;
            }
            (Some((step, steps)), None) => write!(to, "step {step} of {steps}")?,
            (None, Some(pointer)) => write!(to, "{pointer}")?,
            (None, None) => return to.write_str(&self.message),
        }
        if self.actor == Some(Actor::Container) {
            to.write_str(", in the container")?;
        }
        write!(to, ": {}", self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_one_line() {
        let error = Error {
            message: "mount proc on /proc: Operation not permitted".into(),
            step: Some((31, 74)),
            actor: Some(Actor::Container),
            pointer: Some("/mounts/0".into()),
            ..Error::default()
        };
        assert_eq!(
            error.about("create web").to_string(),
            "create web: step 31 of 74 (/mounts/0), in the container: \
             mount proc on /proc: Operation not permitted"
        );
    }

    #[test]
    fn a_bad_value_names_its_place() {
        let error = Error {
            message: "unknown capability \"CAP_FOO\"".into(),
            pointer: Some("/process/capabilities/bounding/2".into()),
            ..Error::default()
        };
        assert_eq!(
            error.to_string(),
            "/process/capabilities/bounding/2: unknown capability \"CAP_FOO\""
        );
    }
}
