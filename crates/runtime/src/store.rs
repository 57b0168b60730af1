//! **State**: what is remembered between two commands, in a directory of each container.
//!
//! | file | what it is |
//! | --- | --- |
//! | `state.json` | facts about the container; it is there once the container is made |
//! | `group` | where the cgroup is, written before it is made: what `delete --force` needs when a `create` was killed |
//! | `start.sock` | where the container's process waits for `start` |
//! | `lock` | locked by that process for as long as it waits |
//!
//! Where a container is in its life is never stored: its process and the lock tell.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use pipkin_spec::Status;
use pipkin_spec::config::Hook;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::cgroup::{Group, Layout, Location, file};
use crate::{Error, Result, image, launch};

const STATE: &str = "state.json";
/// The state before it is published.
const NEW_STATE: &str = "state.json.new";
const GROUP: &str = "group";
/// The socket at which `start` is awaited.
pub const SOCKET: &str = "start.sock";
/// What the waiting process holds locked.
pub const LOCK: &str = "lock";

/// Facts about a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// Version of the specification that the bundle follows.
    pub oci_version: String,
    /// The container's id.
    pub id: String,
    /// Its process, in the runtime's pid namespace.
    pub pid: i32,
    /// When that process began, in clock ticks since the machine was started: with the id,
    /// it names one process for good.
    pub start_time: u64,
    /// Absolute path of the bundle.
    pub bundle: String,
    /// Absolute path of the root file system.
    pub rootfs: String,
    /// When the container was made, RFC 3339.
    pub created: String,
    /// User id of who made it.
    pub owner: u32,
    /// Annotations of the configuration.
    pub annotations: std::collections::BTreeMap<String, String>,
    /// Its cgroup.
    pub group: Group,
    /// Whether its processes end with its first one.
    pub own_pid_namespace: bool,
    /// Hooks of `start`.
    pub poststart: Vec<Hook>,
    /// Hooks of `delete`.
    pub poststop: Vec<Hook>,
    /// The steps that follow `start`, for what it has to say if one fails.
    pub pending: Vec<Pending>,
    /// How many steps the plan has.
    pub steps: usize,
    /// How long `start` waits for its process, in seconds.
    pub start_limit: u64,
}

/// A step that is still to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pending {
    /// Its number.
    pub step: usize,
    /// Its place in the configuration.
    pub pointer: String,
    /// What it does.
    pub text: String,
}

/// The directory of one container.
#[derive(Debug)]
pub struct Entry {
    /// Its path.
    pub path: PathBuf,
    dir: OwnedFd,
}

/// Checks an id: runc's and crun's rule, what a file name and a cgroup may have in it.
///
/// # Errors
/// The id and what is right.
pub fn check_id(id: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_+-.".contains(c);
    if id.is_empty() {
        return Err(Error::new("the container id is empty"));
    }
    if id == "." || id == ".." || !id.chars().all(allowed) {
        return Err(Error::new(format!("invalid container id {id:?}"))
            .with_hint("letters, digits and _ + - . are allowed"));
    }
    if id.len() > 255 {
        return Err(
            Error::new(format!("the container id has {} characters", id.len()))
                .with_hint("255 are allowed"),
        );
    }
    Ok(())
}

impl Entry {
    /// Makes the directory of a new container.
    ///
    /// # Errors
    /// An id that is in use.
    pub fn create(root: &Path, id: &str) -> Result<Self> {
        check_id(id)?;
        let path = root.join(id);
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(0o700);
        let made = match builder.create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => builder
                .recursive(true)
                .create(root)
                .and_then(|()| builder.recursive(false).create(&path)),
            other => other,
        };
        match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::new(
                format!("container with id {id:?} exists already"),
            )
            .with_hint("choose another id, or remove that one with `delete`")),
            Err(error) => Err(Error::io(
                format!("state directory {}", path.display()),
                &error,
            )),
            Ok(()) => Self::open_path(path.clone()).inspect_err(|_| {
                let _ = rustix::fs::rmdir(&path);
            }),
        }
    }

    /// The directory of a container that exists.
    ///
    /// # Errors
    /// A container that does not exist.
    pub fn open(root: &Path, id: &str) -> Result<Self> {
        Self::find(root, id)?.ok_or_else(|| Error::missing(id))
    }

    /// The same, `None` where it does not exist.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn find(root: &Path, id: &str) -> Result<Option<Self>> {
        check_id(id)?;
        let path = root.join(id);
        match open_directory(&path) {
            Ok(dir) => Ok(Some(Self { path, dir })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(Error::errno(
                format!("state directory {}", path.display()),
                crate::errno(error),
            )),
        }
    }

    fn open_path(path: PathBuf) -> Result<Self> {
        let dir = open_directory(&path).map_err(|error| {
            Error::errno(
                format!("state directory {}", path.display()),
                crate::errno(error),
            )
        })?;
        Ok(Self { path, dir })
    }

    /// The directory's descriptor.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Keeps two commands that change the same container apart.
    ///
    /// # Errors
    /// Another command is at it.
    pub fn lock(&self) -> Result<()> {
        rustix::fs::flock(&self.dir, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            match error {
                Errno::WOULDBLOCK => Error::new("another command works on this container")
                    .with_hint("try again when it is done"),
                error => Error::errno("state lock", crate::errno(error)),
            }
        })
    }

    /// Makes the lock file of a container that waits for `start`, and locks it.
    ///
    /// # Errors
    /// Those of open(2) and flock(2).
    pub fn make_lock(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(&self.dir, LOCK, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(lock)
    }

    /// Whether the container's process waits for `start`: it holds the lock until it
    /// executes.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(lock) = rustix::fs::openat(&self.dir, LOCK, flags, Mode::empty()) else {
            return false;
        };
        let shared = FlockOperation::NonBlockingLockShared;
        rustix::fs::flock(&lock, shared) == Err(Errno::WOULDBLOCK)
    }

    /// Takes the socket and the lock away: the container's process has executed.
    pub fn forget_start(&self) {
        for name in [SOCKET, LOCK] {
            // A file that is gone already is what is wanted.
            let _ = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
        }
    }

    /// Remembers the cgroup before it is made: a place from the root of each hierarchy as a
    /// link's text, which takes one call; any other as a file that names each directory.
    ///
    /// # Errors
    /// Those of symlink(2) and of writing a file.
    pub fn write_group(&self, location: &Location, group: &Group) -> std::io::Result<()> {
        if let Location::Absolute(path) = location {
            return Ok(rustix::fs::symlinkat(format!("/{path}"), &self.dir, GROUP)?);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, GROUP, flags, Mode::from_raw_mode(0o600))?;
        File::from(file).write_all(&serde_json::to_vec(group)?)
    }

    /// The cgroup that a `create` was about to make.
    #[must_use]
    pub fn read_group(&self) -> Option<Group> {
        if let Ok(path) = rustix::fs::readlinkat(&self.dir, GROUP, Vec::new()) {
            let location = Location::resolve(path.to_str().ok(), "").ok()?;
            return Some(launch::expected_group(&(Layout::probe().ok()?, location)));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, GROUP, flags, Mode::empty()).ok()?;
        serde_json::from_slice(&file::read_to_end(file).ok()?).ok()
    }

    /// Writes what will be the state when it is [published](Self::publish).
    ///
    /// # Errors
    /// Those of writing a file.
    pub fn write(&self, state: &State) -> std::io::Result<()> {
        let text = serde_json::to_vec(state)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, NEW_STATE, flags, Mode::from_raw_mode(0o600))?;
        File::from(file).write_all(&text)
    }

    /// Makes what was written the state.
    ///
    /// # Errors
    /// Those of rename(2).
    pub fn publish(&self) -> rustix::io::Result<()> {
        rustix::fs::renameat(&self.dir, NEW_STATE, &self.dir, STATE)
    }

    /// Reads the state; `None` where the container is not made yet.
    ///
    /// # Errors
    /// Those of reading a file, and a file that is no state.
    pub fn read(&self) -> Result<Option<State>> {
        let Some(text) = self.read_file(STATE)? else {
            return self.read_unpublished();
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| self.error(&error.into()))
    }

    /// The state of a container whose program is executed, but whose runtime has not come to
    /// publish it: a program that says that it has begun is not "being created".
    fn read_unpublished(&self) -> Result<Option<State>> {
        let Some(text) = self.read_file(NEW_STATE)? else {
            // It was published meanwhile, or there is none.
            let text = self.read_file(STATE)?;
            return Ok(text.and_then(|text| serde_json::from_str(&text).ok()));
        };
        let state: Option<State> = serde_json::from_str(&text).ok();
        Ok(state.filter(|state| has_executed(state.pid)))
    }

    fn read_file(&self, name: &str) -> Result<Option<String>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.dir, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            other => other.map_err(|error| self.error(&error.into()))?,
        };
        let text = file::read_to_end(&file).map_err(|error| self.error(&error.into()))?;
        // Checked once, which is faster than string by string.
        String::from_utf8(text).map(Some).map_err(|error| {
            self.error(&std::io::Error::new(std::io::ErrorKind::InvalidData, error))
        })
    }

    fn error(&self, error: &std::io::Error) -> Error {
        Error::io(format!("state {}", self.path.join(STATE).display()), error)
    }

    /// Removes the directory and what is in it.
    ///
    /// # Errors
    /// Those of removing it; one that is gone already is none.
    pub fn remove(&self) -> Result<()> {
        // A container that ran to its end has left no more than the first two.
        let mut result = Ok(());
        for names in [&[STATE, GROUP][..], &[SOCKET, LOCK, NEW_STATE]] {
            for name in names {
                let _ = rustix::fs::unlinkat(&self.dir, *name, AtFlags::empty());
            }
            result = rustix::fs::rmdir(&self.path);
            if result != Err(Errno::NOTEMPTY) {
                break;
            }
        }
        match result {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(Error::errno(
                format!("state directory {}", self.path.display()),
                crate::errno(error),
            )),
        }
    }
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

impl State {
    /// Where the container is in its life.
    #[must_use]
    pub fn status(&self, entry: &Entry) -> Status {
        match start_time(self.pid) {
            Some(time) if time == self.start_time => {}
            _ => return Status::Stopped,
        }
        if entry.is_waiting() {
            Status::Created
        } else if self.group.is_frozen().unwrap_or(false) {
            Status::Paused
        } else {
            Status::Running
        }
    }
}

/// Whether a container's process is neither pipkin nor its init program any more.
fn has_executed(pid: i32) -> bool {
    let program = |pid: &str| rustix::fs::readlink(format!("/proc/{pid}/exe"), Vec::new()).ok();
    let Some(its) = program(&pid.to_string()) else {
        return false;
    };
    !image::is_link_to_one(its.as_bytes()) && program("self") != Some(its)
}

/// When a process began, in clock ticks; `None` when it has ended, be it that nobody has
/// asked for its status yet. proc_pid_stat(5), fields 3 and 22.
#[must_use]
pub fn start_time(pid: i32) -> Option<u64> {
    read_start_time(pid).ok().flatten()
}

/// The same, or why it cannot be known.
///
/// # Errors
/// Those of reading a file of procfs.
pub fn read_start_time(pid: i32) -> std::io::Result<Option<u64>> {
    let text = file::read(format!("/proc/{pid}/stat"))?;
    Ok(
        stat_fields(&text).and_then(|(_, mut fields)| match fields.next()? {
            "Z" | "X" => None,
            _ => fields.nth(18)?.parse().ok(),
        }),
    )
}

/// The name, field 2 of proc_pid_stat(5), and what follows: field 3 first.
#[must_use]
pub fn stat_fields(text: &str) -> Option<(&str, std::str::SplitAsciiWhitespace<'_>)> {
    // The name may contain anything, but nothing after it contains a parenthesis.
    let (before, rest) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    Some((name, rest.split_ascii_whitespace()))
}

/// Whether a process whose descriptors were closed has ended as the init program, and not
/// executed another: the name tells which it is, and the flags (field 9) that it ends, which
/// they do before anybody can wait for it. Of one that is gone nobody knows.
#[must_use]
pub fn ended_as_init(pid: i32) -> bool {
    let text = file::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    is_ended_init(&text)
}

fn is_ended_init(text: &str) -> bool {
    /// `linux/sched.h`.
    const PF_EXITING: u32 = 4;
    let Some((name, mut fields)) = stat_fields(text) else {
        return false;
    };
    // Before Linux 6.14 it has the number of the descriptor that was executed.
    let is_init = name.strip_prefix("memfd:") == Some(image::NAME)
        || name.bytes().all(|byte| byte.is_ascii_digit());
    let flags = fields.nth(6).and_then(|flags| flags.parse().ok());
    is_init && flags.is_some_and(|flags: u32| flags & PF_EXITING != 0)
}

/// The ids of all containers below a directory, sorted.
///
/// # Errors
/// Those of reading the directory; one that is not there holds none.
pub fn ids(root: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => {
            other.map_err(|error| Error::io(format!("state root {}", root.display()), &error))?
        }
    };
    let mut ids: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|id| check_id(id).is_ok())
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::Dir;

    fn entry(name: &str) -> (PathBuf, Entry) {
        let root = std::env::temp_dir().join(format!("pipkin-store-{}-{name}", std::process::id()));
        let entry = Entry::create(&root, "web").unwrap();
        (root, entry)
    }

    #[test]
    fn a_deep_cgroup_is_remembered() {
        let (root, entry) = entry("group");
        let dirs = (0..40).map(|number| Dir {
            hierarchy: format!("h{number}"),
            path: PathBuf::from(format!(
                "/sys/fs/cgroup/h{number}/{}",
                "kubepods/".repeat(20)
            )),
        });
        let group = Group {
            dirs: dirs.collect(),
        };
        entry
            .write_group(&Location::Relative("web".into()), &group)
            .unwrap();
        assert_eq!(entry.read_group(), Some(group));
        entry.remove().unwrap();
        std::fs::remove_dir(root).unwrap();
    }

    #[test]
    fn an_id_has_one_owner() {
        let (root, entry) = entry("owner");
        let error = Entry::create(&root, "web").unwrap_err();
        assert!(error.message.contains("exists already"), "{error}");
        assert!(!entry.is_waiting());
        let lock = entry.make_lock().unwrap();
        assert!(entry.is_waiting());
        drop(lock);
        assert!(!entry.is_waiting());
        entry.remove().unwrap();
        assert!(Entry::find(&root, "web").unwrap().is_none());
        std::fs::remove_dir(root).unwrap();
    }

    #[test]
    fn a_program_that_runs_is_not_being_created() {
        let (root, entry) = entry("unpublished");
        let of = |pid| State {
            pid: i32::try_from(pid).unwrap(),
            ..State::default()
        };
        let pid = |read: Result<Option<State>>| read.unwrap().map(|state| state.pid);
        assert_eq!(pid(entry.read()), None);
        // This program stands for the runtime, which is what a child is at first.
        entry.write(&of(std::process::id())).unwrap();
        assert_eq!(pid(entry.read()), None);
        let mut program = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let state = of(program.id());
        entry.write(&state).unwrap();
        assert_eq!(pid(entry.read()), Some(state.pid));
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!(pid(entry.read()), None);
        entry.publish().unwrap();
        assert_eq!(pid(entry.read()), Some(state.pid));
        entry.remove().unwrap();
        std::fs::remove_dir(root).unwrap();
    }

    #[test]
    fn a_process_that_ended_unexecuted_is_known_by_its_name_and_flags() {
        let line = |name, state, flags| {
            format!("7 ({name}) {state} 1 7 7 0 -1 {flags} 120 0 0 0 0 0 0 0 20 0 1 0 4711 0 0")
        };
        // PF_EXITING among the flags of a process that was made by a fork.
        for (name, state, flags, expected) in [
            ("memfd:pipkin", "R", 0x0040_0044, true),
            ("memfd:pipkin", "Z", 0x0040_0044, true),
            ("6", "Z", 0x0040_0044, true),
            ("memfd:pipkin", "S", 0x0040_0040, false),
            ("sh", "Z", 0x0040_0044, false),
            (") R 1 2", "Z", 0x0040_0044, false),
        ] {
            let line = line(name, state, flags);
            assert_eq!(is_ended_init(&line), expected, "{line}");
        }
        assert!(!is_ended_init(""));
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(!ended_as_init(own));
        assert!(start_time(own).is_some());
    }

    #[test]
    fn ids_that_are_no_names_are_refused() {
        for id in ["", ".", "..", "a/b", "a b", "é", "a\0", &"x".repeat(256)] {
            assert!(check_id(id).is_err(), "{id:?}");
        }
        for id in ["a", "A-1_b+c.d", "..a", &"x".repeat(255)] {
            assert!(check_id(id).is_ok(), "{id:?}");
        }
    }

    #[test]
    fn this_process_has_begun() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(start_time(pid).is_some_and(|ticks| ticks > 0));
        assert_eq!(start_time(0), None);
    }
}
