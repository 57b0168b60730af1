//! **Host**: what is there. The runtime probes it once; a test makes it up.

use crate::cgroup;

/// What is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// The kernel's version, major and minor.
    pub kernel: (u32, u32),
    /// Whether a seccomp filter hides calls that the kernel has, as an older engine's does around
    /// a runtime that it runs in a container: a start that failed has found that out.
    pub filtered: bool,
    /// Whether the runtime itself is in a user namespace that is not the first.
    pub in_user_namespace: bool,
    /// Whether it may do what root may: it has all capabilities in its user namespace.
    pub privileged: bool,
    /// Signals that the runtime ignores, bit 0 for number 1: what its caller ignored, which
    /// nohup(1) and shells do, must not reach the container.
    pub ignored_signals: u64,
    /// Whether there is a mount namespace with nothing in it, to begin from instead of a copy
    /// of the host's mounts.
    pub pinned: bool,
    /// Which controllers are where.
    pub cgroup: cgroup::Host,
    /// The cgroup hierarchies that are mounted, v1 first.
    pub hierarchies: Vec<Hierarchy>,
    /// Whether AppArmor is enabled.
    pub apparmor: bool,
    /// Whether SELinux is enabled.
    pub selinux: bool,
}

/// One cgroup hierarchy that is mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hierarchy {
    /// `cpu,cpuacct`, `name=systemd`, empty for the unified one: as in /proc/self/cgroup.
    pub name: String,
    /// Where the host has it mounted.
    pub mount: String,
    /// Where the container's group is in it, from its root.
    pub group: String,
}

impl Hierarchy {
    /// The last component of where it is mounted, `systemd` of `name=systemd`.
    #[must_use]
    pub fn directory(&self) -> &str {
        match self.name.strip_prefix("name=") {
            Some(name) => name,
            None if self.name.is_empty() => "unified",
            None => &self.name,
        }
    }
}

impl Host {
    /// Whether a process can be born in a cgroup of v2, Linux 5.7.
    #[must_use]
    pub fn has_clone_into_cgroup(&self) -> bool {
        !self.filtered && self.kernel >= (5, 7)
    }

    /// Whether mounts are changed by descriptor, with the mounts below them, and their owners
    /// mapped: mount_setattr(2), Linux 5.12.
    #[must_use]
    pub fn has_mount_setattr(&self) -> bool {
        !self.filtered && self.kernel >= (5, 12)
    }

    /// Whether a mount can forbid to follow links: `MOUNT_ATTR_NOSYMFOLLOW`, Linux 5.14
    /// (mount(2) ignores `MS_NOSYMFOLLOW` before 5.10).
    #[must_use]
    pub fn has_nosymfollow(&self) -> bool {
        self.kernel >= (5, 14)
    }

    /// The v1 hierarchies.
    pub fn v1(&self) -> impl Iterator<Item = &Hierarchy> {
        self.hierarchies
            .iter()
            .filter(|hierarchy| !hierarchy.name.is_empty())
    }

    /// The unified hierarchy.
    #[must_use]
    pub fn v2(&self) -> Option<&Hierarchy> {
        self.hierarchies
            .iter()
            .find(|hierarchy| hierarchy.name.is_empty())
    }
}
