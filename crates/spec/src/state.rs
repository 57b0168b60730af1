//! The state of a container: runtime-spec, runtime.md, "State".

use std::collections::BTreeMap;

use serde::Serialize;

/// runtime.md, "State", `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Being made.
    Creating,
    /// Made; its process has not been executed.
    Created,
    /// Its process has been executed and lives.
    Running,
    /// Its process has ended.
    Stopped,
    /// Its processes are frozen (an addition of every runtime).
    Paused,
}

impl Status {
    /// The word that the specification uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Created => "created",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
        }
    }
}

/// What `state` prints and what a hook reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerState {
    /// Version of the specification.
    pub oci_version: String,
    /// The container's id.
    pub id: String,
    /// Where it is in its life.
    pub status: Status,
    /// Its process, in the runtime's pid namespace; 0 when stopped.
    pub pid: i32,
    /// Absolute path of the bundle.
    pub bundle: String,
    /// Annotations of the configuration.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
