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
        mount_options: pipkin_plan::MOUNT_OPTIONS,
        namespaces: &[
            "cgroup", "ipc", "mount", "network", "pid", "time", "user", "uts",
        ],
        capabilities: &pipkin_plan::CAPABILITIES,
        seccomp_actions: &pipkin_plan::seccomp::ACTIONS,
        seccomp_operators: &pipkin_plan::seccomp::OPERATORS,
        seccomp_archs: &pipkin_plan::seccomp::ARCHITECTURES,
        seccomp_known_flags: &pipkin_plan::seccomp::FLAGS,
        seccomp_supported_flags: &pipkin_plan::seccomp::FLAGS,
    };
}
