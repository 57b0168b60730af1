//! The commands of a container's life, each alone.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use pipkin_tests::host;
use rustix::process::{Pid, WaitOptions};

use crate::Result;
use crate::report::Report;
use crate::runtime::{self, Runtime};
use crate::world::{Subject, World};

/// How long a container may take to execute its program.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time of each command; beside them, what they are compared with.
pub fn commands(world: &World, report: &mut Report) -> Result<()> {
    let subject = world.subject("podman", &["/nothing", "wait"])?;
    by_turns(world, report, world.runs(100, 15), "commands", |one| {
        let id = world.id();
        let times = life(world, one, &subject, &id);
        if times.is_err() {
            remove_container(world, one, &id);
        }
        times
    })?;
    exec(world, report, &subject)
}

/// What every OCI runtime takes by turns, after a warm-up. One that fails is left out.
fn by_turns(
    world: &World,
    report: &mut Report,
    runs: usize,
    what: &str,
    mut measure: impl FnMut(&Runtime) -> Result<Times>,
) -> Result<()> {
    const WARM_UP: usize = 2;
    let runtimes: Vec<&Runtime> = world.oci().collect();
    let mut able = vec![true; runtimes.len()];
    for round in 0..WARM_UP + runs {
        for turn in 0..runtimes.len() {
            let turn = (turn + round) % runtimes.len();
            if !able[turn] {
                continue;
            }
            let one = runtimes[turn];
            match measure(one) {
                Ok(times) if round >= WARM_UP => times.record(report, &one.name),
                Ok(_) => {}
                Err(error) => {
                    able[turn] = false;
                    report.fail(&one.name, what, &error);
                }
            }
        }
        references(world, report)?;
    }
    Ok(())
}

/// Removes what is left of a container.
pub fn remove_container(world: &World, one: &Runtime, id: &str) {
    let _ = one.time(world, &one.words(world, &["delete", "--force", id]));
    world.scratch.reap();
}

/// A program that is executed in a container that runs: in one container of each runtime.
fn exec(world: &World, report: &mut Report, subject: &Subject) -> Result<()> {
    let mut containers: Vec<(Runtime, String)> = Vec::new();
    for one in world.oci() {
        let id = world.id();
        let words = |words: &[&str]| one.words(world, words);
        let create = words(&["create", "--bundle", subject.bundle.path(), &id]);
        let begun = one
            .time(world, &create)
            .and_then(|_| one.time(world, &words(&["start", &id])))
            .and_then(|_| one.time(world, &words(&["exec", &id, "/bin/true"])));
        containers.push((one.clone(), id));
        if let Err(error) = begun {
            report.fail(&one.name, "exec", &error);
            if one.name == "pipkin" {
                break;
            }
        }
    }
    // Without pipkin there is nothing to compare.
    let result = if containers.len() < world.oci().count() {
        Ok(())
    } else {
        by_turns(world, report, world.runs(100, 15), "exec", |one| {
            let container = containers.iter().find(|(other, _)| other.name == one.name);
            let (_, id) = container.ok_or("it has no container")?;
            let exec = one.time(world, &one.words(world, &["exec", id, "/bin/true"]))?;
            Ok(Times {
                commands: vec![("exec", exec)],
                waiting: None,
            })
        })
    };
    for (one, id) in &containers {
        remove_container(world, one, id);
    }
    result
}

#[derive(Default)]
struct Times {
    /// Each command and its microseconds.
    commands: Vec<(&'static str, f64)>,
    /// KiB of the process that waits for `start`: resident, and of that anonymous.
    waiting: Option<(f64, f64)>,
}

impl Times {
    fn record(&self, report: &mut Report, name: &str) {
        for (command, time) in &self.commands {
            report.add("command", command, name, "us", *time);
        }
        if let Some((resident, anonymous)) = self.waiting {
            report.add("waiting", "RSS", name, "KiB", resident);
            report.add("waiting", "anonymous", name, "KiB", anonymous);
        }
    }
}

fn life(world: &World, one: &Runtime, subject: &Subject, id: &str) -> Result<Times> {
    let pid_file = world.scratch.dir().join("pid");
    let file = pid_file.to_string_lossy().into_owned();
    let mut times = Times::default();
    let bundle = subject.bundle.path();
    let create = ["create", "--bundle", bundle, "--pid-file", &file, id];
    let mut time = |command: &'static str, words: &[&str]| -> Result<()> {
        let time = one.time(world, &one.words(world, words))?;
        times.commands.push((command, time));
        Ok(())
    };
    time("create", &create)?;
    let pid: i32 = fs::read_to_string(&pid_file)?.trim().parse()?;
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    time("state", &["state", id])?;
    time("start", &["start", id])?;
    wait_for_program(pid)?;
    time("kill", &["kill", id, "KILL"])?;
    reap(pid)?;
    time("delete", &["delete", id])?;
    let anonymous = kib(&rollup, "Anonymous:").unwrap_or(0.0);
    times.waiting = kib(&rollup, "Rss:").map(|resident| (resident, anonymous));
    Ok(times)
}

/// Waits until a container's program is `nothing`: runc's and crun's `start` return before.
pub fn wait_for_program(pid: i32) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while fs::read_to_string(format!("/proc/{pid}/comm"))?.trim() != "nothing" {
        if Instant::now() > end {
            return Err("its program was never executed".into());
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// Waits for the end of a container that was killed: the bench is the reaper of orphans.
pub fn reap(pid: i32) -> Result<()> {
    rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty())?;
    Ok(())
}

/// A number of KiB in a file of /proc.
pub fn kib(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The execution of a program that does nothing, and the removal of a group.
fn references(world: &World, report: &mut Report) -> Result<()> {
    let nothing = world.program("nothing");
    let time = runtime::time(world, &nothing, &[])?;
    report.add("reference", "nothing", "a static program", "us", time);
    let version = ["--version".to_owned()];
    let time = runtime::time(world, &host::pipkin(), &version)?;
    report.add("reference", "version", "pipkin", "us", time);
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
