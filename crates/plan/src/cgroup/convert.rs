//! Conversions between the units of the configuration, v1 and v2. Each formula stands
//! here once, with its source.

use super::Max;

/// The kernel's bounds of `cpu.shares` (kernel/sched/sched.h, MIN_SHARES and MAX_SHARES).
pub const SHARES: std::ops::RangeInclusive<u64> = 2..=262_144;

/// v1 `cpu.shares` to v2 `cpu.weight`.
///
/// `weight = ceil(10 ^ ((l² + 125·l) / 612 − 7/34))` with `l = log2(shares)`: the curve
/// through (2, 1), (1024, 100) and (262144, 10000), so that both minima, both defaults
/// and both maxima meet. runc (since 1.3.2) and crun (since 1.23) use it, after
/// kubernetes#131216. The older one, `1 + (shares − 2)·9999/262142`, is linear and
/// makes the default 1024 a weight of 39, far below that of any neighbour (100); it is
/// what Debian 12's runc and crun still do.
#[must_use]
pub fn shares_to_weight(shares: u64) -> u64 {
    let shares = shares.clamp(*SHARES.start(), *SHARES.end());
    let l = (shares as f64).log2();
    let exponent = (l * l + 125.0 * l) / 612.0 - 7.0 / 34.0;
    // A power that should be whole (100 at 1024) may come out a rounding error above.
    ((10f64.powf(exponent) - 1e-9).ceil() as u64).clamp(1, 10_000)
}

/// v1 `blkio.weight` (10 to 1000) to v2 `io.weight` (1 to 10000), linear:
/// `1 + (weight − 10)·9999/990`. Documented in crun(1), "Block IO controller", and the
/// same in runc. `io.bfq.weight` takes 1 to 1000 and gets the number as it is.
#[must_use]
pub fn blkio_to_io_weight(weight: u16) -> u64 {
    1 + u64::from(weight.clamp(10, 1000) - 10) * 9999 / 990
}

/// v1 and the configuration count memory plus swap; v2 counts swap alone:
/// `memory.swap.max = swap − limit`. Unlimited memory without a word about swap makes
/// swap unlimited too, as on v1, where memory plus swap may not be below memory.
/// `None` is "not set". Source: runtime-spec, config-linux.md, "Memory"; kernel,
/// admin-guide/cgroup-v2.rst, "memory.swap.max".
#[must_use]
pub fn swap_alone(limit: Option<Max>, memory_and_swap: Option<Max>) -> Option<Max> {
    match (limit, memory_and_swap) {
        (_, Some(Max::Unlimited)) | (Some(Max::Unlimited), None) => Some(Max::Unlimited),
        (Some(Max::At(limit)), Some(Max::At(both))) => Some(Max::At(both.saturating_sub(limit))),
        (_, Some(Max::At(_)) | None) => None,
    }
}

/// The period where only a quota is given: the kernel's default of 100 ms
/// (admin-guide/cgroup-v2.rst, "cpu.max").
pub const DEFAULT_PERIOD: u64 = 100_000;

/// A ceiling as v1 files take it.
#[must_use]
pub fn v1_max(max: Max) -> String {
    match max {
        Max::Unlimited => "-1".to_owned(),
        Max::At(n) => n.to_string(),
    }
}

/// A ceiling as v2 files take it.
#[must_use]
pub fn v2_max(max: Max) -> String {
    match max {
        Max::Unlimited => "max".to_owned(),
        Max::At(n) => n.to_string(),
    }
}
