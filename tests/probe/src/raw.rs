//! The few system calls that neither the standard library nor rustix has.
#![allow(unsafe_code)]

use rustix::io::Errno;

fn check(result: libc::c_long) -> Result<i64, Errno> {
    if result < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    }
    Ok(result)
}

/// The serial number of this process's session keyring; does not create one.
pub fn session_keyring() -> Result<i64, Errno> {
    const KEYCTL_GET_KEYRING_ID: libc::c_long = 0;
    const KEY_SPEC_SESSION_KEYRING: libc::c_long = -3;
    // SAFETY: integers only; the kernel reads and writes no memory of ours.
    check(unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_GET_KEYRING_ID,
            KEY_SPEC_SESSION_KEYRING,
            0,
        )
    })
}

/// `type;uid;gid;perm;description` of the session keyring.
pub fn describe_session_keyring() -> Result<String, Errno> {
    const KEYCTL_DESCRIBE: libc::c_long = 6;
    const KEY_SPEC_SESSION_KEYRING: libc::c_long = -3;
    let mut buffer = [0_u8; 512];
    // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`, which lives
    // and is ours alone during the call.
    let length = check(unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_DESCRIBE,
            KEY_SPEC_SESSION_KEYRING,
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    })?;
    let length = usize::try_from(length).unwrap_or(0).min(buffer.len());
    let bytes = buffer.get(..length).unwrap_or_default();
    Ok(String::from_utf8_lossy(bytes)
        .trim_end_matches('\0')
        .to_owned())
}

/// The I/O class (high bits) and priority of this process.
pub fn io_priority() -> Result<i64, Errno> {
    const IOPRIO_WHO_PROCESS: libc::c_long = 1;
    // SAFETY: integers only.
    check(unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) })
}

/// Moves this process to new namespaces. Descriptors stay shared with nobody: the
/// process has one thread.
pub fn unshare(flags: libc::c_int) -> Result<i64, Errno> {
    // SAFETY: an integer; the process has one thread, so no other can be surprised.
    check(unsafe { libc::syscall(libc::SYS_unshare, flags) })
}

/// Whether a bpf(2) call gets past the seccomp filter: with a size of 0 it never does more.
pub fn bpf_nothing() -> Result<i64, Errno> {
    // SAFETY: a null pointer with the size 0: the kernel reads nothing.
    check(unsafe { libc::syscall(libc::SYS_bpf, -1_i64, 0_i64, 0_i64) })
}
