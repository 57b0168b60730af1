//! How a step reads in a printed plan and in an error.

use core::fmt::{self, Write as _};

use crate::wire::unpack;
use crate::{MountAttr, PlanOp};

/// Names of bits, joined by commas; what has no name as a number.
fn bits(f: &mut fmt::Formatter<'_>, value: u64, names: &[(u64, &str)]) -> fmt::Result {
    let mut rest = value;
    let mut first = true;
    for (bit, name) in names {
        if rest & bit == *bit {
            if !first {
                f.write_char(',')?;
            }
            f.write_str(name)?;
            first = false;
            rest &= !bit;
        }
    }
    if rest != 0 {
        if !first {
            f.write_char(',')?;
        }
        write!(f, "{rest:#x}")?;
    }
    Ok(())
}

const NAMESPACES: [(u64, &str); 8] = [
    (0x80, "time"),
    (0x2_0000, "mount"),
    (0x200_0000, "cgroup"),
    (0x400_0000, "uts"),
    (0x800_0000, "ipc"),
    (0x1000_0000, "user"),
    (0x2000_0000, "pid"),
    (0x4000_0000, "network"),
];

const FLAGS: [(u64, &str); 20] = [
    (1, "ro"),
    (1 << 1, "nosuid"),
    (1 << 2, "nodev"),
    (1 << 3, "noexec"),
    (1 << 4, "sync"),
    (1 << 5, "remount"),
    (1 << 6, "mand"),
    (1 << 7, "dirsync"),
    (1 << 8, "nosymfollow"),
    (1 << 10, "noatime"),
    (1 << 11, "nodiratime"),
    (1 << 14, "rec"),
    (1 << 15, "silent"),
    (1 << 17, "unbindable"),
    (1 << 18, "private"),
    (1 << 19, "slave"),
    (1 << 20, "shared"),
    (1 << 21, "relatime"),
    (1 << 24, "strictatime"),
    (1 << 25, "lazytime"),
];

const ATTRIBUTES: [(u64, &str); 9] = [
    (0x01, "ro"),
    (0x02, "nosuid"),
    (0x04, "nodev"),
    (0x08, "noexec"),
    (0x70, "atime"),
    (0x10, "noatime"),
    (0x20, "strictatime"),
    (0x80, "nodiratime"),
    (0x20_0000, "nosymfollow"),
];

/// `RLIMIT_*` of `asm-generic/resource.h`, without the prefix.
const RLIMITS: [&str; 16] = [
    "CPU",
    "FSIZE",
    "DATA",
    "STACK",
    "CORE",
    "RSS",
    "NPROC",
    "NOFILE",
    "MEMLOCK",
    "AS",
    "LOCKS",
    "SIGPENDING",
    "MSGQUEUE",
    "NICE",
    "RTPRIO",
    "RTTIME",
];

struct Bits<'n>(u64, &'n [(u64, &'static str)]);

impl fmt::Display for Bits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bits(f, self.0, self.1)
    }
}

impl fmt::Display for MountAttr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut space = "";
        for (word, value, names) in [
            ("set ", self.set, &ATTRIBUTES[..]),
            ("clear ", self.clear, &ATTRIBUTES[..]),
            ("", self.propagation, &FLAGS[..]),
        ] {
            if value != 0 {
                write!(f, "{space}{word}{}", Bits(value, names))?;
                space = " ";
            }
        }
        if self.recursive {
            write!(f, "{space}recursively")?;
        }
        Ok(())
    }
}

/// Attributes that a step sets besides: without "recursively", which goes without saying.
struct Also(MountAttr);

impl fmt::Display for Also {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let attr = MountAttr {
            recursive: false,
            ..self.0
        };
        write!(f, ", {attr}")
    }
}

/// What changes the attributes of a mount.
const fn attr_call(proc: Option<crate::Slot>) -> &'static str {
    match proc {
        Some(_) => "mount",
        None => "mount_setattr",
    }
}

/// A C string as text.
struct Text<'s>(&'s core::ffi::CStr);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string_lossy())
    }
}

/// A packed list, separated by spaces.
struct List<'s>(&'s [u8]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in unpack(self.0).enumerate() {
            let space = if index > 0 { " " } else { "" };
            write!(f, "{space}{}", Text(item))?;
        }
        Ok(())
    }
}

impl fmt::Display for PlanOp {
    /// `mount proc on /proc (nosuid,nodev)`: the kernel's operation and its object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenRoot {
                path, clone, attr, ..
            } => {
                let call = if *clone { "open_tree" } else { "open" };
                write!(f, "{call} root {}{}", Text(path), Also(*attr))
            }
            Self::OpenTree {
                path,
                recursive,
                attr,
                ..
            } => {
                let how = if *recursive { " recursively" } else { "" };
                write!(f, "open_tree {}{how}{}", Text(path), Also(*attr))
            }
            Self::OpenNamespace { path, nstype, .. } => {
                write!(
                    f,
                    "open {} namespace {}",
                    Bits(u64::from(*nstype), &NAMESPACES),
                    Text(path)
                )
            }
            Self::OpenProc { .. } => f.write_str("open /proc"),
            Self::OpenPinned { .. } => f.write_str("open the empty mount namespace"),
            Self::OpenNull { attr, .. } => write!(f, "open_tree /dev/null{}", Also(*attr)),
            Self::OpenDevice {
                path,
                major,
                minor,
                attr,
                ..
            } => {
                let path = Text(path);
                write!(f, "open_tree device {path} {major}:{minor}{}", Also(*attr))
            }
            Self::ConnectConsole { path, .. } => write!(f, "connect console {}", Text(path)),
            Self::ListenStart { .. } => f.write_str("listen for start"),
            Self::IdmapTree {
                uid_map, gid_map, ..
            } => write!(
                f,
                "mount_setattr idmap uids {} gids {}",
                Text(uid_map).to_trimmed(),
                Text(gid_map).to_trimmed()
            ),
            Self::CgroupCreate { path } => write!(f, "mkdir cgroup {}", Text(path)),
            Self::CgroupLimits { writes } => write!(f, "write cgroup {}", Text(writes)),
            Self::CgroupDevices { program } => {
                write!(
                    f,
                    "bpf device program of {} instructions",
                    program.len() / 8
                )
            }
            Self::CgroupOpen { count, unified, .. } => {
                write!(
                    f,
                    "open cgroup in {} hierarchies",
                    u32::from(*count) + u32::from(unified.is_some())
                )
            }
            Self::CgroupJoin { hierarchy, .. } => write!(f, "join cgroup {}", Text(hierarchy)),
            Self::CgroupEnter { tasks, .. } => write!(f, "join cgroup {}", Text(tasks)),
            Self::CgroupMove {} => f.write_str("move into cgroup"),
            Self::Clone {
                flags,
                cgroup,
                user,
                pid,
            } => {
                let cgroup = if cgroup.is_some() { " into cgroup" } else { "" };
                let user = match (user, pid) {
                    (None, _) => "",
                    (_, None) => "setns user, ",
                    _ => "setns pid and user, ",
                };
                write!(f, "{user}clone3 {}{cgroup}", Bits(*flags, &NAMESPACES))
            }
            Self::EnterNamespace { nstype, .. } | Self::JoinNamespace { nstype, .. } => {
                write!(f, "setns {}", Bits(u64::from(*nstype), &NAMESPACES))
            }
            Self::LeaveNamespace { nstype } => {
                write!(f, "setns back {}", Bits(u64::from(*nstype), &NAMESPACES))
            }
            Self::WriteProc { file, value } => {
                write!(f, "write {} to {}", Text(value).to_trimmed(), Text(file))
            }
            Self::WriteState {} => f.write_str("write state"),
            Self::PublishState {} => f.write_str("publish state"),
            Self::WritePidFile { path } => write!(f, "write pid file {}", Text(path)),
            Self::Hook { kind, path, .. } => write!(f, "{} hook {}", kind.name(), Text(path)),
            Self::Unshare { flags } => write!(f, "unshare {}", Bits(*flags, &NAMESPACES)),
            Self::BecomeRoot {} => f.write_str("setresuid 0 of the user namespace"),
            Self::Setsid {} => f.write_str("setsid"),
            Self::Keyring { name } => write!(f, "keyctl join session keyring {}", Text(name)),
            Self::LoopbackUp {} => f.write_str("bring lo up"),
            Self::Hostname { name } => write!(f, "sethostname {}", Text(name)),
            Self::Domainname { name } => write!(f, "setdomainname {}", Text(name)),
            _ => self.fmt_inside(f),
        }
    }
}

impl PlanOp {
    /// Steps on the root file system and the process itself.
    fn fmt_inside(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Propagation { path, flags } => {
                write!(f, "mount {} {}", Bits(*flags, &FLAGS), Text(path))
            }
            Self::EnterPinned { .. } => f.write_str("setns and unshare the empty mount namespace"),
            Self::AttachRoot { .. } => f.write_str("move_mount root to /"),
            Self::OpenIn { path, .. } => write!(f, "openat2 {}", Text(path)),
            Self::Mount {
                path,
                source,
                fstype,
                flags,
                data,
                ..
            } => {
                write!(f, "mount {}", Text(fstype))?;
                if source != fstype {
                    write!(f, " {}", Text(source))?;
                }
                write!(f, " on {}", Text(path))?;
                let data = data.as_ref().map(|data| Text(data));
                match (*flags, data) {
                    (0, None) => Ok(()),
                    (0, Some(data)) => write!(f, " ({data})"),
                    (flags, None) => write!(f, " ({})", Bits(flags, &FLAGS)),
                    (flags, Some(data)) => write!(f, " ({},{data})", Bits(flags, &FLAGS)),
                }
            }
            Self::NewMount {
                fstype,
                options,
                attr,
                ..
            } => {
                write!(f, "fsmount {}", Text(fstype))?;
                if *attr != 0 {
                    write!(f, " {}", Bits(*attr, &ATTRIBUTES))?;
                }
                if options.is_empty() {
                    Ok(())
                } else {
                    write!(f, " {}", List(options))
                }
            }
            Self::Attach { path, .. } => write!(f, "move_mount to {}", Text(path)),
            Self::SetAttr { attr, proc, .. } => write!(f, "{} {attr}", attr_call(*proc)),
            Self::SetAttrAt {
                path, attr, proc, ..
            } => write!(f, "{} {attr} on {}", attr_call(*proc), Text(path)),
            Self::CopyUp { path, .. } => write!(f, "copy {} up", Text(path)),
            Self::Mknod {
                path,
                mode,
                major,
                minor,
                ..
            } => {
                write!(
                    f,
                    "mknodat {} {:o} {major}:{minor}",
                    Text(path),
                    mode & 0o7777
                )
            }
            Self::Symlink { path, target, .. } => {
                write!(f, "symlinkat {} to {}", Text(path), Text(target))
            }
            Self::Mkdir { path, mode, .. } => write!(f, "mkdirat {} {mode:o}", Text(path)),
            Self::Mask { path, .. } => write!(f, "mask {}", Text(path)),
            Self::ReadonlyPath { path, .. } => write!(f, "make {} read-only", Text(path)),
            Self::PivotRoot { .. } => f.write_str("pivot_root"),
            Self::MoveRoot { .. } | Self::Chroot { .. } => f.write_str("chroot"),
            Self::Sysctl { path, value, .. } => {
                write!(f, "write {} to {}", Text(value), Text(path))
            }
            Self::ExecLabel { file, value, .. } => {
                write!(f, "write {} to {}", Text(value), Text(file))
            }
            Self::Console { rows, columns, .. } => {
                write!(f, "open a terminal of {rows} rows and {columns} columns")
            }
            Self::Personality { persona } => write!(f, "personality {persona:#x}"),
            Self::Rlimit {
                resource,
                soft,
                hard,
            } => match RLIMITS.get(*resource as usize) {
                Some(name) => write!(f, "prlimit {name} to {soft} and {hard}"),
                None => write!(f, "prlimit {resource} to {soft} and {hard}"),
            },
            Self::Scheduler {
                policy,
                nice,
                priority,
                ..
            } => {
                write!(
                    f,
                    "sched_setattr policy {policy} nice {nice} priority {priority}"
                )
            }
            Self::IoPriority { value } => write!(f, "ioprio_set {value:#x}"),
            Self::Umask { mask } => write!(f, "umask {mask:03o}"),
            Self::BoundingSet { keep } => write!(f, "prctl bounding set {keep:#x}"),
            Self::Groups { groups } => {
                f.write_str("setgroups")?;
                for group in groups.chunks_exact(4) {
                    let group = group.try_into().map_or(0, u32::from_ne_bytes);
                    write!(f, " {group}")?;
                }
                Ok(())
            }
            Self::User { uid, gid } => write!(f, "setresuid {uid} and setresgid {gid}"),
            Self::Capabilities {
                effective,
                permitted,
                inheritable,
            } => write!(
                f,
                "capset effective {effective:#x} permitted {permitted:#x} inheritable {inheritable:#x}"
            ),
            Self::Ambient { set } => write!(f, "prctl ambient set {set:#x}"),
            Self::NoNewPrivs {} => f.write_str("prctl no_new_privs"),
            Self::Seccomp { program, .. } => {
                write!(f, "seccomp filter of {} instructions", program.len() / 8)
            }
            Self::Chdir { path, late } => {
                let late = if *late {
                    " as that user, if root may not"
                } else {
                    ""
                };
                write!(f, "chdir {}{late}", Text(path))
            }
            Self::FindExecutable { name, .. } => write!(f, "find {}", Text(name)),
            Self::Home { uid } => write!(f, "find HOME of user {uid}"),
            Self::AwaitStart { .. } => f.write_str("wait for start"),
            Self::CloseRange { first } => write!(f, "close_range from {first} on execve"),
            Self::CloseRest { first, .. } => write!(f, "close_range from {first}"),
            Self::Exec { args, .. } => write!(f, "execve {}", List(args)),
            _ => f.write_str(self.name()),
        }
    }
}

impl Text<'_> {
    /// Without the line ends, which separate the lines of a map.
    fn to_trimmed(&self) -> alloc::string::String {
        alloc::format!("{self}").trim_end().replace('\n', ", ")
    }
}
