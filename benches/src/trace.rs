//! What strace sees of a whole run.

use std::fs;

use crate::report::Report;
use crate::runtime::{self, Kind, Runtime};
use crate::world::{CONFIGURATIONS, Subject, World, find};
use crate::{Result, lifecycle};

/// What a trace comes to.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    /// All calls that came back.
    all: usize,
    /// Of those, what names a control group or is given a descriptor of one.
    groups: usize,
    /// Calls of mount(2) with an empty string for data.
    empty: usize,
    /// Instructions of the longest filter.
    filter: usize,
}

/// The axes of one view of the control groups.
struct Axes {
    calls: &'static str,
    groups: &'static str,
    empty: &'static str,
}

const OWN: Axes = Axes {
    calls: "calls",
    groups: "calls for groups",
    empty: "empty data",
};

const V2: Axes = Axes {
    calls: "calls v2",
    groups: "calls for groups v2",
    empty: "empty data v2",
};

/// How many calls, and what for; how long the filter is.
pub fn calls(world: &World, report: &mut Report) -> Result<()> {
    for name in CONFIGURATIONS {
        let subject = world.subject(name, &["/bin/true"])?;
        look(world, report, name, &subject, &OWN)?;
    }
    for name in CONFIGURATIONS {
        if let Some(subject) = world.subject_of_v2(name, &["/bin/true"])? {
            look(world, report, name, &subject, &V2)?;
        }
    }
    world.leave()?;
    commands(world, report)
}

fn look(
    world: &World,
    report: &mut Report,
    name: &str,
    subject: &Subject,
    axes: &Axes,
) -> Result<()> {
    world.enter(subject)?;
    for one in &world.runtimes {
        // The first run makes mount points that later ones find.
        for round in 0..1 + world.runs(3, 1) {
            let counts = match trace(world, one, subject) {
                Ok(counts) => counts,
                Err(error) => {
                    report.fail(&one.name, &format!("{}, {name}", axes.calls), &error);
                    break;
                }
            };
            if round == 0 {
                continue;
            }
            report.add(axes.calls, name, &one.name, "", counts.all as f64);
            report.add(axes.groups, name, &one.name, "", counts.groups as f64);
            report.add(axes.empty, name, &one.name, "", counts.empty as f64);
            let is_known = one.kind == Kind::Floor || one.name == "pipkin";
            if counts.filter > 0 && !is_known {
                let filter = counts.filter as f64;
                report.add("instructions", name, &one.name, "", filter);
            }
        }
    }
    Ok(())
}

/// How many calls each command makes but `create`, whose container strace would wait for.
fn commands(world: &World, report: &mut Report) -> Result<()> {
    let subject = world.subject("podman", &["/nothing", "wait"])?;
    for one in world.oci() {
        let id = world.id();
        match life(world, one, &subject, &id) {
            Ok(counts) => {
                for (command, count) in counts {
                    report.add("command calls", command, &one.name, "", count as f64);
                }
            }
            Err(error) => {
                report.fail(&one.name, "calls of the commands", &error);
                lifecycle::remove_container(world, one, &id);
            }
        }
    }
    Ok(())
}

fn life(
    world: &World,
    one: &Runtime,
    subject: &Subject,
    id: &str,
) -> Result<Vec<(&'static str, usize)>> {
    let pid_file = world.scratch.dir().join("pid");
    let file = pid_file.to_string_lossy().into_owned();
    let bundle = subject.bundle.path();
    let create = ["create", "--bundle", bundle, "--pid-file", &file, id];
    one.time(world, &one.words(world, &create))?;
    let pid: i32 = fs::read_to_string(&pid_file)?.trim().parse()?;
    let count = |words: &[&str]| -> Result<usize> {
        Ok(trace_of(world, one, one.words(world, words))?.all)
    };
    let state = count(&["state", id])?;
    let start = count(&["start", id])?;
    lifecycle::wait_for_program(pid)?;
    let kill = count(&["kill", id, "KILL"])?;
    lifecycle::reap(pid)?;
    let delete = count(&["delete", id])?;
    Ok(vec![
        ("state", state),
        ("start", start),
        ("kill", kill),
        ("delete", delete),
    ])
}

fn trace(world: &World, one: &Runtime, subject: &Subject) -> Result<Counts> {
    trace_of(world, one, one.run_words(world, subject, &world.id()))
}

/// What strace sees of a runtime with these words.
fn trace_of(world: &World, one: &Runtime, arguments: Vec<String>) -> Result<Counts> {
    let strace = find("strace").ok_or("strace is not on this machine")?;
    let file = world.scratch.dir().join("calls");
    let mut words: Vec<String> = ["-f", "-y", "-o"].map(str::to_owned).to_vec();
    words.push(file.to_string_lossy().into_owned());
    words.push(one.path.to_string_lossy().into_owned());
    words.extend(arguments);
    runtime::time(world, &strace, &words)?;
    Ok(Counts::of(&String::from_utf8_lossy(&fs::read(file)?)))
}

impl Counts {
    /// What the lines of `strace -f -y` say.
    fn of(trace: &str) -> Self {
        let mut counts = Self::default();
        for line in trace.lines() {
            let Some(call) = call(line) else {
                continue;
            };
            counts.all += 1;
            let names_group = ["/sys/fs/cgroup", "\"cgroup", "unshare(CLONE_NEWCGROUP)"];
            // The floor is told of the groups on its command line.
            let is_execution = call.starts_with("execve");
            if !is_execution && names_group.iter().any(|name| call.contains(name)) {
                counts.groups += 1;
            }
            // `… , "") = 0`, or, when another process came between, `… , "" <unfinished ...>`.
            let arguments = call.split(" = ").next().unwrap_or_default();
            let arguments = arguments.trim_end_matches(" <unfinished ...>").trim_end();
            let is_empty = arguments.trim_end_matches(')').ends_with(", \"\"");
            if call.starts_with("mount(") && is_empty {
                counts.empty += 1;
            }
            let length = call.split_once("{len=").and_then(|(_, rest)| {
                let digits = rest.split(|one: char| !one.is_ascii_digit()).next()?;
                digits.parse().ok()
            });
            counts.filter = counts.filter.max(length.unwrap_or(0));
        }
        counts
    }
}

/// The call that a line is about: `123 read(3<…>, …`. Not the second part of one that another
/// process interrupted, no signal, no end, and not what ends the process.
fn call(line: &str) -> Option<&str> {
    let call = line
        .trim_start_matches(|one: char| one.is_ascii_digit())
        .trim_start();
    let name = call.split_once('(')?.0;
    let is_name = name
        .chars()
        .all(|one| one.is_ascii_alphanumeric() || one == '_');
    (is_name && !name.is_empty() && name != "exit" && name != "exit_group").then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_once() {
        let trace = "\
1 execve(\"/bin/x\", [\"x\", \"=/sys/fs/cgroup\"], 0x7ffd /* 35 vars */) = 0
1 mkdirat(AT_FDCWD, \"/sys/fs/cgroup/pids/a\", 0755) = 0
1 write(3</sys/fs/cgroup/pids/a/tasks>, \"0\", 1 <unfinished ...>
2 mount(\"cgroup\", \".\", \"cgroup\", MS_RDONLY, \"pids\") = 0
1 <... write resumed>)              = 1
2 unshare(CLONE_NEWCGROUP)          = 0
2 mount(NULL, \"/\", NULL, MS_PRIVATE, \"\") = 0
2 mount(\"a\", \"/b\", \"tmpfs\", 0, \"\" <unfinished ...>
2 <... mount resumed>)              = 0
2 seccomp(SECCOMP_SET_MODE_FILTER, 0, {len=229, filter=0x1}) = 0
2 exit_group(0)                     = ?
2 +++ exited with 0 +++
1 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
";
        let wanted = Counts {
            all: 8,
            groups: 4,
            empty: 2,
            filter: 229,
        };
        assert_eq!(Counts::of(trace), wanted);
    }
}
