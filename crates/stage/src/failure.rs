//! Why a step failed.

use pipkin_op::Detail;
use pipkin_sys::Errno;

/// Why a step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The kernel's error, or what [`Detail`] says stands here.
    pub value: i32,
    /// What the error does not tell.
    pub detail: Detail,
}

impl Failure {
    /// An error with what it does not tell.
    #[must_use]
    pub const fn new(error: Errno, detail: Detail) -> Self {
        Self {
            value: error.number(),
            detail,
        }
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::new(error, Detail::None)
    }
}
