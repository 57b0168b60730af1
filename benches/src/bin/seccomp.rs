//! `seccomp CONFIG [least]`: makes the filter of a configuration and loads it into this
//! process, as the first and only thing that it does. Prints nanoseconds of compiling and of
//! loading, and the number of instructions.
//!
//! With `least`, what is loaded is the shortest filter that looks at anything: what loading
//! takes whatever a filter says.

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

/// Loads the architecture, allows everything.
const LEAST: [[u8; 8]; 2] = [insn(0x20, 4), insn(0x06, 0x7fff_0000)];

const fn insn(code: u16, k: u32) -> [u8; 8] {
    let ([a, b], [e, f, g, h]) = (code.to_ne_bytes(), k.to_ne_bytes());
    [a, b, 0, 0, e, f, g, h]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: seccomp CONFIG [least]")?;
    let least = args.next().is_some_and(|word| word == "least");
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
    let bytes = if least { LEAST.concat() } else { bytes };
    let compiled = start.elapsed();
    process::seccomp_filter(&bytes, filter.flags)?;
    let loaded = start.elapsed() - compiled;

    println!(
        "{} {} {}",
        compiled.as_nanos(),
        loaded.as_nanos(),
        bytes.len() / 8
    );
    Ok(())
}
