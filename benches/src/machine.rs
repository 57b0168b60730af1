//! What the figures were measured on.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pipkin_sys::measure;
use serde_json::{Value, json};

use crate::Result;
use crate::world::World;

/// A machine and the programs on it.
pub struct Machine {
    /// Year, month and day, UTC.
    pub date: String,
    pub kernel: String,
    pub cpu: String,
    pub cores: usize,
    /// MiB.
    pub memory: u64,
    /// How the runtimes see the control groups.
    pub cgroups: String,
    /// Runtimes and what they say of themselves.
    pub versions: Vec<(String, Value)>,
}

/// Watches what is used of the processors, in seconds.
pub struct Processors {
    start: Instant,
    /// By everybody outside the kernel, and taken away by the host of a virtual machine.
    all_user: f64,
    /// By everybody inside the kernel.
    all_system: f64,
    own_user: f64,
    own_system: f64,
}

/// Shares of the processors' time, between 0 and 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shares {
    /// Other programs, outside the kernel.
    pub others: f64,
    /// The kernel: what it did for other programs, and in its own threads, which have work
    /// because of the bench.
    pub kernel: f64,
}

impl Processors {
    /// Begins to watch.
    pub fn watch() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        let fields = line.split_whitespace().skip(1);
        let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let sum = |fields: &[usize]| -> f64 {
            let ticks: f64 = fields.iter().filter_map(|field| ticks.get(*field)).sum();
            ticks / per_second
        };
        let own = [measure::usage()?, measure::usage_of_children()?];
        let seconds = |micros: u64| micros as f64 / 1e6;
        Ok(Self {
            start: Instant::now(),
            // user, nice, steal
            all_user: sum(&[0, 1, 7]),
            // system, irq, softirq
            all_system: sum(&[2, 5, 6]),
            own_user: seconds(own.iter().map(|usage| usage.user).sum()),
            own_system: seconds(own.iter().map(|usage| usage.system).sum()),
        })
    }

    /// What was used since, but for what the bench used.
    pub fn shares(&self) -> Result<Shares> {
        let now = Self::watch()?;
        let cores = std::thread::available_parallelism().map_or(1, Into::into) as f64;
        let most = self.start.elapsed().as_secs_f64() * cores;
        let share = |all: f64, own: f64| ((all - own) / most).clamp(0.0, 1.0);
        Ok(Shares {
            others: share(now.all_user - self.all_user, now.own_user - self.own_user),
            kernel: share(
                now.all_system - self.all_system,
                now.own_system - self.own_system,
            ),
        })
    }
}

/// Looks at this machine.
pub fn look(world: &World) -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let memory = memory.split(' ').next().and_then(|kib| kib.parse().ok());
    let v1 = world.hierarchies.iter().filter(|one| !one.name.is_empty());
    let cgroups = match v1.count() {
        0 => "v2".to_owned(),
        count => format!("v1, {count} hierarchies"),
    };
    let mut versions = Vec::new();
    for runtime in world.oci() {
        versions.push((runtime.name.clone(), json!(version(&runtime.path))));
    }
    Machine {
        date: date(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".into()),
        cores: std::thread::available_parallelism().map_or(1, Into::into),
        memory: memory.unwrap_or(0) / 1024,
        cgroups,
        versions,
    }
}

fn version(path: &Path) -> String {
    let output = Command::new(path).arg("--version").output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    text.lines().next().unwrap_or_default().to_owned()
}

fn date() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut days = now.map_or(0, |now| now.as_secs() / 86_400);
    let mut year = 1970;
    loop {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = if leap { 366 } else { 365 };
        if days < length {
            return month_and_day(year, days, leap);
        }
        days -= length;
        year += 1;
    }
}

fn month_and_day(year: u32, mut days: u64, leap: bool) -> String {
    let february = if leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, length) in (1..).zip(lengths) {
        if days < length {
            return format!("{year}-{month:02}-{:02}", days + 1);
        }
        days -= length;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(month_and_day(2024, 59, true), "2024-02-29");
        assert_eq!(month_and_day(2025, 59, false), "2025-03-01");
        assert_eq!(month_and_day(2025, 364, false), "2025-12-31");
        assert_eq!(date().len(), 10);
    }
}
