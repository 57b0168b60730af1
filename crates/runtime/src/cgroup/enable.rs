//! Controllers of the unified hierarchy: a group has those that its parent's
//! `cgroup.subtree_control` names, and the parent can only name those that it has itself.

use std::path::Path;

use pipkin_plan::cgroup::{Controllers, Version};
use rustix::io::Errno;

use super::{Error, file};

/// Enables `needed` for the sub-groups of `dir`, and for each group above as far as
/// needed; of `wanted`, what the kernel lets.
pub(super) fn for_children(
    dir: &Path,
    needed: Controllers,
    wanted: Controllers,
) -> Result<(), Error> {
    if needed.union(wanted).is_empty() {
        return Ok(());
    }
    let control = dir.join("cgroup.subtree_control");
    let read = |path: &Path| {
        file::read(path)
            .map(|text| Controllers::parse(&text))
            .map_err(|errno| Error::os("read", path, errno))
    };
    let missing = needed.union(wanted).without(read(&control)?);
    if missing.is_empty() {
        return Ok(());
    }
    let own = dir.join("cgroup.controllers");
    let mut have = read(&own)?;
    if !missing.without(have).is_empty()
        && let Some(parent) = dir
            .parent()
            .filter(|p| p.join("cgroup.controllers").exists())
    {
        for_children(parent, needed.without(have), wanted.without(have))?;
        have = read(&own)?;
    }
    if let Some(lost) = needed.intersection(missing).without(have).iter().next() {
        let name = lost.name(Version::V2);
        return Err(Error::new(
            "enable",
            &control,
            format!("no controller {name} in this group"),
        )
        .hint(format!("available here: {}", names(have, " ", ""))));
    }
    write(
        &control,
        needed.intersection(missing),
        wanted.intersection(missing).intersection(have),
    )
}

/// All in one write; if that fails, those that must be.
fn write(control: &Path, needed: Controllers, wanted: Controllers) -> Result<(), Error> {
    let all = needed.union(wanted);
    if all.is_empty() {
        return Ok(());
    }
    let mut result = file::write(control, &names(all, " ", "+"));
    if result.is_err() && all != needed {
        result = match needed.is_empty() {
            true => Ok(()),
            false => file::write(control, &names(needed, " ", "+")),
        };
    }
    result.map_err(|errno| {
        let mut error = Error::os("write", control, errno);
        error = error.wish(&names(needed, " ", "+"), "/linux/resources");
        match errno {
            Errno::BUSY => error.hint(
                "the group has processes of its own; cgroup v2 gives controllers only to the \
                 sub-groups of a group without: use another linux.cgroupsPath",
            ),
            Errno::OPNOTSUPP => error.hint("the group is threaded, or its domain is invalid"),
            Errno::ACCESS | Errno::PERM | Errno::ROFS => {
                error.hint("the group was not delegated to this user")
            }
            _ => error,
        }
    })
}

fn names(set: Controllers, between: &str, before: &str) -> String {
    let list: Vec<String> = set
        .iter()
        .map(|c| format!("{before}{}", c.name(Version::V2)))
        .collect();
    list.join(between)
}
