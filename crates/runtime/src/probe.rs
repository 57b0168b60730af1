//! **Host**: probing what is there, with as few system calls as that takes.

use std::os::fd::OwnedFd;
use std::path::Path;

use pipkin_plan::{Hierarchy, Host, cgroup};
use pipkin_spec::Config;
use pipkin_sys::fs;

use crate::cgroup::{Layout, Location, file};
use crate::request::{CgroupManager, Global};
use crate::store::stat_fields;
use crate::{Result, caller, pin};

/// The host, and where the container's cgroup goes.
pub struct Probed {
    /// What the plan needs to know.
    pub host: Host,
    /// What making the group needs to know; absent where there is none.
    pub group: Option<(Layout, Location)>,
    /// The empty mount namespace that containers begin from.
    pub pinned: Option<OwnedFd>,
}

/// Whether probing may leave something behind that later starts use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// It only looks.
    Nothing,
    /// It makes the pinned mount namespace where that is missing.
    Pin,
}

/// Looks at the host.
///
/// # Errors
/// A cgroup path that cannot be.
pub fn probe(global: &Global, config: &Config, id: &str, touch: Touch) -> Result<Probed> {
    let (uid, _) = caller::ids();
    let in_user_namespace = in_user_namespace();
    let mut host = Host {
        kernel: kernel(),
        in_user_namespace,
        privileged: uid == 0,
        ignored_signals: ignored_signals(),
        apparmor: lsm(
            config
                .process
                .as_ref()
                .and_then(|p| p.apparmor_profile.as_ref()),
            || {
                std::fs::read("/sys/module/apparmor/parameters/enabled")
                    .is_ok_and(|text| text.starts_with(b"Y"))
            },
        ),
        selinux: lsm(
            config
                .process
                .as_ref()
                .and_then(|p| p.selinux_label.as_ref()),
            || Path::new("/sys/fs/selinux/enforce").exists(),
        ),
        ..Host::default()
    };
    let group = if global.cgroup_manager == CgroupManager::Disabled {
        None
    } else {
        let path = config
            .linux
            .as_ref()
            .and_then(|linux| linux.cgroups_path.as_deref());
        let location = Location::resolve(path, id)?;
        let layout = Layout::probe()?;
        Some((layout, location))
    };
    if let Some((layout, location)) = &group {
        host.cgroup = layout.host();
        host.hierarchies = hierarchies(layout, location);
    } else {
        host.cgroup = cgroup::Host::default();
    }
    let pinned = match touch {
        _ if uid != 0 || in_user_namespace => None,
        Touch::Nothing => pin::open(),
        Touch::Pin => pin::open_or_make(),
    };
    host.pinned = pinned.is_some();
    Ok(Probed {
        host,
        group,
        pinned,
    })
}

/// The hierarchies, with the container's group in each.
fn hierarchies(layout: &Layout, location: &Location) -> Vec<Hierarchy> {
    let all = layout.v1.iter().chain(&layout.v2);
    all.map(|hierarchy| {
        let path = hierarchy.dir(location, layout.kind);
        let below = path.strip_prefix(&hierarchy.mount).unwrap_or(&path);
        Hierarchy {
            name: hierarchy.name.clone(),
            mount: hierarchy.mount.to_string_lossy().into_owned(),
            group: format!("/{}", below.display()),
        }
    })
    .collect()
}

/// Whether something is enabled that a configuration asks for; what nobody asks for is not
/// looked at.
fn lsm(wanted: Option<&String>, enabled: impl FnOnce() -> bool) -> bool {
    wanted.is_some_and(|text| !text.is_empty()) && enabled()
}

/// The kernel's version, major and minor.
fn kernel() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let mut next = || {
        numbers
            .next()
            .and_then(std::result::Result::ok)
            .unwrap_or(0)
    };
    (next(), next())
}

/// Whether this process is in another than the first user namespace, whose number is fixed:
/// `PROC_USER_INIT_INO` of `linux/proc_ns.h`.
fn in_user_namespace() -> bool {
    const FIRST: &[u8] = b"user:[4026531837]";
    // The text of the link, a third of what it takes to follow it.
    let mut buffer = [0; 64];
    fs::readlinkat(pipkin_sys::AT_FDCWD, c"/proc/self/ns/user", &mut buffer)
        .is_ok_and(|namespace| namespace != FIRST)
}

/// The signals that this process ignores, proc_pid_stat(5), field 33.
fn ignored_signals() -> u64 {
    const IGNORED: usize = 33;
    let text = file::read("/proc/self/stat").unwrap_or_default();
    let field = stat_fields(&text).and_then(|(_, mut fields)| fields.nth(IGNORED - 3));
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}
