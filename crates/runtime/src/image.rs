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

static PROGRAM: [u8; PLAN_OFFSET] = *include_bytes!(concat!(env!("OUT_DIR"), "/init"));

/// What /proc/PID/exe shows of a container that waits: `/memfd:pipkin (deleted)`. With
/// `memfd:` it fits the 15 characters of a process's name.
pub const NAME: &str = "pipkin";

/// Whether the text of a link `/proc/PID/exe` is that of such an executable.
#[must_use]
pub fn is_link_to_one(text: &[u8]) -> bool {
    text.strip_prefix(b"/memfd:")
        .is_some_and(|name| name.starts_with(NAME.as_bytes()))
}

const LENGTH_SIZE: usize = size_of::<u64>();

/// Makes the executable. `name` is what /proc/PID/exe shows.
///
/// # Errors
/// What memfd_create(2), write(2) or fcntl(2) says.
pub fn compose(name: &str, plan: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(create(name)?);
    let length = (plan.len() as u64).to_ne_bytes();
    let [head, between, tail] = PARTS;
    let mut parts = [head, &length, between, &length, tail, plan].map(IoSlice::new);
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

/// The program without the two fields of its header that hold the plan's length.
const PARTS: [&[u8]; 3] = {
    // elf(5): `p_filesz` stands before `p_memsz`.
    assert!(PLAN_FILESZ_OFFSET + LENGTH_SIZE <= PLAN_MEMSZ_OFFSET);
    let (head, rest) = PROGRAM.split_at(PLAN_FILESZ_OFFSET);
    let (_, rest) = rest.split_at(LENGTH_SIZE);
    let (between, rest) = rest.split_at(PLAN_MEMSZ_OFFSET - PLAN_FILESZ_OFFSET - LENGTH_SIZE);
    let (_, tail) = rest.split_at(LENGTH_SIZE);
    [head, between, tail]
};

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use pipkin_op::StageOp;
    use pipkin_op::wire::{MAGIC, Reader};

    use super::*;

    /// The step `umask(022)`, encoded: nothing that leaves a trace.
    const STEP: [u8; 5] = [104, 0o22, 0, 0, 0];

    /// A plan of so many such steps, of which one fails; steps count from 1.
    fn plan(steps: u32, fault: u32) -> Vec<u8> {
        let bytes: Vec<u8> = (1..=steps)
            .flat_map(|step| step.to_le_bytes().into_iter().chain(STEP))
            .collect();
        let length = u32::try_from(5 * size_of::<u32>() + bytes.len()).unwrap();
        let nowhere = u32::MAX; // the descriptor -1
        let header = [MAGIC, length, nowhere, 0, fault].map(u32::to_le_bytes);
        header.into_iter().flatten().chain(bytes).collect()
    }

    fn exit_status(plan: &[u8]) -> Option<i32> {
        let image = compose("test", plan).unwrap();
        let path = format!("/proc/self/fd/{}", image.as_raw_fd());
        Command::new(path).status().unwrap().code()
    }

    #[test]
    fn the_program_reads_its_plan_to_the_end() {
        let step = StageOp::decode(&mut Reader::new(&STEP));
        assert_eq!(
            step,
            Some(StageOp::Umask { mask: 0o22 }),
            "the encoding has changed"
        );
        for steps in [0, 1, 100, 453, 454, 455, 456, 35_000] {
            assert_eq!(exit_status(&plan(steps, 0)), Some(0), "{steps} steps");
            let failing = exit_status(&plan(steps, steps));
            assert_eq!(
                failing,
                Some(i32::from(steps > 0)),
                "the last of {steps} steps"
            );
        }
    }

    #[test]
    fn the_program_refuses_what_is_no_plan() {
        assert_ne!(exit_status(&[0; 100]), Some(0));
        let mut cut = plan(10, 0);
        cut.pop();
        let length = u32::try_from(cut.len()).unwrap().to_le_bytes();
        cut.splice(4..8, length);
        assert_ne!(exit_status(&cut), Some(0));
    }

    #[test]
    fn the_image_cannot_be_changed() {
        let image = File::from(compose("test", &plan(10, 0)).unwrap());
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
