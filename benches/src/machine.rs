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

/// What was used of the processors: by everybody and by the bench, in seconds.
pub struct Processors {
    start: Instant,
    all: f64,
    own: f64,
}

impl Processors {
    /// Begins to watch.
    pub fn watch() -> Result<Self> {
        let (all, own) = Self::used()?;
        Ok(Self {
            start: Instant::now(),
            all,
            own,
        })
    }

    fn used() -> Result<(f64, f64)> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        let fields = line.split_whitespace().skip(1);
        let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
        // Not the time in which they were idle or waited for a disk.
        let busy: f64 = [0, 1, 2, 5, 6, 7]
            .iter()
            .filter_map(|field| ticks.get(*field))
            .sum();
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let own = [measure::usage()?, measure::usage_of_children()?];
        let own = own.iter().map(|usage| usage.user + usage.system);
        Ok((busy / per_second, own.sum::<u64>() as f64 / 1e6))
    }

    /// The share of the processors that others used since.
    pub fn others(&self) -> Result<f64> {
        let (all, own) = Self::used()?;
        let cores = std::thread::available_parallelism().map_or(1, Into::into) as f64;
        let most = self.start.elapsed().as_secs_f64() * cores;
        Ok((((all - self.all) - (own - self.own)) / most).clamp(0.0, 1.0))
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
