//! `try`: a bundle made of the host's own root file system.
//!
//! The root is an overlay whose lower layer is the host's root and whose upper layer is a
//! tmpfs that only this process's mount namespace has: when it ends, all that was written is
//! gone. Other file systems of the host are shown the same way, each below an overlay of its
//! own; what the kernel shows of itself is mounted anew.

use std::path::{Path, PathBuf};

use pipkin_spec::Config;
use pipkin_sys::Errno;
use pipkin_sys::mount::{self, ms};
use pipkin_sys::process::{self, clone};

use crate::config::Bundle;
use crate::request::{CreateRequest, TryRequest};
use crate::{Error, Result, caller};

/// Where the layers are, in this process's mount namespace only.
const WORKSHOP: &str = "/tmp";

/// File systems that hold files of the host.
const SHOWN: [&str; 9] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "vfat", "zfs",
];

/// Makes the layers and the configuration.
///
/// # Errors
/// A caller that is not root; those of the mounts.
pub fn bundle(request: &TryRequest) -> Result<(CreateRequest, Bundle)> {
    if caller::ids().0 != 0 {
        return Err(Error::new(
            "`try` needs root: it mounts an overlay of the root file system",
        ));
    }
    let workshop = workshop()?;
    let mut mounts = Vec::new();
    for (index, place) in file_systems()?.iter().enumerate() {
        let layers = workshop.join(index.to_string());
        let target = if place == "/" {
            workshop.join("root")
        } else {
            layers.join("merged")
        };
        match overlay(place, &layers, &target) {
            Ok(()) => {}
            // A file system that cannot be a lower layer is shown as it is, read-only.
            Err(_) if place != "/" => {
                mounts.push(bind(place, place, true));
                continue;
            }
            Err(error) => return Err(error),
        }
        if place != "/" {
            mounts.push(bind(&target.to_string_lossy(), place, false));
        }
    }
    let config = config(request, &workshop.join("root"), mounts)?;
    let id = format!("try-{}", std::process::id());
    let create = CreateRequest {
        id,
        bundle: workshop.clone(),
        ..CreateRequest::default()
    };
    Ok((
        create,
        Bundle {
            path: workshop,
            config,
        },
    ))
}

fn failed(what: &str, errno: Errno) -> Error {
    Error::errno(what, errno)
}

fn c(text: &str) -> Result<std::ffi::CString> {
    std::ffi::CString::new(text).map_err(|_| Error::new(format!("{text:?} contains a NUL")))
}

/// A tmpfs in a mount namespace of this process.
fn workshop() -> Result<PathBuf> {
    process::unshare(clone::NEWNS).map_err(|error| failed("unshare mount namespace", error))?;
    let private = ms::REC | ms::PRIVATE;
    mount::mount(None, c"/", None, private, None).map_err(|error| failed("mount /", error))?;
    // The host's files there must stay visible, so it is stacked after its overlay is made.
    let path = Path::new("/run/pipkin-try");
    std::fs::create_dir_all(path)
        .map_err(|error| Error::io(format!("mkdir {}", path.display()), &error))?;
    let _ = WORKSHOP;
    let target = c(&path.to_string_lossy())?;
    let data = Some(c"mode=700");
    mount::mount(Some(c"tmpfs"), &target, Some(c"tmpfs"), 0, data)
        .map_err(|error| failed("mount tmpfs", error))?;
    Ok(path.to_owned())
}

/// The mount points of the host's file systems, the root first, each after those above it.
fn file_systems() -> Result<Vec<String>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| Error::io("/proc/self/mountinfo", &error))?;
    let mut places: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let (mount, rest) = line.split_once(" - ")?;
            let kind = rest.split(' ').next()?;
            let place = mount.split(' ').nth(4)?;
            // A space in it is written as an octal number: such a place is left out.
            let shown = SHOWN.contains(&kind) && !place.contains('\\');
            (shown && Path::new(place).is_dir()).then(|| place.to_owned())
        })
        .collect();
    places.push("/".to_owned());
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// Mounts an overlay of `lower` on `target`.
fn overlay(lower: &str, layers: &Path, target: &Path) -> Result<()> {
    for directory in [layers.join("upper"), layers.join("work"), target.to_owned()] {
        std::fs::create_dir_all(&directory)
            .map_err(|error| Error::io(format!("mkdir {}", directory.display()), &error))?;
    }
    if lower.contains([':', ',']) {
        return Err(Error::new(format!(
            "{lower:?} cannot be a layer of an overlay"
        )));
    }
    let layers = layers.display();
    let data = c(&format!(
        "lowerdir={lower},upperdir={layers}/upper,workdir={layers}/work"
    ))?;
    let target = c(&target.to_string_lossy())?;
    mount::mount(Some(c"overlay"), &target, Some(c"overlay"), 0, Some(&data))
        .map_err(|error| failed(&format!("mount an overlay of {lower}"), error))
}

fn bind(source: &str, destination: &str, readonly: bool) -> serde_json::Value {
    let mode = if readonly { "ro" } else { "rw" };
    serde_json::json!({
        "destination": destination, "type": "bind", "source": source, "options": ["bind", mode]
    })
}

/// The configuration: what an engine writes for an ordinary container.
fn config(request: &TryRequest, root: &Path, mut shown: Vec<serde_json::Value>) -> Result<Config> {
    let capabilities = [
        "CAP_CHOWN",
        "CAP_DAC_OVERRIDE",
        "CAP_FOWNER",
        "CAP_FSETID",
        "CAP_KILL",
        "CAP_NET_BIND_SERVICE",
        "CAP_SETFCAP",
        "CAP_SETGID",
        "CAP_SETPCAP",
        "CAP_SETUID",
        "CAP_SYS_CHROOT",
    ];
    let args: Vec<String> = if request.command.is_empty() {
        vec![std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())]
    } else {
        let text = |part: &std::ffi::OsString| {
            part.to_str()
                .map(str::to_owned)
                .ok_or_else(|| Error::new(format!("argument {part:?} is not UTF-8")))
        };
        request.command.iter().map(text).collect::<Result<_>>()?
    };
    let mut namespaces = vec!["pid", "ipc", "uts", "mount", "cgroup"];
    if !request.net {
        namespaces.push("network");
    }
    let namespaces: Vec<_> = namespaces
        .iter()
        .map(|kind| serde_json::json!({ "type": kind }))
        .collect();
    let kernel = ["nosuid", "noexec", "nodev"];
    shown.extend([
        serde_json::json!({"destination": "/proc", "type": "proc", "source": "proc", "options": kernel}),
        serde_json::json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", "noexec", "strictatime", "mode=755", "size=65536k"]}),
        serde_json::json!({"destination": "/dev/pts", "type": "devpts", "source": "devpts",
            "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]}),
        serde_json::json!({"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
            "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]}),
        serde_json::json!({"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue",
            "options": kernel}),
        serde_json::json!({"destination": "/sys", "type": "sysfs", "source": "sysfs",
            "options": ["nosuid", "noexec", "nodev", "ro"]}),
        serde_json::json!({"destination": "/run", "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", "nodev", "mode=755", "size=65536k"]}),
        serde_json::json!({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", "nodev", "mode=1777"]}),
    ]);
    let env: Vec<String> = ["PATH", "HOME", "TERM", "LANG"]
        .iter()
        .filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)))
        .collect();
    let cwd = std::env::current_dir()
        .ok()
        .and_then(|path| path.to_str().map(str::to_owned));
    let document = serde_json::json!({
        "ociVersion": pipkin_spec::OCI_VERSION,
        "root": {"path": root},
        "hostname": "try",
        "mounts": shown,
        "process": {
            "args": args, "env": env, "cwd": cwd.unwrap_or_else(|| "/".to_owned()),
            "user": {"uid": 0, "gid": 0},
            "noNewPrivileges": true,
            "capabilities": {
                "bounding": capabilities, "effective": capabilities, "permitted": capabilities
            }
        },
        "linux": {
            "namespaces": namespaces,
            "resources": {"devices": [{"allow": false, "access": "rwm"}]},
            "maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                "/proc/timer_list", "/proc/scsi", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                "/proc/sysrq-trigger"]
        }
    });
    serde_json::from_value(document).map_err(|error| Error::new(error.to_string()))
}
