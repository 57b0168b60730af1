//! `seccomp CONFIG`: makes the filter of a configuration and loads it into this process, as
//! the first and only thing that it does. Prints nanoseconds of compiling and of loading, and
//! the number of instructions.

#![forbid(unsafe_code)]

use std::error::Error;
use std::time::Instant;

use pipkin_plan::seccomp::{Arch, compile};
use pipkin_spec::Config;
use pipkin_sys::arena::Arena;
use pipkin_sys::process;

/// The same allocator as pipkin's.
#[global_allocator]
static ARENA: Arena = Arena::new();

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: seccomp CONFIG")?;
    let config: Config = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let linux = config.linux.ok_or("the configuration has no linux")?;
    let profile = linux.seccomp.ok_or("the configuration has no seccomp")?;
    let native = if cfg!(target_arch = "aarch64") {
        Arch::Aarch64
    } else {
        Arch::X86_64
    };
    process::no_new_privs()?;

    let start = Instant::now();
    let filter = compile(&profile, native).map_err(|error| format!("{error:?}"))?;
    let bytes = filter.to_bytes();
    let compiled = start.elapsed();
    process::seccomp_filter(&bytes, filter.flags)?;
    let loaded = start.elapsed() - compiled;

    println!(
        "{} {} {}",
        compiled.as_nanos(),
        loaded.as_nanos(),
        filter.program.len()
    );
    Ok(())
}
