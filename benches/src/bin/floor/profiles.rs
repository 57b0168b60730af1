//! What is to be made for each configuration. The tables are written by hand, in the order in
//! which the calls are made; what takes work to find out comes from pipkin's planner, when
//! this program is built.

use core::ffi::CStr;

use pipkin_op::ms::{NODEV, NOEXEC, NOSUID, RDONLY, STRICTATIME};

/// What `build.rs` derives from a configuration.
pub struct Derived {
    /// The seccomp filter; empty without one.
    pub filter: &'static [u8],
    /// Its `SECCOMP_FILTER_FLAG_*`.
    pub flags: u32,
    /// Bounding, effective and permitted capabilities.
    pub capabilities: u64,
    /// Limits and device rules as writes of v1.
    pub v1: &'static [Write],
    /// Limits as writes of v2.
    pub v2: &'static [Write],
    /// The device program of v2.
    pub devices: &'static [u8],
}

/// One write into a file of a control group.
pub struct Write {
    /// The controller that the file belongs to.
    pub controller: &'static str,
    /// The file.
    pub file: &'static str,
    /// What is written.
    pub value: &'static [u8],
    /// Whether the file may be missing.
    pub optional: bool,
}

include!(concat!(env!("OUT_DIR"), "/derived.rs"));

/// One entry of `mounts`. Targets are relative to the image's root.
pub enum Mount {
    /// A new file system.
    New {
        /// Its type, which is also its source.
        kind: &'static CStr,
        /// Where.
        target: &'static CStr,
        /// Whether the target lies in a tmpfs that was just mounted and has to be made.
        make: bool,
        /// `MS_*`.
        flags: u64,
        /// What else the file system is told.
        data: Option<&'static CStr>,
    },
    /// One of the bundle's files.
    File {
        /// Its name in the bundle's `files`.
        name: &'static str,
        /// Where.
        target: &'static CStr,
        /// Whether the target has to be made.
        make: bool,
        /// `MS_*` that the mount gets besides.
        flags: u64,
    },
    /// The control groups, with these `MS_*`.
    Cgroup(u64),
}

/// A path that the container must not see.
pub enum Mask {
    /// A file; also what does not exist on most kernels.
    File(&'static CStr),
    /// A directory.
    Directory(&'static CStr),
}

/// A configuration.
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// What the planner found.
    pub derived: Derived,
    /// Whether the container has a cgroup namespace where all groups are v2, and where not.
    pub cgroup_namespace: (bool, bool),
    /// Host name.
    pub hostname: &'static str,
    /// `mounts`; the first is proc.
    pub mounts: &'static [Mount],
    /// Whether the root is read-only.
    pub readonly_root: bool,
    /// Files below /proc/sys and what they get.
    pub sysctl: &'static [(&'static CStr, &'static [u8])],
    /// `readonlyPaths`.
    pub readonly: &'static [&'static CStr],
    /// `maskedPaths`.
    pub masked: &'static [Mask],
    /// `rlimits`: number, soft and hard.
    pub rlimits: &'static [(u32, u64, u64)],
    /// Whether there is one additional group, 0, or none.
    pub group: bool,
    /// `noNewPrivileges`.
    pub no_new_privs: bool,
    /// `env`, with HOME where the configuration has none.
    pub env: &'static [&'static CStr],
}

impl Profile {
    /// What proc, in which all read-only paths lie, is mounted with.
    pub fn proc_flags(&self) -> u64 {
        match self.mounts.first() {
            Some(Mount::New { flags, .. }) => *flags,
            _ => 0,
        }
    }
}

const NOFILE: u32 = 7;
const NPROC: u32 = 6;
const PATH: &CStr = c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const fn new(
    kind: &'static CStr,
    target: &'static CStr,
    flags: u64,
    data: Option<&'static CStr>,
) -> Mount {
    Mount::New {
        kind,
        target,
        make: false,
        flags,
        data,
    }
}

const fn made(
    kind: &'static CStr,
    target: &'static CStr,
    flags: u64,
    data: Option<&'static CStr>,
) -> Mount {
    Mount::New {
        kind,
        target,
        make: true,
        flags,
        data,
    }
}

const fn file(name: &'static str, target: &'static CStr) -> Mount {
    Mount::File {
        name,
        target,
        make: false,
        flags: 0,
    }
}

const ALL: u64 = NOSUID | NOEXEC | NODEV;
const PROC: Mount = new(c"proc", c"proc", ALL, None);
const DEV_DATA: Option<&CStr> = Some(c"mode=755,size=65536k");
const DEV: Mount = new(c"tmpfs", c"dev", NOSUID | STRICTATIME, DEV_DATA);
const PTS: Mount = made(
    c"devpts",
    c"dev/pts",
    NOSUID | NOEXEC,
    Some(c"newinstance,ptmxmode=0666,mode=0620,gid=5"),
);
const SHM: Mount = made(c"tmpfs", c"dev/shm", ALL, Some(c"mode=1777,size=65536k"));
const MQUEUE: Mount = made(c"mqueue", c"dev/mqueue", ALL, None);
const SYS: Mount = new(c"sysfs", c"sys", ALL | RDONLY, None);

const READONLY: &[&CStr] = &[
    c"proc/bus",
    c"proc/fs",
    c"proc/irq",
    c"proc/sys",
    c"proc/sysrq-trigger",
];

const MASKED: &[Mask] = &[
    Mask::Directory(c"proc/acpi"),
    Mask::Directory(c"proc/asound"),
    Mask::File(c"proc/kcore"),
    Mask::File(c"proc/keys"),
    Mask::File(c"proc/latency_stats"),
    Mask::File(c"proc/timer_list"),
    Mask::File(c"proc/timer_stats"),
    Mask::File(c"proc/sched_debug"),
    Mask::Directory(c"proc/scsi"),
    Mask::Directory(c"sys/firmware"),
];

/// All configurations.
pub const PROFILES: [Profile; 4] = [
    Profile {
        name: "podman",
        derived: PODMAN,
        cgroup_namespace: (true, true),
        hostname: "f0ed5214f268",
        mounts: &[
            PROC,
            new(c"tmpfs", c"dev", NOSUID | NOEXEC | STRICTATIME, DEV_DATA),
            SYS,
            PTS,
            MQUEUE,
            file("resolv.conf", c"etc/resolv.conf"),
            file("hosts", c"etc/hosts"),
            Mount::File {
                name: "shm",
                target: c"dev/shm",
                make: true,
                flags: ALL,
            },
            file(".containerenv", c"run/.containerenv"),
            file("hostname", c"etc/hostname"),
            Mount::Cgroup(ALL | RDONLY),
        ],
        readonly_root: false,
        sysctl: &[(c"proc/sys/net/ipv4/ping_group_range", b"0 0")],
        readonly: &[
            c"proc/asound",
            c"proc/bus",
            c"proc/fs",
            c"proc/irq",
            c"proc/sys",
            c"proc/sysrq-trigger",
        ],
        masked: &[
            Mask::Directory(c"proc/acpi"),
            Mask::File(c"proc/kcore"),
            Mask::File(c"proc/keys"),
            Mask::File(c"proc/latency_stats"),
            Mask::File(c"proc/timer_list"),
            Mask::File(c"proc/timer_stats"),
            Mask::File(c"proc/sched_debug"),
            Mask::Directory(c"proc/scsi"),
            Mask::Directory(c"sys/firmware"),
            Mask::Directory(c"sys/fs/selinux"),
            Mask::Directory(c"sys/dev/block"),
        ],
        rlimits: &[(NOFILE, 20000, 20000), (NPROC, 32768, 32768)],
        group: false,
        no_new_privs: false,
        env: &[
            c"TERM=xterm",
            c"container=podman",
            PATH,
            c"HOME=/root",
            c"HOSTNAME=f0ed5214f268",
        ],
    },
    Profile {
        name: "containerd",
        derived: CONTAINERD,
        cgroup_namespace: (false, false),
        hostname: "",
        mounts: &[
            PROC,
            DEV,
            PTS,
            SHM,
            MQUEUE,
            SYS,
            new(c"tmpfs", c"run", NOSUID | STRICTATIME, DEV_DATA),
        ],
        readonly_root: false,
        sysctl: &[],
        readonly: READONLY,
        masked: MASKED,
        rlimits: &[(NOFILE, 1024, 1024)],
        group: true,
        no_new_privs: true,
        env: &[PATH, c"HOME=/root"],
    },
    Profile {
        name: "docker",
        derived: DOCKER,
        cgroup_namespace: (false, false),
        hostname: "0936ea30415e",
        mounts: &[
            PROC,
            DEV,
            PTS,
            SYS,
            Mount::Cgroup(ALL | RDONLY),
            MQUEUE,
            made(c"tmpfs", c"dev/shm", ALL, Some(c"mode=1777,size=67108864")),
            file("resolv.conf", c"etc/resolv.conf"),
            file("hostname", c"etc/hostname"),
            file("hosts", c"etc/hosts"),
        ],
        readonly_root: false,
        sysctl: &[
            (c"proc/sys/net/ipv4/ip_unprivileged_port_start", b"0"),
            (c"proc/sys/net/ipv4/ping_group_range", b"0 2147483647"),
        ],
        readonly: READONLY,
        masked: MASKED,
        rlimits: &[],
        group: true,
        no_new_privs: false,
        env: &[PATH, c"HOSTNAME=0936ea30415e", c"HOME=/root"],
    },
    Profile {
        name: "spec",
        derived: SPEC,
        cgroup_namespace: (true, false),
        hostname: "pipkin",
        mounts: &[
            new(c"proc", c"proc", 0, None),
            DEV,
            PTS,
            SHM,
            MQUEUE,
            SYS,
            Mount::Cgroup(ALL | RDONLY),
        ],
        readonly_root: true,
        sysctl: &[],
        readonly: READONLY,
        masked: MASKED,
        rlimits: &[(NOFILE, 1024, 1024)],
        group: false,
        no_new_privs: true,
        env: &[PATH, c"TERM=xterm", c"HOME=/root"],
    },
];
