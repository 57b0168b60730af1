//! The control groups as the container sees them.

use crate::text;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The limits of every version; the ones that exist are read.
const FILES: &[&str] = &[
    "memory.limit_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.kmem.limit_in_bytes",
    "memory.kmem.tcp.limit_in_bytes",
    "memory.swappiness",
    "memory.oom_control",
    "memory.use_hierarchy",
    "cpu.shares",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "cpu.cfs_burst_us",
    "cpu.rt_runtime_us",
    "cpu.rt_period_us",
    "cpu.idle",
    "cpuset.cpus",
    "cpuset.mems",
    "cpuset.cpu_exclusive",
    "pids.max",
    "devices.list",
    "blkio.weight",
    "blkio.bfq.weight",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
    "freezer.state",
    "net_cls.classid",
    "net_prio.ifpriomap",
    "notify_on_release",
    "memory.max",
    "memory.high",
    "memory.low",
    "memory.min",
    "memory.swap.max",
    "memory.oom.group",
    "cpu.weight",
    "cpu.weight.nice",
    "cpu.max",
    "cpu.max.burst",
    "io.weight",
    "io.bfq.weight",
    "io.max",
    "cgroup.type",
    "cgroup.controllers",
    "cgroup.subtree_control",
    "cgroup.freeze",
    "hugetlb.2MB.max",
    "hugetlb.1GB.max",
    "hugetlb.2MB.rsvd.max",
];

/// Membership, the limits below /sys/fs/cgroup, and whether a group can be made there.
pub fn view() -> Value {
    let mut view = Map::new();
    view.insert("membership".to_owned(), membership());
    let mut limits = Map::new();
    let mut writable = Map::new();
    let top = Path::new("/sys/fs/cgroup");
    let mut directories = vec![top.to_owned()];
    directories.extend(
        std::fs::read_dir(top)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir()),
    );
    directories.sort();
    for directory in &directories {
        read_limits(directory, &mut limits);
    }
    view.insert("limits".to_owned(), Value::Object(limits));
    // Only what is mounted is a hierarchy: a directory of sysfs says nothing.
    for directory in &directories {
        writable.insert(
            directory.to_string_lossy().into_owned(),
            make_group(directory),
        );
    }
    view.insert("make_group".to_owned(), Value::Object(writable));
    view.insert("entries".to_owned(), json!(names(top)));
    Value::Object(view)
}

/// The lines of /proc/self/cgroup by the name of the controllers: the numbers differ.
fn membership() -> Value {
    let mut groups = Map::new();
    for line in text::read("/proc/self/cgroup").unwrap_or_default().lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        if let (Some(controllers), Some(path)) = (parts.next(), parts.next()) {
            let key = if controllers.is_empty() {
                "unified"
            } else {
                controllers
            };
            groups.insert(key.to_owned(), json!(path));
        }
    }
    Value::Object(groups)
}

fn read_limits(directory: &Path, limits: &mut Map<String, Value>) {
    for file in FILES {
        let path = directory.join(file);
        if path.exists() {
            limits.insert(path.to_string_lossy().into_owned(), text::lines(&path));
        }
    }
}

/// Makes a group and removes it again.
fn make_group(directory: &Path) -> Value {
    let path = directory.join("probe-trial");
    let made = std::fs::create_dir(&path);
    let value = text::outcome(made);
    let _ = std::fs::remove_dir(&path);
    value
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
