//! `mounts`: a bind mount is opened by the runtime and attached by the container; a new file
//! system is made by the container, in its namespaces.

mod cgroup;
mod options;

use std::borrow::Cow;
use std::ffi::CString;

use pipkin_op::{MountAttr, PlanOp, Slot, Target, attr, ms, wire};
use pipkin_spec::config::{IdMapping, Mount};

pub use options::OPTIONS;
use options::Options;

use crate::Invalid;
use crate::build::{Builder, c_string};
use crate::namespaces::flag;

/// File systems that are made of nothing: neither their source nor their options name a path
/// of the host.
const SELF_CONTAINED: [&str; 16] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "proc",
    "ramfs",
    "securityfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// Whether the kernel looks paths of the host up when it makes this mount: then it has to be
/// made where the host's files are. The source of a bind mount is opened before.
pub fn names_host_paths(mount: &Mount) -> bool {
    let kind = mount.kind.as_deref().unwrap_or_default();
    let is_bind = |option: &String| option == "bind" || option == "rbind";
    kind != "bind" && !SELF_CONTAINED.contains(&kind) && !mount.options.iter().any(is_bind)
}

/// What a tree of the host becomes that nobody asked to be anything else: what is mounted on a
/// peer of the host's mount is mounted on the host as well.
pub const PRIVATE: MountAttr = MountAttr {
    set: 0,
    clear: 0,
    propagation: ms::PRIVATE,
    recursive: false,
};

/// One mount on its way into the plan.
struct Request<'m> {
    mount: &'m Mount,
    pointer: String,
    options: Options,
    destination: CString,
}

/// Adds the steps of all mounts.
pub fn add(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    let mounts = &builder.config.mounts;
    for (index, mount) in mounts.iter().enumerate() {
        let pointer = format!("/mounts/{index}");
        let destination = normalised(&mount.destination);
        if mount.destination.is_empty() || destination == "/" {
            let message = format!("destination {:?} would hide the root", mount.destination);
            return Err(Invalid::new(pointer + "/destination", message));
        }
        let destination = c_string(&pointer, &destination)?;
        let options = Options::new(&mount.options);
        add_one(
            builder,
            Request {
                mount,
                pointer,
                options,
                destination,
            },
        )?;
    }
    Ok(())
}

/// An absolute path without empty components and dots. What `..` means depends on links, so
/// it stays for the kernel.
pub fn normalised(path: &str) -> Cow<'_, str> {
    if is_normalised(path.as_bytes()) {
        return path.into();
    }
    let parts = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    let mut out = String::with_capacity(path.len() + 1);
    for part in parts {
        out.push('/');
        out.push_str(part);
    }
    if out.is_empty() {
        "/".into()
    } else {
        out.into()
    }
}

/// Whether a path begins with a slash, does not end with one, and has none that is followed by
/// another or by a dot: nearly all are like that.
fn is_normalised(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
        && path.last() != Some(&b'/')
        && !path
            .windows(2)
            .any(|pair| matches!(pair, [b'/', b'/' | b'.']))
}

fn add_one(builder: &mut Builder<'_>, request: Request<'_>) -> Result<(), Invalid> {
    let kind = request.mount.kind.as_deref().unwrap_or_default();
    let user = builder.namespaces.has(flag::USER) || builder.host.in_user_namespace;
    // The kernel mounts these only for who owns what they show; the host's is shown instead.
    let hosts = match kind {
        "sysfs" if user && !builder.namespaces.has(flag::NETWORK) => Some("/sys"),
        "proc" if user && !builder.namespaces.has(flag::PID) => Some("/proc"),
        "mqueue" if user && !builder.namespaces.has(flag::IPC) => Some("/dev/mqueue"),
        _ => None,
    };
    if kind != "cgroup" && kind != "cgroup2" {
        refuse_idmap(&request)?;
    }
    refuse_nosymfollow(builder, &request)?;
    if let Some(bind) = request.options.bind.or((kind == "bind").then_some(false)) {
        return add_bind(builder, request, bind);
    }
    if let Some(path) = hosts {
        let source = c_string(&request.pointer, path)?;
        return add_tree(builder, request, source, true);
    }
    match kind {
        "" => Err(Invalid::new(
            request.pointer,
            "a mount without a type that is not a bind mount",
        )
        .hint("add \"type\", or \"bind\" to its options")),
        "cgroup" | "cgroup2" => cgroup::add(builder, request),
        "proc" => add_proc(builder, &request),
        _ => add_new(builder, &request, kind),
    }
}

/// Refuses what an older kernel would take without effect.
fn refuse_nosymfollow(builder: &Builder<'_>, request: &Request<'_>) -> Result<(), Invalid> {
    let options = &request.options;
    let all = options.attr.set | options.attr_all.set;
    if all & attr::NOSYMFOLLOW == 0 || builder.host.has_nosymfollow() {
        return Ok(());
    }
    let pointer = format!("{}/options", request.pointer);
    Err(Invalid::new(pointer, "\"nosymfollow\" needs Linux 5.14"))
}

fn refuse_idmap(request: &Request<'_>) -> Result<(), Invalid> {
    let mount = request.mount;
    let mapped = !mount.uid_mappings.is_empty() || !mount.gid_mappings.is_empty();
    if request.options.bind.is_none() && (mapped || request.options.idmap.is_some()) {
        let message = "only a bind mount can be id-mapped";
        return Err(Invalid::new(request.pointer.clone(), message));
    }
    Ok(())
}

/// A bind mount.
fn add_bind(
    builder: &mut Builder<'_>,
    request: Request<'_>,
    recursive: bool,
) -> Result<(), Invalid> {
    let source = request.mount.source.as_deref().unwrap_or_default();
    if source.is_empty() {
        return Err(Invalid::new(
            request.pointer,
            "a bind mount without a source",
        ));
    }
    let source = if source.starts_with('/') {
        source.to_owned()
    } else {
        format!("{}/{source}", builder.request.bundle)
    };
    let source = c_string(&request.pointer, &source)?;
    add_tree(builder, request, source, recursive)
}

/// Opens a tree of the host, with the attributes of the mount, and attaches it.
fn add_tree(
    builder: &mut Builder<'_>,
    request: Request<'_>,
    path: CString,
    recursive: bool,
) -> Result<(), Invalid> {
    let slot = builder.slot(&request.pointer)?;
    let nofollow = request.options.source_nofollow;
    let pointer = request.pointer.clone();
    let mut changes = changes(&request, recursive);
    let attr = match changes.first() {
        Some(first) if first.recursive == recursive => changes.remove(0),
        _ => MountAttr::default(),
    };
    let op = PlanOp::OpenTree {
        slot,
        path,
        recursive,
        nofollow,
        attr,
    };
    if let Some(all) = id_mapped(&request) {
        builder.open(pointer.clone(), op);
        let (uid_map, gid_map) = id_maps(builder, &request)?;
        let op = PlanOp::IdmapTree {
            slot,
            uid_map,
            gid_map,
            recursive: all,
        };
        builder.open(pointer.clone(), op);
    } else {
        builder.source(pointer.clone(), op);
    }
    for attr in changes {
        builder.container(
            pointer.clone(),
            PlanOp::SetAttr {
                slot,
                attr,
                proc: None,
            },
        );
    }
    let pointer = pointer.into();
    let destination = request.destination.to_string_lossy();
    let (dir, mut target) = builder.place(&pointer, &destination)?;
    if request.options.destination_nofollow {
        target = Target::Nofollow;
    } else if target == Target::Follow && is_kernel_place(&destination) {
        target = Target::NoLinks;
    }
    let op = PlanOp::Attach {
        slot,
        dir: if target == Target::New {
            dir
        } else {
            builder.root
        },
        path: request.destination.clone(),
        target,
    };
    builder.container(pointer, op);
    Ok(())
}

/// Where programs and masks expect what the kernel shows of itself: it must not be behind a
/// link of the image (CVE-2023-27561, CVE-2025-54867).
fn is_kernel_place(destination: &str) -> bool {
    destination == "/proc" || destination == "/sys"
}

/// Whether a mount is id-mapped, and if so, whether with the mounts below.
fn id_mapped(request: &Request<'_>) -> Option<bool> {
    let mapped = !request.mount.uid_mappings.is_empty() || !request.mount.gid_mappings.is_empty();
    request.options.idmap.or(mapped.then_some(false))
}

/// The mappings of an id-mapped mount: its own, else those of the container.
fn id_maps(builder: &Builder<'_>, request: &Request<'_>) -> Result<(CString, CString), Invalid> {
    let (mut uids, mut gids) = (&request.mount.uid_mappings, &request.mount.gid_mappings);
    if uids.is_empty() && gids.is_empty() {
        (uids, gids) = (&builder.linux.uid_mappings, &builder.linux.gid_mappings);
    }
    if uids.is_empty() || gids.is_empty() {
        let message = "an id-mapped mount needs uidMappings and gidMappings";
        return Err(Invalid::new(request.pointer.clone(), message)
            .hint("its own, or those of the container's user namespace"));
    }
    let lines = |mappings: &[IdMapping]| {
        let lines = mappings.iter();
        lines
            .map(|map| format!("{} {} {}\n", map.container_id, map.host_id, map.size))
            .collect()
    };
    let text = |mappings: &[IdMapping]| -> Result<CString, Invalid> {
        let lines: String = lines(mappings);
        c_string(&request.pointer, &lines)
    };
    Ok((text(uids)?, text(gids)?))
}

/// The changes that a tree of the host needs before it is attached, so that none of it is seen
/// without them. Those of the tree as a whole come first.
fn changes(request: &Request<'_>, recursive: bool) -> Vec<MountAttr> {
    let mut changes = vec![request.options.attr_all];
    changes.extend(propagations(request, true));
    changes.push(request.options.attr);
    if !recursive {
        // There are no mounts below.
        for change in &mut changes {
            change.recursive = false;
        }
    }
    merged(changes)
}

/// The changes of propagation. A tree of the host is a peer of what it was copied from,
/// so a bind mount without an option of its own becomes private, as the other runtimes have
/// it by making the whole root private.
fn propagations(request: &Request<'_>, bind: bool) -> Vec<MountAttr> {
    let change = |propagation, recursive| MountAttr {
        propagation,
        recursive,
        ..Default::default()
    };
    let mut changes = Vec::new();
    if bind && request.options.propagation.is_empty() {
        changes.push(change(ms::PRIVATE, true));
    }
    changes.extend(
        request
            .options
            .propagation
            .iter()
            .map(|&(flags, all)| change(flags, all)),
    );
    changes
}

/// Joins changes that one call can make.
fn merged(changes: Vec<MountAttr>) -> Vec<MountAttr> {
    let mut out: Vec<MountAttr> = Vec::new();
    for change in changes.into_iter().filter(|change| !change.is_empty()) {
        match out.last_mut() {
            Some(last)
                if last.recursive == change.recursive
                    && (last.propagation == 0 || change.propagation == 0)
                    && (last.set | last.clear) & (change.set | change.clear) == 0 =>
            {
                last.set |= change.set;
                last.clear |= change.clear;
                last.propagation |= change.propagation;
            }
            _ => out.push(change),
        }
    }
    out
}

/// procfs. What is written below /proc by pipkin itself goes through a handle of it that is
/// opened before anybody else can reach it (CVE-2025-52881).
fn add_proc(builder: &mut Builder<'_>, request: &Request<'_>) -> Result<(), Invalid> {
    if builder.linux.sysctl.is_empty() || builder.proc.is_some() {
        return add_new(builder, request, "proc");
    }
    let slot = builder.slot(&request.pointer)?;
    new_mount(builder, request, slot, "proc", request.options.flags)?;
    builder.proc = Some(slot);
    let path = request.destination.clone();
    builder.place(&request.pointer.clone().into(), &path.to_string_lossy())?;
    builder.set_kernel(&path.to_string_lossy(), slot);
    builder.container(
        request.pointer.clone(),
        PlanOp::Attach {
            slot,
            dir: builder.root,
            path,
            target: Target::NoLinks,
        },
    );
    set_propagation(builder, request);
    Ok(())
}

fn new_mount(
    builder: &mut Builder<'_>,
    request: &Request<'_>,
    slot: Slot,
    fstype: &str,
    flags: u64,
) -> Result<(), Invalid> {
    let pointer = &request.pointer;
    let source = c_string(pointer, request.mount.source.as_deref().unwrap_or(fstype))?;
    for option in &request.options.data {
        c_string(pointer, option)?;
    }
    let op = PlanOp::NewMount {
        slot,
        fstype: c_string(pointer, fstype)?,
        source: Some(source),
        options: wire::pack(request.options.data.iter().map(String::as_str)),
        attr: options::attributes(flags),
    };
    builder.container(pointer.clone(), op);
    Ok(())
}

/// Whether a mount stays writable until everything below it is made.
fn is_late_readonly(request: &Request<'_>, kind: &str) -> bool {
    request.options.flags & ms::RDONLY != 0
        && (kind == "tmpfs" || request.destination.as_bytes() == b"/dev")
}

/// A new file system.
fn add_new(builder: &mut Builder<'_>, request: &Request<'_>, kind: &str) -> Result<(), Invalid> {
    let pointer = request.pointer.clone();
    let late = is_late_readonly(request, kind);
    let flags = if late {
        request.options.flags & !ms::RDONLY
    } else {
        request.options.flags
    };
    let path = request.destination.clone();
    let destination = path.to_string_lossy().into_owned();
    if request.options.copy_up {
        if kind != "tmpfs" {
            let message = format!("tmpcopyup is for tmpfs, not for {kind}");
            return Err(Invalid::new(pointer + "/options", message));
        }
        let slot = builder.slot(&pointer)?;
        new_mount(builder, request, slot, kind, flags)?;
        builder.place(&pointer.clone().into(), &destination)?;
        let dir = builder.root;
        let op = PlanOp::CopyUp {
            slot,
            dir,
            path: path.clone(),
        };
        builder.container(pointer.clone(), op);
        builder.container(
            pointer.clone(),
            PlanOp::Attach {
                slot,
                dir,
                path,
                target: Target::Follow,
            },
        );
    } else {
        let data = request.options.data.join(",");
        let (dir, mut target) = builder.place(&pointer.clone().into(), &destination)?;
        if target == Target::Follow && (kind == "proc" || kind == "sysfs") {
            target = Target::NoLinks;
        }
        let op = PlanOp::Mount {
            dir,
            path,
            target,
            source: c_string(&pointer, request.mount.source.as_deref().unwrap_or(kind))?,
            fstype: c_string(&pointer, kind)?,
            flags,
            data: if data.is_empty() {
                None
            } else {
                Some(c_string(&pointer, &data)?)
            },
        };
        builder.container(pointer.clone(), op);
        if kind == "tmpfs" && flags & ms::RDONLY == 0 {
            builder.made(&destination);
        }
    }
    set_propagation(builder, request);
    if !request.options.attr_all.is_empty() {
        let attr = request.options.attr_all;
        let (dir, path) = (builder.root, request.destination.clone());
        builder.container(
            pointer,
            PlanOp::SetAttrAt {
                dir,
                path,
                attr,
                proc: None,
            },
        );
    }
    Ok(())
}

/// A new mount below a private one is private.
fn set_propagation(builder: &mut Builder<'_>, request: &Request<'_>) {
    for attr in propagations(request, false) {
        if attr.propagation != ms::PRIVATE {
            let (dir, path) = (builder.root, request.destination.clone());
            builder.container(
                request.pointer.clone(),
                PlanOp::SetAttrAt {
                    dir,
                    path,
                    attr,
                    proc: None,
                },
            );
        }
    }
}

/// Mounts that become read-only at the end.
pub fn finish_readonly(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    let mounts = &builder.config.mounts;
    let readonly = |mount: &&Mount| mount.options.iter().any(|option| option == "ro");
    for (index, mount) in mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| readonly(mount))
    {
        let pointer = format!("/mounts/{index}");
        let options = Options::new(&mount.options);
        let kind = mount.kind.as_deref().unwrap_or_default();
        let destination = c_string(&pointer, &normalised(&mount.destination))?;
        let request = Request {
            mount,
            pointer,
            options,
            destination,
        };
        if request.options.bind.is_none() && is_late_readonly(&request, kind) {
            let attr = MountAttr {
                set: attr::RDONLY,
                ..Default::default()
            };
            let (dir, path) = (builder.root, request.destination);
            let made = builder.made_at(&request.pointer.clone().into(), &path.to_string_lossy())?;
            let op = match made {
                Some(slot) => PlanOp::SetAttr {
                    slot,
                    attr,
                    proc: None,
                },
                None => PlanOp::SetAttrAt {
                    dir,
                    path,
                    attr,
                    proc: None,
                },
            };
            builder.container(request.pointer, op);
        }
    }
    Ok(())
}
