//! What a runtime can do: runtime-spec, features.md and features-linux.md.

use std::collections::BTreeMap;

use serde::Serialize;

/// What `features` prints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Features {
    /// Oldest version of the specification that is accepted.
    pub oci_version_min: String,
    /// Newest version of the specification that is accepted.
    pub oci_version_max: String,
    /// Names of hooks.
    pub hooks: Vec<&'static str>,
    /// Names of mount options.
    pub mount_options: Vec<&'static str>,
    /// What is specific to Linux.
    pub linux: LinuxFeatures,
    /// Version numbers and the like.
    pub annotations: BTreeMap<&'static str, String>,
    /// Annotations of a configuration that could be dangerous.
    pub potentially_unsafe_config_annotations: Vec<&'static str>,
}

/// features-linux.md.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinuxFeatures {
    /// Types of namespaces.
    pub namespaces: Vec<&'static str>,
    /// Names of capabilities.
    pub capabilities: Vec<&'static str>,
    /// Control groups.
    pub cgroup: CgroupFeatures,
    /// System call filter.
    pub seccomp: SeccompFeatures,
    /// AppArmor.
    pub apparmor: Enabled,
    /// SELinux.
    pub selinux: Enabled,
    /// Intel RDT.
    pub intel_rdt: Enabled,
    /// Memory policy.
    pub memory_policy: Enabled,
    /// Extensions of mounts.
    pub mount_extensions: MountExtensions,
    /// Network devices.
    pub net_devices: Enabled,
}

/// Whether something is compiled in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Enabled {
    /// It is.
    pub enabled: bool,
}

/// features-linux.md, "Cgroup".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CgroupFeatures {
    /// Version 1.
    pub v1: bool,
    /// Version 2.
    pub v2: bool,
    /// The systemd manager, system-wide.
    pub systemd: bool,
    /// The systemd manager of a user.
    pub systemd_user: bool,
    /// RDMA.
    pub rdma: bool,
}

/// features-linux.md, "Seccomp".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeccompFeatures {
    /// Whether filters are supported.
    pub enabled: bool,
    /// Names of actions.
    pub actions: Vec<&'static str>,
    /// Names of operators.
    pub operators: Vec<&'static str>,
    /// Names of architectures.
    pub archs: Vec<&'static str>,
    /// Flags that are known by name.
    pub known_flags: Vec<&'static str>,
    /// Flags that the running kernel has.
    pub supported_flags: Vec<&'static str>,
}

/// features-linux.md, "MountExtensions".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MountExtensions {
    /// Id-mapped mounts.
    pub idmap: Enabled,
}
