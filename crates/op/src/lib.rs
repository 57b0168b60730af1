//! **Op**: one step of a container's start, one kernel operation each, as data.
//!
//! `pipkin-plan` makes the steps, the runtime and the container's first program
//! perform them. The two are different programs: the container's steps reach it
//! [encoded](wire) and are decoded one after another in place, without allocation.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

mod flags;
mod message;
#[cfg(feature = "alloc")]
mod text;
pub mod wire;

pub use flags::{attr, ms};
pub use message::{Detail, Message, MessageKind, Name};

/// The largest number of slots in a plan.
pub const MAX_SLOTS: usize = 4096;

/// The place of a descriptor in a plan's table: plans are made before anything is
/// opened, so that they name descriptors by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u16);

impl Slot {
    /// Where the root file system is, in every plan.
    pub const ROOT: Self = Self(0);
}

/// Who performs a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The runtime, in the host's namespaces.
    Runtime,
    /// The container's first process.
    Container,
}

/// Which kind of hook, runtime-spec config.md "POSIX-platform Hooks".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum HookKind {
    /// `prestart`
    Prestart = 0,
    /// `createRuntime`
    CreateRuntime = 1,
    /// `createContainer`
    CreateContainer = 2,
    /// `startContainer`
    StartContainer = 3,
    /// `poststart`
    Poststart = 4,
    /// `poststop`
    Poststop = 5,
}

impl HookKind {
    /// The name of the field in config.json.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prestart => "prestart",
            Self::CreateRuntime => "createRuntime",
            Self::CreateContainer => "createContainer",
            Self::StartContainer => "startContainer",
            Self::Poststart => "poststart",
            Self::Poststop => "poststop",
        }
    }
}

/// An attribute change of mount_setattr(2), `struct mount_attr`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MountAttr {
    /// `MOUNT_ATTR_*` to set.
    pub set: u64,
    /// `MOUNT_ATTR_*` to clear.
    pub clear: u64,
    /// `MS_SHARED`, `MS_SLAVE`, `MS_PRIVATE` or `MS_UNBINDABLE`; 0 leaves it.
    pub propagation: u64,
    /// Whether it holds for the mounts below, `AT_RECURSIVE`.
    pub recursive: bool,
}

impl MountAttr {
    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.set == 0 && self.clear == 0 && self.propagation == 0
    }
}

/// How the place of a mount is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Target {
    /// Links are followed inside the root; what is missing is made.
    #[default]
    Follow = 0,
    /// The last component may be a link, which is not followed.
    Nofollow = 1,
    /// A directory, and no link on the way to it (CVE-2023-27561).
    NoLinks = 2,
    /// One name, not there yet, in a file system that an earlier step made and that nobody
    /// else has written to: nothing of the image's is on the way.
    New = 3,
}

/// What is known of a path that is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Covered {
    /// Nothing: it is the image's, or may be.
    Unknown = 0,
    /// A directory of procfs or sysfs, and no link on the way to it.
    Directory = 1,
    /// A file of procfs or sysfs, and no link on the way to it.
    File = 2,
}

macro_rules! ops {
    ($(
        $(#[$doc:meta])*
        $code:literal $name:ident { $( $(#[$fdoc:meta])* $field:ident : $ty:ty ),* $(,)? }
    )*) => {
        /// One step. `S` is a C string, `B` a run of bytes: owned where the plan is made,
        /// borrowed from the encoded plan where it is performed.
        #[allow(missing_docs, reason = "the fields are the arguments of the named system call")]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Op<S, B> {
            $( $(#[$doc])* $name { $( $(#[$fdoc])* $field: $ty ),* }, )*
        }

        #[cfg(feature = "alloc")]
        impl PlanOp {
            /// Appends the step to an encoded plan.
            pub fn encode(&self, out: &mut alloc::vec::Vec<u8>) {
                use wire::Encode as _;
                match self {
                    $( Self::$name { $($field),* } => {
                        out.push($code);
                        $( $field.encode(out); )*
                    } )*
                }
            }
        }

        impl<'a> StageOp<'a> {
            /// Takes the next step off an encoded plan; `None` where it is not well formed.
            pub fn decode(reader: &mut wire::Reader<'a>) -> Option<Self> {
                Some(match reader.byte()? {
                    $( $code => Self::$name { $( $field: wire::Decode::decode(reader)? ),* }, )*
                    _ => return None,
                })
            }
        }

        impl<S, B> Op<S, B> {
            /// The name of the step.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$name { .. } => stringify!($name), )* }
            }
        }
    };
}

/// A step as the plan holds it.
#[cfg(feature = "alloc")]
pub type PlanOp = Op<alloc::ffi::CString, alloc::vec::Vec<u8>>;

#[cfg(feature = "alloc")]
impl PlanOp {
    /// Whether a step of the runtime, after the clone, needs what the container's process does
    /// before it in the plan; else it is done as soon as the process is there.
    #[must_use]
    pub fn waits_for_container(&self) -> bool {
        match self {
            Self::CgroupCreate { .. }
            | Self::CgroupLimits { .. }
            | Self::CgroupDevices { .. }
            | Self::WriteState { .. }
            | Self::CgroupMove { .. }
            | Self::LeaveNamespace { .. } => false,
            Self::WriteProc { file, .. } => file.as_c_str() == c"timens_offsets",
            _ => true,
        }
    }

    /// Whether the container's process must not go on before this step of the runtime is done.
    #[must_use]
    pub const fn holds_container(&self) -> bool {
        !matches!(
            self,
            Self::PublishState { .. } | Self::WritePidFile { .. } | Self::LeaveNamespace { .. }
        )
    }
}

/// A step as it is performed.
pub type StageOp<'a> = Op<&'a core::ffi::CStr, &'a [u8]>;

ops! {
    // Sources, opened by the runtime in the host's namespaces.

    /// open_tree(2) of the root file system: a detached copy of the mounts at `path`, or,
    /// for a container without a mount namespace of its own, the directory itself.
    1 OpenRoot { slot: Slot, path: S, clone: bool, attr: MountAttr, }
    /// open_tree(2) of a bind mount's source, a detached copy, with the attributes that it
    /// shall have as a whole (open_tree_attr(2) since Linux 6.15, else mount_setattr(2)).
    2 OpenTree { slot: Slot, path: S, recursive: bool, nofollow: bool, attr: MountAttr, }
    /// Opens a namespace file.
    3 OpenNamespace { slot: Slot, path: S, nstype: u32, }
    /// A detached copy of the host's null device, checked to be character device 1:3. Like every
    /// tree of the host it must become private: what a container mounts on a peer of the host's
    /// mount would be mounted on the host.
    4 OpenNull { slot: Slot, attr: MountAttr, }
    /// A detached copy of a device node of the host, for a container that may not
    /// make its own; checked to be `dev`.
    5 OpenDevice { slot: Slot, path: S, block: bool, major: u32, minor: u32, attr: MountAttr, }
    /// Connects to the socket that receives the terminal's other side.
    6 ConnectConsole { slot: Slot, path: S, }
    /// The listening socket at which `start` is awaited.
    7 ListenStart { slot: Slot, lock: Slot, }
    /// Opens the mount namespace that holds nothing but an empty file system.
    9 OpenPinned { slot: Slot, }
    /// Opens the host's /proc: before Linux 5.12 a mount is changed by mount(2), which takes a
    /// path, and what has only a descriptor is named below `self/fd`.
    10 OpenProc { slot: Slot, }
    /// Maps the owners of a detached tree, mount_setattr(2) `MOUNT_ATTR_IDMAP`.
    8 IdmapTree { slot: Slot, uid_map: S, gid_map: S, recursive: bool, }

    // Control groups.

    /// Makes the container's cgroup in every hierarchy that is used.
    20 CgroupCreate { path: S, }
    /// Writes the limits; `writes` is their text.
    21 CgroupLimits { writes: S, }
    /// Attaches the device program (v2).
    22 CgroupDevices { program: B, }
    /// Opens what joining the cgroup needs: the v1 hierarchies' `tasks` files, into slots
    /// from `first` on, and the v2 directory for CLONE_INTO_CGROUP.
    23 CgroupOpen { first: Slot, count: u16, unified: Option<Slot>, }
    /// Joins one v1 hierarchy by writing 0 into the group's `tasks`: a thread that moves
    /// itself takes 10 µs, moving another process 7 ms (an RCU grace period).
    24 CgroupJoin { slot: Slot, hierarchy: S, }
    /// The same, with the file opened by the container, which is still among the host's mounts.
    /// `index` is the hierarchy's place in [`Message::value`] of the runtime's `Go`, where a
    /// set bit says that it has no group of the container's.
    26 CgroupEnter { tasks: S, index: u32, }
    /// Moves the container's process into the v2 cgroup, before Linux 5.7.
    25 CgroupMove { }

    // The process.

    /// clone3(2), and execution of the init program in the child. A user namespace that is
    /// joined is entered first, by a process between, so that it owns the new namespaces; that
    /// process also enters the pid namespace, if one is joined.
    30 Clone { flags: u64, cgroup: Option<Slot>, user: Option<Slot>, pid: Option<Slot>, }
    /// setns(2) by the runtime, so that what is cloned afterwards is born there.
    31 EnterNamespace { slot: Slot, nstype: u32, }
    /// The runtime's own namespace again, after `EnterNamespace`.
    32 LeaveNamespace { nstype: u32, }
    /// Writes a file of the container's process below /proc: `uid_map`, `gid_map`,
    /// `setgroups`, `timens_offsets`, `oom_score_adj`.
    33 WriteProc { file: S, value: S, }
    /// Writes what `state`, `start` and `delete` need to know, not yet as the state: who looks
    /// for it meanwhile sees by the process whether its program is executed.
    34 WriteState { }
    /// Makes it the state.
    37 PublishState { }
    /// Writes the process's id for whoever called.
    35 WritePidFile { path: S, }
    /// A hook.
    36 Hook { kind: HookKind, index: u32, path: S, args: B, env: B, timeout: u32, state: B, }

    // Namespaces, in the container.

    /// setns(2).
    50 JoinNamespace { slot: Slot, nstype: u32, }
    /// unshare(2).
    51 Unshare { flags: u64, }
    /// Becomes user and group 0 of the user namespace.
    52 BecomeRoot { }
    /// setsid(2).
    53 Setsid { }
    /// Joins a new session keyring of this name.
    54 Keyring { name: S, }
    /// Brings the loopback interface up.
    55 LoopbackUp { }
    /// sethostname(2).
    56 Hostname { name: S, }
    /// setdomainname(2).
    57 Domainname { name: S, }

    // The root file system.

    /// Changes the propagation of a mount at a path, mount(2).
    70 Propagation { path: S, flags: u64, }
    /// setns(2) into the pinned mount namespace, and unshare(2): a copy of its one mount.
    89 EnterPinned { slot: Slot, }
    /// move_mount(2) of the root over `/`.
    71 AttachRoot { slot: Slot, }
    /// Opens a directory of the root without leaving it.
    72 OpenIn { slot: Slot, dir: Slot, path: S, }
    /// mount(2) on a path of the root, made where it is missing.
    73 Mount { dir: Slot, path: S, target: Target, source: S, fstype: S, flags: u64, data: Option<S>, }
    /// fsopen(2), fsconfig(2), fsmount(2): a new file system, not attached yet.
    74 NewMount { slot: Slot, fstype: S, source: Option<S>, options: B, attr: u64, }
    /// move_mount(2) of a detached mount to a path of the root, made where it is missing.
    75 Attach { slot: Slot, dir: Slot, path: S, target: Target, }
    /// mount_setattr(2) on a mount that a slot holds; with `proc`, before Linux 5.12, mount(2),
    /// whose attributes are never recursive.
    76 SetAttr { slot: Slot, attr: MountAttr, proc: Option<Slot>, }
    /// The same on the mount at a path of the root.
    77 SetAttrAt { dir: Slot, path: S, attr: MountAttr, proc: Option<Slot>, }
    /// Fills a detached tmpfs with what lies at a path of the root.
    78 CopyUp { slot: Slot, dir: Slot, path: S, }
    /// mknodat(2), mode and owner.
    79 Mknod { dir: Slot, path: S, mode: u32, major: u32, minor: u32, uid: u32, gid: u32, }
    /// symlinkat(2); what is there already stays.
    80 Symlink { dir: Slot, path: S, target: S, }
    /// mkdirat(2), with the directories above.
    81 Mkdir { dir: Slot, path: S, mode: u32, }
    /// Hides a path: a file below the null device, a directory below an empty one. With `proc` as
    /// for `SetAttr`, the null device becomes private when it is attached.
    82 Mask { dir: Slot, path: S, null: Slot, empty: Slot, is: Covered, proc: Option<Slot>, }
    /// Makes a path read-only, with the mounts below it, or without them where `proc` is given
    /// as for `SetAttr`. `plain` as for [`Covered`].
    83 ReadonlyPath { dir: Slot, path: S, plain: bool, proc: Option<Slot>, }
    /// pivot_root(2) to the root and umount2(2) of the old one.
    84 PivotRoot { slot: Slot, }
    /// Moves the root over `/` and chroot(2), for a root that cannot be pivoted.
    85 MoveRoot { slot: Slot, }
    /// chroot(2) alone: the host's root is not above it (a pinned mount namespace), or stays
    /// (no mount namespace of its own).
    86 Chroot { slot: Slot, }
    /// Writes a kernel parameter through a procfs of our own.
    87 Sysctl { proc: Slot, path: S, value: S, }
    /// A new pseudo-terminal of the container's devpts: its other side is sent to the
    /// console socket, its size set, it becomes the controlling terminal, standard
    /// input, output and error, and /dev/console.
    88 Console { socket: Slot, dir: Slot, rows: u16, columns: u16, uid: u32, mount: bool, }

    // What the process may do and who it is.

    /// personality(2).
    100 Personality { persona: u64, }
    /// prlimit(2).
    101 Rlimit { resource: u32, soft: u64, hard: u64, }
    /// sched_setattr(2).
    102 Scheduler { policy: u32, flags: u64, nice: i32, priority: u32, runtime: u64, deadline: u64, period: u64, }
    /// ioprio_set(2).
    103 IoPriority { value: u32, }
    /// umask(2).
    104 Umask { mask: u32, }
    /// PR_CAPBSET_DROP of all but these.
    105 BoundingSet { keep: u64, }
    /// setgroups(2), a little-endian u32 each.
    106 Groups { groups: B, }
    /// setresgid(2) and setresuid(2), keeping the permitted capabilities.
    107 User { uid: u32, gid: u32, }
    /// capset(2).
    108 Capabilities { effective: u64, permitted: u64, inheritable: u64, }
    /// PR_CAP_AMBIENT_RAISE of each.
    109 Ambient { set: u64, }
    /// PR_SET_NO_NEW_PRIVS.
    110 NoNewPrivs { }
    /// seccomp(2): an array of `struct sock_filter`.
    111 Seccomp { program: B, flags: u32, }
    /// Writes an LSM label for the next execve(2) into a procfs of our own.
    112 ExecLabel { proc: Slot, file: S, value: S, }
    /// chdir(2), checked to end inside the root: before the user is changed, or, where that
    /// is not permitted to root (a network file system), `late`, as that user.
    113 Chdir { path: S, late: bool, }

    // Execution.

    /// Looks the executable up; `search` is the container's PATH. A `last` look needs to tell
    /// only what execve(2), which follows at once, cannot.
    120 FindExecutable { name: S, search: Option<S>, last: bool, }
    /// HOME from the image's passwd.
    121 Home { uid: u32, }
    /// Waits until `start` connects, with nothing else open but the lock.
    122 AwaitStart { listener: Slot, lock: Slot, }
    /// Marks every descriptor from `first` on as close-on-exec.
    123 CloseRange { first: u32, }
    /// Closes every descriptor from `first` on, but those of the slots `keep` (a little-endian
    /// u16 each) and the socket to the runtime: from here on paths of the image are looked up
    /// that could name them (CVE-2024-21626), and a container may wait for long. `proc` is the
    /// host's, which lists them where there is no close_range(2).
    125 CloseRest { first: u32, keep: B, proc: Option<Slot>, }
    /// execve(2) of what was found, with an empty signal mask. `ignored` are the signals, bit
    /// 0 for number 1, that the runtime's caller ignores: they get their default effect.
    124 Exec { args: B, env: B, ignored: u64, }

    // Made when a plan is encoded.

    /// Where the runtime's steps stand: tells it that this place was reached, if it
    /// waits for that (`notify`), and waits until it has done them, unless nothing that follows
    /// depends on them (`wait`).
    200 Handoff { notify: bool, wait: bool, }
}
