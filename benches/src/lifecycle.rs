//! The commands of a container's life, each alone.

use std::fs;
use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, WaitOptions};

use crate::Result;
use crate::report::Report;
use crate::runtime::{self, Runtime};
use crate::world::{Subject, World};

/// The time of each command; beside them, what they are compared with.
pub fn commands(world: &World, report: &mut Report) -> Result<()> {
    let subject = world.subject("podman", &["/nothing", "wait"])?;
    let runtimes: Vec<&Runtime> = world.oci().collect();
    let mut able = vec![true; runtimes.len()];
    let runs = world.runs(100, 15);
    for round in 0..2 + runs {
        for turn in 0..runtimes.len() {
            let turn = (turn + round) % runtimes.len();
            if !able[turn] {
                continue;
            }
            let one = runtimes[turn];
            match life(world, one, &subject) {
                Ok(times) if round >= 2 => times.record(report, &one.name),
                Ok(_) => {}
                Err(error) => {
                    able[turn] = false;
                    report.note(format!("{} cannot do commands: {error}", one.name));
                }
            }
        }
        references(world, report)?;
    }
    Ok(())
}

#[derive(Default)]
struct Times {
    create: f64,
    state: f64,
    start: f64,
    kill: f64,
    delete: f64,
    waiting: f64,
    anonymous: f64,
}

impl Times {
    fn record(&self, report: &mut Report, name: &str) {
        for (command, time) in [
            ("create", self.create),
            ("start", self.start),
            ("state", self.state),
            ("kill", self.kill),
            ("delete", self.delete),
        ] {
            report.add("command", command, name, "us", time);
        }
        report.add("waiting", "RSS", name, "KiB", self.waiting);
        report.add("waiting", "anonymous", name, "KiB", self.anonymous);
    }
}

fn life(world: &World, one: &Runtime, subject: &Subject) -> Result<Times> {
    let id = world.id();
    let pid_file = world.scratch.dir().join("pid");
    let file = pid_file.to_string_lossy().into_owned();
    let mut times = Times::default();
    let create = [
        "create",
        "--bundle",
        subject.bundle.path(),
        "--pid-file",
        &file,
        &id,
    ];
    times.create = one.time(world, &one.words(world, &create))?;
    let pid: i32 = fs::read_to_string(&pid_file)?.trim().parse()?;
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    times.waiting = kib(&rollup, "Rss:").unwrap_or(0.0);
    times.anonymous = kib(&rollup, "Anonymous:").unwrap_or(0.0);
    let simple = |command: &str| one.time(world, &one.words(world, &[command, &id]));
    times.state = simple("state")?;
    times.start = simple("start")?;
    // runc's and crun's start return before the program is executed.
    while fs::read_to_string(format!("/proc/{pid}/comm"))?.trim() != "nothing" {
        std::thread::yield_now();
    }
    times.kill = one.time(world, &one.words(world, &["kill", &id, "KILL"]))?;
    // The bench is the reaper of orphans.
    rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty())?;
    times.delete = simple("delete")?;
    Ok(times)
}

/// A number of KiB in a file of /proc.
pub fn kib(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The execution of a program that does nothing, and the removal of a group.
fn references(world: &World, report: &mut Report) -> Result<()> {
    let nothing = World::program("nothing");
    let time = runtime::time(world, &nothing, &[])?;
    report.add("reference", "nothing", "a static program", "us", time);
    let group = world.scratch.unique();
    let paths = world.hierarchies.iter().map(|one| one.mount.join(&group));
    let paths: Vec<_> = paths.collect();
    for path in &paths {
        fs::create_dir(path)?;
    }
    let start = Instant::now();
    for path in &paths {
        remove(path)?;
    }
    let time = start.elapsed().as_nanos() as f64 / 1000.0;
    report.add("reference", "cgroup", "removal", "us", time);
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_dir(path).map_err(|error| format!("{}: {error}", path.display()).into())
}
