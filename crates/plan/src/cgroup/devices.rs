//! Device rules: deny by default, and of the rules that match the last one decides, for
//! each of read, write and mknod by itself.
//!
//! Both sides of the kernel get the same policy. A v1 group holds a default and a set
//! of exceptions to it, so a policy with holes in its exceptions cannot be written
//! there; a v2 program can express all.

use std::fmt;

use pipkin_spec::resources::DeviceRule;

use super::{Controller, Version, Write};
use crate::Invalid;

/// Kind of a device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Character device.
    Char,
    /// Block device.
    Block,
}

/// A set of accesses, with the kernel's bits (linux/bpf.h, BPF_DEVCG_ACC_…).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// None.
    pub const NONE: Self = Self(0);
    /// mknod(2).
    pub const MKNOD: Self = Self(1);
    /// Opening for reading.
    pub const READ: Self = Self(2);
    /// Opening for writing.
    pub const WRITE: Self = Self(4);
    /// All three.
    pub const ALL: Self = Self(7);
    /// The three, one by one.
    pub const EACH: [Self; 3] = [Self::READ, Self::WRITE, Self::MKNOD];

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Those in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether one is in both.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn parse(letters: &str) -> Option<Self> {
        letters.chars().try_fold(Self::NONE, |access, letter| {
            Some(access.union(match letter {
                'r' => Self::READ,
                'w' => Self::WRITE,
                'm' => Self::MKNOD,
                _ => return None,
            }))
        })
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (access, letter) in [(Self::READ, "r"), (Self::WRITE, "w"), (Self::MKNOD, "m")] {
            if self.overlaps(access) {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// One rule for one device or a range of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Whether it allows or denies.
    pub allow: bool,
    /// Of which kind.
    pub kind: Kind,
    /// Which major number; `None` is all.
    pub major: Option<u32>,
    /// Which minor number; `None` is all.
    pub minor: Option<u32>,
    /// What it decides about.
    pub access: Access,
    /// Its position in `linux.resources.devices`; `None` for one that every container has.
    pub index: Option<usize>,
}

impl Rule {
    const fn every(kind: Kind, allow: bool, access: Access) -> Self {
        Self {
            allow,
            kind,
            major: None,
            minor: None,
            access,
            index: None,
        }
    }

    /// Whether it matches this device.
    #[must_use]
    pub fn matches(&self, kind: Kind, major: u32, minor: u32) -> bool {
        self.kind == kind
            && self.major.is_none_or(|m| m == major)
            && self.minor.is_none_or(|m| m == minor)
    }

    /// Whether every device of `other` is one of this rule's.
    fn covers(&self, other: &Self) -> bool {
        self.kind == other.kind
            && (self.major.is_none() || self.major == other.major)
            && (self.minor.is_none() || self.minor == other.minor)
    }

    /// The numbers of the devices of both.
    fn meet(&self, other: &Self) -> Option<(Option<u32>, Option<u32>)> {
        let one = |a: Option<u32>, b: Option<u32>| match (a, b) {
            (Some(a), Some(b)) if a != b => None,
            _ => Some(a.or(b)),
        };
        (self.kind == other.kind)
            .then(|| Some((one(self.major, other.major)?, one(self.minor, other.minor)?)))
            .flatten()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Char => "c ",
            Kind::Block => "b ",
        })?;
        match self.major {
            Some(major) => write!(f, "{major}:")?,
            None => f.write_str("*:")?,
        }
        match self.minor {
            Some(minor) => write!(f, "{minor} {}", self.access),
            None => write!(f, "* {}", self.access),
        }
    }
}

/// What a container may do with device nodes: a default and ordered rules, none of
/// which is without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The verdict where no rule matches.
    pub default_allow: bool,
    /// The last that matches decides.
    pub rules: Vec<Rule>,
}

/// What every container may do, after its own rules: make any node, and use null, zero,
/// full, random, urandom, tty, console, ptmx and pseudo-terminals (the specification's
/// default devices). As crun; runc has the tun device instead of the console.
const DEFAULTS: [(Option<u32>, Option<u32>); 9] = [
    (Some(1), Some(3)),
    (Some(1), Some(5)),
    (Some(1), Some(7)),
    (Some(1), Some(8)),
    (Some(1), Some(9)),
    (Some(5), Some(0)),
    (Some(5), Some(1)),
    (Some(5), Some(2)),
    (Some(136), None),
];

/// More than any configuration needs, and few enough for a program on every kernel.
const MOST_RULES: usize = 600;

/// The kernel's numbers: 12 bits of major, 20 of minor (linux/kdev_t.h).
const MAJORS: i64 = (1 << 12) - 1;
const MINORS: i64 = (1 << 20) - 1;

/// The policy of `linux.resources.devices`: deny all, then the rules in their order,
/// then what every container has. The nodes of `linux.devices` add nothing, as in runc
/// and crun: engines write a rule beside each node.
///
/// # Errors
/// A rule with an unknown type or access letter or a number out of range; too many.
pub fn policy(rules: &[DeviceRule]) -> Result<Policy, Invalid> {
    let mut policy = Policy {
        default_allow: false,
        rules: Vec::new(),
    };
    for (index, rule) in rules.iter().enumerate() {
        add_spec(&mut policy, rule, index)?;
        if policy.rules.len() > MOST_RULES {
            return Err(too_many());
        }
    }
    for kind in [Kind::Char, Kind::Block] {
        policy.add(Rule::every(kind, true, Access::MKNOD));
    }
    for (major, minor) in DEFAULTS {
        let access = Access::ALL;
        policy.add(Rule {
            allow: true,
            kind: Kind::Char,
            major,
            minor,
            access,
            index: None,
        });
    }
    Ok(policy)
}

fn too_many() -> Invalid {
    let message = format!("more than {MOST_RULES} rules remain after simplification");
    Invalid::new("/linux/resources/devices", message)
        .hint("use wildcards (absent or -1) for ranges of devices")
}

fn add_spec(policy: &mut Policy, rule: &DeviceRule, index: usize) -> Result<(), Invalid> {
    let at = |field: &str| format!("/linux/resources/devices/{index}/{field}");
    let kinds: &[Kind] = match rule.kind.as_deref() {
        None | Some("" | "a") => &[Kind::Char, Kind::Block],
        Some("c" | "u") => &[Kind::Char],
        Some("b") => &[Kind::Block],
        Some(other) => {
            return Err(
                Invalid::new(at("type"), format!("{other:?} is not a type of device"))
                    .hint("a for all, c for character devices, b for block devices"),
            );
        }
    };
    let access = match rule.access.as_deref() {
        None | Some("") => Access::ALL,
        Some(letters) => Access::parse(letters).ok_or_else(|| {
            Invalid::new(at("access"), format!("{letters:?} is not an access"))
                .hint("letters of rwm: read, write, mknod")
        })?,
    };
    let number = |value: Option<i64>, field: &str, most: i64| match value {
        None | Some(-1) => Ok(None),
        Some(n) if (0..=most).contains(&n) => Ok(u32::try_from(n).ok()),
        Some(n) => Err(
            Invalid::new(at(field), format!("{n} is not a device number"))
                .hint(format!("0 to {most}, or -1 for all")),
        ),
    };
    let major = number(rule.major, "major", MAJORS)?;
    let minor = number(rule.minor, "minor", MINORS)?;
    if kinds.len() == 2 && major.is_none() && minor.is_none() && access == Access::ALL {
        *policy = Policy {
            default_allow: rule.allow,
            rules: Vec::new(),
        };
        return Ok(());
    }
    for kind in kinds {
        let (kind, index) = (*kind, Some(index));
        policy.add(Rule {
            allow: rule.allow,
            kind,
            major,
            minor,
            access,
            index,
        });
    }
    Ok(())
}

impl Policy {
    /// Adds a rule after the others, and takes out what it makes pointless.
    pub fn add(&mut self, mut rule: Rule) {
        for old in self.rules.iter_mut().filter(|old| rule.covers(old)) {
            old.access = old.access.without(rule.access);
        }
        self.rules.retain(|old| old.access != Access::NONE);
        for access in Access::EACH {
            if rule.access.overlaps(access) && self.holds_already(&rule, access) {
                rule.access = rule.access.without(access);
            }
        }
        if rule.access == Access::NONE {
            return;
        }
        let same = self
            .rules
            .iter()
            .rposition(|old| old.allow == rule.allow && old.covers(&rule) && rule.covers(old));
        let contradicted = |after: usize| {
            self.rules.iter().skip(after + 1).any(|r| {
                r.allow != rule.allow && r.access.overlaps(rule.access) && r.meet(&rule).is_some()
            })
        };
        match same {
            Some(position) if !contradicted(position) => {
                if let Some(old) = self.rules.get_mut(position) {
                    old.access = old.access.union(rule.access);
                }
            }
            _ => self.rules.push(rule),
        }
    }

    /// Whether every device of `rule` has its verdict for `access` without it.
    fn holds_already(&self, rule: &Rule, access: Access) -> bool {
        for old in self
            .rules
            .iter()
            .rev()
            .filter(|old| old.access.overlaps(access))
        {
            if old.meet(rule).is_none() {
                continue;
            }
            if old.allow != rule.allow {
                return false;
            }
            if old.covers(rule) {
                return true;
            }
        }
        self.default_allow == rule.allow
    }

    /// The verdict for one device: each access by itself, and all must be allowed.
    #[must_use]
    pub fn allows(&self, kind: Kind, major: u32, minor: u32, access: Access) -> bool {
        Access::EACH
            .into_iter()
            .filter(|a| access.overlaps(*a))
            .all(|a| {
                self.rules
                    .iter()
                    .rev()
                    .find(|r| r.access.overlaps(a) && r.matches(kind, major, minor))
                    .map_or(self.default_allow, |r| r.allow)
            })
    }

    /// Whether everything is allowed, so that a new group needs no list and no program.
    #[must_use]
    pub fn allows_all(&self) -> bool {
        self.default_allow && self.rules.is_empty()
    }

    /// The writes for the v1 controller in a new group: none if all is allowed, as then
    /// the group keeps what its parent has.
    ///
    /// # Errors
    /// A rule inside the range of an opposite one, where v1 cannot express it.
    pub fn v1_writes(&self) -> Result<Vec<Write>, Invalid> {
        if self.allows_all() {
            return Ok(Vec::new());
        }
        let form = self.exceptions()?;
        let (all, file) = match form.default_allow {
            false => ("devices.deny", "devices.allow"),
            true => ("devices.allow", "devices.deny"),
        };
        let at = |rule: &Rule| match rule.index {
            Some(index) => format!("/linux/resources/devices/{index}"),
            None => "/linux/resources/devices".to_owned(),
        };
        let write =
            |file, value, at: String| Write::new(Version::V1, Controller::Devices, file, value, at);
        let mut writes = vec![write(
            all,
            "a".to_owned(),
            "/linux/resources/devices".to_owned(),
        )];
        writes.extend(form.rules.iter().map(|r| write(file, r.to_string(), at(r))));
        Ok(writes)
    }

    /// The same policy with rules that are all opposite to the default.
    fn exceptions(&self) -> Result<Self, Invalid> {
        let plain = |p: &Self| p.rules.iter().all(|r| r.allow != p.default_allow);
        if plain(self) {
            return self.widened().ok_or_else(too_many);
        }
        // The other default may need no holes: deny all, allow every character device,
        // deny one of them is the same as allow all, deny block devices, deny the one.
        let mut other = Self {
            default_allow: !self.default_allow,
            rules: Vec::new(),
        };
        for kind in [Kind::Char, Kind::Block] {
            other.add(Rule::every(kind, self.default_allow, Access::ALL));
        }
        for rule in &self.rules {
            other.add(*rule);
        }
        if plain(&other) {
            return other.widened().ok_or_else(too_many);
        }
        Err(self.hole())
    }

    /// The first rule inside the range of an opposite one, as an error.
    fn hole(&self) -> Invalid {
        let hole = self.rules.iter().find(|r| r.allow == self.default_allow);
        let wider = hole.and_then(|h| {
            self.rules
                .iter()
                .find(|r| r.allow != h.allow && r.covers(h))
        });
        let index = hole.and_then(|h| h.index).or(wider.and_then(|w| w.index));
        let at = match index {
            Some(index) => format!("/linux/resources/devices/{index}"),
            None => "/linux/resources/devices".to_owned(),
        };
        let text = |rule: Option<&Rule>| rule.map(ToString::to_string).unwrap_or_default();
        let message = format!(
            "cgroup v1 cannot exempt {:?} from the wider rule {:?}",
            text(hole),
            text(wider)
        );
        Invalid::new(at, message)
            .hint("v1 knows one default and exceptions to it; name the devices one by one")
    }

    /// A v1 group allows an access only if one exception alone grants all of it, so an
    /// exception must also have what wider ones grant (`c 1:* r` and `c 1:3 w` open 1:3
    /// for both). An exception to "allow" denies by any overlap and is fine as it is.
    /// `None` where so many ranges cross that the list would be too long.
    fn widened(&self) -> Option<Self> {
        let mut form = self.clone();
        if form.default_allow {
            return Some(form);
        }
        for (i, a) in self.rules.iter().enumerate() {
            for b in self
                .rules
                .iter()
                .skip(i + 1)
                .filter(|b| !a.covers(b) && !b.covers(a))
            {
                let Some((major, minor)) = a.meet(b) else {
                    continue;
                };
                let rule = Rule {
                    major,
                    minor,
                    access: a.access.union(b.access),
                    ..*b
                };
                let known = form.rules.iter().any(|r| r.covers(&rule) && rule.covers(r));
                if !known {
                    form.rules.push(rule);
                }
                if form.rules.len() > 2 * MOST_RULES {
                    return None;
                }
            }
        }
        for rule in &mut form.rules {
            rule.access = self
                .rules
                .iter()
                .filter(|wider| wider.covers(rule))
                .fold(rule.access, |access, wider| access.union(wider.access));
        }
        Some(form)
    }

    /// The v2 program: eBPF instructions in this machine's byte order.
    #[must_use]
    pub fn program(&self) -> Vec<u8> {
        // Rules that grant all they can are the ones that share code.
        let plain = !self.default_allow && self.rules.iter().all(|r| r.allow);
        let wide = plain.then(|| self.widened()).flatten();
        let short = wide.filter(|w| w.rules.len() <= MOST_RULES);
        super::program::device_program(short.as_ref().unwrap_or(self))
    }
}
