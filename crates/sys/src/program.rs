//! What a program without a C library needs: its memory and the functions that the
//! compiler calls.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::process::Arg;
use crate::{Errno, Result, call, fd};

/// Room for `count` places of an argument vector, all of them the end; it is never given
/// back.
pub fn vector<'a>(count: usize) -> Result<&'a mut [Arg<'a>]> {
    let bytes = count
        .checked_mul(size_of::<Arg<'_>>())
        .ok_or(Errno::ENOMEM)?;
    let address = take(bytes)?;
    // SAFETY: the memory is nobody else's, large enough, aligned, filled with zeros, which is
    // `Arg::END`, and never given back.
    Ok(unsafe { core::slice::from_raw_parts_mut(address as *mut Arg<'a>, count) })
}

/// Room for `count` numbers, zeros; it is never given back.
pub fn numbers(count: usize) -> Result<&'static mut [i32]> {
    let bytes = count.checked_mul(size_of::<i32>()).ok_or(Errno::ENOMEM)?;
    let address = take(bytes)?;
    // SAFETY: the memory is nobody else's, large enough, aligned, filled with zeros and never
    // given back.
    Ok(unsafe { core::slice::from_raw_parts_mut(address as *mut i32, count) })
}

/// Room for `count` bytes, zeros; it is never given back.
pub fn bytes(count: usize) -> Result<&'static mut [u8]> {
    let address = take(count)?;
    // SAFETY: the memory is nobody else's, large enough, filled with zeros and never given back.
    Ok(unsafe { core::slice::from_raw_parts_mut(address as *mut u8, count) })
}

/// What is taken from the program's own memory before the kernel is asked.
const POOL: usize = 4096;

#[repr(align(16))]
struct Pool(core::cell::UnsafeCell<[u8; POOL]>);

// SAFETY: `take` gives each of its bytes out at most once.
unsafe impl Sync for Pool {}

static MEMORY: Pool = Pool(core::cell::UnsafeCell::new([0; POOL]));
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The address of `bytes` bytes, zeros, aligned to 16, that nobody else is given.
fn take(bytes: usize) -> Result<usize> {
    let size = bytes.checked_next_multiple_of(16).ok_or(Errno::ENOMEM)?;
    let add = |taken: usize| taken.checked_add(size).filter(|end| *end <= POOL);
    match TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
        Ok(start) => Ok(MEMORY.0.get() as usize + start),
        Err(_) => map(bytes),
    }
}

/// mmap(2): new private memory.
pub(crate) fn map(bytes: usize) -> Result<usize> {
    const PROT_READ_WRITE: usize = 3;
    const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
    // SAFETY: a mapping at an address that the kernel chooses changes no other.
    unsafe {
        call!(
            MMAP,
            0,
            bytes.max(1),
            PROT_READ_WRITE,
            MAP_PRIVATE_ANONYMOUS,
            fd(-1),
            0
        )
    }
}

/// The bytes at a fixed address that the program's own headers map.
///
/// # Safety
/// `length` bytes from `address` on must be mapped, and never change.
#[must_use]
pub unsafe fn mapped(address: usize, length: usize) -> &'static [u8] {
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(core::ptr::with_exposed_provenance(address), length) }
}

/// The real and effective user and group of this program, where both are the same: from the
/// auxiliary vector, getauxval(3), without a call. An id that may stand for one that is not
/// mapped (`/proc/sys/kernel/overflowuid`) is none.
///
/// # Safety
/// `stack` must be what the kernel starts a program with: the number of arguments, the
/// arguments and a NULL, the environment and a NULL, and the auxiliary vector.
#[must_use]
pub unsafe fn ids(stack: *const usize) -> Option<(u32, u32)> {
    const AT_NULL: usize = 0;
    const AT_UID: usize = 11;
    const AT_EGID: usize = 14;
    const OVERFLOW: usize = 65534;
    let mut found = [None; 4];
    // SAFETY: the caller's promise; nothing is read behind the vector's end.
    unsafe {
        let mut at = stack.add(1 + *stack + 1);
        while *at != 0 {
            at = at.add(1);
        }
        at = at.add(1);
        while *at != AT_NULL {
            if (AT_UID..=AT_EGID).contains(&*at)
                && let Some(place) = found.get_mut(*at - AT_UID)
            {
                *place = Some(*at.add(1));
            }
            at = at.add(2);
        }
    }
    let [uid, euid, gid, egid] = found;
    if uid? != euid? || gid? != egid? || uid? == OVERFLOW || gid? == OVERFLOW {
        return None;
    }
    Some((u32::try_from(uid?).ok()?, u32::try_from(gid?).ok()?))
}
