//! One write into one file of a control group.

use std::borrow::Cow;

use super::{Controller, Controllers, Host, Limits, Version, v1, v2};
use crate::Invalid;

/// What to do when the file is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Fail.
    Fail,
    /// Go on: without the file the wish already holds.
    Skip,
    /// Write this into that file instead.
    Instead {
        /// The other file.
        file: &'static str,
        /// Its text.
        value: String,
    },
}

/// One write into one file of a control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Which side's file.
    pub version: Version,
    /// Whose file.
    pub controller: Controller,
    /// Its name, below the group's directory.
    pub file: Cow<'static, str>,
    /// What is written, by one write(2).
    pub value: Cow<'static, str>,
    /// Where the wish stands in config.json.
    pub pointer: Cow<'static, str>,
    /// What to do on ENOENT.
    pub missing: Missing,
    /// On EINVAL, do the later writes of the same controller first and then this one
    /// again: two limits that bound each other have no order that is always right.
    pub retry: bool,
    /// Refuse when the number in this file is not below the value: `checkBeforeUpdate`.
    pub used: Option<&'static str>,
}

impl Write {
    /// A write that must succeed.
    pub fn new(
        version: Version,
        controller: Controller,
        file: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
        pointer: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            version,
            controller,
            file: file.into(),
            value: value.into(),
            pointer: pointer.into(),
            missing: Missing::Fail,
            retry: false,
            used: None,
        }
    }

    /// The same, skipped when the file is not there.
    #[must_use]
    pub fn or_skip(mut self) -> Self {
        self.missing = Missing::Skip;
        self
    }

    /// The same, into another file when this one is not there.
    #[must_use]
    pub fn or_into(mut self, file: &'static str, value: String) -> Self {
        self.missing = Missing::Instead { file, value };
        self
    }

    /// The same, tried again after the controller's later writes.
    #[must_use]
    pub fn retried(mut self) -> Self {
        self.retry = true;
        self
    }
}

/// The controllers that `writes` touches on one side: those that must be enabled on v2.
#[must_use]
pub fn controllers(writes: &[Write], version: Version) -> Controllers {
    writes
        .iter()
        .filter(|w| w.version == version)
        .map(|w| w.controller)
        .collect()
}

type Side = fn(&Limits) -> Result<Vec<Write>, Invalid>;

/// Each group of limits: its controller and its two forms.
const FORMS: [(Controller, Side, Side); 9] = [
    (Controller::Pids, v1::pids, v2::pids),
    (Controller::Memory, v1::memory, v2::memory),
    (Controller::Cpu, v1::cpu, v2::cpu),
    (Controller::Cpuset, v1::cpuset, v2::cpuset),
    (Controller::Io, v1::block, v2::block),
    (Controller::Hugetlb, v1::hugepages, v2::hugepages),
    (Controller::Rdma, v1::rdma, v2::rdma),
    (Controller::NetCls, v1::network_class, v2::network_class),
    (
        Controller::NetPrio,
        v1::network_priorities,
        v2::network_priorities,
    ),
];

/// The writes that carry `limits` out on `host`, in the order in which they must be
/// done, each controller on the side where the host has it.
///
/// # Errors
/// A limit whose controller the host lacks, or that its side cannot express.
pub fn writes(limits: &Limits, host: &Host) -> Result<Vec<Write>, Invalid> {
    let mut all = Vec::new();
    for (controller, v1, v2) in FORMS {
        match host.side(controller) {
            Some(Version::V1) => all.append(&mut v1(limits)?),
            Some(Version::V2) => all.append(&mut v2(limits)?),
            None => {
                let form = if host.v1.is_empty() { v2 } else { v1 };
                if let Some(lost) = form(limits)?.iter().find(|w| w.missing != Missing::Skip) {
                    return Err(no_controller(controller, host, &lost.pointer));
                }
            }
        }
    }
    all.append(&mut v2::unified(limits, host)?);
    Ok(all)
}

/// All v1 writes, as on a host where every controller is on v1.
///
/// # Errors
/// A limit that v1 cannot express (`unified`).
pub fn v1_writes(limits: &Limits) -> Result<Vec<Write>, Invalid> {
    let host = Host {
        v1: Controller::ALL.into_iter().collect(),
        v2: None,
    };
    writes(limits, &host)
}

/// All v2 writes, as on a host where every controller is on v2.
///
/// # Errors
/// A limit that v2 cannot express, such as swappiness.
pub fn v2_writes(limits: &Limits) -> Result<Vec<Write>, Invalid> {
    let host = Host {
        v1: Controllers::NONE,
        v2: Some(Controller::ALL.into_iter().collect()),
    };
    writes(limits, &host)
}

pub(super) fn no_controller(controller: Controller, host: &Host, pointer: &str) -> Invalid {
    let version = if host.v1.is_empty() {
        Version::V2
    } else {
        Version::V1
    };
    let name = controller.name(version);
    let list: Vec<&str> = host
        .v1
        .iter()
        .map(|c| c.name(Version::V1))
        .chain(
            host.v2
                .unwrap_or_default()
                .iter()
                .map(|c| c.name(Version::V2)),
        )
        .collect();
    if version == Version::V1 && host.v1.contains(controller) {
        let name = controller.name(Version::V1);
        return Invalid::new(
            pointer,
            format!("the controller {name} is on the v1 side here"),
        )
        .hint("set the limit by the other fields of linux.resources");
    }
    let hint = if list.is_empty() {
        "this host offers no cgroup controller here".to_owned()
    } else {
        format!("this host offers: {}", list.join(", "))
    };
    Invalid::new(
        pointer,
        format!("needs the cgroup controller {name}, which is not available"),
    )
    .hint(hint)
}
