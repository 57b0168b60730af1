//! The instruction that enters the kernel, an architecture each.

use crate::{Errno, Result};

/// Numbers of the system calls that are used, `asm/unistd.h`.
#[cfg(target_arch = "x86_64")]
pub mod nr {
    pub const BPF: usize = 321;
    pub const CLOSE: usize = 3;
}

/// Numbers of the system calls that are used, `asm-generic/unistd.h`.
#[cfg(target_arch = "aarch64")]
pub mod nr {
    pub const BPF: usize = 280;
    pub const CLOSE: usize = 57;
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("pipkin runs on x86_64 and aarch64");

/// Enters the kernel with six arguments.
///
/// # Safety
/// The arguments must be what the system call `number` expects: every pointer among
/// them valid for what the kernel reads or writes through it.
#[cfg(target_arch = "x86_64")]
pub unsafe fn syscall(number: usize, args: [usize; 6]) -> Result<usize> {
    let result: usize;
    // SAFETY: the kernel's calling convention on x86_64 is number in rax, arguments in
    // rdi, rsi, rdx, r10, r8 and r9, result in rax, rcx and r11 lost; what the call does
    // with its arguments is the caller's promise.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    Errno::check(result)
}

/// Enters the kernel with six arguments.
///
/// # Safety
/// The arguments must be what the system call `number` expects: every pointer among
/// them valid for what the kernel reads or writes through it.
#[cfg(target_arch = "aarch64")]
pub unsafe fn syscall(number: usize, args: [usize; 6]) -> Result<usize> {
    let result: usize;
    // SAFETY: the kernel's calling convention on aarch64 is number in x8, arguments in
    // x0 to x5, result in x0; what the call does with its arguments is the caller's
    // promise.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    Errno::check(result)
}
