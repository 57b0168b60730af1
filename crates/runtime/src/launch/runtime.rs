//! The runtime's steps.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use pipkin_op::{PlanOp, Slot};
use pipkin_plan::cgroup::Controllers;
use pipkin_stage::hook::{self, Hook};
use pipkin_stage::source;
use pipkin_sys::fs::mode;
use pipkin_sys::{Errno, mount};
use rustix::fs::{Mode, OFlags};

use super::{Failed, Launch, Undo};
use crate::cgroup::{self, Request};
use crate::owned;
use crate::store::{SOCKET, State, read_start_time};

type Done<T = ()> = std::result::Result<T, Failed>;

/// What the steps leave for later ones.
pub struct Performer<'a> {
    launch: &'a Launch<'a>,
    slots: Vec<Option<OwnedFd>>,
    /// The slot of the pinned mount namespace, whose descriptor the launch has.
    pinned: Option<Slot>,
    /// v1 hierarchies without a group of the container's, a bit each in their order.
    without_group: u32,
    /// The runtime's own namespaces, while it is in others.
    own: Vec<(u32, OwnedFd)>,
    state: State,
}

impl<'a> Performer<'a> {
    pub fn new(launch: &'a Launch<'a>) -> Self {
        let slots = (0..launch.plan.slots).map(|_| None).collect();
        Self {
            launch,
            slots,
            pinned: None,
            without_group: 0,
            own: Vec::new(),
            state: launch.state.clone(),
        }
    }

    /// The container's process.
    pub fn started(&mut self, pid: i32) {
        self.state.pid = pid;
    }

    pub fn pid(&self) -> i32 {
        self.state.pid
    }

    pub fn into_state(mut self) -> State {
        std::mem::take(&mut self.state)
    }

    /// The number of each slot's descriptor, -1 where there is none.
    pub fn descriptors(&self) -> Vec<i32> {
        let mut numbers: Vec<i32> = self
            .slots
            .iter()
            .map(|slot| slot.as_ref().map_or(-1, AsRawFd::as_raw_fd))
            .collect();
        let place = self
            .pinned
            .and_then(|slot| numbers.get_mut(usize::from(slot.0)));
        if let (Some(place), Some(pinned)) = (place, self.launch.pinned) {
            *place = pinned.as_raw_fd();
        }
        numbers
    }

    /// See [`PlanOp::CgroupEnter`].
    pub const fn without_group(&self) -> u32 {
        self.without_group
    }

    /// The number of a slot's descriptor.
    pub fn descriptor(&self, slot: Slot) -> Option<i32> {
        self.get(slot).ok().map(AsRawFd::as_raw_fd)
    }

    fn get(&self, slot: Slot) -> Done<&OwnedFd> {
        let slot = self.slots.get(usize::from(slot.0)).and_then(Option::as_ref);
        slot.ok_or_else(|| Errno::EBADF.into())
    }

    fn set(&mut self, slot: Slot, fd: OwnedFd) -> Done {
        *self
            .slots
            .get_mut(usize::from(slot.0))
            .ok_or(Failed::from(Errno::EBADF))? = Some(fd);
        Ok(())
    }

    /// Performs one step.
    pub fn perform(&mut self, op: &PlanOp, undo: &mut Undo) -> Done {
        match op {
            PlanOp::OpenRoot {
                slot,
                path,
                clone,
                attr,
            } => {
                let root = source::open_root(path, *clone, *attr)?;
                self.set(*slot, owned(root))
            }
            PlanOp::OpenTree {
                slot,
                path,
                recursive,
                nofollow,
                attr,
            } => {
                let tree = source::open_tree(path, (*recursive, *nofollow), *attr)?;
                self.set(*slot, owned(tree))
            }
            PlanOp::OpenNamespace { slot, path, .. } => {
                let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                self.set(*slot, file)
            }
            PlanOp::OpenPinned { slot } => {
                if self.launch.pinned.is_none() {
                    return Err(Errno::ENOENT.into());
                }
                self.pinned = Some(*slot);
                Ok(())
            }
            PlanOp::OpenProc { slot } => {
                let proc = source::open_proc()?;
                self.set(*slot, owned(proc))
            }
            PlanOp::OpenNull { slot, attr } => {
                let tree = source::open_null(*attr)?;
                self.set(*slot, owned(tree))
            }
            PlanOp::OpenDevice {
                slot,
                path,
                block,
                major,
                minor,
                attr,
            } => {
                let kind = if *block { mode::BLOCK } else { mode::CHARACTER };
                let tree = source::open_device(path, kind, (*major, *minor), *attr)?;
                self.set(*slot, owned(tree))
            }
            PlanOp::ConnectConsole { slot, path } => self.connect_console(*slot, path),
            PlanOp::ListenStart { slot, lock } => self.listen(*slot, *lock),
            PlanOp::IdmapTree {
                slot,
                uid_map,
                gid_map,
                recursive,
            } => self.map_owners(*slot, uid_map, gid_map, *recursive),
            PlanOp::CgroupCreate { .. } => self.create_group(undo),
            PlanOp::CgroupLimits { .. } => Ok(self.state.group.apply(&self.launch.plan.limits)?),
            PlanOp::CgroupDevices { program } => Ok(self.state.group.attach_devices(program)?),
            PlanOp::CgroupOpen {
                first,
                count,
                unified,
            } => self.open_group(*first, *count, *unified),
            PlanOp::CgroupMove {} => {
                let pid = rustix::process::Pid::from_raw(self.pid());
                Ok(self
                    .state
                    .group
                    .move_unified(pid.ok_or(Failed::from(Errno::ESRCH))?)?)
            }
            PlanOp::EnterNamespace { slot, nstype } => self.enter(*slot, *nstype),
            PlanOp::LeaveNamespace { nstype } => self.leave(*nstype),
            PlanOp::WriteProc { file, value } => self.write_proc(file, value),
            PlanOp::Rlimit {
                resource,
                soft,
                hard,
            } => self.set_limit(*resource, *soft, *hard),
            PlanOp::WriteState {} => {
                // Without it nobody could end the process, nor tell it from another. One that has
                // ended already has none, and is found out about later.
                self.state.start_time = read_start_time(self.pid())?.unwrap_or(0);
                Ok(self.launch.entry.write(&self.state)?)
            }
            PlanOp::PublishState {} => Ok(self.launch.entry.publish()?),
            PlanOp::WritePidFile { path } => write_pid_file(path_of(path), self.pid(), undo),
            PlanOp::Hook {
                path,
                args,
                env,
                timeout,
                state,
                ..
            } => {
                let (timeout, pid) = (*timeout, self.pid());
                hook::run(&Hook {
                    path,
                    args,
                    env,
                    timeout,
                    state,
                    pid,
                })
                .map_err(Failed::from)
            }
            _ => Err(Failed::message(format!(
                "{} is not a step of the runtime",
                op.name()
            ))),
        }
    }

    fn connect_console(&mut self, slot: Slot, path: &CStr) -> Done {
        let console = self.launch.console;
        let socket = match console.get() {
            Some(socket) => socket,
            None => {
                let socket = UnixStream::connect(path_of(path))?;
                console.get_or_init(|| socket)
            }
        };
        self.set(slot, socket.try_clone()?.into())
    }

    fn listen(&mut self, slot: Slot, lock: Slot) -> Done {
        let entry = self.launch.entry;
        // The path of a socket has at most 107 characters; a descriptor's is short.
        let path = format!("/proc/self/fd/{}/{SOCKET}", entry.fd().as_raw_fd());
        let listener = UnixListener::bind(path)?;
        self.set(slot, listener.into())?;
        let file = entry.make_lock()?;
        self.set(lock, file)
    }

    fn map_owners(&self, slot: Slot, uids: &CStr, gids: &CStr, recursive: bool) -> Done {
        const IDMAP: u64 = pipkin_op::attr::IDMAP;
        let tree = self.get(slot)?.as_raw_fd();
        let map = |pid: i32| -> Done {
            write_file(&format!("/proc/{pid}/uid_map"), uids.to_bytes())?;
            write_file(&format!("/proc/{pid}/gid_map"), gids.to_bytes())?;
            let namespace = File::open(format!("/proc/{pid}/ns/user"))?;
            let userns = u64::try_from(namespace.as_raw_fd()).unwrap_or(0);
            Ok(mount::mount_setattr(tree, IDMAP, 0, 0, userns, recursive)?)
        };
        pipkin_sys::process::with_user_namespace(map)?
    }

    fn create_group(&mut self, undo: &mut Undo) -> Done {
        let Some(group) = self.launch.group else {
            return Err(Failed::message("there is no control group"));
        };
        let expected = super::expected_group(group);
        self.launch.entry.write_group(&group.1, &expected)?;
        let writes = &self.launch.plan.limits;
        // Where v2 is all there is, engines read statistics of every controller.
        let wanted = match group.0.kind {
            cgroup::Kind::V2 => group.0.host().v2.unwrap_or_default(),
            _ => Controllers::NONE,
        };
        let created = cgroup::create(
            &group.0,
            &Request {
                location: &group.1,
                writes,
                wanted,
            },
        )?;
        self.state.group = created.group.clone();
        let made = created.group.dirs.len();
        let all = expected.dirs.iter().filter(|dir| !dir.hierarchy.is_empty());
        for (index, dir) in (0u32..u32::BITS).zip(all) {
            if !created.group.dirs.contains(dir) {
                self.without_group |= 1 << index;
            }
        }
        undo.group(created);
        if self.launch.needs_group && made < expected.dirs.len() {
            let mut failed = Failed::message("a control group hierarchy may not be written to");
            failed.hint = Some("without --rootless=false it is left out".to_owned());
            return Err(failed);
        }
        Ok(())
    }

    fn open_group(&mut self, first: Slot, count: u16, unified: Option<Slot>) -> Done {
        if count > 0 {
            for (slot, file) in (first.0..).zip(self.state.group.join_files()?) {
                self.set(Slot(slot), file)?;
            }
        }
        match (unified, self.state.group.unified_dir()?) {
            (Some(slot), Some(dir)) => self.set(slot, dir),
            _ => Ok(()),
        }
    }

    /// Joins a namespace so that the container is born in it; it is left afterwards.
    fn enter(&mut self, slot: Slot, nstype: u32) -> Done {
        let name = namespace_file(nstype);
        let own = File::open(format!("/proc/self/ns/{name}"))?;
        pipkin_sys::process::setns(self.get(slot)?.as_raw_fd(), nstype)?;
        self.own.push((nstype, own.into()));
        Ok(())
    }

    fn leave(&mut self, nstype: u32) -> Done {
        if let Some(at) = self.own.iter().position(|(kind, _)| *kind == nstype) {
            let (_, own) = self.own.remove(at);
            pipkin_sys::process::setns(own.as_raw_fd(), nstype)?;
        }
        Ok(())
    }

    fn write_proc(&self, file: &CStr, value: &CStr) -> Done {
        let path = format!("/proc/{}/{}", self.pid(), file.to_string_lossy());
        write_file(&path, value.to_bytes())
    }

    fn set_limit(&self, resource: u32, soft: u64, hard: u64) -> Done {
        Ok(pipkin_sys::process::set_rlimit_of(
            self.pid(),
            resource,
            soft,
            hard,
        )?)
    }
}

impl Drop for Performer<'_> {
    /// A failed start must not leave the runtime, which still has hooks to run and files to
    /// remove, in the container's namespaces.
    fn drop(&mut self) {
        for (nstype, own) in self.own.drain(..).rev() {
            let _ = pipkin_sys::process::setns(own.as_raw_fd(), nstype);
        }
    }
}

fn path_of(path: &CStr) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()))
}

/// The name of a namespace's file, namespaces(7).
fn namespace_file(nstype: u32) -> &'static str {
    match nstype {
        0x80 => "time",
        0x2_0000 => "mnt",
        0x200_0000 => "cgroup",
        0x400_0000 => "uts",
        0x800_0000 => "ipc",
        0x1000_0000 => "user",
        0x2000_0000 => "pid",
        _ => "net",
    }
}

/// Writes a file of the kernel with one write(2).
fn write_file(path: &str, value: &[u8]) -> Done {
    let path = CString::new(path).map_err(|_| Failed::from(Errno::EINVAL))?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::empty())?;
    Ok(rustix::io::write(file.as_fd(), value).map(drop)?)
}

/// Writes the process's id, whole or not at all: engines watch the file.
fn write_pid_file(path: &Path, pid: i32, undo: &mut Undo) -> Done {
    let name = path.file_name().ok_or(Failed::from(Errno::EISDIR))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    let new: PathBuf = path.with_file_name(hidden);
    File::create(&new)?.write_all(pid.to_string().as_bytes())?;
    std::fs::rename(&new, path)?;
    undo.file(path.to_owned());
    Ok(())
}
