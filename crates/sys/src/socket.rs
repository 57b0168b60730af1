//! Sockets: the messages between the processes, and the console's descriptor.

use crate::{Errno, Fd, Result, as_fd, call, fd};

const MSG_NOSIGNAL: usize = 0x4000;

/// send(2) without SIGPIPE, again after a signal.
pub fn send(socket: Fd, bytes: &[u8]) -> Result<usize> {
    loop {
        // SAFETY: the kernel reads at most the length of `bytes`; there is no address.
        let result = unsafe {
            call!(
                SENDTO,
                fd(socket),
                bytes.as_ptr() as usize,
                bytes.len(),
                MSG_NOSIGNAL,
                0,
                0
            )
        };
        if result != Err(Errno::EINTR) {
            return result;
        }
    }
}

/// recv(2), again after a signal; 0 when the other side is closed.
pub fn receive(socket: Fd, buffer: &mut [u8]) -> Result<usize> {
    loop {
        // SAFETY: the kernel writes at most the length of `buffer`; no address is asked for.
        let result = unsafe {
            call!(
                RECVFROM,
                fd(socket),
                buffer.as_mut_ptr() as usize,
                buffer.len(),
                0,
                0,
                0
            )
        };
        if result != Err(Errno::EINTR) {
            return result;
        }
    }
}

/// accept4(2), close-on-exec, again after a signal.
pub fn accept(listener: Fd) -> Result<Fd> {
    loop {
        // SAFETY: no address is asked for.
        let result = unsafe {
            call!(
                ACCEPT4,
                fd(listener),
                0,
                0,
                crate::fs::oflag::CLOEXEC as usize
            )
            .map(as_fd)
        };
        if result != Err(Errno::EINTR) {
            return result;
        }
    }
}

/// Sends a descriptor with `bytes`, unix(7) `SCM_RIGHTS`.
pub fn send_fd(socket: Fd, bytes: &[u8], file: Fd) -> Result<()> {
    /// `struct msghdr` on 64-bit machines.
    #[repr(C)]
    struct Header {
        name: usize,
        name_length: u64,
        vectors: usize,
        vector_count: usize,
        control: usize,
        control_length: usize,
        flags: u64,
    }
    /// `struct cmsghdr` with one descriptor, padded to 24 bytes.
    #[repr(C, align(8))]
    struct Control {
        length: usize,
        level: u32,
        kind: u32,
        file: Fd,
        pad: u32,
    }
    const SOL_SOCKET: u32 = 1;
    const SCM_RIGHTS: u32 = 1;
    let control = Control {
        length: 20,
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        file,
        pad: 0,
    };
    let vector = [bytes.as_ptr() as usize, bytes.len()];
    let header = Header {
        name: 0,
        name_length: 0,
        vectors: vector.as_ptr() as usize,
        vector_count: 1,
        control: &raw const control as usize,
        control_length: size_of::<Control>(),
        flags: 0,
    };
    loop {
        // SAFETY: `header` is a `struct msghdr` whose parts live until the call returns.
        let result = unsafe {
            call!(
                SENDMSG,
                fd(socket),
                &raw const header as usize,
                MSG_NOSIGNAL
            )
        };
        if result != Err(Errno::EINTR) {
            return result.map(drop);
        }
    }
}

/// Brings the loopback interface of the current network namespace up, netdevice(7).
pub fn loopback_up() -> Result<()> {
    const AF_INET: usize = 2;
    const SOCK_DGRAM: usize = 2;
    const SIOCSIFFLAGS: usize = 0x8914;
    const IFF_UP: u16 = 1;
    /// `struct ifreq` with flags.
    #[repr(C)]
    struct Request {
        name: [u8; 16],
        flags: u16,
        rest: [u8; 22],
    }
    let mut request = Request {
        name: [0; 16],
        flags: IFF_UP,
        rest: [0; 22],
    };
    request.name[0] = b'l';
    request.name[1] = b'o';
    // SAFETY: no memory is passed.
    let socket = unsafe {
        call!(
            SOCKET,
            AF_INET,
            SOCK_DGRAM | crate::fs::oflag::CLOEXEC as usize,
            0
        )?
    };
    // SAFETY: `request` is a `struct ifreq`.
    let result = unsafe { call!(IOCTL, socket, SIOCSIFFLAGS, &raw const request as usize) };
    crate::fs::close(as_fd(socket));
    result.map(drop)
}
