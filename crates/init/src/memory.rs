//! The five functions that the compiler calls by name and that libc would bring.
//!
//! On x86_64 each is one string instruction, the fastest way for a small program; the
//! volatile accesses elsewhere keep the compiler from making a loop into a call of the
//! function that it stands in.

/// memcpy(3)
///
/// # Safety
/// `to` and `from` must be valid for `count` bytes and must not overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller's promise is what copying upwards needs.
    unsafe { copy_up(to, from, count) };
    to
}

/// memmove(3)
///
/// # Safety
/// `to` and `from` must be valid for `count` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= count {
        // SAFETY: `to` lies below `from` or past its end, so that a byte is read before
        // it is overwritten.
        unsafe { copy_up(to, from, count) };
    } else {
        for index in (0..count).rev() {
            // SAFETY: index < count; going down, a byte above is no longer needed.
            unsafe {
                to.add(index)
                    .write_volatile(from.add(index).read_volatile())
            };
        }
    }
    to
}

/// memset(3)
///
/// # Safety
/// `to` must be valid for `count` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: writes `count` bytes from `to` on, upwards as the calling convention has
    // the direction flag.
    unsafe {
        core::arch::asm!(
            "rep stosb",
            inout("rcx") count => _,
            inout("rdi") to => _,
            in("al") byte as u8,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for index in 0..count {
        // SAFETY: index < count.
        unsafe { to.add(index).write_volatile(byte as u8) };
    }
    to
}

/// memcmp(3)
///
/// # Safety
/// `left` and `right` must be valid for `count` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    for index in 0..count {
        // SAFETY: index < count.
        let (left, right) = unsafe {
            (
                left.add(index).read_volatile(),
                right.add(index).read_volatile(),
            )
        };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

/// bcmp(3)
///
/// # Safety
/// As for [`memcmp`].
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    // SAFETY: the same promise.
    unsafe { memcmp(left, right, count) }
}

/// Copies from the lowest address to the highest.
///
/// # Safety
/// `to` and `from` must be valid for `count` bytes; where they overlap, `to` must be
/// the lower one.
#[inline(always)]
unsafe fn copy_up(to: *mut u8, from: *const u8, count: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads and writes `count` bytes, upwards as the calling convention has the
    // direction flag.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rcx") count => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for index in 0..count {
        // SAFETY: index < count.
        unsafe {
            to.add(index)
                .write_volatile(from.add(index).read_volatile())
        };
    }
}
