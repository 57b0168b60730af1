//! Processes, namespaces and what a process may do.

use core::ffi::CStr;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::{Errno, Fd, Result, as_fd, call, fd, raw};

/// `CLONE_*` of `linux/sched.h`.
pub mod clone {
    /// Same memory.
    pub const VM: u64 = 0x100;
    /// A descriptor of the child.
    pub const PIDFD: u64 = 0x1000;
    /// The parent waits until the child has executed a program.
    pub const VFORK: u64 = 0x4000;
    /// The child's parent is this process's own.
    pub const PARENT: u64 = 0x8000;
    /// New time namespace.
    pub const NEWTIME: u64 = 0x80;
    /// New mount namespace.
    pub const NEWNS: u64 = 0x2_0000;
    /// New cgroup namespace.
    pub const NEWCGROUP: u64 = 0x200_0000;
    /// New UTS namespace.
    pub const NEWUTS: u64 = 0x400_0000;
    /// New IPC namespace.
    pub const NEWIPC: u64 = 0x800_0000;
    /// New user namespace.
    pub const NEWUSER: u64 = 0x1000_0000;
    /// New pid namespace.
    pub const NEWPID: u64 = 0x2000_0000;
    /// New network namespace.
    pub const NEWNET: u64 = 0x4000_0000;
    /// Born in a cgroup, Linux 5.7.
    pub const INTO_CGROUP: u64 = 0x2_0000_0000;
}

/// One place of an argument vector: a string, or the end.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Arg<'a>(*const core::ffi::c_char, PhantomData<&'a CStr>);

impl<'a> Arg<'a> {
    /// The end of a vector.
    pub const END: Self = Self(core::ptr::null(), PhantomData);

    /// A string.
    #[must_use]
    pub const fn new(string: &'a CStr) -> Self {
        Self(string.as_ptr(), PhantomData)
    }

    fn check(vector: &[Self]) -> Result<usize> {
        match vector.last() {
            Some(last) if last.0.is_null() => Ok(vector.as_ptr() as usize),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// What a new process executes.
#[derive(Debug, Clone, Copy)]
pub enum Program<'a> {
    /// An open file.
    File(Fd),
    /// A path.
    Path(&'a CStr),
}

/// How a process is made.
#[derive(Debug, Clone, Copy)]
pub struct Spawn<'a> {
    /// `CLONE_*`: namespaces.
    pub flags: u64,
    /// A directory of cgroup v2 that it is born in.
    pub cgroup: Option<Fd>,
    /// A user namespace that it joins before its other namespaces are made.
    pub user: Option<Fd>,
    /// With `user`: a pid namespace that it is born in.
    pub pid: Option<Fd>,
    /// What it executes.
    pub program: Program<'a>,
    /// Its arguments; the last must be [`Arg::END`].
    pub args: &'a [Arg<'a>],
    /// Its environment; the last must be [`Arg::END`].
    pub env: &'a [Arg<'a>],
    /// Descriptors that it keeps.
    pub keep: &'a [Fd],
    /// Its standard input, where it is another one.
    pub stdin: Option<Fd>,
    /// Whether it begins a process group of its own.
    pub own_group: bool,
    /// Whether its signal mask is emptied and SIGPIPE, which Rust's run time ignores, has its
    /// default effect.
    pub reset_signals: bool,
}

#[derive(Debug)]
struct Child<'a> {
    spawn: Spawn<'a>,
    args: usize,
    env: usize,
    error: i32,
    /// The process, where another one made it.
    pid: i32,
    /// The stack of a process that another one makes.
    second: *mut Stack,
}

/// What the child of [`spawn`] does: only system calls.
extern "C" fn child(context: *mut u8) -> ! {
    // SAFETY: `spawn` passes its own `Child` and waits (CLONE_VFORK) until this process has
    // executed a program or ended; `spawn_ahead` passes one that nobody else writes to.
    let child = unsafe { &mut *context.cast::<Child<'_>>() };
    let Err(error) = exec_in_child(child);
    child.error = error.number();
    exit(127)
}

/// The set of this signal alone.
const SIGPIPE: u64 = 1 << 12;

fn exec_in_child(child: &Child<'_>) -> Result<core::convert::Infallible> {
    let spawn = &child.spawn;
    if let Some(stdin) = spawn.stdin {
        crate::fs::dup3(stdin, 0)?;
    }
    for &file in spawn.keep {
        crate::fs::set_cloexec(file, false)?;
    }
    if spawn.own_group {
        // SAFETY: no memory is passed.
        unsafe { call!(SETPGID, 0, 0)? };
    }
    if spawn.reset_signals {
        reset_signals(SIGPIPE)?;
    }
    if spawn.flags & clone::NEWUSER != 0 || spawn.user.is_some() {
        keep_capabilities_over_exec()?;
    }
    let (dir, path, flags) = match spawn.program {
        Program::File(file) => (file, c"", 0x1000),
        Program::Path(path) => (crate::AT_FDCWD, path, 0),
    };
    // SAFETY: `path` ends with a NUL; both vectors were checked to end with NULL.
    unsafe {
        call!(
            EXECVEAT,
            fd(dir),
            path.as_ptr() as usize,
            child.args,
            child.env,
            flags
        )?;
    }
    Err(Errno::ENOEXEC)
}

/// In a user namespace that is new or was just joined the process has all capabilities, but no user id yet: execve(2)
/// would take them away. Ambient ones stay; whoever sets the inheritable set later takes
/// them back.
fn keep_capabilities_over_exec() -> Result<()> {
    capset(u64::MAX, u64::MAX, u64::MAX)?;
    for capability in 0..64 {
        match raise_ambient(capability) {
            Err(Errno::EINVAL) => break,
            other => other?,
        }
    }
    Ok(())
}

/// Makes a process that shares this one's memory until it has executed its program, and
/// waits for that: 23 µs against 95 for a fork of a small program. Gives its id and a
/// descriptor of it. A failure of the child before its execve(2) is this call's.
pub fn spawn(spawn: &Spawn<'_>) -> Result<(i32, Fd)> {
    const SIGCHLD: u64 = 17;
    let mut stack = Stack::new();
    let mut second = Stack::new();
    let mut pidfd: Fd = -1;
    let mut context = Child {
        args: Arg::check(spawn.args)?,
        env: Arg::check(spawn.env)?,
        spawn: *spawn,
        error: 0,
        pid: 0,
        second: &raw mut second,
    };
    let entry = if spawn.user.is_some() {
        join_and_clone
    } else {
        child
    };
    let mut arguments = match spawn.user {
        Some(_) => CloneArgs::new(0, None, &mut stack),
        None => CloneArgs::new(spawn.flags, spawn.cgroup, &mut stack),
    };
    arguments.exit_signal = SIGCHLD;
    arguments.flags |= clone::PIDFD;
    arguments.pidfd = &raw mut pidfd as u64;
    let blocked = block_signals()?;
    let context_pointer = &raw mut context;
    // SAFETY: `arguments` is valid and names `stack`, which is aligned and outlives the child's
    // use of it, because CLONE_VFORK keeps this function from going on before the child has
    // executed a program or ended; signals are blocked, so that no handler of this process
    // runs in the child; `entry` makes only system calls.
    let pid = unsafe { arguments.call(entry, context_pointer.cast()) };
    restore_signal_mask(blocked)?;
    let pid = pid?;
    // SAFETY: the child wrote them, if at all, before this function went on.
    let (error, made) = unsafe {
        let error = (&raw const (*context_pointer).error).read_volatile();
        (error, (&raw const (*context_pointer).pid).read_volatile())
    };
    // SAFETY: the kernel wrote it before this function went on.
    let pidfd = unsafe { (&raw const pidfd).read_volatile() };
    if error != 0 {
        let _ = wait(pid);
        if made != 0 {
            let _ = wait(made);
        }
        crate::fs::close(pidfd);
        return Err(Errno::new(error));
    }
    if spawn.user.is_none() {
        return Ok((pid, pidfd));
    }
    crate::fs::close(pidfd);
    wait(pid)?;
    Ok((made, pidfd_open(made)?))
}

/// A process that may not have executed its program yet.
#[derive(Debug)]
pub struct Ahead {
    /// Its id.
    pub pid: i32,
    /// A descriptor of it.
    pub pidfd: Fd,
    error: *const i32,
}

impl Ahead {
    /// Why the process ended without executing its program: to be asked for when it has ended.
    #[must_use]
    pub fn error(&self) -> Option<Errno> {
        // SAFETY: `spawn_ahead` made it and gives it to nobody who would free it.
        let error = unsafe { self.error.read_volatile() };
        (error != 0).then(|| Errno::new(error))
    }
}

/// As [`spawn`], but does not wait: on a machine with several processors the caller's next steps
/// and the execution take place at the same time. What the process uses until then, 16 KiB and
/// what `spawn` names, is never given back.
pub fn spawn_ahead(spawn: Spawn<'static>, memory: &'static mut AheadMemory) -> Result<Ahead> {
    const SIGCHLD: u64 = 17;
    let AheadMemory {
        stack,
        pidfd,
        context,
    } = memory;
    let context = context.write(Child {
        args: Arg::check(spawn.args)?,
        env: Arg::check(spawn.env)?,
        spawn,
        error: 0,
        pid: 0,
        second: core::ptr::null_mut(),
    });
    let mut arguments = CloneArgs::new(spawn.flags, spawn.cgroup, stack);
    arguments.exit_signal = SIGCHLD;
    arguments.flags |= clone::PIDFD;
    arguments.flags &= !clone::VFORK;
    arguments.pidfd = &raw mut *pidfd as u64;
    let context = &raw mut *context;
    let blocked = block_signals()?;
    // SAFETY: `arguments` is valid and names `stack`, which like `context` and what it refers to
    // is never given back nor used by this process again, but for `error`; signals are blocked,
    // so that no handler of this process runs in the child, which makes only system calls.
    let pid = unsafe { arguments.call(child, context.cast()) };
    restore_signal_mask(blocked)?;
    // SAFETY: the kernel wrote it before the call returned.
    let pidfd = unsafe { (&raw const *pidfd).read_volatile() };
    Ok(Ahead {
        pid: pid?,
        pidfd,
        // SAFETY: `context` is valid for ever; no reference is made.
        error: unsafe { &raw const (*context).error },
    })
}

/// What [`spawn_ahead`] needs.
#[derive(Debug)]
pub struct AheadMemory {
    stack: Stack,
    pidfd: Fd,
    context: core::mem::MaybeUninit<Child<'static>>,
}

/// For the first process that is made so: memory of its own would have to be cleared.
static AHEAD: AheadCell = AheadCell(core::cell::UnsafeCell::new(AheadMemory::new()));
static AHEAD_TAKEN: AtomicBool = AtomicBool::new(false);

struct AheadCell(core::cell::UnsafeCell<AheadMemory>);

// SAFETY: `AheadMemory::first` gives it out once.
unsafe impl Sync for AheadCell {}

impl AheadMemory {
    /// The memory that the program has for this; `None` but the first time.
    #[must_use]
    pub fn first() -> Option<&'static mut Self> {
        if AHEAD_TAKEN.swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: nobody else is given it.
        Some(unsafe { &mut *AHEAD.0.get() })
    }

    /// Memory for one process.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "a static needs a const function"
    )]
    pub const fn new() -> Self {
        Self {
            stack: Stack::new(),
            // All zeros: it is not in the program's file then.
            pidfd: 0,
            context: core::mem::MaybeUninit::uninit(),
        }
    }
}

/// The stack of a child. Its address is its own, and aligned as the calling conventions want.
#[derive(Debug)]
#[repr(C, align(16))]
struct Stack(core::mem::MaybeUninit<[u8; Self::SIZE]>);

impl Stack {
    const SIZE: usize = 16384;

    const fn new() -> Self {
        Self(core::mem::MaybeUninit::uninit())
    }
}

/// `struct clone_args`, `linux/sched.h`.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

impl CloneArgs {
    /// A child that shares this process's memory and is waited for.
    fn new(flags: u64, cgroup: Option<Fd>, stack: &mut Stack) -> Self {
        let into = if cgroup.is_some() {
            clone::INTO_CGROUP
        } else {
            0
        };
        Self {
            flags: flags | into | clone::VM | clone::VFORK,
            stack: stack.0.as_mut_ptr() as u64,
            stack_size: Stack::SIZE as u64,
            cgroup: cgroup.map_or(0, |dir| dir as u64),
            ..Self::default()
        }
    }

    /// clone3(2). Kernels before 5.7 know no `cgroup`.
    ///
    /// # Safety
    /// As for [`raw::clone3_call`].
    unsafe fn call(&mut self, entry: extern "C" fn(*mut u8) -> !, context: *mut u8) -> Result<i32> {
        let size = if self.flags & clone::INTO_CGROUP == 0 {
            64
        } else {
            size_of::<Self>()
        };
        // SAFETY: the caller's promise.
        unsafe { raw::clone3_call((&raw mut *self).cast(), size, entry, context) }.map(as_fd)
    }
}

/// The pid namespace first: it may belong to the user namespace of this process.
fn join(spawn: &Spawn<'_>) -> Result<()> {
    if let Some(pid) = spawn.pid {
        setns(pid, clone::NEWPID as u32)?;
    }
    setns(spawn.user.ok_or(Errno::EBADF)?, clone::NEWUSER as u32)
}

/// What the process between does: it joins the user namespace, and makes the child there, whose
/// parent is this process's own.
extern "C" fn join_and_clone(context: *mut u8) -> ! {
    // SAFETY: as for `child`; the child of this one is waited for (CLONE_VFORK) as well.
    let child_context = unsafe { &mut *context.cast::<Child<'_>>() };
    let joined = join(&child_context.spawn);
    let made = joined.and_then(|()| {
        // SAFETY: `spawn` made it for this, and uses it no more than this process does.
        let stack = unsafe { &mut *child_context.second };
        let spawn = child_context.spawn;
        let mut arguments = CloneArgs::new(spawn.flags | clone::PARENT, spawn.cgroup, stack);
        // SAFETY: `stack` outlives the child's use of it, because CLONE_VFORK keeps this process
        // from going on; signals are blocked.
        unsafe { arguments.call(child, context) }
    });
    match made {
        Ok(pid) => child_context.pid = pid,
        Err(error) => child_context.error = error.number(),
    }
    exit(0)
}

extern "C" fn sleeper(_: *mut u8) -> ! {
    end_with_parent();
    loop {
        // SAFETY: no memory is passed; it waits for a signal, and only SIGKILL comes through.
        let _ = unsafe { call!(PPOLL, 0, 0, 0, 0, 0) };
    }
}

/// PR_SET_PDEATHSIG: who is killed leaves no helper behind.
fn end_with_parent() {
    let _ = prctl(1, 9, 0);
}

/// Calls `with` with the id of a process that is alone in a new user namespace, and ends that
/// process afterwards: an id-mapped mount needs the namespace, not the process.
pub fn with_user_namespace<T>(with: impl FnOnce(i32) -> T) -> Result<T> {
    hold(clone::NEWUSER, sleeper, core::ptr::null_mut(), with)
}

/// What the child of [`with_empty_mount_namespace`] shares with its parent.
struct Emptied {
    /// The end of a pipe that it writes to when it is done.
    done: Fd,
}

extern "C" fn empty_mounts(context: *mut u8) -> ! {
    // SAFETY: `hold` passes the context of `with_empty_mount_namespace`, which lives until this
    // process is waited for, and which nobody writes to.
    let shared = unsafe { &*context.cast::<Emptied>() };
    end_with_parent();
    let error = leave_all_mounts().err().map_or(0, Errno::number);
    let _ = crate::fs::write(shared.done, &error.to_le_bytes());
    sleeper(core::ptr::null_mut())
}

/// Replaces all mounts of this mount namespace by an empty, read-only file system.
fn leave_all_mounts() -> Result<()> {
    use crate::mount;
    const REC_PRIVATE: u64 = 1 << 14 | 1 << 18;
    const RDONLY_NOSUID_NODEV_NOEXEC: u64 = 0xf;
    mount::mount(None, c"/", None, REC_PRIVATE, None)?;
    let context = mount::fsopen(c"tmpfs")?;
    mount::fsconfig_string(context, c"source", c"tmpfs")?;
    mount::fsconfig_flag(context, c"ro")?;
    mount::fsconfig_create(context)?;
    let empty = mount::fsmount(context, RDONLY_NOSUID_NODEV_NOEXEC)?;
    mount::move_mount(empty, crate::AT_FDCWD, c"/")?;
    crate::fs::fchdir(empty)?;
    mount::pivot_root_here()?;
    mount::umount(c".", mount::MNT_DETACH)
}

/// Calls `with` with the id of a process that is alone in a new mount namespace, whose only
/// mount is an empty, read-only file system, and ends that process afterwards.
pub fn with_empty_mount_namespace<T>(with: impl FnOnce(i32) -> T) -> Result<T> {
    let (read, write) = crate::fs::pipe()?;
    let mut shared = Emptied { done: write };
    let context = (&raw mut shared).cast();
    let result = hold(clone::NEWNS, empty_mounts, context, |pid| {
        let mut error = [0u8; 4];
        crate::fs::read(read, &mut error)?;
        match i32::from_le_bytes(error) {
            0 => Ok(with(pid)),
            number => Err(Errno::new(number)),
        }
    });
    crate::fs::close(read);
    crate::fs::close(write);
    result?
}

/// Makes a process with new namespaces that shares this one's memory, calls `with` with its
/// id, and ends it.
fn hold<T>(
    flags: u64,
    entry: extern "C" fn(*mut u8) -> !,
    context: *mut u8,
    with: impl FnOnce(i32) -> T,
) -> Result<T> {
    const SIGKILL: i32 = 9;
    let mut stack = Stack::new();
    let mut arguments = CloneArgs::new(flags, None, &mut stack);
    arguments.flags &= !clone::VFORK;
    let blocked = block_signals()?;
    // SAFETY: `arguments` is valid and names `stack`, which outlives the child: it is killed and
    // waited for below. The child makes only system calls, with all signals blocked, and writes
    // to nothing but its stack.
    let pid = unsafe { arguments.call(entry, context) };
    set_signal_mask(blocked)?;
    let pid = pid?;
    let result = with(pid);
    kill(pid, SIGKILL)?;
    wait_cloned(pid)?;
    // The stack must not end before the child does.
    core::hint::black_box(&mut stack);
    Ok(result)
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

impl Ended {
    /// Reads what wait4(2) gives, `WIFEXITED` and its kin.
    const fn new(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Exited((status >> 8) & 0xff),
            signal => Self::Signalled(signal),
        }
    }
}

/// wait4(2) for one child, without a limit.
pub fn wait(pid: i32) -> Result<Ended> {
    wait4(pid, 0).map(|(_, ended)| ended)
}

/// The same for a child that tells of its end by no signal.
fn wait_cloned(pid: i32) -> Result<Ended> {
    const WCLONE: usize = 0x8000_0000;
    wait4(pid, WCLONE).map(|(_, ended)| ended)
}

/// wait4(2) for any child that has ended; `None` where none has.
pub fn reap() -> Result<Option<(i32, Ended)>> {
    const WNOHANG: usize = 1;
    match wait4(-1, WNOHANG) {
        Ok((0, _)) | Err(Errno::ECHILD) => Ok(None),
        other => other.map(Some),
    }
}

fn wait4(pid: i32, options: usize) -> Result<(i32, Ended)> {
    let mut status = 0i32;
    loop {
        // SAFETY: the kernel writes one int.
        match unsafe { call!(WAIT4, fd(pid), &raw mut status as usize, options, 0) } {
            Err(Errno::EINTR) => {}
            other => return Ok((as_fd(other?), Ended::new(status))),
        }
    }
}

/// pidfd_open(2), close-on-exec.
pub fn pidfd_open(pid: i32) -> Result<Fd> {
    // SAFETY: no memory is passed.
    unsafe { call!(PIDFD_OPEN, fd(pid), 0).map(as_fd) }
}

/// pidfd_send_signal(2).
pub fn pidfd_send_signal(pidfd: Fd, signal: i32) -> Result<()> {
    // SAFETY: no information is passed.
    unsafe { call!(PIDFD_SEND_SIGNAL, fd(pidfd), fd(signal), 0, 0).map(drop) }
}

/// Waits until a descriptor can be read from, at most `milliseconds`; whether it can.
pub fn wait_readable(file: Fd, milliseconds: u32) -> Result<bool> {
    const POLLIN: u64 = 1;
    let mut entry = (fd(file) as u64 & 0xffff_ffff) | POLLIN << 32;
    let limit = [
        u64::from(milliseconds / 1000),
        u64::from(milliseconds % 1000) * 1_000_000,
    ];
    // SAFETY: `entry` is a little-endian `struct pollfd`, `limit` a `struct timespec`; the
    // signal mask is absent.
    let ready = unsafe {
        call!(
            PPOLL,
            &raw mut entry as usize,
            1,
            limit.as_ptr() as usize,
            0,
            8
        )
    };
    match ready {
        Err(Errno::EINTR) => Ok(false),
        other => Ok(other? > 0),
    }
}

/// kill(2).
pub fn kill(pid: i32, signal: i32) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(KILL, fd(pid), fd(signal)).map(drop) }
}

fn sigprocmask(how: usize, new: u64) -> Result<u64> {
    let mut old = 0u64;
    // SAFETY: both sets have the 8 bytes that are named.
    unsafe {
        call!(
            RT_SIGPROCMASK,
            how,
            &raw const new as usize,
            &raw mut old as usize,
            8
        )?;
    }
    Ok(old)
}

/// Blocks every signal; gives the mask from before.
pub fn block_signals() -> Result<u64> {
    sigprocmask(0, u64::MAX)
}

/// Sets the signal mask to what [`block_signals`] found, if that was another one.
fn restore_signal_mask(blocked: u64) -> Result<()> {
    /// SIGKILL and SIGSTOP cannot be blocked.
    const ALL: u64 = !(1 << 8 | 1 << 18);
    if blocked & ALL == ALL {
        return Ok(());
    }
    set_signal_mask(blocked)
}

/// Sets the signal mask.
pub fn set_signal_mask(mask: u64) -> Result<()> {
    sigprocmask(2, mask).map(drop)
}

/// Waits for any signal of a set that is blocked, rt_sigtimedwait(2) without a limit: its
/// number.
pub fn wait_signal(set: u64) -> Result<i32> {
    loop {
        // SAFETY: the set has the 8 bytes that are named; no information is asked for.
        match unsafe { call!(RT_SIGTIMEDWAIT, &raw const set as usize, 0, 0, 8) } {
            Err(Errno::EINTR) => {}
            other => return other.map(as_fd),
        }
    }
}

/// Empties the signal mask and gives the signals of a set (bit 0 for number 1) their default
/// effect.
pub fn reset_signals(set: u64) -> Result<()> {
    let default = [0u64; 4];
    for signal in (1..=64usize).filter(|signal| set & 1 << (signal - 1) != 0) {
        // SAFETY: a `struct sigaction` of zeros is SIG_DFL with an empty mask.
        unsafe { call!(RT_SIGACTION, signal, default.as_ptr() as usize, 0, 8)? };
    }
    set_signal_mask(0)
}

/// execve(2); it returns only an error.
pub fn execve(path: &CStr, args: &[Arg<'_>], env: &[Arg<'_>]) -> Errno {
    let vectors = Arg::check(args).and_then(|args| Ok((args, Arg::check(env)?)));
    let (args, env) = match vectors {
        Ok(vectors) => vectors,
        Err(error) => return error,
    };
    // SAFETY: `path` ends with a NUL; both vectors were checked to end with NULL.
    match unsafe { call!(EXECVE, path.as_ptr() as usize, args, env) } {
        Err(error) => error,
        Ok(_) => Errno::ENOEXEC,
    }
}

/// clock_gettime(2) of `CLOCK_REALTIME`: seconds since 1970 and nanoseconds. Asked once, the
/// kernel costs less than the C library's way, which maps and searches the kernel's shared
/// object first.
pub fn real_time() -> Result<(u64, u32)> {
    const CLOCK_REALTIME: usize = 0;
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes a `struct timespec`.
    unsafe { call!(CLOCK_GETTIME, CLOCK_REALTIME, time.as_mut_ptr() as usize)? };
    let [seconds, nanoseconds] = time;
    Ok((seconds, nanoseconds as u32))
}

/// exit_group(2). Where a filter forbids even that, an instruction that ends the process.
pub fn exit(status: i32) -> ! {
    // SAFETY: no memory is passed; it does not return unless it is forbidden.
    let _ = unsafe { call!(EXIT_GROUP, fd(status)) };
    raw::trap()
}

/// setns(2).
pub fn setns(file: Fd, nstype: u32) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(SETNS, fd(file), nstype as usize).map(drop) }
}

/// unshare(2).
pub fn unshare(flags: u64) -> Result<()> {
    // SAFETY: no memory is passed; CLONE_VM and CLONE_FILES are not among the flags used.
    unsafe { call!(UNSHARE, flags as usize).map(drop) }
}

/// getpid(2), in this process's pid namespace.
#[must_use]
pub fn getpid() -> i32 {
    // SAFETY: no memory is passed.
    unsafe { call!(GETPID) }.map_or(0, as_fd)
}

/// setsid(2).
pub fn setsid() -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(SETSID).map(drop) }
}

/// sethostname(2).
pub fn sethostname(name: &[u8]) -> Result<()> {
    // SAFETY: the kernel reads the length of `name`.
    unsafe { call!(SETHOSTNAME, name.as_ptr() as usize, name.len()).map(drop) }
}

/// setdomainname(2).
pub fn setdomainname(name: &[u8]) -> Result<()> {
    // SAFETY: the kernel reads the length of `name`.
    unsafe { call!(SETDOMAINNAME, name.as_ptr() as usize, name.len()).map(drop) }
}

/// setgroups(2); `groups` are u32 in the machine's order.
pub fn setgroups(groups: &[u8]) -> Result<()> {
    // SAFETY: the kernel copies a quarter of the length in numbers of four bytes.
    unsafe { call!(SETGROUPS, groups.len() / 4, groups.as_ptr() as usize).map(drop) }
}

/// setresgid(2), all three.
pub fn setgid(gid: u32) -> Result<()> {
    let gid = gid as usize;
    // SAFETY: no memory is passed.
    unsafe { call!(SETRESGID, gid, gid, gid).map(drop) }
}

/// setresuid(2), all three.
pub fn setuid(uid: u32) -> Result<()> {
    let uid = uid as usize;
    // SAFETY: no memory is passed.
    unsafe { call!(SETRESUID, uid, uid, uid).map(drop) }
}

fn prctl(option: usize, a: usize, b: usize) -> Result<usize> {
    // SAFETY: the options used below take numbers.
    unsafe { call!(PRCTL, option, a, b) }
}

/// PR_SET_DUMPABLE: whether other processes of the same user may look into this one.
pub fn set_dumpable(dumpable: bool) -> Result<()> {
    prctl(4, usize::from(dumpable), 0).map(drop)
}

/// PR_SET_KEEPCAPS: whether permitted capabilities survive a change of user.
pub fn keep_capabilities(keep: bool) -> Result<()> {
    prctl(8, usize::from(keep), 0).map(drop)
}

/// PR_CAPBSET_DROP; EINVAL for a capability that the kernel does not have.
pub fn drop_bounding(capability: u32) -> Result<()> {
    prctl(24, capability as usize, 0).map(drop)
}

/// PR_SET_NO_NEW_PRIVS.
pub fn no_new_privs() -> Result<()> {
    prctl(38, 1, 0).map(drop)
}

/// PR_CAP_AMBIENT_RAISE.
pub fn raise_ambient(capability: u32) -> Result<()> {
    prctl(47, 2, capability as usize).map(drop)
}

/// PR_CAP_AMBIENT_CLEAR_ALL.
pub fn clear_ambient() -> Result<()> {
    prctl(47, 4, 0).map(drop)
}

/// capset(2) of this thread.
pub fn capset(effective: u64, permitted: u64, inheritable: u64) -> Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let data = [
        effective as u32,
        permitted as u32,
        inheritable as u32,
        (effective >> 32) as u32,
        (permitted >> 32) as u32,
        (inheritable >> 32) as u32,
    ];
    // SAFETY: a header and two data structures of version 3.
    unsafe { call!(CAPSET, header.as_ptr() as usize, data.as_ptr() as usize).map(drop) }
}

/// seccomp(2) `SECCOMP_SET_MODE_FILTER`; `program` is an array of `struct sock_filter`.
pub fn seccomp_filter(program: &[u8], flags: u32) -> Result<usize> {
    const SET_MODE_FILTER: usize = 1;
    /// `struct sock_fprog`.
    #[repr(C)]
    struct Filter {
        length: u16,
        pointer: usize,
    }
    let length = u16::try_from(program.len() / 8).map_err(|_| Errno::EINVAL)?;
    let filter = Filter {
        length,
        pointer: program.as_ptr() as usize,
    };
    // SAFETY: the kernel copies `length` instructions of 8 bytes, at any alignment.
    unsafe {
        call!(
            SECCOMP,
            SET_MODE_FILTER,
            flags as usize,
            &raw const filter as usize
        )
    }
}

/// keyctl(2) `KEYCTL_JOIN_SESSION_KEYRING`: the keyring's serial.
pub fn join_session_keyring(name: &CStr) -> Result<i32> {
    // SAFETY: `name` ends with a NUL.
    unsafe { call!(KEYCTL, 1, name.as_ptr() as usize).map(as_fd) }
}

/// keyctl(2) `KEYCTL_SETPERM`.
pub fn set_key_permissions(key: i32, permissions: u32) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(KEYCTL, 5, fd(key), permissions as usize).map(drop) }
}

/// personality(2).
pub fn personality(persona: u64) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(PERSONALITY, persona as usize).map(drop) }
}

/// prlimit(2) of this process.
pub fn set_rlimit(resource: u32, soft: u64, hard: u64) -> Result<()> {
    set_rlimit_of(0, resource, soft, hard)
}

/// prlimit(2) of another process; 0 is this one.
pub fn set_rlimit_of(pid: i32, resource: u32, soft: u64, hard: u64) -> Result<()> {
    let limit = [soft, hard];
    // SAFETY: `limit` is a `struct rlimit64`.
    unsafe {
        call!(
            PRLIMIT64,
            fd(pid),
            resource as usize,
            limit.as_ptr() as usize,
            0
        )
        .map(drop)
    }
}

/// The arguments of sched_setattr(2).
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct SchedAttr {
    /// Bytes of this structure.
    pub size: u32,
    /// `SCHED_*`.
    pub policy: u32,
    /// `SCHED_FLAG_*`.
    pub flags: u64,
    /// Nice value.
    pub nice: i32,
    /// Static priority.
    pub priority: u32,
    /// Nanoseconds.
    pub runtime: u64,
    /// Nanoseconds.
    pub deadline: u64,
    /// Nanoseconds.
    pub period: u64,
}

/// sched_setattr(2) of this thread.
pub fn sched_setattr(attributes: &SchedAttr) -> Result<()> {
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        ..*attributes
    };
    // SAFETY: the structure tells its own size.
    unsafe { call!(SCHED_SETATTR, 0, &raw const attributes as usize, 0).map(drop) }
}

/// ioprio_set(2) of this thread.
pub fn set_io_priority(value: u32) -> Result<()> {
    const WHO_PROCESS: usize = 1;
    // SAFETY: no memory is passed.
    unsafe { call!(IOPRIO_SET, WHO_PROCESS, 0, value as usize).map(drop) }
}
