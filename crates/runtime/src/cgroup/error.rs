//! What went wrong with a control group.

use std::fmt;
use std::path::PathBuf;

use pipkin_sys::Errno;

/// A failed operation on a control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
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
