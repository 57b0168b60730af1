//! What the commands ask of the library and what they get back: plain data.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;

use crate::log::Log;

/// What holds for every command.
#[derive(Debug)]
pub struct Global {
    /// Directory that holds the state of all containers.
    pub root: PathBuf,
    /// Whether to do without what only a privileged user may do.
    pub rootless: Rootless,
    /// Who manages control groups.
    pub cgroup_manager: CgroupManager,
    /// For tests: the step of the plan, counted from 1, that fails instead of being done.
    pub inject_fault: Option<usize>,
    /// Where records go.
    pub log: Log,
}

/// Whether to do without what only a privileged user may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rootless {
    /// As the user id and the user namespace suggest.
    #[default]
    Auto,
    /// Yes.
    True,
    /// No.
    False,
}

/// Who manages control groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CgroupManager {
    /// This program, through the file system.
    #[default]
    Cgroupfs,
    /// Nobody: the container stays in the caller's.
    Disabled,
}

/// `create`, and the part of `run` that makes the container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateRequest {
    /// Name of the container.
    pub id: String,
    /// Directory that holds the configuration; the current one when empty.
    pub bundle: PathBuf,
    /// Configuration to read instead of `config.json` in the bundle.
    pub config_file: Option<PathBuf>,
    /// File that the pid of the container's process is written to.
    pub pid_file: Option<PathBuf>,
    /// Socket that the terminal's descriptor is sent to.
    pub console_socket: Option<PathBuf>,
    /// Do not use pivot_root(2).
    pub no_pivot: bool,
    /// Stay in the caller's session keyring.
    pub no_new_keyring: bool,
    /// How many descriptors from 3 on are passed to the container, in addition to those
    /// that `LISTEN_FDS` announces.
    pub preserve_fds: u32,
}

/// `run`: `create`, `start`, wait, `delete`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRequest {
    /// What to make.
    pub create: CreateRequest,
    /// Return once the container's process was executed; do not wait, do not delete.
    pub detach: bool,
    /// Do not delete the container when its process has ended.
    pub keep: bool,
}

/// `plan`: the steps of a `create`, without doing any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanRequest {
    /// What would be made.
    pub create: CreateRequest,
}

/// Which containers a command is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The one of this name.
    Id(String),
    /// All whose name matches this regular expression.
    Regex(String),
}

/// `kill`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillRequest {
    /// Which containers.
    pub target: Target,
    /// Number of the signal.
    pub signal: i32,
    /// Signal every process of the container, not only its first.
    pub all: bool,
}

/// `delete`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteRequest {
    /// Which containers.
    pub target: Target,
    /// Kill what still runs; a container that does not exist is a success.
    pub force: bool,
}

/// `try`: a command in a throwaway container on top of the host's root file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TryRequest {
    /// The command line; empty for a shell.
    pub command: Vec<OsString>,
    /// Share the host's network.
    pub net: bool,
}

/// A line of `list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListEntry {
    /// Version of the specification that the bundle follows.
    pub oci_version: String,
    /// Name of the container.
    pub id: String,
    /// Its process; 0 when stopped.
    pub pid: i32,
    /// Where it is in its life.
    pub status: pipkin_spec::Status,
    /// Absolute path of the bundle.
    pub bundle: String,
    /// Absolute path of the root file system.
    pub rootfs: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// Name of the user who made it; the number where there is no name.
    pub owner: String,
}
