//! v1 files: kernel, admin-guide/cgroup-v1.

use super::convert::v1_max;
use super::{BlockDevice, Controller, Limits, Max, Version, Write};
use crate::Invalid;

type Writes = Result<Vec<Write>, Invalid>;

fn write(
    controller: Controller,
    file: &'static str,
    value: impl Into<std::borrow::Cow<'static, str>>,
    pointer: impl Into<std::borrow::Cow<'static, str>>,
) -> Write {
    Write::new(Version::V1, controller, file, value, pointer)
}

/// `max` in `pids.max` is a word on v1 as well.
pub(super) fn pids(limits: &Limits) -> Writes {
    let value = |max| super::convert::v2_max(max);
    Ok(limits
        .pids
        .map(|max| {
            write(
                Controller::Pids,
                "pids.max",
                value(max),
                "/linux/resources/pids/limit",
            )
        })
        .into_iter()
        .collect())
}

/// Memory may not be above memory plus swap, so the order of the two depends on what
/// they are now: the limit is tried first and again after the swap.
pub(super) fn memory(limits: &Limits) -> Writes {
    let m = &limits.memory;
    let mut all = Vec::new();
    let mut add = |w: Write| all.push(w);
    let file = |file, value: String, pointer| write(Controller::Memory, file, value, pointer);
    // Hierarchy and kernel memory can only be set while the group is empty.
    if let Some(hierarchy) = m.use_hierarchy {
        let value = if hierarchy { "1" } else { "0" };
        let at = "/linux/resources/memory/useHierarchy";
        add(file("memory.use_hierarchy", value.to_owned(), at));
    }
    if let Some(limit) = m.limit {
        let at = "/linux/resources/memory/limit";
        let mut w = file("memory.limit_in_bytes", v1_max(limit), at).retried();
        if m.check_before_update && limit != Max::Unlimited {
            w.used = Some("memory.usage_in_bytes");
        }
        add(w);
    }
    let swap = match (m.limit, m.swap) {
        (_, Some(swap)) => Some((swap, "/linux/resources/memory/swap")),
        // Else memory would stay bounded by memory plus swap.
        (Some(Max::Unlimited), None) => Some((Max::Unlimited, "/linux/resources/memory/limit")),
        _ => None,
    };
    if let Some((swap, at)) = swap {
        let w = file("memory.memsw.limit_in_bytes", v1_max(swap), at);
        // Without swap accounting nothing limits swap, which is what "unlimited" wants.
        add(if swap == Max::Unlimited {
            w.or_skip()
        } else {
            w
        });
    }
    if let Some(max) = m.reservation {
        let at = "/linux/resources/memory/reservation";
        add(file("memory.soft_limit_in_bytes", v1_max(max), at));
    }
    if let Some(max) = m.kernel {
        add(file(
            "memory.kmem.limit_in_bytes",
            v1_max(max),
            "/linux/resources/memory/kernel",
        ));
    }
    if let Some(max) = m.kernel_tcp {
        let at = "/linux/resources/memory/kernelTCP";
        add(file("memory.kmem.tcp.limit_in_bytes", v1_max(max), at));
    }
    if let Some(n) = m.swappiness {
        add(file(
            "memory.swappiness",
            n.to_string(),
            "/linux/resources/memory/swappiness",
        ));
    }
    if m.disable_oom_killer {
        add(file(
            "memory.oom_control",
            "1".to_owned(),
            "/linux/resources/memory/disableOOMKiller",
        ));
    }
    Ok(all)
}

/// An idle group has a fixed weight, so shares mean nothing to it and the kernel refuses
/// them. Period, quota and burst bound each other and the parent's.
pub(super) fn cpu(limits: &Limits) -> Writes {
    let c = &limits.cpu;
    let mut all = Vec::new();
    let mut add = |w: Write| all.push(w);
    if let Some(idle) = c.idle {
        let w = write(
            Controller::Cpu,
            "cpu.idle",
            if idle { "1" } else { "0" },
            "/linux/resources/cpu/idle",
        );
        add(if idle { w } else { w.or_skip() });
    }
    if let Some(shares) = c.shares.filter(|_| c.idle != Some(true)) {
        let at = "/linux/resources/cpu/shares";
        add(write(Controller::Cpu, "cpu.shares", shares.to_string(), at));
    }
    if let Some(period) = c.period {
        let at = "/linux/resources/cpu/period";
        add(write(Controller::Cpu, "cpu.cfs_period_us", period.to_string(), at).retried());
    }
    if let Some(quota) = c.quota {
        let at = "/linux/resources/cpu/quota";
        add(write(Controller::Cpu, "cpu.cfs_quota_us", v1_max(quota), at).retried());
    }
    if let Some(burst) = c.burst {
        let at = "/linux/resources/cpu/burst";
        let w = write(Controller::Cpu, "cpu.cfs_burst_us", burst.to_string(), at).retried();
        add(if burst == 0 { w.or_skip() } else { w });
    }
    if let Some(period) = c.realtime_period {
        let at = "/linux/resources/cpu/realtimePeriod";
        add(write(Controller::Cpu, "cpu.rt_period_us", period.to_string(), at).retried());
    }
    if let Some(runtime) = c.realtime_runtime {
        let at = "/linux/resources/cpu/realtimeRuntime";
        add(write(Controller::Cpu, "cpu.rt_runtime_us", v1_max(runtime), at).retried());
    }
    Ok(all)
}

pub(super) fn cpuset(limits: &Limits) -> Writes {
    Ok(cpuset_files(limits, Version::V1))
}

/// The same two files on both sides.
pub(super) fn cpuset_files(limits: &Limits, version: Version) -> Vec<Write> {
    let cpus = limits.cpu.cpus.as_ref().map(|list| {
        let at = "/linux/resources/cpu/cpus";
        Write::new(version, Controller::Cpuset, "cpuset.cpus", list.clone(), at)
    });
    let mems = limits.cpu.mems.as_ref().map(|list| {
        let at = "/linux/resources/cpu/mems";
        Write::new(version, Controller::Cpuset, "cpuset.mems", list.clone(), at)
    });
    cpus.into_iter().chain(mems).collect()
}

/// `blkio.weight` is CFQ's (until Linux 5.0) and the other BFQ's.
pub(super) fn block(limits: &Limits) -> Writes {
    let b = &limits.block;
    let mut all = Vec::new();
    let io = Controller::Io;
    if let Some(weight) = b.weight {
        let at = "/linux/resources/blockIO/weight";
        let w = write(io, "blkio.weight", weight.to_string(), at);
        all.push(w.or_into("blkio.bfq.weight", weight.to_string()));
    }
    if let Some(weight) = b.leaf_weight {
        let at = "/linux/resources/blockIO/leafWeight";
        all.push(write(io, "blkio.leaf_weight", weight.to_string(), at));
    }
    for entry in &b.devices {
        let at = format!("/linux/resources/blockIO/weightDevice/{}", entry.index);
        if let Some(weight) = entry.weight {
            let value = device_value(entry.device, weight.into());
            let w = write(
                io,
                "blkio.weight_device",
                value.clone(),
                format!("{at}/weight"),
            );
            all.push(w.or_into("blkio.bfq.weight_device", value));
        }
        if let Some(weight) = entry.leaf_weight {
            let value = device_value(entry.device, weight.into());
            all.push(write(
                io,
                "blkio.leaf_weight_device",
                value,
                format!("{at}/leafWeight"),
            ));
        }
    }
    for t in &b.throttle {
        for (rate, file) in [
            (&t.read_bps, "blkio.throttle.read_bps_device"),
            (&t.write_bps, "blkio.throttle.write_bps_device"),
            (&t.read_iops, "blkio.throttle.read_iops_device"),
            (&t.write_iops, "blkio.throttle.write_iops_device"),
        ] {
            if let Some((max, pointer)) = rate {
                let rate = match max {
                    Max::Unlimited => 0,
                    Max::At(n) => *n,
                };
                all.push(write(
                    io,
                    file,
                    device_value(t.device, rate),
                    pointer.clone(),
                ));
            }
        }
    }
    Ok(all)
}

fn device_value(device: BlockDevice, value: u64) -> String {
    format!("{}:{} {value}", device.major, device.minor)
}

/// Reservations are limited as well where the kernel has them (since 5.7).
pub(super) fn hugepages(limits: &Limits) -> Writes {
    let mut all = Vec::new();
    for h in &limits.hugepages {
        let at = format!("/linux/resources/hugepageLimits/{}/limit", h.index);
        for (infix, optional) in [("", false), ("rsvd.", true)] {
            let w = Write::new(
                Version::V1,
                Controller::Hugetlb,
                format!("hugetlb.{}.{infix}limit_in_bytes", h.page_size),
                h.limit.to_string(),
                at.clone(),
            );
            all.push(if optional { w.or_skip() } else { w });
        }
    }
    Ok(all)
}

pub(super) fn rdma(limits: &Limits) -> Writes {
    Ok(rdma_files(limits, Version::V1))
}

/// The same file on both sides.
pub(super) fn rdma_files(limits: &Limits, version: Version) -> Vec<Write> {
    let line = |r: &super::Rdma| {
        let mut line = r.device.clone();
        for (key, value) in [("hca_handle", r.handles), ("hca_object", r.objects)] {
            if let Some(value) = value {
                line.push_str(&format!(" {key}={value}"));
            }
        }
        line
    };
    limits
        .rdma
        .iter()
        .map(|r| {
            let at = format!("/linux/resources/rdma/{}", super::lists::escape(&r.device));
            Write::new(version, Controller::Rdma, "rdma.max", line(r), at)
        })
        .collect()
}

pub(super) fn network_class(limits: &Limits) -> Writes {
    let at = "/linux/resources/network/classID";
    let class = limits.network.class_id;
    Ok(class
        .map(|id| write(Controller::NetCls, "net_cls.classid", id.to_string(), at))
        .into_iter()
        .collect())
}

pub(super) fn network_priorities(limits: &Limits) -> Writes {
    let list = limits.network.priorities.iter().enumerate();
    Ok(list
        .map(|(index, (name, priority))| {
            let at = format!("/linux/resources/network/priorities/{index}/priority");
            write(
                Controller::NetPrio,
                "net_prio.ifpriomap",
                format!("{name} {priority}"),
                at,
            )
        })
        .collect())
}
