//! The floor: the fewest system calls with which a container of one of the bench's
//! configurations can be had. It has no JSON, no state, no hooks, no checks, no protection
//! against what the container or its image might do, and no way to make two containers that
//! differ in anything but their name: it is what pipkin's time is compared with.
//!
//! ```text
//! floor PROFILE FILTER LIMITS GROUP BUNDLE CPUS MEMS BINDS NAME=MOUNT… -- PROGRAM ARGUMENT…
//! ```
//!
//! | | |
//! | --- | --- |
//! | PROFILE | `podman`, `containerd`, `docker` or `spec` |
//! | FILTER | `filter`, or `plain` for no seccomp filter |
//! | LIMITS | `limits`, or `free` for none but the rules for devices |
//! | GROUP | the group's path in each hierarchy; its parent must be there |
//! | BUNDLE | has `rootfs`, in which every mount point is, and `files` |
//! | CPUS, MEMS | what the v1 cpuset gets |
//! | BINDS | so many more binds of `files/shm`, at `m/0`, `m/1`, … |
//! | NAME=MOUNT | a hierarchy of control groups; the unified one has no name |

#![no_main]

mod cgroup;
mod profiles;
mod text;

use core::ffi::{CStr, c_char};

use pipkin_op::ms;
use pipkin_sys::fs::{self, mode, oflag};
use pipkin_sys::mount::{self, MNT_DETACH};
use pipkin_sys::process::{self, Arg, Ended, clone};
use pipkin_sys::{AT_FDCWD, Errno, Result, measure, socket};

use cgroup::{Cpuset, Hierarchy};
use profiles::{Mask, Mount, PROFILES, Profile};
use text::Path;

/// What the session keyring allows: the kernel's default, and that its user may search it.
const KEYRING: u32 = 0x3f1b_0000;

/// How many words and hierarchies there may be.
const MOST: usize = 64;

/// One start.
struct Launch {
    profile: &'static Profile,
    filter: bool,
    limits: bool,
    group: &'static [u8],
    bundle: &'static [u8],
    cpuset: Cpuset,
    binds: usize,
    hierarchies: [Hierarchy; MOST],
    hierarchy_count: usize,
    program: [Arg<'static>; MOST + 1],
    path: &'static CStr,
}

/// The C library's entry, called directly: the standard library's would cost time.
///
/// # Safety
/// `argv` must have `argc` strings that live as long as the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: i32, argv: *const *const c_char) -> i32 {
    let mut words: [&'static CStr; MOST] = [c""; MOST];
    let count = usize::try_from(argc).unwrap_or(0).min(MOST);
    for (number, place) in words.iter_mut().enumerate().take(count) {
        // SAFETY: there are `argc` strings, as the C library promises.
        *place = unsafe { CStr::from_ptr(*argv.add(number)) };
    }
    let Some(launch) = parse(words.get(1..count).unwrap_or_default()) else {
        let _ = fs::write(2, b"floor: these arguments mean nothing to it\n");
        return 125;
    };
    match launch.run() {
        Ok(Ended::Exited(status)) => status,
        Ok(Ended::Signalled(signal)) => 128 + signal,
        Err(error) => {
            complain(error);
            126
        }
    }
}

fn complain(error: Errno) {
    for part in ["floor: ", error.text(), "\n"] {
        let _ = fs::write(2, part.as_bytes());
    }
}

fn number(text: &CStr) -> Option<usize> {
    text.to_str().ok()?.parse().ok()
}

fn parse(words: &[&'static CStr]) -> Option<Launch> {
    let [
        profile,
        filter,
        limits,
        group,
        bundle,
        cpus,
        mems,
        binds,
        rest @ ..,
    ] = words
    else {
        return None;
    };
    let dashes = rest.iter().position(|word| *word == c"--")?;
    let mut hierarchies = [Hierarchy::default(); MOST];
    for (place, word) in hierarchies.iter_mut().zip(rest.get(..dashes)?) {
        *place = Hierarchy::parse(word)?;
    }
    let mut program = [Arg::END; MOST + 1];
    for (place, word) in program.iter_mut().zip(rest.get(dashes + 1..)?) {
        *place = Arg::new(word);
    }
    static TABLE: [Profile; PROFILES.len()] = PROFILES;
    Some(Launch {
        profile: TABLE
            .iter()
            .find(|known| known.name.as_bytes() == profile.to_bytes())?,
        filter: *filter == c"filter",
        limits: *limits == c"limits",
        group: group.to_bytes(),
        bundle: bundle.to_bytes(),
        cpuset: Cpuset {
            cpus: cpus.to_bytes(),
            mems: mems.to_bytes(),
        },
        binds: number(binds)?,
        hierarchies,
        hierarchy_count: dashes,
        program,
        path: rest.get(dashes + 1)?,
    })
}

impl Launch {
    fn hierarchies(&self) -> &[Hierarchy] {
        self.hierarchies
            .get(..self.hierarchy_count)
            .unwrap_or_default()
    }

    /// Whether all groups are v2.
    fn is_pure(&self) -> bool {
        self.hierarchies().iter().all(|one| one.name.is_empty())
    }

    fn has_cgroup_namespace(&self) -> bool {
        let (pure, other) = self.profile.cgroup_namespace;
        if self.is_pure() { pure } else { other }
    }

    /// The parent's side.
    fn run(&self) -> Result<Ended> {
        let derived = &self.profile.derived;
        let v2 = if self.limits { derived.v2 } else { &[] };
        let unified = cgroup::create(self.hierarchies(), self.group, self.cpuset, derived, v2)?;
        let mut flags =
            clone::NEWNS | clone::NEWUTS | clone::NEWIPC | clone::NEWPID | clone::NEWNET;
        if self.is_pure() && self.has_cgroup_namespace() {
            flags |= clone::NEWCGROUP;
        }
        // SAFETY: no handler is installed, and the child makes only system calls.
        let child = unsafe { measure::vfork(flags, unified, Self::child, self) };
        let ended = child.and_then(process::wait);
        cgroup::remove(self.hierarchies(), self.group)?;
        ended
    }

    /// The child's side; it does not return when all goes well.
    fn child(&self) -> i32 {
        let error = match self.enter() {
            Ok(never) => match never {},
            Err(error) => error,
        };
        complain(error);
        126
    }

    fn enter(&self) -> Result<core::convert::Infallible> {
        let profile = self.profile;
        cgroup::join(self.hierarchies(), self.group)?;
        if !self.is_pure() && self.has_cgroup_namespace() {
            process::unshare(clone::NEWCGROUP)?;
        }
        process::setsid()?;
        let keyring = process::join_session_keyring(c"_ses.floor")?;
        process::set_key_permissions(keyring, KEYRING)?;
        if !profile.hostname.is_empty() {
            process::sethostname(profile.hostname.as_bytes())?;
        }
        socket::loopback_up()?;
        fs::umask(0);

        let root = Path::of(&[self.bundle, b"/rootfs"])?;
        let root = root.c_str()?;
        mount::mount(None, c"/", None, ms::REC | ms::PRIVATE, None)?;
        mount::mount(Some(root), root, None, ms::BIND | ms::REC, None)?;
        fs::chdir(root)?;
        for entry in profile.mounts {
            self.mount(entry)?;
        }
        for number in 0..self.binds {
            self.extra_bind(number)?;
        }
        devices()?;
        mount::pivot_root_here()?;
        mount::umount(c".", MNT_DETACH)?;

        for (path, value) in profile.sysctl {
            let file = fs::openat(AT_FDCWD, path, oflag::WRONLY, 0)?;
            fs::write(file, value)?;
        }
        for path in profile.readonly {
            make_readonly(path, profile.proc_flags())?;
        }
        mask(profile.masked)?;
        if profile.readonly_root {
            let flags = ms::REMOUNT | ms::BIND | ms::RDONLY;
            mount::mount(None, c".", None, flags, None)?;
        }
        self.lower()?;

        let mut env = [Arg::END; 8];
        for (place, variable) in env.iter_mut().zip(profile.env) {
            *place = Arg::new(variable);
        }
        Err(process::execve(self.path, &self.program, &env))
    }

    /// What the process may do.
    fn lower(&self) -> Result<()> {
        let profile = self.profile;
        let keep = profile.derived.capabilities;
        for (resource, soft, hard) in profile.rlimits {
            process::set_rlimit(*resource, *soft, *hard)?;
        }
        let last = profiles::CAPABILITIES;
        for capability in (0..last).filter(|capability| keep & 1 << capability == 0) {
            process::drop_bounding(capability)?;
        }
        let groups: &[u8] = if profile.group { &[0; 4] } else { &[] };
        process::setgroups(groups)?;
        fs::umask(0o022);
        if profile.no_new_privs {
            process::no_new_privs()?;
        }
        if self.filter && !profile.derived.filter.is_empty() {
            process::seccomp_filter(profile.derived.filter, profile.derived.flags)?;
        }
        process::capset(keep, keep, 0)
    }

    fn mount(&self, entry: &Mount) -> Result<()> {
        match *entry {
            Mount::New {
                kind,
                target,
                make,
                flags,
                data,
            } => {
                if make {
                    fs::mkdirat(AT_FDCWD, target, 0o755)?;
                }
                mount::mount(Some(kind), target, Some(kind), flags, data)
            }
            Mount::File {
                name,
                target,
                make,
                flags,
            } => {
                if make {
                    fs::mkdirat(AT_FDCWD, target, 0o755)?;
                }
                let source = Path::of(&[self.bundle, b"/files/", name.as_bytes()])?;
                mount::mount(Some(source.c_str()?), target, None, ms::BIND, None)?;
                if flags == 0 {
                    return Ok(());
                }
                mount::mount(None, target, None, ms::REMOUNT | ms::BIND | flags, None)
            }
            Mount::Cgroup(flags) => cgroup::show(
                self.hierarchies(),
                self.group,
                flags,
                self.has_cgroup_namespace(),
            ),
        }
    }

    fn extra_bind(&self, number: usize) -> Result<()> {
        let mut digits = [b'0'; 4];
        let mut left = number;
        for place in digits.iter_mut().rev() {
            *place = b'0' + (left % 10) as u8;
            left /= 10;
        }
        let source = Path::of(&[self.bundle, b"/files/shm"])?;
        let target = Path::of(&[b"m/", &digits])?;
        mount::mount(Some(source.c_str()?), target.c_str()?, None, ms::BIND, None)
    }
}

fn devices() -> Result<()> {
    for (path, minor) in [
        (c"dev/null", 3),
        (c"dev/zero", 5),
        (c"dev/full", 7),
        (c"dev/random", 8),
        (c"dev/urandom", 9),
    ] {
        fs::mknodat(AT_FDCWD, path, mode::CHARACTER | 0o666, 1, minor)?;
    }
    fs::mknodat(AT_FDCWD, c"dev/tty", mode::CHARACTER | 0o666, 5, 0)?;
    for (target, path) in [
        (c"/proc/self/fd", c"dev/fd"),
        (c"/proc/self/fd/0", c"dev/stdin"),
        (c"/proc/self/fd/1", c"dev/stdout"),
        (c"/proc/self/fd/2", c"dev/stderr"),
        (c"pts/ptmx", c"dev/ptmx"),
    ] {
        fs::symlinkat(target, AT_FDCWD, path)?;
    }
    Ok(())
}

/// What is not there need not be protected.
fn unless_missing(result: Result<()>) -> Result<bool> {
    match result {
        Err(Errno::ENOENT) => Ok(false),
        other => other.map(|()| true),
    }
}

/// Makes a path of a file system that was mounted with `flags` read-only.
fn make_readonly(path: &CStr, flags: u64) -> Result<()> {
    if unless_missing(mount::mount(Some(path), path, None, ms::BIND, None))? {
        let flags = ms::REMOUNT | ms::BIND | ms::RDONLY | flags;
        mount::mount(None, path, None, flags, None)?;
    }
    Ok(())
}

/// A file gets /dev/null, the first directory an empty tmpfs, the others the same one.
fn mask(paths: &[Mask]) -> Result<()> {
    let mut empty: Option<&CStr> = None;
    for path in paths {
        match (path, empty) {
            (Mask::File(path), _) => {
                let _ =
                    unless_missing(mount::mount(Some(c"dev/null"), path, None, ms::BIND, None))?;
            }
            (Mask::Directory(path), Some(empty)) => {
                let _ = unless_missing(mount::mount(Some(empty), path, None, ms::BIND, None))?;
            }
            (Mask::Directory(path), None) => {
                let kind = Some(c"tmpfs");
                let flags = ms::RDONLY | ms::NOSUID | ms::NODEV | ms::NOEXEC;
                if unless_missing(mount::mount(kind, path, kind, flags, None))? {
                    empty = Some(path);
                }
            }
        }
    }
    Ok(())
}
