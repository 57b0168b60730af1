//! Calls for the programs of the bench, and for nothing else: what they measure is what
//! pipkin itself must not do, or has no use for.

use core::ffi::CStr;

use crate::process::clone;
use crate::{Fd, Result, call, raw};

#[cfg(target_arch = "x86_64")]
const GETRUSAGE: usize = 98;
#[cfg(target_arch = "aarch64")]
const GETRUSAGE: usize = 165;

/// mount(2) on what is mounted at `target`, with `data` as it is given: an empty string is
/// passed on, which makes the kernel allocate and copy a page. Nothing but a measurement of
/// that may call it; [`crate::mount::mount`] is for all else.
pub fn mount_with_data_as_is(target: &CStr, flags: u64, data: Option<&CStr>) -> Result<()> {
    let data = data.map_or(0, |data| data.as_ptr() as usize);
    // SAFETY: `target` ends with a NUL, source and type may be NULL; the kernel reads at most
    // a page from `data`, and less where less is mapped.
    unsafe { call!(MOUNT, 0, target.as_ptr() as usize, 0, flags as usize, data).map(drop) }
}

/// unlinkat(2) of a directory.
pub fn rmdir(path: &CStr) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    const UNLINKAT: usize = 263;
    #[cfg(target_arch = "aarch64")]
    const UNLINKAT: usize = 35;
    const AT_REMOVEDIR: usize = 0x200;
    let dir = crate::fd(crate::AT_FDCWD);
    let path = path.as_ptr() as usize;
    // SAFETY: `path` ends with a NUL.
    unsafe { raw::syscall(UNLINKAT, [dir, path, AT_REMOVEDIR, 0, 0, 0]).map(drop) }
}

/// What a process has used, getrusage(2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Microseconds in the program.
    pub user: u64,
    /// Microseconds in the kernel.
    pub system: u64,
    /// Page faults without reading.
    pub minor_faults: u64,
    /// Page faults with reading.
    pub major_faults: u64,
}

/// `struct rusage` of 64-bit machines: two times, a largest size and 13 more numbers.
type Raw = [u64; 18];

impl Usage {
    const fn new(raw: &Raw) -> Self {
        Self {
            user: raw[0] * 1_000_000 + raw[1],
            system: raw[2] * 1_000_000 + raw[3],
            minor_faults: raw[8],
            major_faults: raw[9],
        }
    }
}

/// What this process has used so far.
pub fn usage() -> Result<Usage> {
    const RUSAGE_SELF: usize = 0;
    getrusage(RUSAGE_SELF)
}

/// What all its children have used that it has waited for, with those that they waited for.
pub fn usage_of_children() -> Result<Usage> {
    const RUSAGE_CHILDREN: usize = usize::MAX;
    getrusage(RUSAGE_CHILDREN)
}

fn getrusage(who: usize) -> Result<Usage> {
    let mut out: Raw = [0; 18];
    // SAFETY: the kernel writes one `struct rusage`.
    unsafe { raw::syscall(GETRUSAGE, [who, out.as_mut_ptr() as usize, 0, 0, 0, 0])? };
    Ok(Usage::new(&out))
}

/// What the child of [`vfork`] runs on: not on the parent's stack, which the compiler would
/// touch page by page. As large as a build without optimisations wants it.
#[repr(C, align(16))]
struct Stack(core::cell::UnsafeCell<[u8; 256 * 1024]>);

// SAFETY: only the child of `vfork` uses it, and there is only one at a time.
unsafe impl Sync for Stack {}

static STACK: Stack = Stack(core::cell::UnsafeCell::new([0; 256 * 1024]));

struct Call<'a, T> {
    child: fn(&T) -> i32,
    context: &'a T,
}

extern "C" fn enter<T>(call: *mut u8) -> ! {
    // SAFETY: `vfork` passes its own `Call` and does not go on while this process uses it.
    let call = unsafe { &*call.cast::<Call<'_, T>>() };
    crate::process::exit((call.child)(call.context))
}

/// Makes a process in new namespaces that shares this one's memory and calls `child`, whose
/// result is its exit status; waits until it has executed a program or ended. Gives its id.
///
/// # Safety
/// No handler of a signal may be installed: it would run in both. `child` must make no calls
/// but system calls, and take no lock; what it changes, it changes for this process too. No
/// other thread may call this meanwhile.
pub unsafe fn vfork<T>(
    flags: u64,
    cgroup: Option<Fd>,
    child: fn(&T) -> i32,
    context: &T,
) -> Result<i32> {
    const SIGCHLD: u64 = 17;
    let mut call = Call { child, context };
    let into = if cgroup.is_some() {
        clone::INTO_CGROUP
    } else {
        0
    };
    // `struct clone_args`, see `process::spawn`.
    let mut arguments = [
        flags | into | clone::VM | clone::VFORK,
        0,
        0,
        0,
        SIGCHLD,
        (&raw const STACK) as u64,
        size_of::<Stack>() as u64,
        0,
        0,
        0,
        cgroup.map_or(0, |dir| dir as u64),
    ];
    let size = if cgroup.is_some() { 88 } else { 64 };
    // SAFETY: `arguments` is valid and names a stack that is aligned and nobody else's, because
    // CLONE_VFORK keeps this function from going on before the child is done with it; the rest
    // is the caller's promise.
    let pid = unsafe {
        raw::clone3_call(
            arguments.as_mut_ptr(),
            size,
            enter::<T>,
            (&raw mut call).cast(),
        )
    };
    pid.map(|pid| pid as i32)
}
