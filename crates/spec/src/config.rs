//! `config.json`: runtime-spec, config.md and config-linux.md.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Present, Resources, Seccomp, nullable};

/// The whole of `config.json`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Version of the specification that the bundle follows (SemVer).
    pub oci_version: String,
    /// The container's root file system.
    pub root: Option<Root>,
    /// Additional mounts, in the order in which they are made.
    #[serde(deserialize_with = "nullable")]
    pub mounts: Vec<Mount>,
    /// The process that `start` executes.
    pub process: Option<Process>,
    /// Host name inside the container's UTS namespace.
    pub hostname: Option<String>,
    /// NIS domain name inside the container's UTS namespace.
    pub domainname: Option<String>,
    /// Commands that are run around the container's life.
    pub hooks: Option<Hooks>,
    /// Arbitrary metadata; some keys change the behaviour of some runtimes.
    #[serde(deserialize_with = "nullable")]
    pub annotations: BTreeMap<String, String>,
    /// What is specific to Linux.
    pub linux: Option<Linux>,
    /// Virtual-machine settings.
    pub vm: Option<Present>,
    /// Windows settings.
    pub windows: Option<Present>,
    /// Solaris settings.
    pub solaris: Option<Present>,
    /// z/OS settings.
    pub zos: Option<Present>,
    /// FreeBSD settings.
    pub freebsd: Option<Present>,
}

/// config.md, "Root".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Root {
    /// Path of the root file system, absolute or relative to the bundle.
    pub path: String,
    /// Whether the root file system is read-only inside the container.
    pub readonly: bool,
}

/// config.md, "Mounts".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mount {
    /// Where it is mounted, inside the container.
    pub destination: String,
    /// File system type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// A device, a path (absolute or relative to the bundle), or a label.
    pub source: Option<String>,
    /// Options of mount(8), plus those that the specification adds.
    #[serde(deserialize_with = "nullable")]
    pub options: Vec<String>,
    /// User mappings of an id-mapped mount.
    #[serde(deserialize_with = "nullable")]
    pub uid_mappings: Vec<IdMapping>,
    /// Group mappings of an id-mapped mount.
    #[serde(deserialize_with = "nullable")]
    pub gid_mappings: Vec<IdMapping>,
}

/// config.md, "Process".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Process {
    /// Whether a pseudo-terminal is attached.
    pub terminal: bool,
    /// Size of that terminal in characters.
    pub console_size: Option<ConsoleSize>,
    /// Working directory, absolute.
    pub cwd: String,
    /// Environment, `NAME=value`.
    #[serde(deserialize_with = "nullable")]
    pub env: Vec<String>,
    /// Command line; the first is the executable.
    #[serde(deserialize_with = "nullable")]
    pub args: Vec<String>,
    /// Command line of a Windows process.
    pub command_line: Option<Present>,
    /// Resource limits, setrlimit(2).
    #[serde(deserialize_with = "nullable")]
    pub rlimits: Vec<Rlimit>,
    /// Capability sets, capabilities(7).
    pub capabilities: Option<Capabilities>,
    /// PR_SET_NO_NEW_PRIVS.
    pub no_new_privileges: bool,
    /// AppArmor profile.
    pub apparmor_profile: Option<String>,
    /// SELinux label.
    pub selinux_label: Option<String>,
    /// `/proc/PID/oom_score_adj`.
    pub oom_score_adj: Option<i32>,
    /// Scheduling policy, sched_setattr(2).
    pub scheduler: Option<Scheduler>,
    /// I/O priority, ioprio_set(2).
    pub io_priority: Option<IoPriority>,
    /// CPU affinity of a process that `exec` starts.
    #[serde(rename = "execCPUAffinity")]
    pub exec_cpu_affinity: Option<ExecCpuAffinity>,
    /// User and groups.
    pub user: User,
}

/// Size of a terminal, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ConsoleSize {
    /// Rows.
    pub height: u16,
    /// Columns.
    pub width: u16,
}

/// One resource limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Rlimit {
    /// `RLIMIT_NOFILE` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    /// Soft limit.
    pub soft: u64,
    /// Hard limit.
    pub hard: u64,
}

/// The five capability sets, each a list of names such as `CAP_CHOWN`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Limit of what execve(2) can give.
    #[serde(deserialize_with = "nullable")]
    pub bounding: Vec<String>,
    /// In force.
    #[serde(deserialize_with = "nullable")]
    pub effective: Vec<String>,
    /// Kept over execve(2) of a file with inheritable capabilities.
    #[serde(deserialize_with = "nullable")]
    pub inheritable: Vec<String>,
    /// What may be made effective.
    #[serde(deserialize_with = "nullable")]
    pub permitted: Vec<String>,
    /// Kept over execve(2) of an ordinary file.
    #[serde(deserialize_with = "nullable")]
    pub ambient: Vec<String>,
}

/// config.md, "Scheduler".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Scheduler {
    /// `SCHED_OTHER` and so on.
    pub policy: String,
    /// Nice value.
    pub nice: i32,
    /// Static priority.
    pub priority: i32,
    /// `SCHED_FLAG_…` names.
    #[serde(deserialize_with = "nullable")]
    pub flags: Vec<String>,
    /// Nanoseconds.
    pub runtime: u64,
    /// Nanoseconds.
    pub deadline: u64,
    /// Nanoseconds.
    pub period: u64,
}

/// config.md, "ioPriority".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IoPriority {
    /// `IOPRIO_CLASS_RT`, `IOPRIO_CLASS_BE` or `IOPRIO_CLASS_IDLE`.
    pub class: String,
    /// Level within the class, 0 to 7.
    pub priority: i32,
}

/// config.md, "execCPUAffinity": lists of CPUs such as `0-3,7`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ExecCpuAffinity {
    /// While the process joins the container's cgroup.
    pub initial: Option<String>,
    /// Once it has joined.
    #[serde(rename = "final")]
    pub after: Option<String>,
}

/// config.md, "User".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct User {
    /// User id inside the container.
    pub uid: u32,
    /// Group id inside the container.
    pub gid: u32,
    /// umask(2).
    pub umask: Option<u32>,
    /// Supplementary groups.
    #[serde(deserialize_with = "nullable")]
    pub additional_gids: Vec<u32>,
    /// User name, on Windows.
    pub username: Option<String>,
}

/// config.md, "POSIX-platform Hooks".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hooks {
    /// Deprecated form of `create_runtime`.
    #[serde(deserialize_with = "nullable")]
    pub prestart: Vec<Hook>,
    /// In the runtime's namespaces, before pivot_root.
    #[serde(deserialize_with = "nullable")]
    pub create_runtime: Vec<Hook>,
    /// In the container's namespaces, before pivot_root.
    #[serde(deserialize_with = "nullable")]
    pub create_container: Vec<Hook>,
    /// In the container, before its process is executed.
    #[serde(deserialize_with = "nullable")]
    pub start_container: Vec<Hook>,
    /// In the runtime's namespaces, after the process was executed.
    #[serde(deserialize_with = "nullable")]
    pub poststart: Vec<Hook>,
    /// In the runtime's namespaces, after the container was deleted.
    #[serde(deserialize_with = "nullable")]
    pub poststop: Vec<Hook>,
}

/// One hook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct Hook {
    /// Executable, absolute.
    pub path: String,
    /// Command line, including the name of the program.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment; empty when absent.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Seconds after which it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
}

/// config-linux.md.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Linux {
    /// Namespaces that are made or joined; those not named are the runtime's.
    #[serde(deserialize_with = "nullable")]
    pub namespaces: Vec<Namespace>,
    /// Mapping of user ids into a new user namespace.
    #[serde(deserialize_with = "nullable")]
    pub uid_mappings: Vec<IdMapping>,
    /// Mapping of group ids into a new user namespace.
    #[serde(deserialize_with = "nullable")]
    pub gid_mappings: Vec<IdMapping>,
    /// Offsets of the clocks in a new time namespace: `monotonic`, `boottime`.
    #[serde(deserialize_with = "nullable")]
    pub time_offsets: BTreeMap<String, TimeOffset>,
    /// Devices made below the root file system.
    #[serde(deserialize_with = "nullable")]
    pub devices: Vec<Device>,
    /// Network devices moved into the container, by name.
    #[serde(deserialize_with = "nullable")]
    pub net_devices: BTreeMap<String, NetDevice>,
    /// Path of the container's cgroup.
    pub cgroups_path: Option<String>,
    /// Limits.
    pub resources: Option<Resources>,
    /// Intel RDT.
    pub intel_rdt: Option<Present>,
    /// set_mempolicy(2).
    pub memory_policy: Option<Present>,
    /// Kernel parameters.
    #[serde(deserialize_with = "nullable")]
    pub sysctl: BTreeMap<String, String>,
    /// System call filter.
    pub seccomp: Option<Seccomp>,
    /// `shared`, `slave`, `private` or `unbindable`.
    pub rootfs_propagation: Option<String>,
    /// Paths hidden from the container.
    #[serde(deserialize_with = "nullable")]
    pub masked_paths: Vec<String>,
    /// Paths that the container cannot change.
    #[serde(deserialize_with = "nullable")]
    pub readonly_paths: Vec<String>,
    /// SELinux label of the mounts.
    pub mount_label: Option<String>,
    /// personality(2).
    pub personality: Option<Personality>,
}

/// config-linux.md, "Namespaces".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// `pid`, `network`, `mount`, `ipc`, `uts`, `user`, `cgroup` or `time`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A namespace file to join; a new one is made where absent.
    pub path: Option<String>,
}

/// One range of a user or group mapping, user_namespaces(7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IdMapping {
    /// First id inside.
    #[serde(rename = "containerID")]
    pub container_id: u32,
    /// First id outside.
    #[serde(rename = "hostID")]
    pub host_id: u32,
    /// How many.
    pub size: u32,
}

/// Offset of one clock, time_namespaces(7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TimeOffset {
    /// Seconds.
    pub secs: i64,
    /// Nanoseconds.
    pub nanosecs: u32,
}

/// config-linux.md, "Devices".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Device {
    /// `c`, `b`, `u` or `p`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is made, inside the container.
    pub path: String,
    /// Major number.
    pub major: i64,
    /// Minor number.
    pub minor: i64,
    /// Permission bits.
    pub file_mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
}

/// config-linux.md, "Network Devices".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NetDevice {
    /// Name inside the container.
    pub name: Option<String>,
}

/// config-linux.md, "Personality".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Personality {
    /// `LINUX` or `LINUX32`.
    pub domain: String,
    /// The specification names none.
    #[serde(deserialize_with = "nullable")]
    pub flags: Vec<String>,
}
