//! `cgroup` mounts: what the container sees of control groups.
//!
//! | host | with a cgroup namespace | without |
//! | --- | --- | --- |
//! | v2 | a cgroup2 mount, its root is the container's group | a bind mount of the group |
//! | v1, hybrid | a tmpfs with a cgroup mount for each hierarchy | the same with bind mounts |
//!
//! Without a namespace only the container's own group is shown, never the host's tree
//! (CVE-2023-25809).

use pipkin_op::{MountAttr, PlanOp, attr, ms};

use super::{Request, add_new, add_tree};
use crate::Invalid;
use crate::build::{Builder, c_string};
use crate::host::Hierarchy;
use crate::namespaces::flag;

pub fn add(builder: &mut Builder<'_>, request: Request<'_>) -> Result<(), Invalid> {
    let namespace = builder.namespaces.has(flag::CGROUP);
    let hierarchies: Vec<Hierarchy> = builder.host.v1().cloned().collect();
    if !hierarchies.is_empty() && request.mount.kind.as_deref() != Some("cgroup2") {
        return add_v1(builder, &request, hierarchies, namespace);
    }
    let Some(unified) = builder.host.v2().cloned() else {
        return Err(
            Invalid::new(request.pointer, "the host has no control groups mounted")
                .hint("take the mount out, or mount cgroup2 on /sys/fs/cgroup of the host"),
        );
    };
    if namespace {
        return add_new(builder, &request, "cgroup2");
    }
    let path = c_string(&request.pointer, &group_path(&unified))?;
    add_tree(builder, request, path, true)
}

/// Where the container's group is on the host.
fn group_path(hierarchy: &Hierarchy) -> String {
    format!("{}{}", hierarchy.mount, hierarchy.group)
}

/// What mountinfo shows as the source.
fn source(hierarchy: &Hierarchy) -> &str {
    if hierarchy.name.starts_with("name=") {
        hierarchy.directory()
    } else {
        "cgroup"
    }
}

fn add_v1(
    builder: &mut Builder<'_>,
    request: &Request<'_>,
    hierarchies: Vec<Hierarchy>,
    namespace: bool,
) -> Result<(), Invalid> {
    let pointer = &request.pointer;
    let top = request.destination.to_string_lossy().into_owned();
    let flags = request.options.flags;
    let (dir, target) = builder.place(&pointer.clone().into(), &top)?;
    builder.container(
        pointer.clone(),
        PlanOp::Mount {
            dir,
            path: request.destination.clone(),
            target,
            source: c"tmpfs".into(),
            fstype: c"tmpfs".into(),
            flags: flags & !ms::RDONLY,
            data: Some(c"mode=755".into()),
        },
    );
    builder.made(&top);
    let here = builder.made_at(&pointer.clone().into(), &top)?;
    let here = here.unwrap_or(builder.root);
    for hierarchy in &hierarchies {
        let path = format!("{top}/{}", hierarchy.directory());
        let (dir, target) = builder.place(&pointer.clone().into(), &path)?;
        let path = c_string(pointer, &path)?;
        if namespace {
            let op = PlanOp::Mount {
                dir,
                path,
                target,
                source: c_string(pointer, source(hierarchy))?,
                fstype: c"cgroup".into(),
                flags,
                data: Some(c_string(pointer, &hierarchy.name)?),
            };
            builder.container(pointer.clone(), op);
        } else {
            let slot = builder.slot(pointer)?;
            let source = c_string(pointer, &group_path(hierarchy))?;
            let (set, clear) = (super::options::attributes(flags), 0);
            let attr = MountAttr {
                set,
                clear,
                propagation: ms::PRIVATE,
                // There are no mounts below a group.
                recursive: false,
            };
            // The group has to be there: see `Builder::group_first`.
            let op = PlanOp::OpenTree {
                slot,
                path: source,
                recursive: true,
                nofollow: false,
                attr,
            };
            builder.open(pointer.clone(), op);
            let op = PlanOp::Attach {
                slot,
                dir,
                path,
                target,
            };
            builder.container(pointer.clone(), op);
        }
        // Hierarchies of several controllers are also found by each of them.
        let names: Vec<&str> = hierarchy.name.split(',').collect();
        if names.len() > 1 {
            for name in names {
                let path = c_string(pointer, name)?;
                let target = c_string(pointer, hierarchy.directory())?;
                let dir = here;
                builder.container(pointer.clone(), PlanOp::Symlink { dir, path, target });
            }
        }
    }
    if flags & ms::RDONLY != 0 {
        let attr = MountAttr {
            set: attr::RDONLY,
            ..Default::default()
        };
        builder.container(
            pointer.clone(),
            PlanOp::SetAttr {
                slot: here,
                attr,
                proc: None,
            },
        );
    }
    Ok(())
}
