//! What an empty string for data costs mount(2), and what the new mount calls cost beside
//! it. Each loop runs in a process of its own, in mount namespaces that nobody else sees.
//!
//! ```text
//! mounts [COUNT]                 all of them; 100,000 calls each without a count
//! mounts LOOP DIRECTORY COUNT    one loop: what is below runs itself like this
//! ```

#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use pipkin_op::{attr, ms};
use pipkin_sys::measure::{self, Usage, mount_with_data_as_is};
use pipkin_sys::mount;
use pipkin_sys::{AT_FDCWD, fs, process};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How many calls a loop makes, as in the measurement that this project began with.
const CALLS: usize = 100_000;

/// A loop of binds makes a fifth of the calls, and so many of them in one namespace: a
/// container has dozens, and each one more costs more where there are thousands.
const BINDS_IN: usize = 5;
const BINDS_AT_ONCE: usize = 1000;

/// A page of zeros that begins where a page begins.
#[repr(align(4096))]
struct Page([u8; 4096]);
static PAGE: Page = Page([0; 4096]);

/// A loop: its name, its title, and what it is compared with.
struct Loop {
    name: &'static str,
    title: &'static str,
    against: &'static str,
}

const fn row(name: &'static str, title: &'static str, against: &'static str) -> Loop {
    Loop {
        name,
        title,
        against,
    }
}

const REMOUNT: [Loop; 3] = [
    row("remount-null", "NULL", "remount-null"),
    row("remount-empty", "\"\"", "remount-null"),
    row(
        "remount-page",
        "\"\" at the start of a page",
        "remount-null",
    ),
];

const PRIVATE: [Loop; 3] = [
    row("private-null", "NULL", "private-null"),
    row("private-empty", "\"\"", "private-null"),
    row(
        "private-page",
        "\"\" at the start of a page",
        "private-null",
    ),
];

const BIND: [Loop; 2] = [
    row("bind-mount", "mount", "bind-mount"),
    row("bind-tree", "open_tree, move_mount", "bind-mount"),
];

const READ_ONLY: [Loop; 3] = [
    row("ro-mount", "mount, mount again read-only", "ro-mount"),
    row(
        "ro-tree",
        "open_tree, mount_setattr, move_mount",
        "ro-mount",
    ),
    // Without Linux 6.15, the same as the last.
    row("ro-attr", "open_tree_attr, move_mount", "ro-mount"),
];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => all(CALLS),
        [count] => all(count.parse()?),
        [name, directory, count] => {
            let (usage, elapsed) = one(name, Path::new(directory), count.parse()?)?;
            println!(
                "{} {} {elapsed} {} {}",
                usage.user, usage.system, usage.major_faults, usage.minor_faults
            );
            Ok(())
        }
        _ => Err("usage: mounts [COUNT]".into()),
    }
}

/// A directory that only this process uses, with a tmpfs of its own on it.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        process::unshare(process::clone::NEWNS)?;
        mount::mount(None, c"/", None, ms::REC | ms::PRIVATE, None)?;
        let path = std::env::temp_dir().join(format!("pipkin-mounts-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        let place = Self(path);
        mount::mount(Some(c"tmpfs"), &c_path(&place.0)?, Some(c"tmpfs"), 0, None)?;
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Ok(path) = c_path(&self.0) {
            let _ = mount::umount(&path, mount::MNT_DETACH);
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn c_path(path: &Path) -> Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn all(calls: usize) -> Result<()> {
    let place = Place::new()?;
    let binds = (calls / BINDS_IN).max(1);
    std::fs::create_dir(place.0.join("source"))?;
    for number in 0..binds.min(BINDS_AT_ONCE) {
        std::fs::create_dir(place.0.join(format!("at-{number}")))?;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    println!("Linux {}", release.trim());
    table(
        &format!("{calls} calls of mount(2) with MS_REMOUNT | MS_PRIVATE on a tmpfs, data:"),
        &place.0,
        &REMOUNT,
        calls,
    )?;
    table(
        &format!("{calls} calls of mount(2) with MS_PRIVATE, data:"),
        &place.0,
        &PRIVATE,
        calls,
    )?;
    table(&format!("{binds} binds:"), &place.0, &BIND, binds)?;
    table(
        &format!("{binds} read-only binds:"),
        &place.0,
        &READ_ONLY,
        binds,
    )
}

/// Runs each loop five times by turns and prints the fastest run of each.
fn table(title: &str, place: &Path, loops: &[Loop], count: usize) -> Result<()> {
    const ROUNDS: usize = 5;
    let mut best: Vec<Option<[f64; 5]>> = vec![None; loops.len()];
    for _ in 0..ROUNDS {
        for (one, best) in loops.iter().zip(&mut best) {
            let new = run(one.name, place, count)?;
            if best.is_none_or(|old| new[2] < old[2]) {
                *best = Some(new);
            }
        }
    }
    let rows: Vec<[f64; 5]> = best.into_iter().flatten().collect();
    println!("\n{title}");
    println!(
        "{:40} {:>8} {:>8} {:>8} {:>14} {:>9} {:>6}",
        "", "user", "system", "elapsed", "faults", "each", "ratio"
    );
    for (one, row) in loops.iter().zip(&rows) {
        let base = loops.iter().position(|other| other.name == one.against);
        let base = base.and_then(|at| rows.get(at)).unwrap_or(row);
        let [user, system, elapsed, major, minor] = row;
        println!(
            "{:40} {:>7.2}s {:>7.2}s {:>7.2}s {:>14} {:>6.2} us {:>6.2}",
            one.title,
            user / 1e6,
            system / 1e6,
            elapsed / 1e6,
            format!("{major}maj+{minor}min"),
            elapsed / count as f64,
            elapsed / base[2]
        );
    }
    Ok(())
}

/// One loop in a process of its own: user, system, elapsed, major and minor faults.
fn run(name: &str, place: &Path, count: usize) -> Result<[f64; 5]> {
    let output = Command::new(std::env::current_exe()?)
        .arg(name)
        .arg(place)
        .arg(count.to_string())
        .output()?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let numbers: std::result::Result<Vec<f64>, _> =
        text.split_whitespace().map(str::parse).collect();
    numbers?
        .try_into()
        .map_err(|_| format!("{name} printed {text}").into())
}

/// The loop `name`: what it used, and microseconds that passed.
fn one(name: &str, place: &Path, count: usize) -> Result<(Usage, f64)> {
    let home = std::fs::File::open("/proc/self/ns/mnt")?;
    let target = c_path(place)?;
    let source = c_path(&place.join("source"))?;
    let targets: std::result::Result<Vec<CString>, _> = (0..count.min(BINDS_AT_ONCE))
        .map(|number| c_path(&place.join(format!("at-{number}"))))
        .collect();
    let targets = targets?;
    // Each thousand in a namespace of its own, which is gone with this process or the next.
    let in_portions = |call: &dyn Fn(&CStr) -> pipkin_sys::Result<()>| {
        let mut all = (Usage::default(), 0.0);
        for begin in (0..count).step_by(BINDS_AT_ONCE) {
            process::setns(home.as_raw_fd(), 0)?;
            process::unshare(process::clone::NEWNS)?;
            let portion = (count - begin).min(BINDS_AT_ONCE);
            let (used, elapsed) = timed(portion, |number| call(&targets[number]))?;
            all.0 = sum(all.0, used);
            all.1 += elapsed;
        }
        Ok(all)
    };
    let page = CStr::from_bytes_until_nul(&PAGE.0)?;
    let data = match name.rsplit_once('-') {
        Some((_, "empty")) => Some(c""),
        Some((_, "page")) => Some(page),
        _ => None,
    };
    match name {
        "remount-null" | "remount-empty" | "remount-page" => timed(count, |_| {
            mount_with_data_as_is(&target, ms::REMOUNT | ms::PRIVATE, data)
        }),
        "private-null" | "private-empty" | "private-page" => {
            timed(count, |_| mount_with_data_as_is(&target, ms::PRIVATE, data))
        }
        "bind-mount" => {
            in_portions(&|target| mount::mount(Some(&source), target, None, ms::BIND, None))
        }
        "bind-tree" => in_portions(&|target| {
            let tree = mount::open_tree(AT_FDCWD, &source, false, false)?;
            let moved = mount::move_mount(tree, AT_FDCWD, target);
            fs::close(tree);
            moved
        }),
        "ro-mount" => in_portions(&|target| {
            mount::mount(Some(&source), target, None, ms::BIND, None)?;
            let again = ms::BIND | ms::REMOUNT | ms::RDONLY;
            mount::mount(None, target, None, again, None)
        }),
        "ro-tree" => in_portions(&|target| {
            let tree = mount::open_tree(AT_FDCWD, &source, false, false)?;
            let moved = mount::mount_setattr(tree, attr::RDONLY, 0, 0, 0, false)
                .and_then(|()| mount::move_mount(tree, AT_FDCWD, target));
            fs::close(tree);
            moved
        }),
        "ro-attr" => in_portions(&|target| {
            let set = (attr::RDONLY, 0, 0);
            let tree = mount::open_tree_attr(AT_FDCWD, &source, (false, false), set)?;
            let moved = mount::move_mount(tree, AT_FDCWD, target);
            fs::close(tree);
            moved
        }),
        _ => Err(format!("no loop is called {name}").into()),
    }
}

fn sum(a: Usage, b: Usage) -> Usage {
    Usage {
        user: a.user + b.user,
        system: a.system + b.system,
        minor_faults: a.minor_faults + b.minor_faults,
        major_faults: a.major_faults + b.major_faults,
    }
}

fn timed(
    count: usize,
    mut call: impl FnMut(usize) -> pipkin_sys::Result<()>,
) -> Result<(Usage, f64)> {
    let before = measure::usage()?;
    let start = Instant::now();
    for number in 0..count {
        call(number)?;
    }
    let elapsed = start.elapsed().as_nanos() as f64 / 1000.0;
    let after = measure::usage()?;
    let used = Usage {
        user: after.user - before.user,
        system: after.system - before.system,
        minor_faults: after.minor_faults - before.minor_faults,
        major_faults: after.major_faults - before.major_faults,
    };
    Ok((used, elapsed))
}
