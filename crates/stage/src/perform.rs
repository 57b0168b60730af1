//! From a step to the code that performs it.

use pipkin_op::StageOp;
use pipkin_sys::fs::oflag;
use pipkin_sys::{AT_FDCWD, Errno, fs, mount, process, socket};

use crate::inside::Place;
use crate::source::{open_null, open_proc, open_root, open_tree};
use crate::walk::Walk;
use crate::{Failure, console, copyup, exec, hook, identity, inside, mounts};

impl Walk {
    /// Performs one step.
    pub fn perform(&mut self, op: StageOp<'static>) -> Result<(), Failure> {
        match op {
            StageOp::JoinNamespace { slot, nstype } => process::setns(self.fd(slot)?, nstype)?,
            StageOp::Unshare { flags } => process::unshare(flags)?,
            StageOp::BecomeRoot {} => {
                self.ids = None;
                identity::become_root()?;
            }
            StageOp::CgroupJoin { slot, .. } => {
                // A hierarchy that the runtime may not write to has no group of this container.
                if let Ok(tasks) = self.fd(slot) {
                    fs::write(tasks, b"0")?;
                }
            }
            StageOp::CgroupEnter { tasks, index } => {
                if index < u32::BITS && self.without_group & 1 << index == 0 {
                    let file = Place::new(fs::openat(AT_FDCWD, tasks, oflag::WRONLY, 0)?);
                    fs::write(file.fd(), b"0")?;
                }
            }
            StageOp::Setsid {} => process::setsid()?,
            StageOp::Keyring { name } => identity::join_keyring(name)?,
            StageOp::LoopbackUp {} => socket::loopback_up()?,
            StageOp::Hostname { name } => process::sethostname(name.to_bytes())?,
            StageOp::Domainname { name } => process::setdomainname(name.to_bytes())?,

            StageOp::Propagation { path, flags } => mount::mount(None, path, None, flags, None)?,
            StageOp::EnterPinned { slot } => {
                let mounts = process::clone::NEWNS;
                self.leave();
                process::setns(self.fd(slot)?, mounts as u32)?;
                process::unshare(mounts)?;
            }
            StageOp::AttachRoot { slot } => {
                mount::move_mount(self.fd(slot)?, AT_FDCWD, c"/")?;
            }
            StageOp::OpenIn { slot, dir, path } => {
                let file = inside::resolve(self.fd(dir)?, path, oflag::DIRECTORY)?;
                self.set(slot, file)?;
            }
            StageOp::OpenRoot {
                slot,
                path,
                clone,
                attr,
            } => {
                let tree = open_root(path, clone, attr)?;
                self.set(slot, tree)?;
            }
            StageOp::OpenTree {
                slot,
                path,
                recursive,
                nofollow,
                attr,
            } => {
                let tree = open_tree(path, (recursive, nofollow), attr)?;
                self.set(slot, tree)?;
            }
            StageOp::OpenNull { slot, attr } => {
                let tree = open_null(attr)?;
                self.set(slot, tree)?;
            }
            StageOp::OpenProc { slot } => {
                let proc = open_proc()?;
                self.set(slot, proc)?;
            }
            StageOp::Mount {
                dir,
                path,
                target,
                source,
                fstype,
                flags,
                data,
            } => {
                let new = mounts::New {
                    source,
                    fstype,
                    flags,
                    data,
                };
                mounts::mount(self, self.fd(dir)?, path, target, &new)?;
            }
            StageOp::NewMount {
                slot,
                fstype,
                source,
                options,
                attr,
            } => {
                let file = mounts::new_mount(fstype, source, options, attr)?;
                self.set(slot, file)?;
            }
            StageOp::Attach {
                slot,
                dir,
                path,
                target,
            } => {
                mounts::attach(self, self.fd(slot)?, self.fd(dir)?, path, target)?;
            }
            StageOp::SetAttr { slot, attr, proc } => {
                mounts::set_attr(self, self.fd(slot)?, attr, proc)?;
            }
            StageOp::SetAttrAt {
                dir,
                path,
                attr,
                proc,
            } => {
                let place = Place::new(inside::resolve(self.fd(dir)?, path, 0)?);
                mounts::set_attr(self, place.fd(), attr, proc)?;
            }
            StageOp::CopyUp { slot, dir, path } => {
                copyup::copy_up(self.fd(dir)?, path, self.fd(slot)?)?;
            }
            StageOp::Mknod {
                dir,
                path,
                mode,
                major,
                minor,
                uid,
                gid,
            } => {
                let node = inside::Node {
                    mode,
                    device: (major, minor),
                    owner: (uid, gid),
                };
                inside::mknod(self.fd(dir)?, path, node)?;
            }
            StageOp::Symlink { dir, path, target } => {
                inside::symlink(self.fd(dir)?, path, target)?;
            }
            StageOp::Mkdir { dir, path, mode } => inside::mkdir(self.fd(dir)?, path, mode)?,
            StageOp::Mask {
                dir,
                path,
                null,
                empty,
                is,
                proc,
            } => {
                mounts::mask(self, self.fd(dir)?, path, (null, empty), (is, proc))?;
            }
            StageOp::ReadonlyPath {
                dir,
                path,
                plain,
                proc,
            } => {
                mounts::readonly_path(self, self.fd(dir)?, path, plain, proc)?;
            }
            StageOp::PivotRoot { slot } => {
                self.leave();
                mounts::pivot_root(self.fd(slot)?)?;
            }
            StageOp::MoveRoot { slot } => {
                self.leave();
                mounts::move_root(self.fd(slot)?)?;
            }
            StageOp::Chroot { slot } => {
                self.leave();
                mounts::change_root(self.fd(slot)?)?;
            }
            StageOp::Sysctl { proc, path, value }
            | StageOp::ExecLabel {
                proc,
                file: path,
                value,
            } => {
                inside::write_kernel_file(self.fd(proc)?, path, value.to_bytes())?;
            }
            StageOp::Console {
                socket,
                dir,
                rows,
                columns,
                uid,
                mount,
            } => {
                let console = console::Console {
                    size: (rows, columns),
                    uid,
                    mount,
                };
                console::set_up(self.fd(socket)?, self.fd(dir)?, console)?;
            }

            StageOp::Personality { persona } => process::personality(persona)?,
            StageOp::Rlimit {
                resource,
                soft,
                hard,
            } => process::set_rlimit(resource, soft, hard)?,
            StageOp::Scheduler {
                policy,
                flags,
                nice,
                priority,
                runtime,
                deadline,
                period,
            } => {
                let size = 0;
                process::sched_setattr(&process::SchedAttr {
                    size,
                    policy,
                    flags,
                    nice,
                    priority,
                    runtime,
                    deadline,
                    period,
                })?;
            }
            StageOp::IoPriority { value } => process::set_io_priority(value)?,
            StageOp::Umask { mask } => drop(fs::umask(mask)),
            StageOp::BoundingSet { keep } => identity::bounding_set(keep)?,
            StageOp::Groups { groups } => process::setgroups(groups)?,
            StageOp::User { uid, gid } => {
                // Also the saved ones: execve(2) sets them to the effective ones.
                if self.ids != Some((uid, gid)) {
                    identity::change_user(uid, gid)?;
                }
            }
            StageOp::Capabilities {
                effective,
                permitted,
                inheritable,
            } => {
                process::capset(effective, permitted, inheritable)?;
            }
            StageOp::Ambient { set } => identity::raise_ambient(set)?,
            StageOp::NoNewPrivs {} => process::no_new_privs()?,
            StageOp::Seccomp { program, flags } => drop(process::seccomp_filter(program, flags)?),
            StageOp::Chdir { path, late } => self.change_directory(path, late)?,

            StageOp::FindExecutable { name, search, last } => {
                self.executable.find(name, search, last)?;
            }
            StageOp::Home { uid } => self.executable.find_home(uid)?,
            StageOp::AwaitStart { listener, .. } => self.await_start(listener)?,
            StageOp::CloseRange { first } => {
                self.first = first;
                fs::cloexec_from(first)?;
            }
            StageOp::CloseRest { first, keep, proc } => self.close_rest(first, keep, proc)?,
            StageOp::Exec { args, env, ignored } => {
                return Err(exec::exec(self, args, env, ignored));
            }
            StageOp::Hook {
                kind: _,
                index: _,
                path,
                args,
                env,
                timeout,
                state,
            } => {
                hook::run(&hook::Hook {
                    path,
                    args,
                    env,
                    timeout,
                    state,
                    pid: process::getpid(),
                })?;
            }

            StageOp::OpenNamespace { .. }
            | StageOp::OpenPinned { .. }
            | StageOp::OpenDevice { .. }
            | StageOp::ConnectConsole { .. }
            | StageOp::ListenStart { .. }
            | StageOp::IdmapTree { .. }
            | StageOp::CgroupCreate { .. }
            | StageOp::CgroupLimits { .. }
            | StageOp::CgroupDevices { .. }
            | StageOp::CgroupOpen { .. }
            | StageOp::CgroupMove { .. }
            | StageOp::Clone { .. }
            | StageOp::EnterNamespace { .. }
            | StageOp::LeaveNamespace { .. }
            | StageOp::WriteProc { .. }
            | StageOp::WriteState { .. }
            | StageOp::PublishState { .. }
            | StageOp::WritePidFile { .. }
            | StageOp::Handoff { .. } => return Err(Errno::ENOSYS.into()),
        }
        Ok(())
    }
}
