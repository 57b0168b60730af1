//! v2 files: kernel, admin-guide/cgroup-v2.rst.

use std::borrow::Cow;

use super::convert::{DEFAULT_PERIOD, blkio_to_io_weight, shares_to_weight, swap_alone, v2_max};
use super::write::no_controller;
use super::{BlockDevice, Controller, Host, Limits, Max, Throttle, Version, Write};
use crate::Invalid;

type Writes = Result<Vec<Write>, Invalid>;

fn write(
    controller: Controller,
    file: &'static str,
    value: impl Into<Cow<'static, str>>,
    pointer: impl Into<Cow<'static, str>>,
) -> Write {
    Write::new(Version::V2, controller, file, value, pointer)
}

/// A wish that only v1 can grant.
fn v1_only(pointer: impl Into<String>, what: &str, hint: &str) -> Invalid {
    Invalid::new(pointer, format!("cgroup v2 has no {what}")).hint(hint)
}

pub(super) fn pids(limits: &Limits) -> Writes {
    let at = "/linux/resources/pids/limit";
    Ok(limits
        .pids
        .map(|max| write(Controller::Pids, "pids.max", v2_max(max), at))
        .into_iter()
        .collect())
}

pub(super) fn memory(limits: &Limits) -> Writes {
    let m = &limits.memory;
    refuse_v1_memory(limits)?;
    let mut all = Vec::new();
    if let Some(swap) = swap_alone(m.limit, m.swap) {
        let at = match m.swap {
            Some(_) => "/linux/resources/memory/swap",
            None => "/linux/resources/memory/limit",
        };
        let w = write(Controller::Memory, "memory.swap.max", v2_max(swap), at);
        // A kernel without swap has nothing to limit.
        all.push(match swap {
            Max::Unlimited | Max::At(0) => w.or_skip(),
            Max::At(_) => w,
        });
    }
    if let Some(limit) = m.limit {
        let at = "/linux/resources/memory/limit";
        let mut w = write(Controller::Memory, "memory.max", v2_max(limit), at);
        if m.check_before_update && limit != Max::Unlimited {
            w.used = Some("memory.current");
        }
        all.push(w);
    }
    if let Some(low) = m.reservation {
        let at = "/linux/resources/memory/reservation";
        all.push(write(Controller::Memory, "memory.low", v2_max(low), at));
    }
    Ok(all)
}

fn refuse_v1_memory(limits: &Limits) -> Result<(), Invalid> {
    let m = &limits.memory;
    let refuse = |name: &str, what: &str, hint: &str| {
        Err(v1_only(
            format!("/linux/resources/memory/{name}"),
            what,
            hint,
        ))
    };
    if m.kernel.is_some() {
        return refuse(
            "kernel",
            "limit of kernel memory alone",
            "memory/limit counts it",
        );
    }
    if m.kernel_tcp.is_some() {
        return refuse(
            "kernelTCP",
            "limit of TCP memory alone",
            "memory/limit counts it",
        );
    }
    if m.swappiness.is_some() {
        return refuse(
            "swappiness",
            "swappiness",
            "remove it, or limit swap with memory/swap",
        );
    }
    if m.disable_oom_killer {
        return refuse("disableOOMKiller", "switch for the OOM killer", "remove it");
    }
    if m.use_hierarchy == Some(false) {
        return refuse("useHierarchy", "accounting without hierarchy", "remove it");
    }
    Ok(())
}

/// Quota and period are one file. A period alone keeps "no quota".
pub(super) fn cpu(limits: &Limits) -> Writes {
    let c = &limits.cpu;
    for (set, name) in [
        (c.realtime_runtime.is_some(), "realtimeRuntime"),
        (c.realtime_period.is_some(), "realtimePeriod"),
    ] {
        if set {
            let at = format!("/linux/resources/cpu/{name}");
            return Err(v1_only(
                at,
                "realtime budget",
                "remove it, or use a v1 host",
            ));
        }
    }
    let mut all = Vec::new();
    if let Some(idle) = c.idle {
        let value = if idle { "1" } else { "0" };
        let w = write(
            Controller::Cpu,
            "cpu.idle",
            value,
            "/linux/resources/cpu/idle",
        );
        all.push(if idle { w } else { w.or_skip() });
    }
    // The weight of an idle group is fixed, and the kernel refuses another.
    if let Some(shares) = c.shares.filter(|_| c.idle != Some(true)) {
        let value = shares_to_weight(shares).to_string();
        all.push(write(
            Controller::Cpu,
            "cpu.weight",
            value,
            "/linux/resources/cpu/shares",
        ));
    }
    if c.quota.is_some() || c.period.is_some() {
        let at = match c.quota {
            Some(_) => "/linux/resources/cpu/quota",
            None => "/linux/resources/cpu/period",
        };
        let quota = v2_max(c.quota.unwrap_or(Max::Unlimited));
        let value = format!("{quota} {}", c.period.unwrap_or(DEFAULT_PERIOD));
        all.push(write(Controller::Cpu, "cpu.max", value, at).retried());
    }
    if let Some(burst) = c.burst {
        let at = "/linux/resources/cpu/burst";
        let w = write(Controller::Cpu, "cpu.max.burst", burst.to_string(), at).retried();
        all.push(if burst == 0 { w.or_skip() } else { w });
    }
    Ok(all)
}

pub(super) fn cpuset(limits: &Limits) -> Writes {
    Ok(super::v1::cpuset_files(limits, Version::V2))
}

/// BFQ's weight where it is the scheduler, else that of iocost, which also takes a
/// weight for one device.
pub(super) fn block(limits: &Limits) -> Writes {
    let b = &limits.block;
    let io = Controller::Io;
    let leaf = |at: String| v1_only(at, "leaf weight", "remove it; sub-groups have weights");
    let mut all = Vec::new();
    if b.leaf_weight.is_some() {
        return Err(leaf("/linux/resources/blockIO/leafWeight".to_owned()));
    }
    if let Some(weight) = b.weight {
        let at = "/linux/resources/blockIO/weight";
        let w = write(io, "io.bfq.weight", weight.to_string(), at);
        all.push(w.or_into("io.weight", blkio_to_io_weight(weight).to_string()));
    }
    for entry in &b.devices {
        let at = format!("/linux/resources/blockIO/weightDevice/{}", entry.index);
        if entry.leaf_weight.is_some() {
            return Err(leaf(format!("{at}/leafWeight")));
        }
        if let Some(weight) = entry.weight {
            let BlockDevice { major, minor } = entry.device;
            let w = write(
                io,
                "io.bfq.weight",
                format!("{major}:{minor} {weight}"),
                format!("{at}/weight"),
            );
            let other = format!("{major}:{minor} {}", blkio_to_io_weight(weight));
            all.push(w.or_into("io.weight", other));
        }
    }
    all.extend(b.throttle.iter().filter_map(throttle));
    Ok(all)
}

/// All rates of one device are one line of `io.max`.
fn throttle(t: &Throttle) -> Option<Write> {
    let mut line = format!("{}:{}", t.device.major, t.device.minor);
    let mut at = None;
    for (key, rate) in [
        ("rbps", &t.read_bps),
        ("wbps", &t.write_bps),
        ("riops", &t.read_iops),
        ("wiops", &t.write_iops),
    ] {
        if let Some((max, pointer)) = rate {
            line.push_str(&format!(" {key}={}", v2_max(*max)));
            at.get_or_insert_with(|| pointer.clone());
        }
    }
    at.map(|at| write(Controller::Io, "io.max", line, at))
}

/// Reservations are limited as well where the kernel has them (since 5.7).
pub(super) fn hugepages(limits: &Limits) -> Writes {
    let mut all = Vec::new();
    for h in &limits.hugepages {
        let at = format!("/linux/resources/hugepageLimits/{}/limit", h.index);
        for (infix, optional) in [("", false), ("rsvd.", true)] {
            let w = Write::new(
                Version::V2,
                Controller::Hugetlb,
                format!("hugetlb.{}.{infix}max", h.page_size),
                h.limit.to_string(),
                at.clone(),
            );
            all.push(if optional { w.or_skip() } else { w });
        }
    }
    Ok(all)
}

pub(super) fn rdma(limits: &Limits) -> Writes {
    Ok(super::v1::rdma_files(limits, Version::V2))
}

pub(super) fn network_class(limits: &Limits) -> Writes {
    match limits.network.class_id {
        None => Ok(Vec::new()),
        Some(_) => Err(v1_only(
            "/linux/resources/network/classID",
            "class of network packets",
            "remove it; filters can match the cgroup itself",
        )),
    }
}

pub(super) fn network_priorities(limits: &Limits) -> Writes {
    match limits.network.priorities.is_empty() {
        true => Ok(Vec::new()),
        false => Err(v1_only(
            "/linux/resources/network/priorities",
            "priority of network interfaces",
            "remove it; filters can match the cgroup itself",
        )),
    }
}

/// `linux.resources.unified`: the files as they are, a line a write, as the kernel takes
/// one key at a time. They come last, so they hold against the other fields.
pub(super) fn unified(limits: &Limits, host: &Host) -> Writes {
    let mut all = Vec::new();
    for u in &limits.unified {
        let at = format!("/linux/resources/unified/{}", super::lists::escape(&u.file));
        let Some(v2) = host.v2 else {
            return Err(Invalid::new(at, "the unified hierarchy is not mounted")
                .hint("this host has cgroup v1 only; use the other fields of linux.resources"));
        };
        let prefix = u.file.split('.').next().unwrap_or_default();
        // A controller that is newer than pipkin is the kernel's to judge.
        let controller = match Controller::from_name(prefix) {
            Some(c) if c.name(Version::V2) == prefix => c,
            _ => Controller::Core,
        };
        if !v2.contains(controller) {
            return Err(no_controller(controller, host, &at));
        }
        let mut lines: Vec<&str> = u
            .value
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect();
        if lines.is_empty() {
            lines.push("");
        }
        for line in lines {
            // write(2) of nothing reaches no handler; a line end does.
            let value = if line.is_empty() {
                "\n".to_owned()
            } else {
                line.to_owned()
            };
            let file = u.file.clone();
            all.push(Write::new(Version::V2, controller, file, value, at.clone()));
        }
    }
    Ok(all)
}
