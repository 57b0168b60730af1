//! Why a step failed.

use pipkin_op::{Detail, Name};
use pipkin_sys::Errno;

/// Why a step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The kernel's error, or what [`Detail`] says stands here.
    pub value: i32,
    /// What the error does not tell.
    pub detail: Detail,
    /// What of the image it is about.
    pub name: Name,
}

impl Failure {
    /// An error with what it does not tell.
    #[must_use]
    pub const fn new(error: Errno, detail: Detail) -> Self {
        Self::status(error.number(), detail)
    }

    /// A number that is no errno, with what it is.
    #[must_use]
    pub const fn status(value: i32, detail: Detail) -> Self {
        Self {
            value,
            detail,
            name: Name::EMPTY,
        }
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::new(error, Detail::None)
    }
}
