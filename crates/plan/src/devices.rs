//! Devices and links in the container's /dev.

use pipkin_op::{PlanOp, Slot, Target};
use pipkin_spec::config::Device;

use crate::Invalid;
use crate::build::{Builder, Pointer, c_string};
use crate::mounts::{self, normalised};
use crate::namespaces::flag;

/// What every container has, config-linux.md "Default Devices": name, major, minor.
const DEFAULT: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// Links of runtime-linux.md "Dev symbolic links", and the multiplexer of devpts.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

const CHARACTER: u32 = 0o020_000;
const BLOCK: u32 = 0o060_000;
const FIFO: u32 = 0o010_000;

/// Adds devices and links. A /dev that is the host's own is left alone.
pub fn add(builder: &mut Builder<'_>) -> Result<(), Invalid> {
    let bound = builder.config.mounts.iter().any(|mount| {
        let bind = mount.kind.as_deref() == Some("bind")
            || mount
                .options
                .iter()
                .any(|option| option == "bind" || option == "rbind");
        bind && normalised(&mount.destination) == "/dev"
    });
    if bound {
        return Ok(());
    }
    let dev = match builder.made_at(&"/linux/devices".into(), "/dev")? {
        Some(dev) => dev,
        None => open_directory(builder)?,
    };
    builder.dev = Some(dev);
    let devices = &builder.linux.devices;
    let named = |name: &str| {
        devices
            .iter()
            .any(|device| normalised(&device.path) == format!("/dev/{name}"))
    };
    for (name, major, minor) in DEFAULT {
        if !named(name) {
            let path = c_string("", name)?;
            let node = Node {
                mode: CHARACTER | 0o666,
                major,
                minor,
                uid: 0,
                gid: 0,
            };
            let host = format!("/dev/{name}");
            add_node(builder, "".into(), (dev, path), host, node)?;
        }
    }
    for (index, device) in devices.iter().enumerate() {
        add_configured(builder, index, device)?;
    }
    for (name, target) in LINKS {
        let (path, target) = (c_string("", name)?, c_string("", target)?);
        builder.container(
            "",
            PlanOp::Symlink {
                dir: dev,
                path,
                target,
            },
        );
    }
    Ok(())
}

/// The image's own /dev.
fn open_directory(builder: &mut Builder<'_>) -> Result<Slot, Invalid> {
    let make = PlanOp::Mkdir {
        dir: builder.root,
        path: c"/dev".into(),
        mode: 0o755,
    };
    builder.container("", make);
    builder.open_in("".into(), "/dev")
}

struct Node {
    mode: u32,
    major: u32,
    minor: u32,
    uid: u32,
    gid: u32,
}

fn add_configured(builder: &mut Builder<'_>, index: usize, device: &Device) -> Result<(), Invalid> {
    let pointer = format!("/linux/devices/{index}");
    let kind = match device.kind.as_str() {
        "c" | "u" => CHARACTER,
        "b" => BLOCK,
        "p" => FIFO,
        other => {
            return Err(Invalid::new(
                pointer + "/type",
                format!("unknown type of device {other:?}"),
            )
            .hint("c, u, b or p"));
        }
    };
    let path = normalised(&device.path);
    if device.path.is_empty() || path == "/" {
        let message = format!("{:?} is not a path of a device", device.path);
        return Err(Invalid::new(pointer + "/path", message));
    }
    let number = |field: &str, value: i64, most: u32| {
        u32::try_from(value)
            .ok()
            .filter(|value| *value <= most)
            .ok_or_else(|| {
                let message = format!("{value} is not a {field} number");
                Invalid::new(format!("{pointer}/{field}"), message).hint(format!("0 to {most}"))
            })
    };
    let (major, minor) = if kind == FIFO {
        (0, 0)
    } else {
        (
            number("major", device.major, 0xfff)?,
            number("minor", device.minor, 0xf_ffff)?,
        )
    };
    let mode = kind | device.file_mode.unwrap_or(0o666) & 0o7777;
    let (uid, gid) = (device.uid.unwrap_or(0), device.gid.unwrap_or(0));
    let host = path.clone().into_owned();
    let name = path
        .strip_prefix("/dev/")
        .filter(|name| !name.contains('/'));
    let place = match (name, builder.dev) {
        (Some(name), Some(dev)) => (dev, c_string(&pointer, name)?),
        _ => (builder.root, c_string(&pointer, &path)?),
    };
    add_node(
        builder,
        pointer.into(),
        place,
        host,
        Node {
            mode,
            major,
            minor,
            uid,
            gid,
        },
    )
}

/// mknod(2), or a bind mount of the host's node where the kernel does not let the container
/// make one.
fn add_node(
    builder: &mut Builder<'_>,
    pointer: Pointer,
    (dir, path): (Slot, std::ffi::CString),
    host: String,
    node: Node,
) -> Result<(), Invalid> {
    let Node {
        mode,
        major,
        minor,
        uid,
        gid,
    } = node;
    let user = builder.namespaces.has(flag::USER) || builder.host.in_user_namespace;
    if !user || mode & FIFO == FIFO && mode & BLOCK != BLOCK {
        let op = PlanOp::Mknod {
            dir,
            path,
            mode,
            major,
            minor,
            uid,
            gid,
        };
        builder.container(pointer, op);
        return Ok(());
    }
    let slot = builder.slot(&pointer)?;
    let block = mode & BLOCK == BLOCK;
    let source = c_string(&pointer, &host)?;
    builder.open(
        pointer.clone(),
        PlanOp::OpenDevice {
            slot,
            path: source,
            block,
            major,
            minor,
            attr: mounts::PRIVATE,
        },
    );
    builder.container(
        pointer,
        PlanOp::Attach {
            slot,
            dir,
            path,
            target: Target::Follow,
        },
    );
    Ok(())
}
