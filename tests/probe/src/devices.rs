//! Devices and open descriptors.

use crate::text;
use rustix::fs::{AtFlags, FileType};
use serde_json::{Map, Value, json};
use std::path::Path;

/// What stands at a path: type, mode, owner, device number, link target.
pub fn describe(path: &Path) -> Value {
    let stat = match rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(errno) => return json!({ "error": text::errno_name(errno) }),
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let mut entry = json!({
        "type": kind_name(kind),
        "mode": format!("{:04o}", stat.st_mode & 0o7777),
        "owner": format!("{}:{}", stat.st_uid, stat.st_gid),
    });
    if kind == FileType::Symlink {
        let target = std::fs::read_link(path);
        text::put(
            &mut entry,
            "target",
            target.map_or(Value::Null, |target| json!(target.to_string_lossy())),
        );
    }
    if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) {
        let (major, minor) = (
            rustix::fs::major(stat.st_rdev),
            rustix::fs::minor(stat.st_rdev),
        );
        text::put(&mut entry, "device", json!(format!("{major}:{minor}")));
    }
    entry
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "link",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character",
        FileType::BlockDevice => "block",
        FileType::Unknown => "unknown",
    }
}

/// Everything below a directory, by path.
pub fn tree(top: &str) -> Value {
    let mut found = Map::new();
    let mut pending = vec![std::path::PathBuf::from(top)];
    while let Some(path) = pending.pop() {
        let entry = describe(&path);
        if entry.get("type") == Some(&json!("directory")) {
            let children = std::fs::read_dir(&path).into_iter().flatten().flatten();
            pending.extend(children.map(|child| child.path()));
        }
        found.insert(path.to_string_lossy().into_owned(), entry);
        if found.len() > 5_000 {
            found.insert("more".to_owned(), json!(true));
            break;
        }
    }
    Value::Object(found)
}

/// Every open descriptor: where it leads, how it was opened, its offset and flags.
pub fn descriptors() -> Value {
    let mut table = Map::new();
    let Ok(directory) = rustix::fs::open(
        "/proc/self/fd",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    ) else {
        return json!({ "error": "cannot open /proc/self/fd" });
    };
    let own = std::os::fd::AsRawFd::as_raw_fd(&directory).to_string();
    let Ok(entries) = rustix::fs::Dir::new(directory) else {
        return json!({ "error": "cannot read /proc/self/fd" });
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == own || name == "." || name == ".." {
            continue;
        }
        let target = std::fs::read_link(format!("/proc/self/fd/{name}"));
        let info = text::read(format!("/proc/self/fdinfo/{name}")).unwrap_or_default();
        let kind = rustix::fs::stat(format!("/proc/self/fd/{name}").as_str())
            .map_or("unknown", |stat| {
                kind_name(FileType::from_raw_mode(stat.st_mode))
            });
        table.insert(
            name,
            json!({
                "target": target.map_or(Value::Null, |target| json!(target.to_string_lossy())),
                "type": kind,
                "flags": text::field(&info, "flags"),
            }),
        );
    }
    Value::Object(table)
}
