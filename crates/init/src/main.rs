//! The container's first program. It has no libc and no allocator: its memory is its
//! file, with the plan at a fixed address.

#![no_std]
#![no_main]

/// Where `init.ld` puts the plan.
const PLAN: usize = 0x2000_0000;

// The kernel jumps here; a function of the C calling convention wants its stack aligned.
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

extern "C" fn main(stack: *const usize) -> ! {
    // SAFETY: `_start` passes what the kernel has put the stack pointer to.
    let ids = unsafe { pipkin_sys::program::ids(stack) };
    // SAFETY: the linker script maps a segment at PLAN for as long as the program runs; the
    // file is sealed, and the runtime wrote a plan into it, whose second number is its length.
    let plan = unsafe {
        let length = pipkin_sys::program::mapped(PLAN, 8);
        let length = length.last_chunk().copied().map_or(0, u32::from_le_bytes);
        pipkin_sys::program::mapped(PLAN, length as usize)
    };
    pipkin_stage::run(plan, ids)
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    pipkin_sys::process::exit(70)
}
