//! What the figures were measured on.

use std::collections::HashMap;
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
    /// By everybody, and taken away by the host of a virtual machine.
    all: f64,
    /// By the bench and all that it waited for.
    own: f64,
    /// By each of the kernel's threads.
    threads: HashMap<u32, f64>,
}

/// Shares of the processors' time, between 0 and 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shares {
    /// Other programs.
    pub others: f64,
    /// The kernel's own threads, which have work because of the bench.
    pub kernel: f64,
}

impl Processors {
    /// Begins to watch.
    pub fn watch() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        let fields = line.split_whitespace().skip(1);
        let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
        // Not the time in which they were idle or waited for a disk.
        let busy = [0, 1, 2, 5, 6, 7];
        let busy: f64 = busy.iter().filter_map(|field| ticks.get(*field)).sum();
        // User and system together: how short processes divide it is a guess of the kernel's.
        let own = [measure::usage()?, measure::usage_of_children()?];
        let own: u64 = own.iter().map(|usage| usage.user + usage.system).sum();
        Ok(Self {
            start: Instant::now(),
            all: busy / rustix::param::clock_ticks_per_second() as f64,
            own: own as f64 / 1e6,
            threads: kernel_threads()?,
        })
    }

    /// What was used since, but for what the bench used.
    pub fn shares(&self) -> Result<Shares> {
        let now = Self::watch()?;
        let cores = std::thread::available_parallelism().map_or(1, Into::into) as f64;
        let most = self.start.elapsed().as_secs_f64() * cores;
        let before = |thread| self.threads.get(thread).copied().unwrap_or(0.0);
        let threads = now.threads.iter();
        let kernel: f64 = threads.map(|(thread, used)| used - before(thread)).sum();
        let others = (now.all - self.all) - (now.own - self.own) - kernel;
        let share = |used: f64| (used / most).clamp(0.0, 1.0);
        Ok(Shares {
            others: share(others),
            kernel: share(kernel),
        })
    }
}

/// What the kernel's threads have used, in seconds.
fn kernel_threads() -> Result<HashMap<u32, f64>> {
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut all = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        // `2 (kthreadd) S 0 …`: the parent of all others, then user and system ticks.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((_, fields)) = stat.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<f64> = fields
            .split(' ')
            .map(|field| field.parse().unwrap_or(0.0))
            .collect();
        if let [_, parent, .., _] = fields[..]
            && (parent == 2.0 || pid == 2)
        {
            let ticks: f64 = fields.iter().skip(11).take(2).sum();
            all.insert(pid, ticks / per_second);
        }
    }
    Ok(all)
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
    let mut version = text.lines().next().unwrap_or_default().to_owned();
    let commit = text.lines().find_map(|line| line.strip_prefix("commit: "));
    if let Some(commit) = commit {
        let short: String = commit.chars().take(12).collect();
        version += &format!(", commit {short}");
    }
    version
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
    fn shares_are_shares() {
        let shares = Processors::watch().unwrap().shares().unwrap();
        for share in [shares.others, shares.kernel] {
            assert!((0.0..=1.0).contains(&share), "{shares:?}");
        }
        assert!(!kernel_threads().unwrap().contains_key(&std::process::id()));
    }

    #[test]
    fn days_have_dates() {
        assert_eq!(month_and_day(2024, 59, true), "2024-02-29");
        assert_eq!(month_and_day(2025, 59, false), "2025-03-01");
        assert_eq!(month_and_day(2025, 364, false), "2025-12-31");
        assert_eq!(date().len(), 10);
    }
}
