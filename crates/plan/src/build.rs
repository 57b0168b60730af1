//! Putting a plan together.

use std::borrow::Cow;
use std::ffi::CString;

use pipkin_op::{Actor, MAX_SLOTS, PlanOp, Slot};
use pipkin_spec::Config;
use pipkin_spec::config::{Linux, Process};

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
    slots: usize,
    /// The root file system.
    pub root: Slot,
    /// The container's /dev, where devices are made.
    pub dev: Option<Slot>,
    /// A procfs of our own.
    pub proc: Option<Slot>,
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
        let (before, after) = (Vec::with_capacity(32), Vec::with_capacity(96));
        let (root, slots, dev, proc) = (Slot(0), 1, None, None);
        Self {
            config,
            linux,
            process,
            request,
            host,
            namespaces,
            before,
            after,
            slots,
            root,
            dev,
            proc,
        }
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
        let mut steps = std::mem::take(&mut self.before);
        steps.push(Step {
            actor: Actor::Runtime,
            pointer: "/linux/namespaces".into(),
            op: clone,
        });
        steps.append(&mut self.after);
        Plan {
            steps,
            slots: u16::try_from(self.slots).unwrap_or(u16::MAX),
            limits: Vec::new(),
        }
    }
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
