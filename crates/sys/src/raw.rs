//! The instruction that enters the kernel, an architecture each.

use crate::{Errno, Result};

macro_rules! numbers {
    ($($name:ident = $x86_64:literal, $generic:literal;)*) => {
        /// Numbers of the system calls that are used: `asm/unistd_64.h` on x86_64,
        /// `asm-generic/unistd.h` elsewhere.
        pub mod nr {
            $(
                #[cfg(target_arch = "x86_64")]
                pub const $name: usize = $x86_64;
                #[cfg(target_arch = "aarch64")]
                pub const $name: usize = $generic;
            )*
        }
    };
}

numbers! {
    READ = 0, 63;
    WRITE = 1, 64;
    CLOSE = 3, 57;
    LSEEK = 8, 62;
    MMAP = 9, 222;
    RT_SIGACTION = 13, 134;
    RT_SIGPROCMASK = 14, 135;
    IOCTL = 16, 29;
    GETPID = 39, 172;
    SENDFILE = 40, 71;
    SOCKET = 41, 198;
    SENDTO = 44, 206;
    RECVFROM = 45, 207;
    SENDMSG = 46, 211;
    EXECVE = 59, 221;
    WAIT4 = 61, 260;
    KILL = 62, 129;
    FCNTL = 72, 25;
    GETCWD = 79, 17;
    CHDIR = 80, 49;
    FCHDIR = 81, 50;
    FCHMOD = 91, 52;
    UMASK = 95, 166;
    GETEUID = 107, 175;
    GETEGID = 108, 177;
    SETPGID = 109, 154;
    SETSID = 112, 157;
    SETGROUPS = 116, 159;
    SETRESUID = 117, 147;
    SETRESGID = 119, 149;
    CAPSET = 126, 91;
    RT_SIGTIMEDWAIT = 128, 137;
    PERSONALITY = 135, 92;
    FSTATFS = 138, 44;
    PIVOT_ROOT = 155, 41;
    PRCTL = 157, 167;
    CHROOT = 161, 51;
    MOUNT = 165, 40;
    UMOUNT2 = 166, 39;
    SETHOSTNAME = 170, 161;
    SETDOMAINNAME = 171, 162;
    GETDENTS64 = 217, 61;
    CLOCK_GETTIME = 228, 113;
    EXIT_GROUP = 231, 94;
    KEYCTL = 250, 219;
    IOPRIO_SET = 251, 30;
    OPENAT = 257, 56;
    MKDIRAT = 258, 34;
    MKNODAT = 259, 33;
    FCHOWNAT = 260, 54;
    SYMLINKAT = 266, 36;
    READLINKAT = 267, 78;
    FCHMODAT = 268, 53;
    FACCESSAT = 269, 48;
    PPOLL = 271, 73;
    UNSHARE = 272, 97;
    ACCEPT4 = 288, 242;
    DUP3 = 292, 24;
    PIPE2 = 293, 59;
    PRLIMIT64 = 302, 261;
    SETNS = 308, 268;
    SCHED_SETATTR = 314, 274;
    SECCOMP = 317, 277;
    MEMFD_CREATE = 319, 279;
    BPF = 321, 280;
    EXECVEAT = 322, 281;
    STATX = 332, 291;
    PIDFD_SEND_SIGNAL = 424, 424;
    OPEN_TREE = 428, 428;
    MOVE_MOUNT = 429, 429;
    FSOPEN = 430, 430;
    FSCONFIG = 431, 431;
    FSMOUNT = 432, 432;
    PIDFD_OPEN = 434, 434;
    CLONE3 = 435, 435;
    CLOSE_RANGE = 436, 436;
    OPENAT2 = 437, 437;
    FACCESSAT2 = 439, 439;
    MOUNT_SETATTR = 442, 442;
    OPEN_TREE_ATTR = 467, 467;
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("pipkin runs on x86_64 and aarch64");

/// Enters the kernel with six arguments.
///
/// # Safety
/// The arguments must be what the system call `number` expects: every pointer among
/// them valid for what the kernel reads or writes through it.
#[cfg(target_arch = "x86_64")]
#[inline]
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
#[inline]
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

/// Makes clone3(2) with `arguments` (`size` bytes of `struct clone_args`, which names the
/// child's stack); the child calls `entry` with `context` on that stack.
///
/// # Safety
/// `arguments` must be a valid `struct clone_args` whose stack is writable, aligned to 16
/// bytes and used by nothing else until the child has executed another program or ended;
/// `entry` must be sound to run in such a child, and `context` must live as long.
#[cfg(target_arch = "x86_64")]
pub unsafe fn clone3_call(
    arguments: *mut u64,
    size: usize,
    entry: extern "C" fn(*mut u8) -> !,
    context: *mut u8,
) -> Result<usize> {
    let result: usize;
    // SAFETY: as for `syscall`; the child returns from the instruction with rax 0 on its own
    // stack and leaves this frame at once by calling `entry`, which never returns.
    unsafe {
        core::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {context}",
            "call {entry}",
            "ud2",
            "2:",
            context = in(reg) context,
            entry = in(reg) entry,
            inlateout("rax") nr::CLONE3 => result,
            in("rdi") arguments,
            in("rsi") size,
            // Not `lateout`: the child still reads `context` and `entry` afterwards, so they
            // must not be in what the kernel destroys.
            out("rcx") _,
            out("r11") _,
        );
    }
    Errno::check(result)
}

/// Makes clone3(2) with `arguments` (`size` bytes of `struct clone_args`, which names the
/// child's stack); the child calls `entry` with `context` on that stack.
///
/// # Safety
/// `arguments` must be a valid `struct clone_args` whose stack is writable, aligned to 16
/// bytes and used by nothing else until the child has executed another program or ended;
/// `entry` must be sound to run in such a child, and `context` must live as long.
#[cfg(target_arch = "aarch64")]
pub unsafe fn clone3_call(
    arguments: *mut u64,
    size: usize,
    entry: extern "C" fn(*mut u8) -> !,
    context: *mut u8,
) -> Result<usize> {
    let result: usize;
    // SAFETY: as for `syscall`; the child returns from the instruction with x0 0 on its own
    // stack and leaves this frame at once by calling `entry`, which never returns.
    unsafe {
        core::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, {context}",
            "blr {entry}",
            "brk #1",
            "2:",
            context = in(reg) context,
            entry = in(reg) entry,
            in("x8") nr::CLONE3,
            inlateout("x0") arguments => result,
            in("x1") size,
        );
    }
    Errno::check(result)
}

/// A number that this thread has and no other of the process: where its own variables are.
#[inline]
pub fn thread() -> usize {
    let thread: usize;
    // SAFETY: every C library keeps the address of the thread's control block there: on x86_64
    // in the block's first word, on aarch64 in the register. Nothing is changed.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "mov {}, fs:0",
            out(reg) thread,
            options(nostack, readonly, preserves_flags)
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "mrs {}, tpidr_el0",
            out(reg) thread,
            options(nostack, nomem, preserves_flags)
        );
    }
    thread
}

/// Ends the process by an instruction that the processor refuses.
pub fn trap() -> ! {
    // SAFETY: the kernel answers with SIGILL or SIGTRAP, whose default is the end, also for the
    // first process of a pid namespace.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("ud2", options(noreturn, nostack));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("udf #0", options(noreturn, nostack));
    }
}
