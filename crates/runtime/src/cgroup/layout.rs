//! Where the host has its control groups. Not read from mountinfo, whose cost grows
//! with the number of mounts on the host.

use std::path::{Component, Path, PathBuf};

use pipkin_plan::Invalid;
use pipkin_plan::cgroup::{Controller, Controllers, Host, Version};
use rustix::io::Errno;

use super::{Error, file};

/// The kind of layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// v1 only.
    V1,
    /// The unified hierarchy only.
    V2,
    /// v1, and a unified hierarchy beside it.
    Hybrid,
    /// None is mounted.
    None,
}

/// One hierarchy that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// `cpu,cpuacct`, `name=systemd`, empty for the unified one: as in /proc/self/cgroup.
    pub name: String,
    /// Its controllers.
    pub controllers: Controllers,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The runtime's own group in it.
    pub own: String,
}

/// Where the host has its control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// What kind it is.
    pub kind: Kind,
    /// v1 hierarchies, in the kernel's order (newest first).
    pub v1: Vec<Hierarchy>,
    /// The unified hierarchy.
    pub v2: Option<Hierarchy>,
}

/// The path of a container's group, from `linux.cgroupsPath`; no slash at either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// From the root of each hierarchy.
    Absolute(String),
    /// From the runtime's own group; from its parent on pure v2, where a group with
    /// processes cannot give controllers to its sub-groups.
    Relative(String),
}

/// linux/magic.h.
const CGROUP_V1: u64 = 0x27_e0eb;
const CGROUP_V2: u64 = 0x6367_7270;

fn magic(path: &Path) -> Option<u64> {
    // The type of this field differs between architectures.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    rustix::fs::statfs(path)
        .ok()
        .map(|s| s.f_type as u64 & 0xffff_ffff)
}

impl Layout {
    /// Looks at `/sys/fs/cgroup` and `/proc/self/cgroup`.
    ///
    /// # Errors
    /// Those of reading `/proc/self/cgroup` and `cgroup.controllers`. A host without
    /// any hierarchy is [`Kind::None`].
    pub fn probe() -> Result<Self, Error> {
        let own = Path::new("/proc/self/cgroup");
        match file::read(own) {
            Ok(text) => Self::probe_at(Path::new("/sys/fs/cgroup"), &text),
            // A kernel without control groups.
            Err(Errno::NOENT) => Ok(Self::none()),
            Err(errno) => Err(Error::os("read", own, errno)),
        }
    }

    /// No control groups at all: `--cgroup-manager=disabled`.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            kind: Kind::None,
            v1: Vec::new(),
            v2: None,
        }
    }

    /// The same as [`Self::probe`] with another root, and the text of
    /// `/proc/self/cgroup`.
    ///
    /// # Errors
    /// Those of reading `cgroup.controllers`.
    pub fn probe_at(root: &Path, own: &str) -> Result<Self, Error> {
        let lines = own.lines().filter_map(|line| {
            let (_number, rest) = line.split_once(':')?;
            rest.split_once(':')
        });
        let pure = magic(root) == Some(CGROUP_V2);
        let mut layout = Self::none();
        for (name, own) in lines {
            if name.is_empty() {
                let mount = if pure {
                    root.to_owned()
                } else {
                    root.join("unified")
                };
                if pure || magic(&mount) == Some(CGROUP_V2) {
                    layout.v2 = Some(unified(mount, own)?);
                }
            } else if !pure && let Some(mount) = v1_mount(root, name) {
                layout.v1.push(Hierarchy {
                    name: name.to_owned(),
                    controllers: match name.starts_with("name=") {
                        true => Controllers::NONE,
                        false => Controllers::parse(name),
                    },
                    mount,
                    own: own.to_owned(),
                });
            }
        }
        layout.kind = match (layout.v1.is_empty(), &layout.v2) {
            (true, None) => Kind::None,
            (true, Some(_)) => Kind::V2,
            (false, None) => Kind::V1,
            (false, Some(_)) => Kind::Hybrid,
        };
        Ok(layout)
    }

    /// What the plan needs to know.
    #[must_use]
    pub fn host(&self) -> Host {
        Host {
            v1: self
                .v1
                .iter()
                .fold(Controllers::NONE, |all, h| all.union(h.controllers)),
            v2: self.v2.as_ref().map(|h| h.controllers),
        }
    }
}

fn unified(mount: PathBuf, own: &str) -> Result<Hierarchy, Error> {
    let list = mount.join("cgroup.controllers");
    let text = file::read(&list).map_err(|errno| Error::os("read", &list, errno))?;
    let controllers = Controllers::parse(&text);
    Ok(Hierarchy {
        name: String::new(),
        controllers,
        mount,
        own: own.to_owned(),
    })
}

/// The directory has the hierarchy's name; of several controllers in whatever order, or
/// that of the first one.
fn v1_mount(root: &Path, name: &str) -> Option<PathBuf> {
    let plain = name.strip_prefix("name=").unwrap_or(name);
    let mut names = vec![plain.to_owned()];
    if let Some((first, second)) = plain.split_once(',') {
        names.push(format!("{second},{first}"));
        names.push(first.to_owned());
    }
    names
        .iter()
        .map(|n| root.join(n))
        .find(|dir| magic(dir) == Some(CGROUP_V1))
}

impl Hierarchy {
    /// Which generation it is.
    #[must_use]
    pub fn version(&self) -> Version {
        if self.name.is_empty() {
            Version::V2
        } else {
            Version::V1
        }
    }

    /// The directory of the group at `location`.
    #[must_use]
    pub fn dir(&self, location: &Location, kind: Kind) -> PathBuf {
        let path = match location {
            Location::Absolute(path) => return self.mount.join(path),
            Location::Relative(path) => path,
        };
        let own = Path::new(&self.own);
        // A runtime outside of its cgroup namespace's root sees `/..` here.
        let inside = own
            .components()
            .all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
        let own = match kind {
            _ if !inside => Path::new(""),
            Kind::V2 => own.parent().unwrap_or(Path::new("")),
            _ => own,
        };
        self.mount
            .join(own.strip_prefix("/").unwrap_or(own))
            .join(path)
    }
}

impl Location {
    /// The place that `cgroups_path` (`linux.cgroupsPath`) names; `id` below the
    /// runtime's own group where it is absent. As in runc; crun takes a relative path
    /// from the root.
    ///
    /// # Errors
    /// A path with `..`, of nothing, or in systemd's form.
    pub fn resolve(cgroups_path: Option<&str>, id: &str) -> Result<Self, Invalid> {
        let Some(path) = cgroups_path.filter(|p| !p.is_empty()) else {
            return Ok(Self::Relative(clean(id)?));
        };
        if !path.contains('/') && path.split(':').count() == 3 {
            return Err(Invalid::new(
                "/linux/cgroupsPath",
                format!("{path:?} has the form that systemd's manager takes"),
            )
            .hint("use --cgroup-manager=systemd (--systemd-cgroup), or a path such as /name"));
        }
        match path.starts_with('/') {
            true => clean(path).map(Self::Absolute),
            false => clean(path).map(Self::Relative),
        }
    }
}

fn clean(path: &str) -> Result<String, Invalid> {
    let wrong = |what: &str| {
        Err(
            Invalid::new("/linux/cgroupsPath", format!("{path:?} {what}"))
                .hint("a path of names, such as /engine/container"),
        )
    };
    let parts: Vec<&str> = path
        .split('/')
        .filter(|p| !matches!(*p, "" | "."))
        .collect();
    if parts.is_empty() {
        return wrong("names no group of its own");
    }
    if parts.contains(&"..") {
        return wrong("leads upwards");
    }
    if path.contains(['\0', '\n']) {
        return wrong("holds a character that no group can have");
    }
    Ok(parts.join("/"))
}

/// The controllers of a hierarchy by its name in /proc/self/cgroup.
pub(super) fn has(hierarchy: &str, controller: Controller) -> bool {
    !hierarchy.starts_with("name=") && Controllers::parse(hierarchy).contains(controller)
}
