//! The executable that a container's first process runs: the small program of
//! `crates/init` with the plan behind it, in a sealed memory file.
//!
//! Nothing of the runtime's own binary is in it, so a container that opens
//! `/proc/PID/exe` finds a file that cannot be changed and that nobody else runs
//! (CVE-2019-5736).

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

include!(concat!(env!("OUT_DIR"), "/init_layout.rs"));

static PROGRAM: &[u8; PLAN_OFFSET] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));

const LENGTH_SIZE: usize = size_of::<u64>();

/// Makes the executable. `name` is what /proc/PID/exe shows.
///
/// # Errors
/// What memfd_create(2), write(2) or fcntl(2) says.
pub fn compose(name: &str, plan: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(create(name)?);
    let program = sized(plan.len() as u64);
    let mut parts = [IoSlice::new(&program), IoSlice::new(plan)];
    let mut parts = parts.as_mut_slice();
    while !parts.is_empty() {
        let written = file.write_vectored(parts)?;
        IoSlice::advance_slices(&mut parts, written);
    }
    let file = OwnedFd::from(file);
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// An executable memory file. Kernels before 6.3 know no `MFD_EXEC`: there every memory
/// file is executable.
fn create(name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => memfd_create(name, flags),
        result => result,
    }
}

/// The program with the plan's length in its header.
fn sized(length: u64) -> [u8; PLAN_OFFSET] {
    const {
        assert!(PLAN_FILESZ_OFFSET + LENGTH_SIZE <= PLAN_OFFSET);
        assert!(PLAN_MEMSZ_OFFSET + LENGTH_SIZE <= PLAN_OFFSET);
    }
    let mut program = *PROGRAM;
    for offset in [PLAN_FILESZ_OFFSET, PLAN_MEMSZ_OFFSET] {
        if let Some(field) = program.get_mut(offset..offset + LENGTH_SIZE) {
            field.copy_from_slice(&length.to_ne_bytes());
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use super::*;

    /// A plan that begins with its own length, as the program expects it.
    fn plan(length: usize) -> Vec<u8> {
        let rest = (8..length).map(|index| (index % 251) as u8);
        (length as u64)
            .to_ne_bytes()
            .into_iter()
            .chain(rest)
            .collect()
    }

    #[test]
    fn the_program_executes_and_reads_its_plan() {
        for length in [8, 100, 4096, 4097, 300 * 1024] {
            let plan = plan(length);
            let sum = plan.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
            let image = compose("test", &plan).unwrap();
            let path = format!("/proc/self/fd/{}", image.as_raw_fd());
            let status = Command::new(path).status().unwrap();
            assert_eq!(status.code(), Some(i32::from(sum)), "{length} bytes");
        }
    }

    #[test]
    fn the_image_cannot_be_changed() {
        let image = File::from(compose("test", &plan(100)).unwrap());
        assert_eq!(
            (&image).write(b"x").unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
        assert!(image.set_len(0).is_err());
    }

    #[test]
    fn the_program_is_small() {
        const { assert!(PLAN_OFFSET <= 0x1_0000) }
    }
}
