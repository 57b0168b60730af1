//! Things that a container should or should not be allowed to do, tried.

use crate::{raw, text};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};
use serde_json::{Value, json};

/// All trials. New namespaces come last: they change what the rest could do.
pub fn all() -> Value {
    let mut results = json!({
        "mount tmpfs": mount_tmpfs(),
        "change propagation of /": change_root(),
        "open device": device(FileType::CharacterDevice, 1, 1),
        "open null": device(FileType::CharacterDevice, 1, 3),
        "open fuse": device(FileType::CharacterDevice, 10, 229),
        "open disk": device(FileType::BlockDevice, 254, 0),
        "open tun": device(FileType::CharacterDevice, 10, 200),
        "sethostname": text::outcome(rustix::system::sethostname(
            rustix::system::uname().nodename().to_bytes(),
        )),
        "setns uts": setns("/proc/self/ns/uts"),
        "chroot": text::outcome(rustix::process::chroot("/")),
        "write /dev/null": write_null("/dev/null"),
        "write ptmx": open_ptmx(),
        "access rootfs": text::outcome(rustix::fs::accessat(CWD, "/", Access::WRITE_OK, AtFlags::EACCESS)),
        "bpf": text::outcome(raw::bpf_nothing()),
        "own exe": text::outcome(std::fs::OpenOptions::new().write(true).open("/proc/self/exe")),
        "bind low port": text::outcome(std::net::TcpListener::bind("0.0.0.0:81")),
        "raise oom score": text::outcome(std::fs::read_to_string("/proc/self/oom_score_adj")
            .and_then(|score| std::fs::write("/proc/self/oom_score_adj", score))),
    });
    text::put(
        &mut results,
        "unshare user",
        text::outcome(raw::unshare(libc::CLONE_NEWUSER)),
    );
    text::put(
        &mut results,
        "unshare mount",
        text::outcome(raw::unshare(libc::CLONE_NEWNS)),
    );
    results
}

fn mount_tmpfs() -> Value {
    let target = "/tmp";
    let mounted = rustix::mount::mount("probe", target, "tmpfs", MountFlags::empty(), None);
    if mounted.is_ok() {
        let _ = rustix::mount::unmount(target, UnmountFlags::DETACH);
    }
    text::outcome(mounted)
}

/// Makes the propagation of the root what it should be anyway.
fn change_root() -> Value {
    let flags = rustix::mount::MountPropagationFlags::DOWNSTREAM;
    text::outcome(rustix::mount::mount_change("/", flags))
}

/// Makes a device in /dev (or /tmp) and opens it: the first needs CAP_MKNOD, the
/// second the leave of the device controller.
fn device(kind: FileType, major: u32, minor: u32) -> Value {
    for directory in ["/dev", "/tmp"] {
        let path = format!("{directory}/.probe-device");
        let number = rustix::fs::makedev(major, minor);
        let made =
            rustix::fs::mknodat(CWD, path.as_str(), kind, Mode::from_raw_mode(0o600), number);
        if made.is_err() && directory == "/dev" {
            continue;
        }
        let opened = made.and_then(|()| {
            rustix::fs::open(
                path.as_str(),
                OFlags::RDONLY | OFlags::NONBLOCK,
                Mode::empty(),
            )
        });
        let _ = std::fs::remove_file(&path);
        return json!({ "make": text::outcome(made), "open": text::outcome(opened) });
    }
    Value::Null
}

fn setns(path: &str) -> Value {
    let result = std::fs::File::open(path).and_then(|file| {
        let kind = Some(rustix::thread::LinkNameSpaceType::HostNameAndNISDomainName);
        let moved =
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), kind);
        moved.map_err(std::io::Error::from)
    });
    text::outcome(result)
}

fn write_null(path: &str) -> Value {
    text::outcome(
        std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"x")),
    )
}

fn open_ptmx() -> Value {
    text::outcome(rustix::fs::open(
        "/dev/ptmx",
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    ))
}
