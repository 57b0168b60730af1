//! Builds the container's first program (`crates/init`) and embeds it.
//!
//! It is a program of its own, for the machine's plain target with nothing but `core`,
//! whatever the target, the profile or the flags of the build around it are. What is
//! left in `OUT_DIR`:
//!
//! - `init`, the executable, cut off where the plan begins;
//! - `init_layout.rs`, where the plan goes and which two header fields hold its size.

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The crates that make up the program, next to this one.
const SOURCES: [&str; 4] = ["init", "stage", "op", "sys"];

fn main() -> Result<()> {
    let crates = PathBuf::from(variable("CARGO_MANIFEST_DIR")?)
        .join("..")
        .canonicalize()?;
    let out = PathBuf::from(variable("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    for name in SOURCES {
        println!(
            "cargo::rerun-if-changed={}",
            crates.join(name).join("Cargo.toml").display()
        );
        println!(
            "cargo::rerun-if-changed={}",
            crates.join(name).join("src").display()
        );
    }
    println!(
        "cargo::rerun-if-changed={}",
        crates.join("init/init.ld").display()
    );

    let script = versioned(&crates.join("init/init.ld"), &out)?;
    let program = build(&crates.join("init"), &script, &out.join("init-target"))?;
    let mut image = fs::read(&program)?;
    let layout = elf::trim(&mut image)?;
    fs::write(out.join("init"), &image)?;
    fs::write(out.join("init_layout.rs"), layout.to_source())?;
    Ok(())
}

/// Copies the linker script to a name that follows its content: cargo links again when
/// a flag changes, but does not know of a file that a flag names.
fn versioned(script: &Path, directory: &Path) -> Result<PathBuf> {
    let text = fs::read(script)?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let copy = directory.join(format!("init-{:016x}.ld", hasher.finish()));
    fs::write(&copy, text)?;
    Ok(copy)
}

/// Builds the program and returns its path.
fn build(package: &Path, script: &Path, target_dir: &Path) -> Result<PathBuf> {
    let target = plain_target()?;
    let status = command(&variable("CARGO")?)
        .args([
            "build",
            "--release",
            "--offline",
            "--quiet",
            "--target",
            &target,
        ])
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_dir)
        .env("RUSTC", variable("RUSTC")?)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags(script, &target)?.join("\x1f"),
        )
        .status()?;
    if !status.success() {
        return Err(format!("building {} failed: {status}", package.display()).into());
    }
    Ok(target_dir.join(target).join("release/pipkin-init"))
}

/// The ordinary Linux target of this architecture, whose `core` comes with every
/// compiler; else the target of the build around.
fn plain_target() -> Result<String> {
    let plain = format!("{}-unknown-linux-gnu", variable("CARGO_CFG_TARGET_ARCH")?);
    let libraries = command(&variable("RUSTC")?)
        .args(["--print", "target-libdir", "--target", &plain])
        .output()?;
    let libraries = PathBuf::from(String::from_utf8(libraries.stdout)?.trim_end());
    let has_core = fs::read_dir(libraries).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
    });
    Ok(if has_core { plain } else { variable("TARGET")? })
}

/// The compiler's flags: a static executable at fixed addresses, laid out by `init.ld`.
fn flags(script: &Path, target: &str) -> Result<Vec<String>> {
    let page = if target.starts_with("aarch64") {
        0x1_0000
    } else {
        0x1000
    };
    let script = script
        .to_str()
        .ok_or("the path of the output directory is not UTF-8")?;
    let mut flags = vec!["-Cpanic=abort".into(), "-Crelocation-model=static".into()];
    if target.ends_with("musl") {
        flags.push("-Clink-self-contained=no".into());
    }
    let linker = ["-nostartfiles", "-nostdlib", "-static", "-no-pie"].map(String::from);
    let script = [
        format!("-Wl,-T,{script}"),
        format!("-Wl,-z,max-page-size={page},-z,common-page-size={page}"),
        "-Wl,-z,noseparate-code,-z,norelro,-z,noexecstack".into(),
        "-Wl,--build-id=none,--strip-all,--gc-sections,--no-eh-frame-hdr".into(),
    ];
    flags.extend(
        linker
            .into_iter()
            .chain(script)
            .map(|flag| format!("-Clink-arg={flag}")),
    );
    Ok(flags)
}

/// A command without what cargo and the build around it say about flags, wrappers,
/// profiles and directories: none of it is meant for this program.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let foreign = matches!(
            text,
            "RUSTFLAGS"
                | "RUSTC_WRAPPER"
                | "RUSTC_WORKSPACE_WRAPPER"
                | "RUSTC_BOOTSTRAP"
                | "CLIPPY_ARGS"
                | "CARGO_ENCODED_RUSTFLAGS"
                | "CARGO_INCREMENTAL"
                | "CARGO_TARGET_DIR"
        ) || ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_UNSTABLE_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
            || (text.starts_with("CARGO_TARGET_") && text.ends_with("_RUSTFLAGS"));
        if foreign {
            command.env_remove(&name);
        }
    }
    command
}

fn variable(name: &str) -> Result<String> {
    env::var(name).map_err(|error| format!("{name}: {error}").into())
}

/// What has to be known of the executable's format, elf(5), 64 bits.
mod elf {
    use super::Result;

    const PT_NULL: u32 = 0;
    const PT_LOAD: u32 = 1;
    /// Where `init.ld` puts the plan.
    const PLAN_VADDR: u64 = 0x2000_0000;

    // Offsets in the file's header.
    const PHOFF: usize = 32;
    const SHOFF: usize = 40;
    const PHENTSIZE: usize = 54;
    const PHNUM: usize = 56;
    const SHENTSIZE: usize = 58;
    const SECTION_FIELDS_END: usize = 64;

    // Offsets in a program header.
    const TYPE: usize = 0;
    const OFFSET: usize = 8;
    const VADDR: usize = 16;
    const FILESZ: usize = 32;
    const MEMSZ: usize = 40;

    /// Where the plan goes.
    pub struct Layout {
        offset: u64,
        filesz_offset: usize,
        memsz_offset: usize,
    }

    impl Layout {
        pub fn to_source(&self) -> String {
            format!(
                "/// Where the plan begins in the file: the length of the embedded program.\n\
                 pub const PLAN_OFFSET: usize = {:#x};\n\
                 /// Where the file holds the plan's length in the file, eight bytes.\n\
                 pub const PLAN_FILESZ_OFFSET: usize = {:#x};\n\
                 /// Where the file holds the plan's length in memory, eight bytes.\n\
                 pub const PLAN_MEMSZ_OFFSET: usize = {:#x};\n\
                 /// The address at which the program sees the plan.\n\
                 pub const PLAN_VADDR: usize = {PLAN_VADDR:#x};\n",
                self.offset, self.filesz_offset, self.memsz_offset
            )
        }
    }

    /// Cuts off all that follows where the plan begins (a placeholder, the section
    /// headers), and forgets segments that hold nothing.
    pub fn trim(image: &mut Vec<u8>) -> Result<Layout> {
        if image.get(..5) != Some(b"\x7fELF\x02") {
            return Err("the first program is not a 64-bit ELF file".into());
        }
        let first = usize::try_from(read_u64(image, PHOFF)?)?;
        let size = usize::from(read_u16(image, PHENTSIZE)?);
        let mut plan = None;
        let mut end = 0;
        for index in 0..usize::from(read_u16(image, PHNUM)?) {
            let header = first + index * size;
            if read_u32(image, header + TYPE)? != PT_LOAD {
                continue;
            }
            let offset = read_u64(image, header + OFFSET)?;
            let filesz = read_u64(image, header + FILESZ)?;
            if read_u64(image, header + VADDR)? == PLAN_VADDR {
                let (filesz_offset, memsz_offset) = (header + FILESZ, header + MEMSZ);
                plan = Some(Layout {
                    offset,
                    filesz_offset,
                    memsz_offset,
                });
            } else if read_u64(image, header + MEMSZ)? == 0 {
                write(image, header + TYPE, &PT_NULL.to_ne_bytes())?;
            } else {
                end = end.max(offset + filesz);
            }
        }
        let plan = plan.ok_or("the first program has no segment for the plan")?;
        if end > plan.offset || plan.offset % 0x1000 != 0 {
            return Err(
                format!("the plan at {:#x} is not last or not aligned", plan.offset).into(),
            );
        }
        image.truncate(usize::try_from(plan.offset)?);
        write(image, SHOFF, &[0; 8])?;
        write(image, SHENTSIZE, &[0; SECTION_FIELDS_END - SHENTSIZE])?;
        write(image, plan.filesz_offset, &[0; 16])?;
        Ok(plan)
    }

    fn bytes<const N: usize>(image: &[u8], offset: usize) -> Result<[u8; N]> {
        let bytes = image.get(offset..).and_then(<[u8]>::first_chunk);
        bytes
            .copied()
            .ok_or_else(|| format!("the first program ends before {offset:#x}").into())
    }

    fn read_u16(image: &[u8], offset: usize) -> Result<u16> {
        Ok(u16::from_ne_bytes(bytes(image, offset)?))
    }

    fn read_u32(image: &[u8], offset: usize) -> Result<u32> {
        Ok(u32::from_ne_bytes(bytes(image, offset)?))
    }

    fn read_u64(image: &[u8], offset: usize) -> Result<u64> {
        Ok(u64::from_ne_bytes(bytes(image, offset)?))
    }

    fn write(image: &mut [u8], offset: usize, bytes: &[u8]) -> Result<()> {
        let end = offset + bytes.len();
        let place = image
            .get_mut(offset..end)
            .ok_or("the first program's header is cut off")?;
        place.copy_from_slice(bytes);
        Ok(())
    }
}
