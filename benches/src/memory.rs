//! Memory: what a runtime takes, and how little it can do with.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::Result;
use crate::lifecycle::kib;
use crate::report::Report;
use crate::runtime::{self, Runtime};
use crate::world::{Subject, World};

/// The largest resident size of a runtime that runs a container in the foreground.
pub fn rss(world: &World, report: &mut Report) -> Result<()> {
    let subject = world.subject("podman", &["/nothing", "wait"])?;
    for one in world.oci() {
        for _ in 0..world.runs(10, 3) {
            match peak(world, one, &subject) {
                Ok(resident) => {
                    for (point, size) in ["RSS", "file", "anonymous"].iter().zip(resident) {
                        report.add("peak", point, &one.name, "KiB", size);
                    }
                }
                Err(error) => {
                    report.fail(&one.name, "peak RSS", &error);
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The largest size, and while it waits for the container's end, what is from files and what
/// is anonymous.
fn peak(world: &World, one: &Runtime, subject: &Subject) -> Result<[f64; 3]> {
    let id = world.id();
    let pid_file = world.scratch.dir().join(&id);
    let written = world.written();
    let file = pid_file.to_string_lossy().into_owned();
    let bundle = subject.bundle.path();
    let words = ["run", "--bundle", bundle, "--pid-file", &file, &id];
    let mut child = runtime::command(world, &one.path, &one.words(world, &words))?.spawn()?;
    let end = Instant::now() + Duration::from_secs(10);
    let container: i32 = loop {
        let text = fs::read_to_string(&pid_file).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if comm.trim() == "nothing" {
                break pid;
            }
        }
        if Instant::now() > end || child.try_wait()?.is_some() {
            let _ = child.kill();
            return Err(format!("it did not come up: {}", world.last_line(written)).into());
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    // It now waits for the container's end.
    std::thread::sleep(Duration::from_millis(5));
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let resident = ["VmHWM:", "RssFile:", "RssAnon:"].map(|name| kib(&status, name).unwrap_or(0.0));
    if let Some(pid) = Pid::from_raw(container) {
        rustix::process::kill_process(pid, Signal::KILL)?;
    }
    child.wait()?;
    Ok(resident)
}

/// The smallest limit of memory in which a static program still runs.
pub fn limit(world: &World, report: &mut Report) -> Result<()> {
    const STEP: u64 = 8;
    const MOST: u64 = 64 * 1024;
    for one in world.oci() {
        let mut subject = world.subject("podman", &["/nothing"])?;
        let written = world.written();
        let mut fits = |steps: u64| -> Result<bool> {
            let bytes = steps * STEP * 1024;
            let memory = json!({ "limit": bytes });
            subject.bundle.set("/linux/resources/memory", memory);
            subject.bundle.write();
            for _ in 0..world.runs(10, 4) {
                if !survives(world, one, &subject)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let mut above = 8;
        let mut fitted = fits(above)?;
        while !fitted && above * STEP < MOST {
            above *= 2;
            fitted = fits(above)?;
        }
        if !fitted {
            let place = format!("a limit of {} KiB", above * STEP);
            report.fail(&one.name, &place, &world.last_line(written));
            continue;
        }
        let mut below = if above == 8 { 0 } else { above / 2 };
        while below + 1 < above {
            let middle = u64::midpoint(below, above);
            if fits(middle)? {
                above = middle;
            } else {
                below = middle;
            }
        }
        let found = (above * STEP) as f64;
        report.add("limit", "memory", &one.name, "KiB", found);
    }
    Ok(())
}

/// Whether a run succeeds; what is left of one that does not is removed.
fn survives(world: &World, one: &Runtime, subject: &Subject) -> Result<bool> {
    let id = world.id();
    let words = one.run_words(world, subject, &id);
    let child = runtime::command(world, &one.path, &words)?.spawn()?;
    if in_time(child)? {
        return Ok(true);
    }
    let _ = one.time(world, &one.words(world, &["delete", "--force", &id]));
    for hierarchy in &world.hierarchies {
        let group = subject.bundle.cgroup.trim_start_matches('/');
        let group = hierarchy.mount.join(group);
        let pids = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for pid in pids.lines().filter_map(|line| line.parse().ok()) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        let _ = fs::remove_dir(group);
    }
    world.scratch.reap();
    Ok(false)
}

/// Whether the process succeeds within five seconds.
fn in_time(mut child: Child) -> Result<bool> {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}
