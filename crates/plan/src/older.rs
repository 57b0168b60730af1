//! The plan for a host without mount_setattr(2): before Linux 5.12, or behind a seccomp filter.
//!
//! There a tree is changed not before it is attached but directly after, by mount(2), which
//! takes only what is attached. Nothing of the container's runs yet, so nobody sees the moment
//! between, and nothing is mounted below before the tree has its propagation.

use pipkin_op::{MountAttr, PlanOp, Slot, attr};

use crate::build::{Builder, Pointer, c_string, is_below};
use crate::mounts::normalised;
use crate::{Host, Invalid, Step};

/// A tree that is open, and its changes for when it is attached.
struct Tree {
    slot: Slot,
    changes: Vec<(Pointer, MountAttr)>,
}

/// Puts steps with mount(2) in the place of those with mount_setattr(2).
///
/// # Errors
/// What mount(2) cannot do.
pub fn without_mount_setattr(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    let host = builder.host;
    let mut trees = Vec::new();
    for step in builder.before.iter_mut().chain(&mut builder.sources) {
        take_changes(host, step, &mut trees)?;
    }
    let proc = builder.slot("")?;
    let mut is_needed = false;
    for mut step in std::mem::take(&mut builder.after) {
        take_changes(host, &mut step, &mut trees)?;
        let mut attached = None;
        match &mut step.op {
            PlanOp::SetAttr { slot, attr, .. } if is_open(&trees, *slot) => {
                let (slot, attr) = (*slot, *attr);
                keep(host, &mut trees, slot, step.pointer, attr)?;
                continue;
            }
            PlanOp::SetAttr { proc: by, .. }
            | PlanOp::Mask { proc: by, .. }
            | PlanOp::CloseRest { proc: by, .. } => *by = Some(proc),
            PlanOp::SetAttrAt { attr, proc: by, .. } => {
                // It was mounted by the step before: there is nothing below.
                attr.recursive &= attr.propagation != 0;
                *by = Some(proc);
            }
            PlanOp::ReadonlyPath { path, proc: by, .. } => {
                *by = Some(proc);
                let path = path.to_string_lossy().into_owned();
                readonly_below(builder, &step.pointer, &path, proc)?;
            }
            PlanOp::Attach { slot, .. } | PlanOp::AttachRoot { slot } => attached = Some(*slot),
            _ => {}
        }
        is_needed |= matches!(
            step.op,
            PlanOp::SetAttr { .. } | PlanOp::SetAttrAt { .. } | PlanOp::ReadonlyPath { .. }
        );
        builder.after.push(step);
        let tree = trees.iter().position(|tree| Some(tree.slot) == attached);
        let changes = tree.map(|at| trees.swap_remove(at)).into_iter();
        for (slot, (pointer, attr)) in changes.flat_map(Tree::into_changes) {
            let proc = Some(proc);
            builder.container(pointer, PlanOp::SetAttr { slot, attr, proc });
            is_needed = true;
        }
    }
    if is_needed {
        builder.source("", PlanOp::OpenProc { slot: proc });
    }
    Ok(())
}

impl Tree {
    fn into_changes(self) -> impl Iterator<Item = (Slot, (Pointer, MountAttr))> {
        let slot = self.slot;
        self.changes.into_iter().map(move |change| (slot, change))
    }
}

fn is_open(trees: &[Tree], slot: Slot) -> bool {
    trees.iter().any(|tree| tree.slot == slot)
}

/// Takes the changes away from a step that opens a tree.
fn take_changes(host: &Host, step: &mut Step, trees: &mut Vec<Tree>) -> Result<(), Invalid> {
    let (slot, attr) = match &mut step.op {
        PlanOp::OpenRoot {
            slot,
            attr,
            clone: true,
            ..
        }
        | PlanOp::OpenTree { slot, attr, .. }
        | PlanOp::OpenDevice { slot, attr, .. } => (*slot, std::mem::take(attr)),
        PlanOp::OpenNull { attr, .. } => {
            *attr = MountAttr::default();
            return Ok(());
        }
        PlanOp::IdmapTree { .. } => {
            let pointer = step.pointer.clone().into_owned();
            return Err(newer(host, pointer, "an id-mapped mount needs"));
        }
        _ => return Ok(()),
    };
    let changes = Vec::new();
    trees.push(Tree { slot, changes });
    keep(host, trees, slot, step.pointer.clone(), attr)
}

/// Keeps a change for when its tree is attached.
fn keep(
    host: &Host,
    trees: &mut [Tree],
    slot: Slot,
    pointer: Pointer,
    attr: MountAttr,
) -> Result<(), Invalid> {
    if attr.recursive && attr.set | attr.clear != 0 {
        let pointer = format!("{pointer}/options");
        let what = "options for all mounts below, such as \"rro\", need";
        return Err(newer(host, pointer, what));
    }
    let tree = trees.iter_mut().find(|tree| tree.slot == slot);
    if let Some(tree) = tree.filter(|_| !attr.is_empty()) {
        tree.changes.push((pointer, attr));
    }
    Ok(())
}

fn newer(host: &Host, pointer: String, what: &str) -> Invalid {
    let invalid = Invalid::new(pointer, format!("{what} mount_setattr, Linux 5.12"));
    if host.filtered {
        invalid.hint("a seccomp filter around pipkin hides it: see the engine that runs pipkin")
    } else {
        let (major, minor) = host.kernel;
        invalid.hint(format!("this is Linux {major}.{minor}"))
    }
}

/// Makes the mounts of the configuration read-only that lie below a path which becomes that: its
/// own change does not reach them.
fn readonly_below(
    builder: &mut Builder<'_>,
    pointer: &Pointer,
    path: &str,
    proc: Slot,
) -> Result<(), Invalid> {
    let mounts = &builder.config.mounts;
    for (index, mount) in mounts.iter().enumerate() {
        let place = normalised(&mount.destination);
        let later = mounts.iter().skip(index + 1);
        let mut later = later.map(|mount| normalised(&mount.destination));
        let is_hidden = later.any(|later| later == place || is_below(&place, &later));
        if !is_below(&place, path) || is_hidden {
            continue;
        }
        let op = PlanOp::SetAttrAt {
            dir: builder.root,
            path: c_string(pointer, &place)?,
            attr: MountAttr {
                set: attr::RDONLY,
                ..Default::default()
            },
            proc: Some(proc),
        };
        builder.container(pointer.clone(), op);
    }
    Ok(())
}
