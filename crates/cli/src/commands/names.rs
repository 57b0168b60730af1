//! The names that `features` lists.

/// The names that a configuration may use.
pub struct Names {
    pub hooks: &'static [&'static str],
    pub mount_options: &'static [&'static str],
    pub namespaces: &'static [&'static str],
    pub capabilities: &'static [&'static str],
    pub seccomp_actions: &'static [&'static str],
    pub seccomp_operators: &'static [&'static str],
    pub seccomp_archs: &'static [&'static str],
    pub seccomp_known_flags: &'static [&'static str],
    /// Those of the flags that the running kernel has.
    pub seccomp_supported_flags: &'static [&'static str],
}

impl Names {
    /// What this program knows.
    pub const OURS: Self = Self {
        hooks: &[
            "prestart",
            "createRuntime",
            "createContainer",
            "startContainer",
            "poststart",
            "poststop",
        ],
        mount_options: MOUNT_OPTIONS,
        namespaces: &[
            "cgroup", "ipc", "mount", "network", "pid", "time", "user", "uts",
        ],
        capabilities: CAPABILITIES,
        seccomp_actions: &[],
        seccomp_operators: &[],
        seccomp_archs: &[],
        seccomp_known_flags: &[],
        seccomp_supported_flags: &[],
    };
}

#[rustfmt::skip]
const MOUNT_OPTIONS: &[&str] = &[
    "async", "atime", "bind", "defaults", "dev", "diratime", "dirsync", "exec", "iversion",
    "lazytime", "loud", "mand", "noatime", "nodev", "nodiratime", "noexec", "noiversion",
    "nolazytime", "nomand", "norelatime", "nostrictatime", "nosuid", "nosymfollow", "private",
    "ratime", "rbind", "rdev", "rdiratime", "relatime", "remount", "rexec", "rnoatime", "rnodev",
    "rnodiratime", "rnoexec", "rnorelatime", "rnostrictatime", "rnosuid", "rnosymfollow", "ro",
    "rprivate", "rrelatime", "rro", "rrw", "rshared", "rslave", "rstrictatime", "rsuid",
    "rsymfollow", "runbindable", "rw", "shared", "silent", "slave", "strictatime", "suid",
    "symfollow", "sync", "tmpcopyup", "unbindable",
];

#[rustfmt::skip]
const CAPABILITIES: &[&str] = &[
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID",
    "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK",
    "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG",
    "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];
