//! `try`: a bundle made of the host's own root file system.
//!
//! The root is an overlay whose lower layer is the host's root and whose upper layer is a
//! tmpfs that only this process's mount namespace has: when it ends, all that was written is
//! gone. Other file systems of the host are shown the same way, each below an overlay of its
//! own; what the kernel shows of itself is mounted anew.

use std::path::{Path, PathBuf};

use pipkin_op::ms;
use pipkin_spec::Config;
use pipkin_spec::config::{Mount, Root};
use pipkin_sys::Errno;
use pipkin_sys::mount;
use pipkin_sys::process::{self, clone};

use crate::config::Bundle;
use crate::request::{CreateRequest, Global, TryRequest};
use crate::{Error, Result, caller};

/// Where the layers are, below the state root; no container can have this id.
const WORKSHOP: &str = "@try";

/// File systems that hold files of the host.
const SHOWN: [&str; 9] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "vfat", "zfs",
];

/// Makes the layers and the configuration.
///
/// # Errors
/// A caller that is not root; those of the mounts.
pub fn bundle(global: &Global, request: &TryRequest) -> Result<(CreateRequest, Bundle)> {
    if caller::ids().0 != 0 {
        return Err(Error::new(
            "`try` needs root: it mounts an overlay of the root file system",
        ));
    }
    let workshop = workshop(&global.root)?;
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
                mounts.push(bind(place, place, "ro"));
                continue;
            }
            Err(error) => return Err(error),
        }
        if place != "/" {
            mounts.push(bind(&target.to_string_lossy(), place, "rw"));
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
fn workshop(root: &Path) -> Result<PathBuf> {
    process::unshare(clone::NEWNS).map_err(|error| failed("unshare mount namespace", error))?;
    let private = ms::REC | ms::PRIVATE;
    mount::mount(None, c"/", None, private, None).map_err(|error| failed("mount /", error))?;
    let path = root.join(WORKSHOP);
    std::fs::create_dir_all(&path)
        .map_err(|error| Error::io(format!("mkdir {}", path.display()), &error))?;
    let target = c(&path.to_string_lossy())?;
    let data = Some(c"mode=700");
    mount::mount(Some(c"tmpfs"), &target, Some(c"tmpfs"), 0, data)
        .map_err(|error| failed("mount tmpfs", error))?;
    Ok(path)
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

fn bind(source: &str, destination: &str, mode: &str) -> Mount {
    Mount {
        destination: destination.to_owned(),
        kind: Some("bind".to_owned()),
        source: Some(source.to_owned()),
        options: vec!["bind".to_owned(), mode.to_owned()],
        ..Mount::default()
    }
}

/// What an engine writes for an ordinary container.
const TEMPLATE: &str = include_str!("try.json");

/// The configuration: the template with this command, and the file systems that are shown.
fn config(request: &TryRequest, root: &Path, mut shown: Vec<Mount>) -> Result<Config> {
    let mut config: Config =
        serde_json::from_str(TEMPLATE).map_err(|error| Error::new(error.to_string()))?;
    config.root = Some(Root {
        path: root.to_string_lossy().into_owned(),
        readonly: false,
    });
    shown.append(&mut config.mounts);
    config.mounts = shown;
    if let Some(linux) = config.linux.as_mut().filter(|_| request.net) {
        linux
            .namespaces
            .retain(|namespace| namespace.kind != "network");
    }
    if let Some(process) = &mut config.process {
        process.args = command(request)?;
        let cwd = std::env::current_dir().ok();
        if let Some(cwd) = cwd.as_deref().and_then(Path::to_str) {
            cwd.clone_into(&mut process.cwd);
        }
        process.env = ["PATH", "HOME", "TERM", "LANG"]
            .iter()
            .filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)))
            .collect();
    }
    Ok(config)
}

/// The command line; a shell when none is given.
fn command(request: &TryRequest) -> Result<Vec<String>> {
    if request.command.is_empty() {
        return Ok(vec![
            std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned()),
        ]);
    }
    let text = |part: &std::ffi::OsString| {
        let text = part.to_str().map(str::to_owned);
        text.ok_or_else(|| Error::new(format!("argument {part:?} is not UTF-8")))
    };
    request.command.iter().map(text).collect()
}
