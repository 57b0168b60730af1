//! What the tests of the BPF generator share: profiles, what they mean by the letter,
//! and the calls at which two filters for them may differ.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test support: a test fails by panicking"
)]

pub mod calls;
pub mod meaning;
pub mod random;

/// The interpreter of the generator's own tests.
#[path = "../../../crates/plan/src/seccomp/interpreter.rs"]
#[allow(dead_code, reason = "the generator's own tests use all of it")]
mod bpf;

/// The generator's table of system calls.
#[path = "../../../crates/plan/src/seccomp/tables.rs"]
#[allow(dead_code, reason = "the generator uses all of it")]
mod tables;

/// Every name that the generator knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    const ROWS: &[(&str, u8, [u16; tables::COLUMNS])] = &tables::ROWS;
    ROWS.iter().map(|row| row.0)
}

pub use bpf::{Data, Raw, check, data, run};

use pipkin_plan::seccomp::Filter;
use pipkin_spec::Seccomp;
use serde_json::Value;

/// Names of the profiles that podman, docker and containerd wrote.
pub const REAL: [&str; 3] = ["podman", "docker", "containerd"];

/// One of `REAL`.
pub fn real(name: &str) -> Value {
    let path = format!("{}/../bundles/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    let mut config: Value = serde_json::from_str(&text).expect(&path);
    config["linux"]["seccomp"].take()
}

/// As the runtime reads it.
pub fn parse(profile: &Value) -> Seccomp {
    serde_json::from_value(profile.clone()).expect("a profile")
}

/// A filter's program for the interpreter.
pub fn raw(filter: &Filter) -> Vec<Raw> {
    filter
        .program
        .iter()
        .map(|i| (i.code, i.jt, i.jf, i.k))
        .collect()
}
