//! `linux.namespaces`: which are new, which are joined, and in which order.

use pipkin_op::{PlanOp, Slot};
use pipkin_spec::config::Linux;

use crate::build::{Builder, c_string};
use crate::{Host, Invalid};

/// `CLONE_NEW*` of `linux/sched.h`.
pub mod flag {
    pub const TIME: u64 = 0x80;
    pub const MOUNT: u64 = 0x2_0000;
    pub const CGROUP: u64 = 0x200_0000;
    pub const UTS: u64 = 0x400_0000;
    pub const IPC: u64 = 0x800_0000;
    pub const USER: u64 = 0x1000_0000;
    pub const PID: u64 = 0x2000_0000;
    pub const NETWORK: u64 = 0x4000_0000;
}

/// Names of the types, with their flags.
const TYPES: [(&str, u64); 8] = [
    ("pid", flag::PID),
    ("network", flag::NETWORK),
    ("mount", flag::MOUNT),
    ("ipc", flag::IPC),
    ("uts", flag::UTS),
    ("user", flag::USER),
    ("cgroup", flag::CGROUP),
    ("time", flag::TIME),
];

/// A namespace that is joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Its `CLONE_NEW*`.
    pub flag: u64,
    /// Its file.
    pub path: String,
    /// Where it is named.
    pub pointer: String,
}

/// The namespaces of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// `CLONE_NEW*` of those that are made.
    pub new: u64,
    /// Those that are joined.
    pub joined: Vec<Joined>,
    /// Whether the mount namespace is made from the pinned one, not from the host's.
    pub pinned: bool,
}

impl Namespaces {
    /// Reads `linux.namespaces`, with what depends on it.
    pub fn new(linux: &Linux) -> Result<Self, Invalid> {
        let mut namespaces = Self::default();
        for (index, namespace) in linux.namespaces.iter().enumerate() {
            let pointer = format!("/linux/namespaces/{index}");
            let known = TYPES.iter().find(|(name, _)| *name == namespace.kind);
            let Some(&(_, flag)) = known else {
                let names = TYPES.map(|(name, _)| name).join(", ");
                let message = format!("unknown namespace type {:?}", namespace.kind);
                return Err(
                    Invalid::new(pointer + "/type", message).hint(format!("one of {names}"))
                );
            };
            if namespaces.has(flag) {
                let message = format!("namespace {:?} is named twice", namespace.kind);
                return Err(Invalid::new(pointer, message));
            }
            match namespace.path.as_deref() {
                None | Some("") => namespaces.new |= flag,
                Some(path) if path.starts_with('/') => {
                    namespaces.joined.push(Joined {
                        flag,
                        path: path.to_owned(),
                        pointer,
                    });
                }
                Some(path) => {
                    let message = format!("the path {path:?} is not absolute");
                    return Err(Invalid::new(pointer + "/path", message));
                }
            }
        }
        namespaces.check_mappings(linux)?;
        Ok(namespaces)
    }

    fn check_mappings(&self, linux: &Linux) -> Result<(), Invalid> {
        for (field, mappings) in [
            ("uidMappings", &linux.uid_mappings),
            ("gidMappings", &linux.gid_mappings),
        ] {
            let pointer = format!("/linux/{field}");
            if self.is_new(flag::USER) && mappings.is_empty() {
                let message = "a new user namespace needs mappings";
                return Err(Invalid::new(pointer, message)
                    .hint(format!("add {field}, such as {{\"containerID\": 0, \"hostID\": 100000, \"size\": 65536}}")));
            }
            if !self.has(flag::USER) && !mappings.is_empty() {
                return Err(Invalid::new(pointer, "mappings without a user namespace")
                    .hint("add {\"type\": \"user\"} to /linux/namespaces"));
            }
            for (index, mapping) in mappings.iter().enumerate() {
                if mapping.size == 0 {
                    return Err(Invalid::new(
                        format!("{pointer}/{index}/size"),
                        "0 ids are mapped",
                    ));
                }
            }
        }
        if !self.is_new(flag::TIME) && !linux.time_offsets.is_empty() {
            return Err(
                Invalid::new("/linux/timeOffsets", "offsets without a new time namespace")
                    .hint("add {\"type\": \"time\"} to /linux/namespaces"),
            );
        }
        Ok(())
    }

    /// Whether the container has one of its own, new or joined.
    pub fn has(&self, flag: u64) -> bool {
        self.is_new(flag) || self.joined(flag).is_some()
    }

    /// Whether it is made.
    pub fn is_new(&self, flag: u64) -> bool {
        self.new & flag != 0
    }

    /// The one that is joined.
    pub fn joined(&self, flag: u64) -> Option<&Joined> {
        self.joined.iter().find(|joined| joined.flag == flag)
    }

    /// Those that clone3(2) makes. A cgroup namespace begins where its maker is, so it is
    /// made in the cgroup; a time namespace is entered by execve(2); and the message queues
    /// of an IPC namespace belong to its maker, who in a user namespace must be its root.
    pub fn cloned(&self) -> u64 {
        if self.pinned {
            return self.new & flag::PID;
        }
        let ipc = if self.has(flag::USER) { flag::IPC } else { 0 };
        self.new & !(flag::CGROUP | flag::TIME | ipc)
    }

    /// Those that a process makes which begins from the pinned mount namespace.
    pub fn unshared(&self) -> u64 {
        if self.pinned {
            self.new & (flag::NETWORK | flag::IPC | flag::UTS)
        } else {
            0
        }
    }
}

/// Opens the namespaces that are joined. What it gives are the user namespace and, with one,
/// the pid namespace among them, which the clone joins. With a user
/// namespace, new or joined, the others are entered by the runtime, which may enter any; so is
/// the pid namespace, whose members are born there.
pub fn open(builder: &mut Builder<'_>) -> Result<(Option<Slot>, Option<Slot>), Invalid> {
    let user_namespace = builder.namespaces.has(flag::USER);
    let joins_user = builder.namespaces.joined(flag::USER).is_some();
    let (mut user, mut pid) = (None, None);
    let mut left = Vec::new();
    for joined in builder.namespaces.joined.clone() {
        let slot = builder.slot(&joined.pointer)?;
        let path = c_string(&joined.pointer, &joined.path)?;
        let nstype = u32::try_from(joined.flag).unwrap_or(0);
        let pointer = joined.pointer;
        builder.open(
            pointer.clone(),
            PlanOp::OpenNamespace { slot, path, nstype },
        );
        if joined.flag == flag::USER {
            user = Some(slot);
        } else if joins_user && joined.flag == flag::PID {
            pid = Some(slot);
        } else if user_namespace || joined.flag == flag::PID {
            left.push((pointer, slot, nstype));
        } else {
            builder.container(pointer, PlanOp::JoinNamespace { slot, nstype });
        }
    }
    for (pointer, slot, nstype) in &left {
        let op = PlanOp::EnterNamespace {
            slot: *slot,
            nstype: *nstype,
        };
        builder.open(pointer.clone(), op);
    }
    for (pointer, _, nstype) in left.into_iter().rev() {
        builder.runtime(pointer, PlanOp::LeaveNamespace { nstype });
    }
    Ok((user, pid))
}

/// Maps the ids of a new user namespace, and becomes root in it.
pub fn map_ids(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    if !builder.namespaces.is_new(flag::USER) {
        if builder.namespaces.has(flag::USER) {
            builder.container("/linux/namespaces", PlanOp::BecomeRoot {});
            make_ipc(builder);
        }
        return Ok(());
    }
    let linux = builder.linux;
    if !builder.host.privileged {
        let op = PlanOp::WriteProc {
            file: c"setgroups".into(),
            value: c"deny".into(),
        };
        builder.runtime("/linux/gidMappings", op);
    }
    for (field, file, mappings) in [
        ("/linux/uidMappings", c"uid_map", &linux.uid_mappings),
        ("/linux/gidMappings", c"gid_map", &linux.gid_mappings),
    ] {
        let lines: String = mappings
            .iter()
            .map(|map| format!("{} {} {}\n", map.container_id, map.host_id, map.size))
            .collect();
        let value = c_string(field, &lines)?;
        builder.runtime(
            field,
            PlanOp::WriteProc {
                file: file.into(),
                value,
            },
        );
    }
    let maps_root = |mappings: &[pipkin_spec::config::IdMapping]| {
        mappings.iter().any(|map| map.container_id == 0)
    };
    if maps_root(&linux.uid_mappings) && maps_root(&linux.gid_mappings) {
        builder.container("/linux/uidMappings", PlanOp::BecomeRoot {});
    }
    make_ipc(builder);
    Ok(())
}

/// A new IPC namespace, made by the root of the user namespace.
fn make_ipc(builder: &mut Builder<'_>) {
    if builder.namespaces.is_new(flag::IPC) {
        builder.container("/linux/namespaces", PlanOp::Unshare { flags: flag::IPC });
    }
}

/// A new time namespace, with its offsets.
pub fn set_time(builder: &mut Builder<'_>, host: &Host) -> Result<(), Invalid> {
    const POINTER: &str = "/linux/timeOffsets";
    if !builder.namespaces.is_new(flag::TIME) {
        return Ok(());
    }
    if host.kernel < (6, 1) {
        return Err(Invalid::new(
            "/linux/namespaces",
            "time namespaces need Linux 6.1",
        ));
    }
    builder.container("/linux/namespaces", PlanOp::Unshare { flags: flag::TIME });
    let mut lines = String::new();
    for (clock, offset) in &builder.linux.time_offsets {
        if clock != "monotonic" && clock != "boottime" {
            let pointer = format!("{POINTER}/{}", crate::build::escape(clock));
            return Err(Invalid::new(pointer, format!("unknown clock {clock:?}"))
                .hint("monotonic or boottime"));
        }
        if offset.nanosecs >= 1_000_000_000 {
            return Err(Invalid::new(
                format!("{POINTER}/{clock}/nanosecs"),
                format!("{} is not less than a second", offset.nanosecs),
            ));
        }
        lines += &format!("{clock} {} {}\n", offset.secs, offset.nanosecs);
    }
    if !lines.is_empty() {
        let value = c_string(POINTER, &lines)?;
        builder.runtime(
            POINTER,
            PlanOp::WriteProc {
                file: c"timens_offsets".into(),
                value,
            },
        );
    }
    Ok(())
}
