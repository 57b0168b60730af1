//! What the tests with real containers have in common. They run as root.
//!
//! ```text
//! PIPKIN=/path/to/pipkin           the program under test    (default: bin/pipkin)
//! PIPKIN_PROBE=/path/to/probe      the probe, static         (default: bin/probe)
//! PIPKIN_CASE=name                 only this case of the comparison
//! PIPKIN_TEST_KEEP=1               keep the directories of failed tests
//! ```
//!
//! Debian's `runc`, `crun` and `strace` are looked for on PATH. Nothing here is
//! skipped: what is missing fails with a sentence that says what to install.
//!
//! Tests run side by side, so whatever one makes carries its own token, and the
//! search for what was left behind is a search for that token.

pub mod bundle;
pub mod command;
pub mod compare;
pub mod container;
pub mod differences;
pub mod host;
pub mod leak;
pub mod observe;
pub mod runtime;
pub mod scratch;

pub use bundle::Bundle;
pub use command::{Finished, Run};
pub use container::Container;
pub use leak::Snapshot;
pub use runtime::{Runtime, View};
pub use scratch::Scratch;
