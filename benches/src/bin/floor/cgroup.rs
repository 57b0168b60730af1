//! The container's control groups: as few calls as they can be made, joined and removed with.

use core::ffi::CStr;

use pipkin_op::ms;
use pipkin_sys::fs::{self, oflag};
use pipkin_sys::mount;
use pipkin_sys::{AT_FDCWD, Errno, Fd, Result, bpf, measure, process};

use crate::profiles::{Derived, Write};
use crate::text::Path;

/// One hierarchy: its name as in /proc/self/cgroup, and where it is mounted.
#[derive(Clone, Copy, Default)]
pub struct Hierarchy {
    pub name: &'static [u8],
    pub mount: &'static [u8],
}

impl Hierarchy {
    /// `NAME=MOUNT`; the unified one has no name. A name may be `name=systemd`.
    pub fn parse(word: &'static CStr) -> Option<Self> {
        let word = word.to_bytes();
        let equals = word.iter().rposition(|&byte| byte == b'=')?;
        Some(Self {
            name: word.get(..equals)?,
            mount: word.get(equals + 1..)?,
        })
    }

    fn is_v2(&self) -> bool {
        self.name.is_empty()
    }

    fn holds(&self, controller: &str) -> bool {
        self.name
            .split(|&byte| byte == b',')
            .any(|name| name == controller.as_bytes())
    }

    /// Its directory below /sys/fs/cgroup.
    fn directory(&self) -> &'static [u8] {
        self.name.strip_prefix(b"name=").unwrap_or(self.name)
    }

    fn path(&self, group: &[u8], file: &[u8]) -> Result<Path> {
        Path::of(&[self.mount, group, file])
    }
}

/// The processors and memory nodes that a new cpuset gets, v1.
#[derive(Clone, Copy)]
pub struct Cpuset {
    pub cpus: &'static [u8],
    pub mems: &'static [u8],
}

/// Nothing is closed here: the descriptors end with the process.
fn write_file(path: &Path, value: &[u8]) -> Result<()> {
    let file = fs::openat(AT_FDCWD, path.c_str()?, oflag::WRONLY, 0)?;
    fs::write(file, value).map(drop)
}

/// Makes the groups and writes their limits, on version 2 those in `v2`. Gives the directory of the unified one, which
/// the process is born in.
pub fn create(
    hierarchies: &[Hierarchy],
    group: &[u8],
    cpuset: Cpuset,
    derived: &Derived,
    v2: &[Write],
) -> Result<Option<Fd>> {
    let mut unified = None;
    for hierarchy in hierarchies {
        fs::mkdirat(AT_FDCWD, hierarchy.path(group, b"")?.c_str()?, 0o755)?;
        if hierarchy.holds("cpuset") {
            write_file(&hierarchy.path(group, b"/cpuset.cpus")?, cpuset.cpus)?;
            write_file(&hierarchy.path(group, b"/cpuset.mems")?, cpuset.mems)?;
        }
        if hierarchy.is_v2() {
            let flags = oflag::PATH | oflag::DIRECTORY;
            let path = hierarchy.path(group, b"")?;
            unified = Some(fs::openat(AT_FDCWD, path.c_str()?, flags, 0)?);
        }
    }
    let is_pure = hierarchies.iter().all(Hierarchy::is_v2);
    if !is_pure {
        limit(hierarchies, group, derived.v1)?;
    } else if let (Some(hierarchy), Some(directory)) = (hierarchies.first(), unified) {
        for write in v2 {
            let path = hierarchy.path(group, b"/")?;
            let path = Path::of(&[path.c_str()?.to_bytes(), write.file.as_bytes()])?;
            done(write_file(&path, write.value), write)?;
        }
        let program = bpf::prog_load_cgroup_device(derived.devices, None)?;
        bpf::prog_attach(directory, &program, None)?;
    }
    Ok(unified)
}

/// What has been said of a file that may be missing.
fn done(result: Result<()>, write: &Write) -> Result<()> {
    match result {
        Err(Errno::ENOENT) if write.optional => Ok(()),
        other => other,
    }
}

/// The writes of v1; a file that several go to is opened once.
fn limit(hierarchies: &[Hierarchy], group: &[u8], writes: &[Write]) -> Result<()> {
    let mut open: Option<(&str, Fd)> = None;
    for write in writes {
        let file = match open {
            Some((name, file)) if name == write.file => file,
            _ => {
                let Some(hierarchy) = hierarchies.iter().find(|one| one.holds(write.controller))
                else {
                    continue;
                };
                let path = Path::of(&[hierarchy.mount, group, b"/", write.file.as_bytes()])?;
                match fs::openat(AT_FDCWD, path.c_str()?, oflag::WRONLY, 0) {
                    Err(Errno::ENOENT) if write.optional => continue,
                    other => {
                        let file = other?;
                        open = Some((write.file, file));
                        file
                    }
                }
            }
        };
        fs::write(file, write.value)?;
    }
    Ok(())
}

/// Moves this process into the groups of v1: a process that names itself waits for nobody.
pub fn join(hierarchies: &[Hierarchy], group: &[u8]) -> Result<()> {
    for hierarchy in hierarchies.iter().filter(|hierarchy| !hierarchy.is_v2()) {
        let path = hierarchy.path(group, b"/tasks")?;
        let file = fs::openat(AT_FDCWD, path.c_str()?, oflag::WRONLY, 0)?;
        fs::write(file, b"0")?;
        // The descriptor is closed when the program is executed.
    }
    Ok(())
}

/// Removes the groups. The kernel may need a moment to let go of a process that has ended.
pub fn remove(hierarchies: &[Hierarchy], group: &[u8]) -> Result<()> {
    for hierarchy in hierarchies {
        let path = hierarchy.path(group, b"")?;
        let mut tries = 0;
        loop {
            match measure::rmdir(path.c_str()?) {
                Err(Errno::EBUSY) if tries < 1000 => tries += 1,
                other => break other?,
            }
            // Nobody writes to this process: it is a sleep of one millisecond.
            let _ = process::wait_readable(-1, 1);
        }
    }
    Ok(())
}

/// Shows the groups at sys/fs/cgroup below the current directory.
pub fn show(hierarchies: &[Hierarchy], group: &[u8], flags: u64, namespace: bool) -> Result<()> {
    const TARGET: &CStr = c"sys/fs/cgroup";
    let bound = |source: &Path, target: &CStr| {
        mount::mount(Some(source.c_str()?), target, None, ms::BIND, None)?;
        mount::mount(None, target, None, ms::REMOUNT | ms::BIND | flags, None)
    };
    if let [only] = hierarchies
        && only.is_v2()
    {
        return if namespace {
            mount::mount(Some(c"cgroup"), TARGET, Some(c"cgroup2"), flags, None)
        } else {
            bound(&only.path(group, b"")?, TARGET)
        };
    }
    let kind = Some(c"tmpfs");
    let data = Some(c"mode=755");
    mount::mount(kind, TARGET, kind, flags & !ms::RDONLY, data)?;
    for hierarchy in hierarchies.iter().filter(|hierarchy| !hierarchy.is_v2()) {
        let target = Path::of(&[b"sys/fs/cgroup/", hierarchy.directory()])?;
        let target = target.c_str()?;
        fs::mkdirat(AT_FDCWD, target, 0o755)?;
        if namespace {
            let data = Path::of(&[hierarchy.name])?;
            let kind = Some(c"cgroup");
            mount::mount(kind, target, kind, flags, Some(data.c_str()?))?;
        } else {
            bound(&hierarchy.path(group, b"")?, target)?;
        }
        if hierarchy.name.contains(&b',') {
            for name in hierarchy.name.split(|&byte| byte == b',') {
                let link = Path::of(&[b"sys/fs/cgroup/", name])?;
                let aim = Path::of(&[hierarchy.name])?;
                fs::symlinkat(aim.c_str()?, AT_FDCWD, link.c_str()?)?;
            }
        }
    }
    if flags & ms::RDONLY == 0 {
        return Ok(());
    }
    mount::mount(None, TARGET, None, ms::REMOUNT | ms::BIND | flags, None)
}
