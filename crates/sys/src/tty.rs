//! Pseudo-terminals, pty(7) and ioctl_tty(2).

use crate::{Fd, Result, as_fd, call, fd};

/// Unlocks the other side of `/dev/ptmx`, `TIOCSPTLCK`.
pub fn unlock(master: Fd) -> Result<()> {
    const TIOCSPTLCK: usize = 0x4004_5431;
    let lock = 0u32;
    // SAFETY: the kernel reads one int.
    unsafe { call!(IOCTL, fd(master), TIOCSPTLCK, &raw const lock as usize).map(drop) }
}

/// Opens the other side without a path, `TIOCGPTPEER`; close-on-exec.
pub fn peer(master: Fd) -> Result<Fd> {
    const TIOCGPTPEER: usize = 0x5441;
    let flags = crate::fs::oflag::RDWR | crate::fs::oflag::NOCTTY | crate::fs::oflag::CLOEXEC;
    // SAFETY: the argument is a number.
    unsafe { call!(IOCTL, fd(master), TIOCGPTPEER, flags as usize).map(as_fd) }
}

/// Sets the size in characters, `TIOCSWINSZ`.
pub fn set_size(terminal: Fd, rows: u16, columns: u16) -> Result<()> {
    const TIOCSWINSZ: usize = 0x5414;
    let size = [rows, columns, 0, 0];
    // SAFETY: `size` is a `struct winsize`.
    unsafe { call!(IOCTL, fd(terminal), TIOCSWINSZ, size.as_ptr() as usize).map(drop) }
}

/// Makes it the controlling terminal of the session, `TIOCSCTTY`.
pub fn set_controlling(terminal: Fd) -> Result<()> {
    const TIOCSCTTY: usize = 0x540e;
    // SAFETY: the argument is a number.
    unsafe { call!(IOCTL, fd(terminal), TIOCSCTTY, 0).map(drop) }
}

/// Takes the translation of line ends off its output, `ONLCR` of termios(3).
pub fn clear_onlcr(terminal: Fd) -> Result<()> {
    const TCGETS: usize = 0x5401;
    const TCSETS: usize = 0x5402;
    const ONLCR: u32 = 0o4;
    // The kernel's `struct termios`: four flag words, a line discipline, 19 characters.
    let mut termios = [0u32; 9];
    // SAFETY: the kernel's `struct termios` has 36 bytes.
    unsafe { call!(IOCTL, fd(terminal), TCGETS, termios.as_mut_ptr() as usize)? };
    termios[1] &= !ONLCR;
    // SAFETY: as above.
    unsafe { call!(IOCTL, fd(terminal), TCSETS, termios.as_ptr() as usize).map(drop) }
}
