//! What is wrong with a configuration.

use std::fmt;

/// A value in config.json that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Where it stands: a JSON pointer (RFC 6901) into config.json.
    pub pointer: String,
    /// What is wrong, with the value: `unknown capability "CAP_FOO"`.
    pub message: String,
    /// What would be right, or what to do.
    pub hint: Option<String>,
}

impl Invalid {
    /// A fault at `pointer`.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            hint: None,
        }
    }

    /// The same with what would be right.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

impl std::error::Error for Invalid {}
