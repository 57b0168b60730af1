//! A container's group.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::path::PathBuf;

use pipkin_plan::cgroup::{Controller, Version, Write};
use pipkin_sys::bpf;
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::{Error, file, layout, walk};

/// The group's directory in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dir {
    /// The hierarchy, as in /proc/self/cgroup; empty for the unified one.
    pub hierarchy: String,
    /// The directory.
    pub path: PathBuf,
}

/// A container's group in all hierarchies: what State keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// One a hierarchy, v1 first.
    pub dirs: Vec<Dir>,
}

impl Dir {
    /// Which generation it is.
    #[must_use]
    pub fn version(&self) -> Version {
        if self.hierarchy.is_empty() {
            Version::V2
        } else {
            Version::V1
        }
    }
}

impl Group {
    /// The group's directory on the unified side.
    #[must_use]
    pub fn unified(&self) -> Option<&Path> {
        self.dirs
            .iter()
            .find(|d| d.version() == Version::V2)
            .map(|d| d.path.as_path())
    }

    /// The group's directory in the v1 hierarchy of `controller`.
    #[must_use]
    pub fn v1(&self, controller: Controller) -> Option<&Path> {
        self.dirs
            .iter()
            .find(|d| d.version() == Version::V1 && layout::has(&d.hierarchy, controller))
            .map(|d| d.path.as_path())
    }

    /// The directory that holds a write's file.
    pub(super) fn home(&self, write: &Write) -> Option<&Path> {
        match write.version {
            Version::V1 => self.v1(write.controller),
            Version::V2 => self.unified(),
        }
    }

    /// Attaches a device program to the v2 side, in place of the one that is there.
    ///
    /// # Errors
    /// Those of bpf(2); no unified hierarchy.
    pub fn attach_devices(&self, program: &[u8]) -> Result<(), Error> {
        const POINTER: &str = "/linux/resources/devices";
        let Some(path) = self.unified() else {
            return Err(
                Error::new("attach devices to", Path::new("/"), "no unified hierarchy")
                    .wish("", POINTER),
            );
        };
        let fd = file::open_dir(path).map_err(|errno| Error::os("open", path, errno))?;
        replace(fd.as_raw_fd(), program).map_err(|(call, errno)| {
            let kernel = Errno::from_raw_os_error(errno.number());
            let error = Error::os(call, path, kernel).wish("the device program", POINTER);
            match kernel {
                Errno::PERM => error.hint(
                    "device rules on cgroup v2 need CAP_BPF (or CAP_SYS_ADMIN) and CAP_NET_ADMIN \
                     in the initial user namespace",
                ),
                Errno::NOSYS => error.hint("the kernel has no bpf(2): CONFIG_CGROUP_BPF"),
                _ => error,
            }
        })
    }

    /// The `tasks` file of every v1 hierarchy, open for writing: a single-threaded
    /// process that writes `0` into each has joined the group there. It must do so
    /// before it enters a cgroup namespace or gives up its user.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn join_files(&self) -> Result<Vec<OwnedFd>, Error> {
        self.dirs
            .iter()
            .filter(|d| d.version() == Version::V1)
            .map(|d| open_for_writing(&d.path.join("tasks")))
            .collect()
    }

    /// The unified side's directory, for CLONE_INTO_CGROUP.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn unified_dir(&self) -> Result<Option<OwnedFd>, Error> {
        self.unified()
            .map(|path| file::open_dir(path).map_err(|errno| Error::os("open", path, errno)))
            .transpose()
    }

    /// Moves another process (all its threads) into the group on the unified side, for a kernel
    /// without CLONE_INTO_CGROUP (before 5.7): slow, see the module.
    ///
    /// # Errors
    /// Those of write(2).
    pub fn move_unified(&self, pid: Pid) -> Result<(), Error> {
        // One that may not be written to has no group of the container's.
        let Some(directory) = self.unified() else {
            return Ok(());
        };
        let path = directory.join("cgroup.procs");
        let number = pid.as_raw_nonzero().to_string();
        file::write(&path, &number).map_err(|errno| {
            let error = Error::os("write", &path, errno).wish(&number, "/linux/cgroupsPath");
            match errno {
                Errno::BUSY => error.hint("the group gives controllers to its sub-groups"),
                Errno::OPNOTSUPP => error.hint("the group's domain is invalid: it is threaded"),
                Errno::NOSPC => error.hint("the cpuset has no processors or memory nodes"),
                _ => error,
            }
        })
    }

    /// Every process in the group and its sub-groups; none if it is gone.
    ///
    /// # Errors
    /// Those of reading the directories.
    pub fn pids(&self) -> Result<Vec<Pid>, Error> {
        let path = self
            .unified()
            .or_else(|| self.v1(Controller::Freezer))
            .or_else(|| self.dirs.first().map(|d| d.path.as_path()));
        path.map_or(Ok(Vec::new()), |path| {
            walk::pids(path).map_err(|errno| Error::os("read", path, errno))
        })
    }
}

fn open_for_writing(path: &Path) -> Result<OwnedFd, Error> {
    file::open(CWD, path, OFlags::WRONLY).map_err(|errno| Error::os("open", path, errno))
}

/// One program is replaced in one step; more than one (left by something else) by adding
/// ours first, as all must allow, and then taking off the others.
fn replace(cgroup: i32, program: &[u8]) -> Result<(), (&'static str, pipkin_sys::Errno)> {
    let new = bpf::prog_load_cgroup_device(program, None).map_err(|e| ("bpf PROG_LOAD", e))?;
    let mut ids = [0; 64];
    let count = bpf::prog_query(cgroup, &mut ids).map_err(|e| ("bpf PROG_QUERY", e))?;
    let mut old = Vec::new();
    for id in ids.iter().take(count) {
        old.push(bpf::prog_by_id(*id).map_err(|e| ("bpf PROG_GET_FD_BY_ID", e))?);
    }
    if let [only] = old.as_slice() {
        match bpf::prog_attach(cgroup, &new, Some(only)) {
            // Before Linux 5.6.
            Err(pipkin_sys::Errno::EINVAL) => {}
            result => return result.map_err(|e| ("bpf PROG_ATTACH", e)),
        }
    }
    bpf::prog_attach(cgroup, &new, None).map_err(|e| ("bpf PROG_ATTACH", e))?;
    for program in &old {
        bpf::prog_detach(cgroup, program).map_err(|e| ("bpf PROG_DETACH", e))?;
    }
    Ok(())
}
