//! The root file system: attached, filled, entered, and partly hidden.

use pipkin_op::{Covered, MountAttr, PlanOp, Slot, attr, ms};

use crate::Invalid;
use crate::build::{Builder, c_string};
use crate::mounts::{self, normalised};
use crate::namespaces::flag;

/// Opens the root, in the host's namespaces.
pub fn open(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    const POINTER: &str = "/root/path";
    let path = builder
        .config
        .root
        .as_ref()
        .map(|root| root.path.as_str())
        .unwrap_or_default();
    if path.is_empty() {
        return Err(Invalid::new("/root", "there is no root file system")
            .hint("add {\"path\": \"rootfs\"}, relative to the bundle"));
    }
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{}/{path}", builder.request.bundle)
    };
    let path = c_string(POINTER, &path)?;
    let clone = builder.namespaces.is_new(flag::MOUNT);
    let attr = if clone {
        MountAttr {
            propagation: propagation(builder)?,
            recursive: true,
            ..Default::default()
        }
    } else {
        MountAttr::default()
    };
    builder.source(
        POINTER,
        PlanOp::OpenRoot {
            slot: builder.root,
            path,
            clone,
            attr,
        },
    );
    Ok(())
}

/// The propagation of the root while the container is made. One that shall stay a slave keeps
/// what it has from the host.
fn propagation(builder: &Builder<'_>) -> Result<u64, Invalid> {
    match builder.linux.rootfs_propagation.as_deref() {
        None | Some("" | "private" | "rprivate" | "unbindable" | "runbindable") => Ok(ms::PRIVATE),
        Some("slave" | "rslave" | "shared" | "rshared") => Ok(ms::SLAVE),
        Some(other) => Err(Invalid::new(
            "/linux/rootfsPropagation",
            format!("unknown propagation {other:?}"),
        )
        .hint("shared, slave, private or unbindable, each also with an r before it")),
    }
}

/// Puts the root over the host's, whose mounts then neither see nor show what happens here.
pub fn attach(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    if !builder.namespaces.is_new(flag::MOUNT) {
        return Ok(());
    }
    if builder.namespaces.pinned {
        let slot = builder.slot("/linux/namespaces")?;
        builder.open("/linux/namespaces", PlanOp::OpenPinned { slot });
        builder.container("/linux/namespaces", PlanOp::EnterPinned { slot });
    } else {
        let slave = PlanOp::Propagation {
            path: c"/".into(),
            flags: ms::REC | ms::SLAVE,
        };
        builder.container("", slave);
    }
    let slot = builder.root;
    builder.container("/root/path", PlanOp::AttachRoot { slot });
    Ok(())
}

/// Leaves the host's root.
pub fn enter(builder: &mut Builder<'_>) {
    let slot = builder.root;
    let op = if builder.namespaces.pinned || !builder.namespaces.is_new(flag::MOUNT) {
        PlanOp::Chroot { slot }
    } else if builder.request.no_pivot {
        PlanOp::MoveRoot { slot }
    } else {
        PlanOp::PivotRoot { slot }
    };
    builder.container("/root/path", op);
}

/// Sets the propagation that the root shall have, and makes it read-only.
pub fn finish(builder: &mut Builder<'_>) {
    if !builder.namespaces.is_new(flag::MOUNT) {
        return;
    }
    let flags = match builder.linux.rootfs_propagation.as_deref() {
        Some("shared") => ms::SHARED,
        Some("rshared") => ms::SHARED | ms::REC,
        Some("unbindable") => ms::UNBINDABLE,
        Some("runbindable") => ms::UNBINDABLE | ms::REC,
        _ => 0,
    };
    if flags != 0 {
        let op = PlanOp::Propagation {
            path: c"/".into(),
            flags,
        };
        builder.container("/linux/rootfsPropagation", op);
    }
    if builder
        .config
        .root
        .as_ref()
        .is_some_and(|root| root.readonly)
    {
        let attr = MountAttr {
            set: attr::RDONLY,
            ..Default::default()
        };
        builder.container(
            "/root/readonly",
            PlanOp::SetAttr {
                slot: builder.root,
                attr,
                proc: None,
            },
        );
    }
}

/// `readonlyPaths` and `maskedPaths`.
pub fn hide(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    let linux = builder.linux;
    if !builder.namespaces.is_new(flag::MOUNT) {
        for (field, list) in [
            ("maskedPaths", &linux.masked_paths),
            ("readonlyPaths", &linux.readonly_paths),
        ] {
            if !list.is_empty() {
                let pointer = format!("/linux/{field}");
                return Err(Invalid::new(
                    pointer,
                    "needs a mount namespace of the container's own",
                )
                .hint("add {\"type\": \"mount\"} to /linux/namespaces"));
            }
        }
        return Ok(());
    }
    for (index, path) in linux.readonly_paths.iter().enumerate() {
        let pointer = format!("/linux/readonlyPaths/{index}");
        let path = normalised(path);
        let (dir, known) = covered(builder, &pointer, &path)?;
        let op = PlanOp::ReadonlyPath {
            dir,
            path: c_string(&pointer, &path)?,
            plain: known != Covered::Unknown,
            proc: None,
        };
        builder.container(pointer, op);
    }
    if linux.masked_paths.is_empty() {
        return Ok(());
    }
    let null = builder.slot("/linux/maskedPaths")?;
    builder.source(
        "/linux/maskedPaths",
        PlanOp::OpenNull {
            slot: null,
            attr: mounts::PRIVATE,
        },
    );
    let empty = new_empty(builder)?;
    for (index, path) in linux.masked_paths.iter().enumerate() {
        let pointer = format!("/linux/maskedPaths/{index}");
        let path = normalised(path);
        let (dir, is) = covered(builder, &pointer, &path)?;
        let op = PlanOp::Mask {
            dir,
            path: c_string(&pointer, &path)?,
            null,
            empty,
            is,
            proc: None,
        };
        builder.container(pointer, op);
    }
    Ok(())
}

/// A new file system to hide directories, the container's own: one that may mount can make it
/// writable.
fn new_empty(builder: &mut Builder<'_>) -> Result<Slot, Invalid> {
    let slot = builder.slot("/linux/maskedPaths")?;
    let op = PlanOp::NewMount {
        slot,
        fstype: c"tmpfs".into(),
        source: Some(c"tmpfs".into()),
        options: pipkin_op::wire::pack(["ro"]),
        attr: attr::RDONLY | attr::NOSUID | attr::NODEV | attr::NOEXEC,
    };
    builder.container("/linux/maskedPaths", op);
    Ok(slot)
}

/// Paths of procfs and sysfs that engines mask and make read-only: the kernel makes them, and
/// has no link on the way to them.
const KERNEL_PATHS: [(&str, Covered); 20] = [
    ("/proc/acpi", Covered::Directory),
    ("/proc/asound", Covered::Directory),
    ("/proc/bus", Covered::Directory),
    ("/proc/fs", Covered::Directory),
    ("/proc/interrupts", Covered::File),
    ("/proc/irq", Covered::Directory),
    ("/proc/kcore", Covered::File),
    ("/proc/keys", Covered::File),
    ("/proc/latency_stats", Covered::File),
    ("/proc/sched_debug", Covered::File),
    ("/proc/scsi", Covered::Directory),
    ("/proc/sys", Covered::Directory),
    ("/proc/sysrq-trigger", Covered::File),
    ("/proc/timer_list", Covered::File),
    ("/proc/timer_stats", Covered::File),
    ("/sys/dev/block", Covered::Directory),
    ("/sys/devices/virtual/powercap", Covered::Directory),
    ("/sys/firmware", Covered::Directory),
    ("/sys/fs/selinux", Covered::Directory),
    ("/sys/kernel/security", Covered::Directory),
];

/// The directory that a path is looked up from, and what is known of it: in the container's own
/// procfs or sysfs nothing of the image's is on the way.
fn covered(
    builder: &mut Builder<'_>,
    pointer: &str,
    path: &str,
) -> Result<(Slot, Covered), Invalid> {
    let known = KERNEL_PATHS.binary_search_by_key(&path, |(known, _)| known);
    let known = known.ok().and_then(|at| KERNEL_PATHS.get(at));
    let unknown = (builder.root, Covered::Unknown);
    let Some((_, known)) = known else {
        return Ok(unknown);
    };
    let (top, fstype) = if path.starts_with("/proc/") {
        ("/proc", "proc")
    } else {
        ("/sys", "sysfs")
    };
    if !builder.is_kernel(top, fstype) {
        return Ok(unknown);
    }
    Ok((builder.kernel(pointer, top)?, *known))
}

/// A procfs of our own, for what is written below /proc: the one that the container gets,
/// before it is attached, else one that nobody sees.
pub fn ensure_proc(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    if builder.proc.is_some() || !builder.namespaces.is_new(flag::MOUNT) {
        return Ok(());
    }
    let slot = builder.slot("/linux/sysctl")?;
    builder.proc = Some(slot);
    builder.container(
        "/linux/sysctl",
        PlanOp::NewMount {
            slot,
            fstype: c"proc".into(),
            source: Some(c"proc".into()),
            options: Vec::new(),
            attr: attr::NOSUID | attr::NODEV | attr::NOEXEC,
        },
    );
    Ok(())
}
