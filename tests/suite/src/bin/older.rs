//! `pipkin` as an older kernel, or an older engine's filter, lets it be: the calls that came
//! after Linux 5.4 are hidden by a seccomp filter, and then the program under test is executed
//! with the same arguments.
//!
//! ```text
//! older WORDS...           the calls fail with ENOSYS, as where the kernel lacks them
//! OLDER=EPERM older ...    they fail with EPERM, as some engines' filters say
//! ```
//!
//! Processes of a container inherit it, so that `Seccomp_filters` in their status is one more.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Numbers that are the same on x86_64 and aarch64: close_range (5.9), openat2 (5.6),
/// faccessat2 (5.8), mount_setattr (5.12), open_tree_attr (6.15).
const NEWER: [u32; 5] = [436, 437, 439, 442, 467];

#[cfg(target_arch = "x86_64")]
const MEMFD_CREATE: u32 = 319;
#[cfg(target_arch = "aarch64")]
const MEMFD_CREATE: u32 = 279;

/// `MFD_EXEC` of memfd_create(2), Linux 6.3.
const MFD_EXEC: u32 = 0x10;

const EPERM: u32 = 1;
const EINVAL: u32 = 22;
const ENOSYS: u32 = 38;

/// `struct sock_filter`: code, jumps and constant.
type Instruction = (u16, u8, u8, u32);

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;

/// Where the call's number and the low half of its second argument are in
/// `struct seccomp_data`.
const NUMBER: u32 = 0;
const SECOND: u32 = 24;

fn filter(error: u32) -> Vec<u8> {
    let mut program: Vec<Instruction> = vec![(LOAD, 0, 0, NUMBER)];
    for number in NEWER {
        program.push((JUMP_EQUAL, 0, 1, number));
        program.push((RETURN, 0, 0, ERRNO | error));
    }
    program.extend([
        (JUMP_EQUAL, 0, 3, MEMFD_CREATE),
        (LOAD, 0, 0, SECOND),
        (JUMP_SET, 0, 1, MFD_EXEC),
        (RETURN, 0, 0, ERRNO | EINVAL),
        (RETURN, 0, 0, ALLOW),
    ]);
    let bytes = |(code, yes, no, constant): Instruction| {
        let [low, high] = code.to_ne_bytes();
        let [a, b, c, d] = constant.to_ne_bytes();
        [low, high, yes, no, a, b, c, d]
    };
    program.into_iter().flat_map(bytes).collect()
}

fn main() {
    let error = match std::env::var("OLDER").as_deref() {
        Ok("EPERM") => EPERM,
        _ => ENOSYS,
    };
    let program = pipkin_tests::host::program();
    // Without no_new_privs, which a container would see: root may.
    if let Err(error) = pipkin_sys::process::seccomp_filter(&filter(error), 0) {
        eprintln!("older: seccomp: {error}");
        std::process::exit(1);
    }
    let error = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .exec();
    eprintln!("older: {}: {error}", program.display());
    std::process::exit(1);
}
