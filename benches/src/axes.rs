//! The axes whose measure is the time of a whole run.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use pipkin_op::ms;
use pipkin_sys::mount;
use pipkin_sys::process::{self, clone};

use crate::report::Report;
use crate::world::{CONFIGURATIONS, Subject, World};
use crate::{Result, runtime};

/// A subject and the name of its point.
pub type Point = (String, Subject);

/// How often a runtime may fail at a point before it is left out there.
const PATIENCE: usize = 3;

/// Runs every runtime on every point by turns, each time in another order, and records the
/// times after a warm-up. A runtime that cannot do it is left out, and said so.
pub fn compare(
    world: &World,
    report: &mut Report,
    axis: &'static str,
    points: &[Point],
    runs: usize,
) -> Result<()> {
    const WARM_UP: usize = 2;
    let mut failures: Vec<Vec<usize>> = vec![vec![0; world.runtimes.len()]; points.len()];
    for round in 0..WARM_UP + runs {
        for ((name, subject), failures) in points.iter().zip(&mut failures) {
            world.enter(subject)?;
            for turn in 0..world.runtimes.len() {
                // In the first round pipkin comes first: it makes the groups and the mount
                // points that the floor expects.
                let turn = (turn + round) % world.runtimes.len();
                let one = &world.runtimes[turn];
                if failures[turn] >= PATIENCE {
                    continue;
                }
                let words = one.run_words(world, subject, &world.id());
                match one.time_and_processor(world, &words) {
                    Ok((time, processor)) if round >= WARM_UP => {
                        report.add(axis, name, &one.name, "us", time);
                        if axis == "run" {
                            report.add("processor", name, &one.name, "us", processor);
                        }
                    }
                    Ok(_) => {}
                    Err(error) => {
                        failures[turn] += 1;
                        report.fail(&one.name, &format!("{axis}, {name}"), &error);
                    }
                }
            }
        }
    }
    world.leave()
}

/// The name of the point at which version 2 of the control groups is alone.
pub const V2: &str = "podman, groups of v2 alone";

/// Whole runs of each configuration, with and without seccomp, and with version 2 alone.
pub fn run(world: &World, report: &mut Report) -> Result<()> {
    let mut points: Vec<Point> = Vec::new();
    for name in CONFIGURATIONS {
        points.push((name.to_owned(), world.subject(name, &["/bin/true"])?));
    }
    let plain = world.subject("podman", &["/bin/true"])?.without_seccomp();
    points.push(("podman, no seccomp".to_owned(), plain));
    if let Some(subject) = world.subject_of_v2("podman", &["/bin/true"])? {
        points.push((V2.to_owned(), subject));
    }
    compare(world, report, "run", &points, world.runs(200, 20))
}

/// A mount namespace with more mounts, as a busy host has them.
fn crowded(world: &World, count: usize) -> Result<File> {
    process::unshare(clone::NEWNS)?;
    let place = world.scratch.dir().join("crowd");
    std::fs::create_dir_all(&place)?;
    let c_path = |path: &std::path::Path| std::ffi::CString::new(path.to_string_lossy().as_bytes());
    let kind = Some(c"tmpfs");
    mount::mount(kind, &c_path(&place)?, kind, 0, None)?;
    let source = place.join("source");
    std::fs::create_dir(&source)?;
    let source = c_path(&source)?;
    // The tmpfs is one of the additional mounts.
    for number in 1..count {
        let target = place.join(number.to_string());
        std::fs::create_dir(&target)?;
        mount::mount(Some(&source), &c_path(&target)?, None, ms::BIND, None)?;
    }
    Ok(File::open("/proc/self/ns/mnt")?)
}

/// Whole runs on hosts with more mounts.
pub fn host_mounts(world: &World, report: &mut Report) -> Result<()> {
    const COUNTS: [usize; 4] = [0, 500, 2000, 5000];
    let mut points: Vec<Point> = Vec::new();
    for count in COUNTS {
        let mut subject = world.subject("podman", &["/bin/true"])?;
        if count > 0 {
            let namespace = crowded(world, count);
            world.leave()?;
            subject.namespace = Some(Rc::new(namespace?));
        }
        points.push((count.to_string(), subject));
    }
    compare(world, report, "host mounts", &points, world.runs(100, 10))
}

/// Whole runs with more binds in the configuration.
pub fn binds(world: &World, report: &mut Report) -> Result<()> {
    let mut points: Vec<Point> = Vec::new();
    for count in [10, 100, 500] {
        let subject = world.subject("podman", &["/bin/true"])?;
        points.push((count.to_string(), subject.with_binds(count)?));
    }
    compare(world, report, "binds", &points, world.runs(100, 10))
}

/// Compiling and loading a filter, alone in a new process.
pub fn seccomp(world: &World, report: &mut Report) -> Result<()> {
    for name in ["podman", "containerd", "docker"] {
        let subject = world.subject(name, &["/bin/true"])?;
        let config = subject.bundle.dir().join("config.json");
        for _ in 0..world.runs(200, 40) {
            let [compile, load, instructions] = filter(world, &config, &[])?;
            let [_, least, _] = filter(world, &config, &["least"])?;
            report.add("seccomp least", name, "pipkin", "us", least / 1000.0);
            report.add("seccomp compile", name, "pipkin", "us", compile / 1000.0);
            report.add("seccomp load", name, "pipkin", "us", load / 1000.0);
            let both = (compile + load) / 1000.0;
            report.add("seccomp", name, "pipkin", "us", both);
            if report.get("instructions", name, "pipkin").is_none() {
                report.add("instructions", name, "pipkin", "", instructions);
            }
        }
    }
    Ok(())
}

/// Nanoseconds of compiling and of loading a filter, and its instructions.
fn filter(world: &World, config: &Path, args: &[&str]) -> Result<[f64; 3]> {
    let output = Command::new(world.program("seccomp"))
        .arg(config)
        .args(args)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    numbers.try_into().map_err(|_| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("seccomp: {text}{complaint}").into()
    })
}

/// What `make bench-mounts` prints.
pub fn mounts(world: &World, report: &mut Report) -> Result<()> {
    let count = world.runs(100_000, 20_000).to_string();
    let output = Command::new(world.program("mounts")).arg(count).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    report.mounts = String::from_utf8(output.stdout)?;
    let nothing = world.program("nothing");
    for _ in 0..world.runs(200, 40) {
        let time = runtime::time(world, &nothing, &[])?;
        report.add("reference", "nothing", "a static program", "us", time);
    }
    Ok(())
}
