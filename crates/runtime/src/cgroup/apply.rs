//! Writing limits.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use pipkin_plan::cgroup::{Controller, Controllers, Missing, Version, Write};
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;

use super::{Error, Group, enable, file};

impl Group {
    /// Writes the limits, in order. A v2 controller that the group lacks so far is
    /// enabled for it.
    ///
    /// # Errors
    /// The file, value, pointer and errno of the first that fails; a controller that
    /// the group has no directory for.
    pub fn apply(&self, writes: &[Write]) -> Result<(), Error> {
        let mut open = Open::default();
        let mut again: Vec<(&Write, Error)> = Vec::new();
        for (index, write) in writes.iter().enumerate() {
            match self.one(write, &mut open) {
                Ok(()) => {}
                Err((Errno::INVAL, error)) if write.retry => again.push((write, error)),
                Err((_, error)) => return Err(error),
            }
            let next = writes.get(index + 1).map(|w| (w.version, w.controller));
            if next != Some((write.version, write.controller)) {
                for (write, error) in again.drain(..) {
                    // The first error is the one that explains.
                    self.one(write, &mut open).map_err(|_| error)?;
                }
            }
        }
        Ok(())
    }

    fn one(&self, write: &Write, open: &mut Open) -> Result<(), (Errno, Error)> {
        let Some(dir) = self.home(write) else {
            let name = write.controller.name(write.version);
            let error = Error::new("write", Path::new(write.file.as_ref()), "no such cgroup")
                .wish(&write.value, &write.pointer)
                .hint(format!(
                    "the container has no group with the controller {name}"
                ));
            return Err((Errno::NOENT, error));
        };
        let path = dir.join(write.file.as_ref());
        if let Some(used) = write.used {
            refuse_below(dir, used, write)?;
        }
        let mut result = open.put(&path, &write.value);
        let mut other = None;
        if result == Err(Errno::NOENT) {
            match &write.missing {
                Missing::Skip => return Ok(()),
                Missing::Instead { file, value } => {
                    let instead = dir.join(file);
                    result = open.put(&instead, value);
                    other = Some((instead, value.as_str()));
                }
                Missing::Fail => {}
            }
        }
        let (path, value) = other.unwrap_or((path, write.value.as_ref()));
        if result == Err(Errno::NOENT)
            && write.version == Version::V2
            && write.controller != Controller::Core
            && let Some(parent) = dir.parent()
        {
            let needed = Controllers::NONE.with(write.controller);
            enable::for_children(parent, needed, Controllers::NONE)
                .map_err(|error| (Errno::NOENT, error.wish(value, &write.pointer)))?;
            result = open.put(&path, value);
        }
        result.map_err(|errno| {
            let error = Error::os("write", &path, errno).wish(value, &write.pointer);
            (errno, explain(error, errno, write, dir))
        })
    }
}

/// The file that was written last, kept open: a device list is one file and many writes.
#[derive(Default)]
struct Open(Option<(PathBuf, OwnedFd)>);

impl Open {
    fn put(&mut self, path: &Path, value: &str) -> Result<(), Errno> {
        match &self.0 {
            Some((known, fd)) if known == path => file::put(fd, value),
            _ => {
                let fd = file::open(CWD, path, OFlags::WRONLY)?;
                let result = file::put(&fd, value);
                self.0 = Some((path.to_owned(), fd));
                result
            }
        }
    }
}

/// `checkBeforeUpdate`: the kernel would kill, or reclaim at length.
fn refuse_below(dir: &Path, used: &str, write: &Write) -> Result<(), (Errno, Error)> {
    let path = dir.join(used);
    let text = file::read(&path).map_err(|errno| {
        (
            errno,
            Error::os("read", &path, errno).wish("", &write.pointer),
        )
    })?;
    let (now, limit) = (text.trim().parse::<u64>(), write.value.parse::<u64>());
    match (now, limit) {
        (Ok(now), Ok(limit)) if now >= limit => {
            let message = format!("the limit is not above what is used now, {now}");
            let error = Error::new("write", &dir.join(write.file.as_ref()), message)
                .wish(&write.value, &write.pointer)
                .hint("choose a higher limit, or leave out memory/checkBeforeUpdate");
            // Not EINVAL: another order of writes would not help.
            Err((Errno::BUSY, error))
        }
        _ => Ok(()),
    }
}

fn explain(error: Error, errno: Errno, write: &Write, dir: &Path) -> Error {
    let file = write.file.as_ref();
    let parent = |name: &str| {
        let text = dir.parent().and_then(|p| file::read(p.join(name)).ok());
        text.map(|t| t.trim().to_owned()).unwrap_or_default()
    };
    match (errno, write.controller) {
        (Errno::NOENT, Controller::Memory) if file.contains("swap") || file.contains("memsw") => {
            error.hint("swap is not accounted on this host (kernel parameter swapaccount=1)")
        }
        (Errno::NOENT, Controller::Hugetlb) => {
            error.hint("this host has no huge pages of that size")
        }
        (Errno::NOENT, Controller::Io) => {
            error.hint("this host's I/O scheduler or kernel has no such setting (weights need BFQ)")
        }
        (Errno::NOENT, _) => error.hint("this kernel has no such file"),
        (Errno::INVAL | Errno::ACCESS | Errno::RANGE, Controller::Cpuset) => {
            let list = parent(file);
            error.hint(format!(
                "the parent group has {list:?}; the list must lie within"
            ))
        }
        (Errno::BUSY, Controller::Memory) => {
            error.hint("more memory is used than the new limit, and the kernel can reclaim no more")
        }
        (Errno::INVAL, Controller::Cpu) if file.contains("rt_") => error.hint(
            "the realtime budgets of a group and its neighbours must fit into their parent's",
        ),
        (Errno::INVAL, Controller::Cpu) => {
            error.hint("quota, period and burst must fit into the parent group's quota")
        }
        (Errno::PERM, Controller::Devices) => {
            error.hint("the parent group does not allow this device itself")
        }
        (Errno::NODEV | Errno::NXIO, Controller::Io) => {
            error.hint("there is no such block device, or its scheduler has no weights")
        }
        (Errno::ACCESS | Errno::PERM, _) => error.hint("the group was not delegated to this user"),
        (Errno::ROFS, _) => error.hint("the cgroup file system is read-only here"),
        _ => error,
    }
}
