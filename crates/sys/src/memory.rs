//! The functions that the compiler calls for memory: memcpy(3) and its kin.
//!
//! A program without a C library needs them. With musl they take the place of its own, which
//! on x86_64 begin `rep movsq` for as little as eight bytes, some 30 cycles each time, and
//! compare byte by byte: a start copies thousands of short strings.

#![allow(
    clippy::cast_ptr_alignment,
    reason = "every access through such a pointer is an unaligned one"
)]

/// From this length on the processor's own loop is the fastest.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 512;

/// Copies `count` bytes of type `T`'s length from the beginning, and as many from the end: both
/// are read before either is written, so that they may overlap.
///
/// # Safety
/// `count` is from one to two `T` long, and both runs are valid.
#[inline(always)]
unsafe fn ends<T: Copy>(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let last = count - size_of::<T>();
        let first_value = from.cast::<T>().read_unaligned();
        let last_value = from.add(last).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(first_value);
        to.add(last).cast::<T>().write_unaligned(last_value);
    }
}

/// Copies at most 32 bytes; the runs may overlap.
///
/// # Safety
/// Both runs are valid.
#[inline(always)]
unsafe fn copy_short(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: each length is one that `ends` can do.
    unsafe {
        match count {
            0 => {}
            1 => to.write(from.read()),
            2..4 => ends::<u16>(to, from, count),
            4..8 => ends::<u32>(to, from, count),
            8..17 => ends::<u64>(to, from, count),
            _ => ends::<u128>(to, from, count),
        }
    }
}

/// memcpy(3).
#[cfg(target_arch = "x86_64")]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the compiler's promise is that both runs are valid and apart; the direction flag
    // is clear by the calling convention. The loop stops before the last 16 bytes, which are
    // copied by themselves.
    unsafe {
        if count <= 32 {
            copy_short(to, from, count);
        } else if count < LONG {
            core::arch::asm!(
                "movups {last}, [{from} + {count} - 16]",
                "lea {end}, [{to} + {count} - 16]",
                "2:",
                "movups {part}, [{from}]",
                "movups [{at}], {part}",
                "add {from}, 16",
                "add {at}, 16",
                "cmp {at}, {end}",
                "jb 2b",
                "movups [{end}], {last}",
                from = inout(reg) from => _,
                at = inout(reg) to => _,
                to = in(reg) to,
                count = in(reg) count,
                end = out(reg) _,
                part = out(xmm_reg) _,
                last = out(xmm_reg) _,
                options(nostack),
            );
        } else {
            core::arch::asm!(
                "rep movsb",
                inout("rcx") count => _,
                inout("rdi") to => _,
                inout("rsi") from => _,
                options(nostack, preserves_flags),
            );
        }
    }
    to
}

/// memset(3).
#[cfg(target_arch = "x86_64")]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8 {
    let byte = value as u8;
    // SAFETY: the compiler's promise is that the run is valid; the direction flag is clear by
    // the calling convention.
    unsafe {
        if count < 64 {
            let pattern = u64::from(byte) * 0x0101_0101_0101_0101;
            let mut at = 0;
            while at + 8 <= count {
                to.add(at).cast::<u64>().write_unaligned(pattern);
                at += 8;
            }
            while at < count {
                to.add(at).write_volatile(byte);
                at += 1;
            }
        } else {
            core::arch::asm!(
                "rep stosb",
                inout("rcx") count => _,
                inout("rdi") to => _,
                in("al") byte,
                options(nostack, preserves_flags),
            );
        }
    }
    to
}

/// memcpy(3).
#[cfg(not(target_arch = "x86_64"))]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    for at in 0..count {
        // SAFETY: both runs are valid; volatile, so that the compiler does not make this loop a
        // call of memcpy.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
    to
}

/// memset(3).
#[cfg(not(target_arch = "x86_64"))]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8 {
    for at in 0..count {
        // SAFETY: both runs are valid; volatile, so that the compiler does not make this loop a
        // call of memset.
        unsafe { to.add(at).write_volatile(value as u8) };
    }
    to
}

/// memmove(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: both runs are valid. Copied forwards where what is read was not written before;
    // short runs are read before they are written; else backwards.
    unsafe {
        if count <= 32 {
            copy_short(to, from, count);
        } else if (to as usize).wrapping_sub(from as usize) >= count {
            memcpy(to, from, count);
        } else {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                "movups {first}, [{from}]",
                "2:",
                "sub {rest}, 16",
                "movups {part}, [{from} + {rest}]",
                "movups [{to} + {rest}], {part}",
                "cmp {rest}, 16",
                "ja 2b",
                "movups [{to}], {first}",
                from = in(reg) from,
                to = in(reg) to,
                rest = inout(reg) count => _,
                first = out(xmm_reg) _,
                part = out(xmm_reg) _,
                options(nostack),
            );
            #[cfg(not(target_arch = "x86_64"))]
            for at in (0..count).rev() {
                to.add(at).write_volatile(from.add(at).read_volatile());
            }
        }
    }
    to
}

/// memcmp(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
    let mut at = 0;
    // SAFETY: both runs are valid, and nothing is read behind them.
    unsafe {
        while at + 8 <= count {
            let x = a.add(at).cast::<u64>().read_unaligned();
            let y = b.add(at).cast::<u64>().read_unaligned();
            if x != y {
                // The first byte in memory decides.
                return if x.to_be() < y.to_be() { -1 } else { 1 };
            }
            at += 8;
        }
        while at < count {
            let (x, y) = (a.add(at).read(), b.add(at).read());
            if x != y {
                return i32::from(x) - i32::from(y);
            }
            at += 1;
        }
    }
    0
}

/// bcmp(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
    // SAFETY: the compiler's promise.
    unsafe { memcmp(a, b, count) }
}

/// strlen(3), which `CStr` calls.
#[cfg(feature = "freestanding")]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn strlen(string: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: the string ends with a NUL.
    while unsafe { string.add(length).read_volatile() } != 0 {
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Lengths around every border.
    fn lengths() -> impl Iterator<Item = usize> {
        (0..200)
            .chain(LONG - 20..LONG + 20)
            .chain([4095, 4096, 4097])
    }

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|at| (at * 7 + at / 251) as u8 | 1).collect()
    }

    #[test]
    fn copies_are_copies_and_no_more() {
        for count in lengths() {
            for (to, from) in [(0, 0), (1, 0), (3, 5), (8, 15)] {
                let source = bytes(count + 32);
                let mut target = std::vec![0u8; count + 32];
                // SAFETY: both are longer.
                unsafe { memcpy(target[to..].as_mut_ptr(), source[from..].as_ptr(), count) };
                let mut wanted = std::vec![0u8; count + 32];
                wanted[to..to + count].copy_from_slice(&source[from..from + count]);
                assert_eq!(target, wanted, "{count} bytes");
            }
        }
    }

    #[test]
    fn moves_may_overlap() {
        for count in lengths() {
            for (to, from) in [(0, 1), (1, 0), (0, 9), (9, 0), (0, 33), (33, 0), (5, 5)] {
                let mut run = bytes(count + 64);
                let mut wanted = run.clone();
                wanted.copy_within(from..from + count, to);
                let start = run.as_mut_ptr();
                // SAFETY: both are inside `run`.
                unsafe { memmove(start.add(to), start.add(from), count) };
                assert_eq!(run, wanted, "{count} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn sets_are_sets_and_no_more() {
        for count in lengths() {
            let mut run = bytes(count + 2);
            let mut wanted = run.clone();
            wanted[1..=count].fill(0xa5);
            // SAFETY: it is longer.
            unsafe { memset(run[1..].as_mut_ptr(), 0x7a5, count) };
            assert_eq!(run, wanted, "{count} bytes");
        }
    }

    #[test]
    fn the_first_difference_decides() {
        for count in lengths().filter(|count| *count > 0) {
            let a = bytes(count);
            // SAFETY: both have the length.
            let compare = |b: &[u8]| unsafe { memcmp(a.as_ptr(), b.as_ptr(), count) };
            assert_eq!(compare(&a), 0);
            // SAFETY: both have the length.
            assert_eq!(unsafe { bcmp(a.as_ptr(), a.as_ptr(), count) }, 0);
            for at in [0, count / 2, count - 1] {
                let mut b = a.clone();
                b[at] = b[at].wrapping_add(1);
                b[at + 1..].fill(0);
                let wanted = a.as_slice().cmp(&b);
                assert_eq!(compare(&b).cmp(&0), wanted, "{count} bytes, the {at}th");
            }
        }
    }
}
