//! From the configuration to [`Limits`]: memory, processor, tasks.

use pipkin_spec::Resources;
use pipkin_spec::resources as spec;

use super::{Cpu, Limits, Max, Memory, convert, lists};
use crate::Invalid;

/// Checks `linux.resources` and brings it into one form.
///
/// # Errors
/// The first value that cannot be carried out, with its pointer.
pub fn normalise(resources: &Resources) -> Result<Limits, Invalid> {
    Ok(Limits {
        memory: resources
            .memory
            .as_ref()
            .map_or(Ok(Memory::default()), memory)?,
        cpu: resources.cpu.as_ref().map_or(Ok(Cpu::default()), cpu)?,
        pids: match resources.pids {
            Some(pids) => max(pids.limit, "/linux/resources/pids/limit")?,
            None => None,
        },
        block: resources
            .block_io
            .as_ref()
            .map_or(Ok(Default::default()), lists::block)?,
        hugepages: lists::hugepages(&resources.hugepage_limits)?,
        network: resources
            .network
            .as_ref()
            .map_or(Ok(Default::default()), lists::network)?,
        rdma: lists::rdma(&resources.rdma)?,
        unified: lists::unified(&resources.unified)?,
    })
}

/// 0 and absent: not set. -1: unlimited.
fn max(value: Option<i64>, pointer: &str) -> Result<Option<Max>, Invalid> {
    match value {
        None | Some(0) => Ok(None),
        Some(-1) => Ok(Some(Max::Unlimited)),
        Some(n) => match u64::try_from(n) {
            Ok(n) => Ok(Some(Max::At(n))),
            Err(_) => Err(Invalid::new(pointer, format!("{n} is not a limit"))
                .hint("a number above 0, or -1 for no limit; 0 is the same as absent")),
        },
    }
}

fn memory(m: &spec::Memory) -> Result<Memory, Invalid> {
    let limit = max(m.limit, "/linux/resources/memory/limit")?;
    let swap = max(m.swap, "/linux/resources/memory/swap")?;
    if let Some(Max::At(both)) = swap {
        let wrong = |message: String, hint: &str| {
            Err(Invalid::new("/linux/resources/memory/swap", message).hint(hint))
        };
        match limit {
            Some(Max::At(limit)) if both < limit => {
                return wrong(
                    format!("{both} is below the memory limit {limit}"),
                    "swap counts memory plus swap: at least the memory limit, or -1",
                );
            }
            Some(Max::At(_)) => {}
            _ => {
                return wrong(
                    format!("{both} limits memory plus swap, but memory has no limit"),
                    "set /linux/resources/memory/limit as well",
                );
            }
        }
    }
    let swappiness = match m.swappiness {
        None => None,
        Some(n) => match u8::try_from(n) {
            Ok(n) if n <= 100 => Some(n),
            _ => {
                return Err(Invalid::new(
                    "/linux/resources/memory/swappiness",
                    format!("{n} is not a swappiness"),
                )
                .hint("0 to 100"));
            }
        },
    };
    Ok(Memory {
        limit,
        reservation: max(m.reservation, "/linux/resources/memory/reservation")?,
        swap,
        kernel: max(m.kernel, "/linux/resources/memory/kernel")?,
        kernel_tcp: max(m.kernel_tcp, "/linux/resources/memory/kernelTCP")?,
        swappiness,
        disable_oom_killer: m.disable_oom_killer.unwrap_or(false),
        use_hierarchy: m.use_hierarchy,
        check_before_update: m.check_before_update.unwrap_or(false),
    })
}

fn cpu(c: &spec::Cpu) -> Result<Cpu, Invalid> {
    let quota = max(c.quota, "/linux/resources/cpu/quota")?;
    if let Some(Max::At(quota @ ..1000)) = quota {
        // kernel/sched: min_cfs_quota_period, 1 ms.
        return Err(Invalid::new(
            "/linux/resources/cpu/quota",
            format!("{quota} microseconds are below the kernel's minimum of 1000"),
        )
        .hint("at least 1000, or -1 for no limit"));
    }
    let period = c.period.filter(|p| *p != 0);
    if let Some(period) = period.filter(|p| !(1000..=1_000_000).contains(p)) {
        // kernel/sched: min_cfs_quota_period and max_cfs_quota_period.
        return Err(Invalid::new(
            "/linux/resources/cpu/period",
            format!("{period} microseconds are outside of what the kernel takes"),
        )
        .hint("1000 to 1000000; absent means 100000"));
    }
    if let (Some(burst), Some(Max::At(quota))) = (c.burst, quota)
        && burst > quota
    {
        return Err(Invalid::new(
            "/linux/resources/cpu/burst",
            format!("{burst} is above the quota {quota}"),
        )
        .hint("at most /linux/resources/cpu/quota"));
    }
    let idle = match c.idle {
        None => None,
        Some(0) => Some(false),
        Some(1) => Some(true),
        Some(n) => {
            return Err(Invalid::new(
                "/linux/resources/cpu/idle",
                format!("{n} is neither 0 nor 1"),
            )
            .hint("1 for idle, 0 for not"));
        }
    };
    Ok(Cpu {
        shares: c
            .shares
            .filter(|s| *s != 0)
            .map(|s| s.clamp(*convert::SHARES.start(), *convert::SHARES.end())),
        quota,
        period,
        burst: c.burst,
        realtime_runtime: max(c.realtime_runtime, "/linux/resources/cpu/realtimeRuntime")?,
        realtime_period: c.realtime_period.filter(|p| *p != 0),
        cpus: list(c.cpus.as_deref(), "/linux/resources/cpu/cpus")?,
        mems: list(c.mems.as_deref(), "/linux/resources/cpu/mems")?,
        idle,
    })
}

/// The kernel's list format (bitmap_parselist): `0-3,7`, `0-31:2/4`, `all`, `N` for the
/// last. Empty is not set.
fn list(text: Option<&str>, pointer: &str) -> Result<Option<String>, Invalid> {
    let Some(text) = text.map(str::trim).filter(|t| !t.is_empty()) else {
        return Ok(None);
    };
    if text
        .split([',', ' ', '\t', '\n'])
        .filter(|p| !p.is_empty())
        .all(is_range)
    {
        return Ok(Some(text.to_owned()));
    }
    Err(
        Invalid::new(pointer, format!("{text:?} is not a list of numbers"))
            .hint("numbers and ranges separated by commas, such as 0-3,7"),
    )
}

fn is_range(part: &str) -> bool {
    let number = |t: &str| (t == "N").then_some(u32::MAX).or_else(|| digits(t));
    if part == "all" {
        return true;
    }
    let (range, groups) = match part.split_once(':') {
        Some((range, groups)) => (range, Some(groups)),
        None => (part, None),
    };
    let range_ok = match range.split_once('-') {
        Some((first, last)) => {
            matches!((number(first), number(last)), (Some(a), Some(b)) if a <= b)
        }
        None => number(range).is_some() || (range == "all" && groups.is_some()),
    };
    let groups_ok = groups.is_none_or(|g| {
        g.split_once('/').is_some_and(|(used, size)| {
            matches!((digits(used), digits(size)), (Some(u), Some(s)) if u <= s && s > 0)
        })
    });
    range_ok && groups_ok
}

fn digits(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}
