//! What went wrong with a control group.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use pipkin_sys::Errno;

/// A failed operation on a control group; its parts are those of [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Fault>);

/// The parts of an [`Error`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What was tried: `write`, `mkdir`, `freeze`.
    pub doing: &'static str,
    /// On what.
    pub path: PathBuf,
    /// The text that was written.
    pub value: Option<String>,
    /// Where the wish stands in config.json.
    pub pointer: Option<String>,
    /// The kernel's answer; absent where pipkin itself refuses.
    pub errno: Option<Errno>,
    /// What is wrong when there is no errno, or more about it.
    pub message: Option<String>,
    /// What would help.
    pub hint: Option<String>,
}

impl Error {
    /// A fault that pipkin itself finds.
    pub(super) fn new(doing: &'static str, path: &Path, message: impl Into<String>) -> Self {
        let mut error = Self::blank(doing, path);
        error.0.message = Some(message.into());
        error
    }

    /// A system call's failure.
    pub(super) fn os(doing: &'static str, path: &Path, errno: rustix::io::Errno) -> Self {
        let mut error = Self::blank(doing, path);
        error.0.errno = Some(Errno::new(errno.raw_os_error()));
        error
    }

    fn blank(doing: &'static str, path: &Path) -> Self {
        Self(Box::new(Fault {
            doing,
            path: path.to_owned(),
            value: None,
            pointer: None,
            errno: None,
            message: None,
            hint: None,
        }))
    }

    /// The same with what would help.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same with the wish behind it.
    pub(super) fn wish(mut self, value: &str, pointer: &str) -> Self {
        self.0.value = Some(value.to_owned());
        self.0.pointer = Some(pointer.to_owned());
        self
    }

    /// Its parts, for one who keeps them.
    #[must_use]
    pub fn into_parts(self) -> Fault {
        *self.0
    }
}

impl Deref for Error {
    type Target = Fault;

    fn deref(&self) -> &Fault {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.doing)?;
        if let Some(value) = &self.value {
            write!(f, "{value:?} to ")?;
        }
        write!(f, "{}", self.path.display())?;
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        if let Some(errno) = self.errno {
            write!(f, ": {errno}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
