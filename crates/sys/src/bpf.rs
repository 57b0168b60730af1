//! bpf(2): device programs of cgroup v2.
//!
//! Programs are accounted to the memory cgroup since Linux 5.11, and to RLIMIT_MEMLOCK
//! before; one device program is a page, so no limit is raised here.

use crate::{Errno, Result, raw};

// linux/bpf.h, enum bpf_cmd.
const PROG_LOAD: usize = 5;
const PROG_ATTACH: usize = 8;
const PROG_DETACH: usize = 9;
const PROG_GET_FD_BY_ID: usize = 13;
const PROG_QUERY: usize = 16;

/// enum bpf_prog_type.
const TYPE_CGROUP_DEVICE: u32 = 15;
/// enum bpf_attach_type.
const ATTACH_CGROUP_DEVICE: u32 = 6;

/// Sub-groups may attach programs of their own; all of them must then allow.
pub const ALLOW_MULTI: u32 = 2;
/// The new program takes the place of a given one, in one step.
const REPLACE: u32 = 4;

/// Bytes of an eBPF instruction.
const INSTRUCTION: usize = 8;

/// `union bpf_attr`, by offset. It is as large as any kernel's, and zero where a command
/// has no field: since 6.17 PROG_QUERY writes a field at offset 56 whatever size it is
/// told, and every kernel takes a larger size if the rest is zero.
#[repr(C, align(8))]
struct Attributes([u8; 256]);

impl Attributes {
    const fn new() -> Self {
        Self([0; 256])
    }

    fn set(mut self, offset: usize, bytes: &[u8]) -> Self {
        if let Some(field) = self.0.get_mut(offset..offset + bytes.len()) {
            field.copy_from_slice(bytes);
        }
        self
    }

    fn word(self, offset: usize, value: u32) -> Self {
        self.set(offset, &value.to_ne_bytes())
    }

    fn pointer<T: ?Sized>(self, offset: usize, value: *const T) -> Self {
        self.set(offset, &(value.cast::<u8>() as u64).to_ne_bytes())
    }

    fn read(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        if let Some(field) = self.0.get(offset..offset + 4) {
            bytes.copy_from_slice(field);
        }
        u32::from_ne_bytes(bytes)
    }

    /// bpf(2).
    ///
    /// # Safety
    /// Every pointer that was set must be valid for what `command` does with it.
    unsafe fn call(&mut self, command: usize) -> Result<usize> {
        let pointer = &raw mut self.0;
        // SAFETY: the buffer is ours, writable and as long as it says; that the pointers
        // within it are valid is the caller's promise.
        unsafe {
            raw::syscall(
                raw::nr::BPF,
                [command, pointer as usize, self.0.len(), 0, 0, 0],
            )
        }
    }
}

/// A loaded program; closing it leaves it attached where it is.
#[derive(Debug)]
pub struct Program(i32);

impl Program {
    fn from_result(result: usize) -> Result<Self> {
        i32::try_from(result).map(Self).map_err(|_| Errno::EBADF)
    }

    /// The descriptor's number, valid as long as the program.
    #[must_use]
    pub const fn number(&self) -> i32 {
        self.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: close(2) takes no pointer, and the number was given to us by bpf(2) and
        // to nobody else, so no other owner loses its descriptor.
        let _ = unsafe { raw::syscall(raw::nr::CLOSE, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Loads a program for devices. `log` takes the verifier's words where they are wanted,
/// up to a NUL.
///
/// # Errors
/// EINVAL: a length that is not a whole number of instructions, or a program that the
/// verifier refuses; EACCES: it refuses an access; E2BIG: too long; EPERM: no CAP_BPF
/// (CAP_SYS_ADMIN before 5.8); ENOSPC: the log is too short.
pub fn prog_load_cgroup_device(instructions: &[u8], log: Option<&mut [u8]>) -> Result<Program> {
    let count = instructions.len() / INSTRUCTION;
    if count == 0 || !instructions.len().is_multiple_of(INSTRUCTION) {
        return Err(Errno::EINVAL);
    }
    let count = u32::try_from(count).map_err(|_| Errno::E2BIG)?;
    let mut attributes = Attributes::new()
        .word(0, TYPE_CGROUP_DEVICE)
        .word(4, count)
        .pointer(8, instructions.as_ptr())
        .pointer(16, c"Apache-2.0".as_ptr())
        .set(48, b"pipkin_devices")
        .word(68, ATTACH_CGROUP_DEVICE);
    if let Some(log) = log {
        let length = u32::try_from(log.len()).map_err(|_| Errno::EINVAL)?;
        attributes = attributes
            .word(24, 1)
            .word(28, length)
            .pointer(32, log.as_mut_ptr());
    }
    // SAFETY: the kernel reads `count` instructions, which the slice holds, and the
    // licence up to its NUL, and writes at most `length` bytes into the log; all three
    // outlive the call.
    let result = unsafe { attributes.call(PROG_LOAD) }?;
    Program::from_result(result)
}

/// Attaches a program to a cgroup, which may have others beside it (all must allow), or
/// puts it in the place of `old` in one step.
///
/// # Errors
/// EPERM: no CAP_NET_ADMIN or CAP_SYS_ADMIN (CAP_BPF), or an ancestor forbids it; ENOENT:
/// `old` is not attached here; EINVAL: the descriptor is no cgroup, or a kernel before
/// 5.6 that cannot replace; E2BIG: 64 programs are attached.
pub fn prog_attach(cgroup: i32, program: &Program, old: Option<&Program>) -> Result<()> {
    let mut attributes = Attributes::new()
        .word(0, cgroup.cast_unsigned())
        .word(4, program.0.cast_unsigned())
        .word(8, ATTACH_CGROUP_DEVICE)
        .word(12, ALLOW_MULTI);
    if let Some(old) = old {
        attributes = attributes
            .word(12, ALLOW_MULTI | REPLACE)
            .word(16, old.0.cast_unsigned());
    }
    // SAFETY: this command takes numbers only; a wrong one is an error.
    unsafe { attributes.call(PROG_ATTACH) }.map(drop)
}

/// Takes a program off a cgroup.
///
/// # Errors
/// ENOENT: it is not attached here; EPERM as for [`prog_attach`].
pub fn prog_detach(cgroup: i32, program: &Program) -> Result<()> {
    let mut attributes = Attributes::new()
        .word(0, cgroup.cast_unsigned())
        .word(4, program.0.cast_unsigned())
        .word(8, ATTACH_CGROUP_DEVICE);
    // SAFETY: this command takes numbers only; a wrong one is an error.
    unsafe { attributes.call(PROG_DETACH) }.map(drop)
}

/// The ids of the device programs attached to this cgroup itself, not to its ancestors:
/// as many as `ids` holds. Returns how many there are.
///
/// # Errors
/// ENOSPC: there are more than `ids` holds; EPERM; EINVAL: no cgroup.
pub fn prog_query(cgroup: i32, ids: &mut [u32]) -> Result<usize> {
    let room = u32::try_from(ids.len()).map_err(|_| Errno::EINVAL)?;
    let mut attributes = Attributes::new()
        .word(0, cgroup.cast_unsigned())
        .word(4, ATTACH_CGROUP_DEVICE)
        .pointer(16, ids.as_mut_ptr())
        .word(24, room);
    // SAFETY: the kernel writes at most `room` numbers of 32 bits, which `ids` holds, and
    // into the attributes themselves, which are longer than any kernel's.
    unsafe { attributes.call(PROG_QUERY) }?;
    Ok(attributes.read(24) as usize)
}

/// Opens a loaded program by its id.
///
/// # Errors
/// ENOENT: no such program; EPERM: no CAP_SYS_ADMIN.
pub fn prog_by_id(id: u32) -> Result<Program> {
    let mut attributes = Attributes::new().word(0, id);
    // SAFETY: this command takes numbers only; a wrong one is an error.
    let result = unsafe { attributes.call(PROG_GET_FD_BY_ID) }?;
    Program::from_result(result)
}
