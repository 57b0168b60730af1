//! The container's terminal.

use pipkin_sys::fs::{self, mode, oflag};
use pipkin_sys::{Errno, Fd, Result, mount, socket, tty};

use crate::inside::{self, Place};

/// What the terminal shall be.
pub struct Console {
    /// Rows and columns; 0 rows and columns leave it.
    pub size: (u16, u16),
    /// Its owner.
    pub uid: u32,
    /// Whether it is mounted on /dev/console.
    pub mount: bool,
}

/// Makes a pseudo-terminal in the container's devpts, sends its master side to the console
/// socket, and makes its other side the controlling terminal, standard input, output and
/// error, and /dev/console. No path of the image leads to either side (CVE-2025-52565).
#[inline(never)]
pub fn set_up(console_socket: Fd, root: Fd, console: Console) -> Result<()> {
    let flags = oflag::RDWR | oflag::NOCTTY;
    let master = Place::new(inside::open(root, c"/dev/ptmx", flags)?);
    let stat = fs::stat_fd(master.fd())?;
    if !stat.is(mode::CHARACTER) || stat.rdev != (5, 2) {
        return Err(Errno::ENOTTY);
    }
    tty::unlock(master.fd())?;
    let peer = tty::peer(master.fd())?;
    tty::clear_onlcr(peer)?;
    if console.size != (0, 0) {
        tty::set_size(peer, console.size.0, console.size.1)?;
    }
    if console.uid != 0 {
        let gid = fs::stat_fd(peer)?.gid;
        fs::fchownat(peer, c"", console.uid, gid)?;
    }
    if console.mount {
        let tree = Place::new(mount::open_tree(peer, c"", false, false)?);
        drop(inside::file(root, c"/dev/console")?);
        let place = Place::new(inside::resolve_strict(root, c"/dev/console", 0)?);
        mount::move_mount(tree.fd(), place.fd(), c"")?;
    }
    socket::send_fd(console_socket, b"/dev/ptmx", master.fd())?;
    tty::set_controlling(peer)?;
    for standard in 0..3 {
        fs::dup3(peer, standard)?;
    }
    if peer > 2 {
        fs::close(peer);
    }
    Ok(())
}
