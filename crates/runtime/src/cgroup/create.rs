//! Making a group.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pipkin_plan::cgroup::{Controller, Controllers, Version, Write, controllers};
use rustix::fs::{CWD, Mode};
use rustix::io::Errno;

use super::{Dir, Error, Group, Hierarchy, Layout, Location, enable, file, remove, walk};

/// What group is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Where.
    pub location: &'a Location,
    /// The limits; controllers that they need are enabled (v2), and missing one is an
    /// error. They are not written yet: see [`Group::apply`].
    pub writes: &'a [Write],
    /// v2 controllers to enable as well where that is possible, for their statistics.
    pub wanted: Controllers,
}

/// A group that was just made, with what undoes it.
#[derive(Debug)]
pub struct Created {
    /// The group.
    pub group: Group,
    /// The directories that were made, in order.
    pub made: Vec<PathBuf>,
}

/// Makes the group's directory in every hierarchy. One that cannot be written to
/// (read-only, or not delegated) is left out if no limit needs it.
///
/// # Errors
/// Those of mkdir(2); a group that exists and has processes or is frozen; a controller
/// that cannot be enabled. What was made is removed again.
pub fn create(layout: &Layout, request: &Request<'_>) -> Result<Created, Error> {
    let mut created = Created {
        group: Group::default(),
        made: Vec::new(),
    };
    for hierarchy in layout.v1.iter().chain(&layout.v2) {
        if let Err(error) = add(&mut created, hierarchy, layout, request) {
            // The first error is the one that explains.
            let _ = created.undo();
            return Err(error);
        }
    }
    Ok(created)
}

impl Created {
    /// Removes exactly the directories that [`create`] made, and what is below the group
    /// itself.
    ///
    /// # Errors
    /// What still holds them after a second.
    pub fn undo(self) -> Result<(), Error> {
        const LIMIT: Duration = Duration::from_secs(1);
        let mut first = Ok(());
        for path in self.made.iter().rev() {
            let own = self.group.dirs.iter().any(|d| d.path == *path);
            let result = if own {
                remove::one(path, LIMIT)
            } else {
                // A parent that others use by now is theirs.
                match rustix::fs::rmdir(path) {
                    Ok(()) | Err(Errno::NOENT | Errno::BUSY | Errno::NOTEMPTY) => Ok(()),
                    Err(errno) => Err(Error::os("rmdir", path, errno)),
                }
            };
            first = first.and(result);
        }
        first
    }
}

fn add(
    created: &mut Created,
    hierarchy: &Hierarchy,
    layout: &Layout,
    request: &Request<'_>,
) -> Result<(), Error> {
    let path = hierarchy.dir(request.location, layout.kind);
    let before = created.made.len();
    let needed = controllers(request.writes, hierarchy.version());
    let existed = match make(&path, &hierarchy.mount, &mut created.made) {
        Ok(existed) => existed,
        Err((_, Errno::ROFS | Errno::ACCESS | Errno::PERM))
            if needed.intersection(hierarchy.controllers).is_empty() =>
        {
            return Ok(());
        }
        Err((at, errno)) => return Err(explain(Error::os("mkdir", &at, errno), errno)),
    };
    created.group.dirs.push(Dir {
        hierarchy: hierarchy.name.clone(),
        path: path.clone(),
    });
    if existed {
        refuse_used(&path)?;
    }
    match hierarchy.version() {
        Version::V1 if hierarchy.controllers.contains(Controller::Cpuset) => {
            let made = created.made.get(before..).unwrap_or_default();
            fill_cpuset(&path, hierarchy, made, request.writes)
        }
        Version::V1 => Ok(()),
        Version::V2 => {
            let wanted = request.wanted.intersection(hierarchy.controllers);
            let parent = path.parent().unwrap_or(&hierarchy.mount);
            enable::for_children(parent, needed, wanted)
        }
    }
}

fn explain(error: Error, errno: Errno) -> Error {
    match errno {
        Errno::ROFS => error.hint("the cgroup file system is read-only here; run without limits"),
        Errno::ACCESS | Errno::PERM => {
            error.hint("the parent group was not delegated to this user")
        }
        Errno::AGAIN => error.hint("cgroup.max.descendants or cgroup.max.depth is reached"),
        Errno::EXIST => error.hint("the name is that of a cgroup file; use another path"),
        _ => error,
    }
}

/// Makes a directory and those above it, up to the mount; says whether it was there.
fn make(path: &Path, mount: &Path, made: &mut Vec<PathBuf>) -> Result<bool, (PathBuf, Errno)> {
    // Another runtime may remove a parent that is empty for a moment.
    for _ in 0..8 {
        match rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                made.push(path.to_owned());
                return Ok(false);
            }
            Err(Errno::EXIST) if path.is_dir() => return Ok(true),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err((path.to_owned(), errno)),
        }
        let Some(parent) = path
            .parent()
            .filter(|p| p.starts_with(mount) && *p != mount)
        else {
            break;
        };
        make(parent, mount, made)?;
    }
    Err((path.to_owned(), Errno::NOENT))
}

/// A group that is in use is somebody's; one that is frozen would hold whatever joins it.
fn refuse_used(path: &Path) -> Result<(), Error> {
    let pids = walk::pids(path).map_err(|errno| Error::os("read", path, errno))?;
    if !pids.is_empty() {
        let message = format!("the cgroup exists and has {} processes", pids.len());
        return Err(Error::new("use", path, message)
            .hint("another container may have the same linux.cgroupsPath"));
    }
    let frozen = match file::read(path.join("cgroup.freeze")) {
        Ok(text) => text.trim() == "1",
        Err(_) => file::read(path.join("freezer.state")).is_ok_and(|t| t.trim() != "THAWED"),
    };
    if frozen {
        return Err(Error::new("use", path, "the cgroup exists and is frozen")
            .hint("remove it, or use another linux.cgroupsPath"));
    }
    Ok(())
}

/// A v1 cpuset group starts without processors and memory nodes, and takes no process
/// until it has some: those of its parent, unless the limits say which.
fn fill_cpuset(
    path: &Path,
    hierarchy: &Hierarchy,
    made: &[PathBuf],
    writes: &[Write],
) -> Result<(), Error> {
    for name in ["cpuset.cpus", "cpuset.mems"] {
        let limited = writes
            .iter()
            .any(|w| w.version == Version::V1 && w.file == name);
        let from = match limited {
            true => path.parent().unwrap_or(path),
            false => path,
        };
        inherit(from, &hierarchy.mount, made, name)?;
    }
    Ok(())
}

/// What is in the file; where that is nothing, what the parent has, written down here.
fn inherit(dir: &Path, mount: &Path, made: &[PathBuf], name: &str) -> Result<String, Error> {
    let path = dir.join(name);
    let fresh = made.iter().any(|m| m == dir);
    if !fresh {
        let text = file::read(&path).map_err(|errno| Error::os("read", &path, errno))?;
        if !text.trim().is_empty() || dir == mount {
            return Ok(text.trim().to_owned());
        }
    }
    let Some(parent) = dir.parent().filter(|_| dir != mount) else {
        return Ok(String::new());
    };
    let text = inherit(parent, mount, made, name)?;
    file::write(&path, &text)
        .map_err(|errno| Error::os("write", &path, errno).wish(&text, "/linux/cgroupsPath"))?;
    Ok(text)
}
