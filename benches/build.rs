//! What the floor takes from pipkin's own planner, worked out while it is built, so that it
//! costs nothing when it runs: the seccomp filter, the capabilities, the limits and the rules
//! for devices of each configuration, as Rust source.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use pipkin_plan::cgroup::{self, Missing, Version, Write};
use pipkin_plan::seccomp::{Arch, compile};
use pipkin_spec::Config;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Each configuration and where it stands, from the root of the repository.
const CONFIGURATIONS: [(&str, &str); 4] = [
    ("PODMAN", "tests/bundles/podman.json"),
    ("CONTAINERD", "tests/bundles/containerd.json"),
    ("DOCKER", "tests/bundles/docker.json"),
    ("SPEC", "crates/cli/src/commands/spec.json"),
];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("..");
    let out = env::var("OUT_DIR")?;
    let native = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "aarch64" => Arch::Aarch64,
        _ => Arch::X86_64,
    };
    let mut source = String::new();
    for (name, path) in CONFIGURATIONS {
        let path = root.join(path);
        println!("cargo::rerun-if-changed={}", path.display());
        let config: Config = serde_json::from_str(&fs::read_to_string(&path)?)?;
        derive(&mut source, name, &config, native)?;
    }
    let count = pipkin_plan::CAPABILITIES.len();
    writeln!(
        source,
        "/// How many capabilities there are.\npub const CAPABILITIES: u32 = {count};"
    )?;
    fs::write(Path::new(&out).join("derived.rs"), source)?;
    Ok(())
}

fn derive(source: &mut String, name: &str, config: &Config, native: Arch) -> Result<()> {
    let wrong = |error| format!("{name}: {error:?}");
    let linux = config.linux.as_ref().ok_or("no linux")?;
    let (filter, flags) = match &linux.seccomp {
        Some(seccomp) => {
            let filter = compile(seccomp, native).map_err(wrong)?;
            (filter.to_bytes(), filter.flags)
        }
        None => (Vec::new(), 0),
    };
    let resources = linux.resources.clone().unwrap_or_default();
    let limits = cgroup::normalise(&resources).map_err(wrong)?;
    let policy = cgroup::devices::policy(&resources.devices).map_err(wrong)?;
    let mut v1 = cgroup::v1_writes(&limits).map_err(wrong)?;
    v1.extend(policy.v1_writes().map_err(wrong)?);
    let v2 = cgroup::v2_writes(&limits).map_err(wrong)?;
    let process = config.process.as_ref().ok_or("no process")?;
    let mut capabilities = 0u64;
    for wanted in process.capabilities.iter().flat_map(|all| &all.bounding) {
        let number = pipkin_plan::CAPABILITIES
            .iter()
            .position(|known| known == wanted)
            .ok_or_else(|| format!("{name}: {wanted}"))?;
        capabilities |= 1 << number;
    }
    writeln!(
        source,
        "pub const {name}: Derived = Derived {{\n\
         filter: &{filter:?},\nflags: {flags},\ncapabilities: {capabilities:#x},\n\
         v1: &{},\nv2: &{},\ndevices: &{:?},\n}};",
        writes(&v1, Version::V1),
        writes(&v2, Version::V2),
        policy.program()
    )?;
    Ok(())
}

/// The writes as source; those to one file follow each other, so that it is opened once.
fn writes(all: &[Write], version: Version) -> String {
    let mut text = String::from("[");
    for write in all {
        let controller = write.controller.name(version);
        let optional = write.missing != Missing::Fail;
        let _ = write!(
            text,
            "Write {{ controller: {controller:?}, file: {:?}, value: b{:?}, optional: {optional} }}, ",
            write.file, write.value
        );
    }
    text + "]"
}
