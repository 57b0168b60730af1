//! Putting a plan together.

use std::borrow::Cow;
use std::ffi::CString;

use pipkin_op::{Actor, MAX_SLOTS, PlanOp, Slot, Target};
use pipkin_spec::Config;
use pipkin_spec::config::{Linux, Process};

use crate::mounts::normalised;
use crate::namespaces::Namespaces;
use crate::{Host, Invalid, Plan, Request, Step};

/// What a plan is made from, and the steps so far.
pub struct Builder<'a> {
    pub config: &'a Config,
    pub linux: &'a Linux,
    pub process: &'a Process,
    pub request: &'a Request,
    pub host: &'a Host,
    pub namespaces: Namespaces,
    /// What the runtime opens and makes before there is a second process.
    pub before: Vec<Step>,
    /// What comes after the clone.
    pub after: Vec<Step>,
    /// Trees of the host that the container opens itself, and where among the steps after the
    /// clone: it must still be among the host's mounts.
    pub sources: Vec<Step>,
    sources_at: usize,
    /// File systems that the plan makes and that nobody else writes to.
    made: Vec<Made>,
    slots: usize,
    /// The root file system.
    pub root: Slot,
    /// The container's /dev, where devices are made.
    pub dev: Option<Slot>,
    /// A procfs of our own.
    pub proc: Option<Slot>,
    /// The container's /proc and /sys, once something needs them.
    kernel: [Option<Slot>; 2],
    is_kernel: [Option<bool>; 2],
    /// Whether the group is made before the container's process, which else works meanwhile.
    pub group_first: bool,
}

/// A file system that the plan makes, empty at first.
struct Made {
    /// Where it is mounted.
    path: String,
    /// Its directory, once something needs it.
    slot: Option<Slot>,
    /// The names that are in it.
    names: Vec<String>,
}

/// Where in config.json a step comes from.
pub type Pointer = Cow<'static, str>;

impl<'a> Builder<'a> {
    pub fn new(
        config: &'a Config,
        linux: &'a Linux,
        process: &'a Process,
        request: &'a Request,
        host: &'a Host,
        namespaces: Namespaces,
    ) -> Self {
        let (before, after) = (Vec::with_capacity(32), Vec::with_capacity(160));
        let (root, slots, dev, proc) = (Slot::ROOT, 1, None, None);
        Self {
            config,
            linux,
            process,
            request,
            host,
            namespaces,
            before,
            after,
            sources: Vec::new(),
            sources_at: 0,
            made: Vec::new(),
            slots,
            root,
            dev,
            proc,
            kernel: [None; 2],
            is_kernel: [None; 2],
            group_first: true,
        }
    }

    /// Whether what is seen at /proc or /sys is procfs or sysfs: the mount there that is made
    /// last.
    pub fn is_kernel(&mut self, top: &'static str, fstype: &str) -> bool {
        let index = usize::from(top != "/proc");
        if let Some(Some(known)) = self.is_kernel.get(index) {
            return *known;
        }
        let mut mounts = self.config.mounts.iter().rev();
        let last = mounts.find(|mount| normalised(&mount.destination) == top);
        let is = last.and_then(|mount| mount.kind.as_deref()) == Some(fstype);
        if let Some(place) = self.is_kernel.get_mut(index) {
            *place = Some(is);
        }
        is
    }

    /// The mount in this slot is the container's /proc, if it is mounted there.
    pub fn set_kernel(&mut self, path: &str, slot: Slot) {
        if let ("/proc", [proc, _]) = (path, &mut self.kernel) {
            *proc = Some(slot);
        }
    }

    /// Opens a directory of the root, in the container.
    pub fn open_in(&mut self, pointer: Pointer, path: &str) -> Result<Slot, Invalid> {
        let slot = self.slot(&pointer)?;
        let (dir, path) = (self.root, c_string(&pointer, path)?);
        self.container(pointer, PlanOp::OpenIn { slot, dir, path });
        Ok(slot)
    }

    /// The directory of the container's /proc or /sys.
    pub fn kernel(&mut self, pointer: &str, top: &str) -> Result<Slot, Invalid> {
        let index = usize::from(top != "/proc");
        if let Some(Some(slot)) = self.kernel.get(index) {
            return Ok(*slot);
        }
        let slot = self.open_in(pointer.to_owned().into(), top)?;
        if let Some(place) = self.kernel.get_mut(index) {
            *place = Some(slot);
        }
        Ok(slot)
    }

    /// A new place for a descriptor.
    pub fn slot(&mut self, pointer: &str) -> Result<Slot, Invalid> {
        let slot = u16::try_from(self.slots)
            .ok()
            .filter(|_| self.slots < MAX_SLOTS);
        self.slots += 1;
        slot.map(Slot).ok_or_else(|| {
            Invalid::new(
                pointer,
                format!("a container needs more than {MAX_SLOTS} descriptors"),
            )
        })
    }

    /// A step of the runtime before the clone.
    pub fn open(&mut self, pointer: impl Into<Pointer>, op: PlanOp) {
        self.before.push(Step {
            actor: Actor::Runtime,
            pointer: pointer.into(),
            op,
        });
    }

    /// A step that opens something of the host's, before the container leaves the host's mounts.
    /// Where it may, the container does it, at the same time as the runtime makes its group.
    pub fn source(&mut self, pointer: impl Into<Pointer>, op: PlanOp) {
        if !self.namespaces.pinned {
            return self.open(pointer, op);
        }
        self.sources.push(Step {
            actor: Actor::Container,
            pointer: pointer.into(),
            op,
        });
    }

    /// The container opens its sources here.
    pub fn sources_here(&mut self) {
        self.sources_at = self.after.len();
    }

    /// A file system was mounted here that is empty.
    pub fn made(&mut self, path: &str) {
        self.made.push(Made {
            path: path.to_owned(),
            slot: None,
            names: Vec::new(),
        });
    }

    /// The directory of a file system that the plan makes.
    pub fn made_at(&mut self, pointer: &Pointer, path: &str) -> Result<Option<Slot>, Invalid> {
        let Some(at) = self.made.iter().position(|made| made.path == path) else {
            return Ok(None);
        };
        if let Some(slot) = self.made.get(at).and_then(|made| made.slot) {
            return Ok(Some(slot));
        }
        let slot = self.open_in(pointer.clone(), path)?;
        if let Some(made) = self.made.get_mut(at) {
            made.slot = Some(slot);
        }
        Ok(Some(slot))
    }

    /// Where a mount goes: to a path of the root, or by its name alone into a file system that
    /// the plan makes. Both are given the whole path.
    pub fn place(&mut self, pointer: &Pointer, path: &str) -> Result<(Slot, Target), Invalid> {
        if path.split('/').any(|part| part == "..") {
            // It may be anywhere.
            self.made.clear();
            return Ok((self.root, Target::Follow));
        }
        // What is mounted over a file system hides it.
        self.made
            .retain(|made| made.path != path && !is_below(&made.path, path));
        let above = self
            .made
            .iter_mut()
            .rfind(|made| is_below(path, &made.path));
        let Some(above) = above else {
            return Ok((self.root, Target::Follow));
        };
        let rest = path.get(above.path.len() + 1..).unwrap_or_default();
        let name = rest.split('/').next().unwrap_or_default();
        let new = name == rest && !above.names.iter().any(|known| known == name);
        above.names.push(name.to_owned());
        let parent = above.path.clone();
        match self.made_at(pointer, &parent)? {
            Some(dir) if new => Ok((dir, Target::New)),
            _ => Ok((self.root, Target::Follow)),
        }
    }

    /// A step of the runtime after the clone.
    pub fn runtime(&mut self, pointer: impl Into<Pointer>, op: PlanOp) {
        self.after.push(Step {
            actor: Actor::Runtime,
            pointer: pointer.into(),
            op,
        });
    }

    /// A step of the container.
    pub fn container(&mut self, pointer: impl Into<Pointer>, op: PlanOp) {
        self.after.push(Step {
            actor: Actor::Container,
            pointer: pointer.into(),
            op,
        });
    }

    /// The plan, with the clone between what comes before it and after it.
    pub fn finish(mut self, clone: PlanOp) -> Plan {
        self.after
            .splice(self.sources_at..self.sources_at, self.sources.drain(..));
        // In front of the longer list, which then stays where it is.
        let clone = Step {
            actor: Actor::Runtime,
            pointer: "/linux/namespaces".into(),
            op: clone,
        };
        let first = self.before.drain(..).chain([clone]);
        self.after.splice(0..0, first);
        let steps = std::mem::take(&mut self.after);
        Plan {
            steps,
            slots: u16::try_from(self.slots).unwrap_or(u16::MAX),
            limits: Vec::new(),
        }
    }
}

/// Whether a path lies below another.
pub fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// A string for the kernel; one that contains a NUL cannot be passed.
pub fn c_string(pointer: &str, text: &str) -> Result<CString, Invalid> {
    CString::new(text)
        .map_err(|_| Invalid::new(pointer, format!("{text:?} contains a NUL character")))
}

/// A component of a JSON pointer, RFC 6901.
pub fn escape(component: &str) -> Cow<'_, str> {
    if component.contains(['~', '/']) {
        component.replace('~', "~0").replace('/', "~1").into()
    } else {
        component.into()
    }
}
