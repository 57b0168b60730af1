//! Control groups: the layout of the host, and the life of a container's group.
//!
//! ```text
//! Layout::probe ─ resolve ─▶ Location ─ create ─▶ Created { group } ─ apply, attach_devices
//!                                                      │ failure: undo
//!                                                      ▼ success: State keeps the Group
//!                              Group: join_files, unified_dir, pids, kill_all, freeze, thaw, remove
//! ```
//!
//! Joining: on v2 the process is cloned into [`Group::unified_dir`]; on each v1
//! hierarchy it writes `0` into its own `tasks` file ([`Group::join_files`]). Writing
//! another process's number, or anything into `cgroup.procs`, makes the kernel wait for
//! an RCU grace period under a global lock: 7 ms instead of 10 µs.

mod apply;
mod create;
mod enable;
mod error;
pub(crate) mod file;
mod freeze;
mod group;
mod kill;
mod layout;
mod remove;
mod walk;

pub use create::{Created, Request, create};
pub use error::{Error, Fault};
pub use group::{Dir, Group};
pub use layout::{Hierarchy, Kind, Layout, Location};
