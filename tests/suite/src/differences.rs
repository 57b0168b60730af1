//! Where pipkin differs from both runc and crun on purpose.

/// One difference. An entry that no longer matches anything fails the comparison.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// The case of the comparison; `*` stands for any text.
    pub case: &'static str,
    /// The JSON pointer into the probe's document; `*` stands for any text.
    pub path: &'static str,
    /// Why it is so.
    pub reason: &'static str,
}

/// All of them.
pub const ALL: &[Difference] = &[
    Difference {
        case: "*",
        path: "/mounts/~1sys~1fs~1cgroup/options",
        reason: "the configuration asks for a read-only mount; runc and crun leave the tmpfs over \
                 the v1 hierarchies writable",
    },
    Difference {
        case: "*",
        path: "/paths/~1sys~1fs~1cgroup/write",
        reason: "as its options: what is asked to be read-only is",
    },
    Difference {
        case: "*",
        path: "/cgroup/make_group/~1sys~1fs~1cgroup",
        reason: "as its options: what is asked to be read-only is",
    },
    Difference {
        case: "*",
        path: "/paths/~1sys~1fs~1cgroup/mode",
        reason: "the tmpfs over the v1 hierarchies has mode 755, as /sys/fs/cgroup of a host; \
                 runc makes it 555, crun 1777",
    },
    Difference {
        case: "*",
        path: "/mounts/~1proc~1keys/options",
        reason: "a masked file lies below the host's null device, from a handle that was checked; \
                 runc and crun bind the container's own (CVE-2025-31133), with the options of its \
                 /dev",
    },
    Difference {
        case: "*",
        path: "/mounts/~1proc~1timer_list/options",
        reason: "as /proc/keys: the mask is the host's null device",
    },
    Difference {
        case: "masked and read-only paths of the image",
        path: "/mounts/~1data~1file/options",
        reason: "as /proc/keys: the mask is the host's null device",
    },
    Difference {
        case: "masked and read-only paths of the image",
        path: "/mounts/~1proc~1interrupts/options",
        reason: "as /proc/keys: the mask is the host's null device",
    },
    Difference {
        case: "*",
        path: "/mounts/~1proc~1acpi/options",
        reason: "a masked directory lies below an empty file system; nothing in it could be executed or \
                 opened as a device, and so it says",
    },
    Difference {
        case: "*",
        path: "/mounts/~1sys~1firmware/options",
        reason: "as /proc/acpi: the mask is the empty file system",
    },
    Difference {
        case: "*",
        path: "/mounts/~1sys~1dev~1block/options",
        reason: "as /proc/acpi: the mask is the empty file system",
    },
    Difference {
        case: "masked and read-only paths of the image",
        path: "/mounts/~1data~1directory/options",
        reason: "as /proc/acpi: the mask is the empty file system",
    },
    Difference {
        case: "root propagation runbindable",
        path: "/mounts/*/propagation",
        reason: "it is asked for all mounts and holds for all; neither oracle can start this",
    },
    Difference {
        case: "more devices",
        path: "/cgroup/limits/~1sys~1fs~1cgroup~1devices~1devices.list",
        reason: "the rule for the device and the one that lets any be made are written as one; \
                 Debian's runc still allows tun (10:200)",
    },
    Difference {
        case: "empty members",
        path: "/cgroup/limits/~1sys~1fs~1cgroup~1devices~1devices.list",
        reason: "without rules all is denied but the default devices; Debian's runc has tun \
                 (10:200) among them, not the console (5:1); Debian's crun denies nothing",
    },
    Difference {
        case: "user namespace",
        path: "/keyring/description",
        reason: "the keyring belongs to the container's root, who may search it; runc lets \
                 everybody search it, crun's belongs to no user of the container",
    },
    Difference {
        case: "user namespace and user",
        path: "/keyring/description",
        reason: "as in the case before",
    },
    Difference {
        case: "docker version 2",
        path: "/cgroup/entries",
        reason: "without a cgroup namespace the container sees its own group, not the host's tree \
                 (CVE-2023-25809)",
    },
    Difference {
        case: "docker version 2",
        path: "/cgroup/limits/*",
        reason: "as /cgroup/entries: these are its own group's",
    },
    Difference {
        case: "docker version 2",
        path: "/mounts/~1sys~1fs~1cgroup/root",
        reason: "as /cgroup/entries: it is its own group",
    },
    Difference {
        case: "docker version 2",
        path: "/mounts/~1sys~1fs~1cgroup/source",
        reason: "a bind mount has the source of what is bound",
    },
];
