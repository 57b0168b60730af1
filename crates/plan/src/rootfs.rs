//! The root file system: attached, filled, entered, and partly hidden.

use pipkin_op::{MountAttr, PlanOp, attr, ms};

use crate::Invalid;
use crate::build::{Builder, c_string};
use crate::mounts::normalised;
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
    builder.open(
        POINTER,
        PlanOp::OpenRoot {
            slot: builder.root,
            path,
            clone,
        },
    );
    Ok(())
}

/// Puts the root over the host's, whose mounts then neither see nor show what happens here.
pub fn attach(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    const PROPAGATION: &str = "/linux/rootfsPropagation";
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
    let private = MountAttr {
        propagation: ms::PRIVATE,
        recursive: true,
        ..Default::default()
    };
    // A root that shall stay a slave keeps what it has from the host.
    let attr = match builder.linux.rootfs_propagation.as_deref() {
        None | Some("" | "private" | "rprivate" | "unbindable" | "runbindable") => private,
        Some("slave" | "rslave" | "shared" | "rshared") => MountAttr {
            propagation: ms::SLAVE,
            ..private
        },
        Some(other) => {
            return Err(
                Invalid::new(PROPAGATION, format!("unknown propagation {other:?}"))
                    .hint("shared, slave, private or unbindable, each also with an r before it"),
            );
        }
    };
    builder.container("/root/path", PlanOp::SetAttr { slot, attr });
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
    let dir = builder.root;
    for (index, path) in linux.readonly_paths.iter().enumerate() {
        let pointer = format!("/linux/readonlyPaths/{index}");
        let path = c_string(&pointer, &normalised(path))?;
        builder.container(pointer, PlanOp::ReadonlyPath { dir, path });
    }
    if linux.masked_paths.is_empty() {
        return Ok(());
    }
    let null = builder.slot("/linux/maskedPaths")?;
    let empty = builder.slot("/linux/maskedPaths")?;
    builder.open("/linux/maskedPaths", PlanOp::OpenNull { slot: null });
    builder.container(
        "/linux/maskedPaths",
        PlanOp::NewMount {
            slot: empty,
            fstype: c"tmpfs".into(),
            source: Some(c"tmpfs".into()),
            options: pipkin_op::wire::pack(["ro"]),
            attr: attr::RDONLY,
        },
    );
    for (index, path) in linux.masked_paths.iter().enumerate() {
        let pointer = format!("/linux/maskedPaths/{index}");
        let path = c_string(&pointer, &normalised(path))?;
        builder.container(
            pointer,
            PlanOp::Mask {
                dir,
                path,
                null,
                empty,
            },
        );
    }
    Ok(())
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
