//! The container's first program. It has no libc and no allocator: its memory is its
//! file, with the plan at a fixed address.
//!
//! So far it only shows that it can read its plan: it takes the first eight bytes as
//! the plan's length and exits with the low byte of the sum of all bytes.

#![no_std]
#![no_main]

mod memory;

/// Where `init.ld` puts the plan.
const PLAN: usize = 0x2000_0000;

// The kernel jumps here with the stack pointer at argc; a function of the C calling
// convention wants it aligned, and its argument in a register.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".globl _start",
    "_start: xor %ebp, %ebp",
    "mov %rsp, %rdi",
    "and $-16, %rsp",
    "call {main}",
    "ud2",
    main = sym main,
    options(att_syntax),
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".globl _start",
    "_start: mov x29, xzr",
    "mov x0, sp",
    "and sp, x0, #-16",
    "bl {main}",
    "brk #1",
    main = sym main,
);

/// `stack` is what the kernel put there: argc, argv, envp, auxv.
extern "C" fn main(_stack: *const usize) -> ! {
    let plan: *const u8 = core::ptr::with_exposed_provenance(PLAN);
    // SAFETY: the linker script maps a segment at PLAN for as long as the program runs,
    // and the runtime starts what it writes there with the length of the whole.
    let plan = unsafe {
        let length = plan.cast::<u64>().read_unaligned();
        core::slice::from_raw_parts(plan, length as usize)
    };
    exit(plan.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)))
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(255)
}

fn exit(status: u8) -> ! {
    // SAFETY: exit_group(2) touches no memory and does not return.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "syscall", in("rax") 231, in("rdi") usize::from(status), options(noreturn, nostack)
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "svc 0", in("x8") 94, in("x0") usize::from(status), options(noreturn, nostack)
        );
    }
}
