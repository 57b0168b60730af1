//! Controllers, and where a host has them.

use std::fmt;

/// Generation of the control group interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// A hierarchy for each controller, or for several.
    V1,
    /// The one unified hierarchy.
    V2,
}

/// A controller of the kernel, or the core itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Controller {
    /// The files named `cgroup.*`, and those of a controller that pipkin doesn't know.
    Core,
    /// Processor time.
    Cpu,
    /// Processor time used (v1; a part of `cpu` on v2).
    Cpuacct,
    /// Processors and memory nodes.
    Cpuset,
    /// Memory.
    Memory,
    /// Number of tasks.
    Pids,
    /// Block devices: `blkio` on v1, `io` on v2.
    Io,
    /// Huge pages.
    Hugetlb,
    /// Remote direct memory access.
    Rdma,
    /// Scalar resources.
    Misc,
    /// Access to devices (v1; a BPF program on v2).
    Devices,
    /// Stops and continues tasks (v1; core on v2).
    Freezer,
    /// Class of network packets (v1).
    NetCls,
    /// Priority of network packets (v1).
    NetPrio,
    /// Performance events.
    PerfEvent,
}

impl Controller {
    /// All but the core.
    pub const ALL: [Self; 14] = [
        Self::Cpu,
        Self::Cpuacct,
        Self::Cpuset,
        Self::Memory,
        Self::Pids,
        Self::Io,
        Self::Hugetlb,
        Self::Rdma,
        Self::Misc,
        Self::Devices,
        Self::Freezer,
        Self::NetCls,
        Self::NetPrio,
        Self::PerfEvent,
    ];

    /// The kernel's name in this version, as in `/proc/cgroups` or `cgroup.controllers`.
    #[must_use]
    pub const fn name(self, version: Version) -> &'static str {
        match self {
            Self::Core => "cgroup",
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Cpuset => "cpuset",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Io => match version {
                Version::V1 => "blkio",
                Version::V2 => "io",
            },
            Self::Hugetlb => "hugetlb",
            Self::Rdma => "rdma",
            Self::Misc => "misc",
            Self::Devices => "devices",
            Self::Freezer => "freezer",
            Self::NetCls => "net_cls",
            Self::NetPrio => "net_prio",
            Self::PerfEvent => "perf_event",
        }
    }

    /// The controller of this name in either version.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|c| c.name(Version::V1) == name || c.name(Version::V2) == name)
    }
}

/// A set of controllers.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Controllers(u16);

impl Controllers {
    /// None.
    pub const NONE: Self = Self(0);

    /// The set with `controller` in it. The core is everywhere, so never in a set.
    #[must_use]
    pub const fn with(self, controller: Controller) -> Self {
        match controller {
            Controller::Core => self,
            _ => Self(self.0 | 1 << controller as u8),
        }
    }

    /// Those in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether it is in the set; the core always is.
    #[must_use]
    pub const fn contains(self, controller: Controller) -> bool {
        match controller {
            Controller::Core => true,
            _ => self.0 & (1 << controller as u8) != 0,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members, in the order of [`Controller::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Controller> {
        Controller::ALL
            .into_iter()
            .filter(move |c| self.contains(*c))
    }

    /// The controllers named in `text`, separated by white space (`cgroup.controllers`)
    /// or commas (`/proc/self/cgroup`); unknown names are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.split(|c: char| c == ',' || c.is_whitespace())
            .filter_map(Controller::from_name)
            .collect()
    }
}

impl FromIterator<Controller> for Controllers {
    fn from_iter<I: IntoIterator<Item = Controller>>(iter: I) -> Self {
        iter.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// What a host has: a fact that is probed once, and that a test may make up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Host {
    /// Controllers with a v1 hierarchy that is mounted.
    pub v1: Controllers,
    /// Controllers of the unified hierarchy; `None` where it is not mounted. A hybrid
    /// host has some on both sides.
    pub v2: Option<Controllers>,
}

impl Host {
    /// Where this controller's files are; v1 where both could be, as a controller is
    /// attached to one side only.
    #[must_use]
    pub const fn side(&self, controller: Controller) -> Option<Version> {
        match self.v2 {
            Some(_) if matches!(controller, Controller::Core) => Some(Version::V2),
            _ if matches!(controller, Controller::Core) => Some(Version::V1),
            _ if self.v1.contains(controller) => Some(Version::V1),
            Some(v2) if v2.contains(controller) => Some(Version::V2),
            _ => None,
        }
    }
}
