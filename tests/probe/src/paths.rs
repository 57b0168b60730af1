//! Paths that a runtime masks, makes read-only or mounts: what can really be done there.

use crate::{devices, text};
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;

/// What the specification's users mask or make read-only, and some that must stay usable.
const PATHS: &[&str] = &[
    "/",
    "/dev",
    "/dev/mqueue",
    "/dev/pts",
    "/dev/shm",
    "/etc",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/proc",
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/self/attr/current",
    "/proc/self/oom_score_adj",
    "/proc/self/timerslack_ns",
    "/proc/sys",
    "/proc/sys/kernel/panic",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/run",
    "/sys",
    "/sys/block",
    "/sys/dev/block",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/fs/cgroup",
    "/sys/fs/selinux",
    "/sys/kernel",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/tmp",
];

/// Tries the paths above and the given ones.
pub fn look(more: Option<&Value>) -> Value {
    let more = more
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut found = Map::new();
    for path in PATHS.iter().copied().chain(more) {
        found.insert(path.to_owned(), one(Path::new(path)));
    }
    Value::Object(found)
}

fn one(path: &Path) -> Value {
    let mut entry = devices::describe(path);
    if entry.get("error").is_some() {
        return entry;
    }
    // The time of the last access must not be what differs, so the type is followed once.
    let Ok(metadata) = std::fs::metadata(path) else {
        text::put(&mut entry, "follow", json!("nowhere"));
        return entry;
    };
    if metadata.is_dir() {
        text::put(&mut entry, "read", read_directory(path));
        text::put(&mut entry, "write", create_inside(path));
    } else {
        text::put(&mut entry, "read", read_some(path));
        text::put(
            &mut entry,
            "write",
            text::outcome(OpenOptions::new().write(true).open(path)),
        );
        text::put(
            &mut entry,
            "size",
            json!(if metadata.is_file() {
                metadata.len()
            } else {
                0
            }),
        );
    }
    if path.starts_with("/etc") || path.starts_with("/data") {
        text::put(&mut entry, "content", text::value(path));
    }
    entry
}

/// "ok", "empty" or the error: how much is in it differs from one moment to the next.
fn read_directory(path: &Path) -> Value {
    match std::fs::read_dir(path) {
        Ok(mut entries) => json!(if entries.next().is_some() {
            "ok"
        } else {
            "empty"
        }),
        Err(error) => json!(text::errno(&error)),
    }
}

fn read_some(path: &Path) -> Value {
    use std::os::unix::fs::OpenOptionsExt;
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblock)
        .open(path);
    let mut buffer = [0; 64];
    match file.and_then(|mut file| file.read(&mut buffer)) {
        Ok(0) => json!("empty"),
        Ok(_) => json!("ok"),
        Err(error) => json!(text::errno(&error)),
    }
}

/// Creates a file in a directory and removes it again.
fn create_inside(path: &Path) -> Value {
    let file = path.join(".probe-trial");
    let made: std::io::Result<File> = OpenOptions::new().write(true).create_new(true).open(&file);
    let value = text::outcome(made);
    let _ = std::fs::remove_file(&file);
    value
}
