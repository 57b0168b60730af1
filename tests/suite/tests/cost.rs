//! What a start costs, in counts: they do not depend on what else a machine does, as times
//! do. A count above its ceiling has to be explained or brought down; one that is far below
//! has to become the new ceiling, or the next loss would not be seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pipkin_tests::runtime::View;
use pipkin_tests::{Bundle, Container, Run, Runtime, Scratch, host};

/// System calls of `run` with podman's configuration, those of the program (/bin/true of
/// busybox, 16) among them.
const SYSTEM_CALLS: u64 = 321;

/// Instructions outside the kernel of `plan` with podman's configuration: reading it, the
/// plan and its filter, and printing it all.
const INSTRUCTIONS_OF_PLAN: u64 = 1_300_000;

/// Instructions outside the kernel of `state`.
const INSTRUCTIONS_OF_STATE: u64 = 70_000;

/// The number of hierarchies that the ceilings were taken with: each costs several calls.
const HIERARCHIES: usize = 9;

/// The kernel that the ceilings were taken with: what procfs and sysfs have to be masked
/// differs.
const KERNEL: &str = "6.18.";

/// Whether this is the kind of machine that the counts were taken on: on another layout of
/// control groups, another kernel, or with another C library, they differ.
fn is_same() -> bool {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    host::mount_points("cgroup").len() == HIERARCHIES
        && kernel.starts_with(KERNEL)
        && cfg!(target_arch = "x86_64")
}

/// Judges a count. How far below its ceiling it may be, in percent, depends on how much the
/// compiler has to do with it.
#[track_caller]
fn judge(what: &str, constant: &str, count: u64, ceiling: u64, percent: u64) {
    assert!(
        count <= ceiling,
        "{what}: {count}, but {constant} in {} is {ceiling}: what has become dearer?",
        file!()
    );
    assert!(
        !is_same() || count >= ceiling - ceiling * percent / 100,
        "{what}: {count}, more than {percent} % below {constant} in {}, {ceiling}: well done; \
         now lower the constant to what was counted",
        file!()
    );
}

/// pipkin on version 1 of the control groups alone, where the machine has both.
fn pipkin() -> Runtime {
    Runtime::pipkin().seeing(View::NoUnified)
}

/// The command line of a tool that watches pipkin.
fn watched(runtime: &Runtime, scratch: &Scratch, tool: &[&str], words: &[&str]) -> Run {
    let mut line = runtime.wrapper();
    line.push(host::find(tool[0]).to_string_lossy().into_owned());
    line.extend(tool[1..].iter().map(|word| (*word).to_owned()));
    line.push(runtime.path.to_string_lossy().into_owned());
    line.push("--root".into());
    line.push(scratch.state_root().to_string_lossy().into_owned());
    line.extend(words.iter().map(|word| (*word).to_owned()));
    Run::new(scratch, &line)
}

/// How often a run makes each system call, its program's among them. A call that does not come
/// back (a successful execve(2), exit_group(2)) is one as well.
fn system_calls(scratch: &Scratch, runtime: &Runtime, bundle: &Bundle) -> BTreeMap<String, u64> {
    let file = scratch.dir().join("trace");
    let root = scratch.state_root();
    // The first run makes the mount points that are missing in the image, and in this view the
    // mount namespace that containers begin from.
    let script = r#""$1" --root "$2" run --bundle "$3" "$4" &&
        strace -f -o "$5" "$1" --root "$2" run --bundle "$3" "$4""#;
    let mut line = runtime.wrapper();
    line.extend(["sh", "-c", script, "sh"].map(str::to_owned));
    let paths = [&runtime.path, &root, Path::new(bundle.path())];
    line.extend(paths.map(|path| path.to_string_lossy().into_owned()));
    line.extend([scratch.unique(), file.to_string_lossy().into_owned()]);
    Run::new(scratch, &line).ok();
    let trace = std::fs::read_to_string(&file).expect("what strace saw");
    let mut counts = BTreeMap::new();
    for line in trace.lines() {
        // `1234  openat(…` begins a call; `<... openat resumed>`, `+++` and `---` do not.
        let call = line
            .split_once(' ')
            .map_or("", |(_, rest)| rest.trim_start());
        let Some((name, _)) = call.split_once('(') else {
            continue;
        };
        let name = match name {
            // Newer than Debian's strace.
            "syscall_0x1d3" => "open_tree_attr",
            name => name,
        };
        if name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            *counts.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

/// The calls in ARCHITECTURE.md's table: rows of "| `name` 2, `other` | why |" between its
/// heading and the next.
fn explained() -> BTreeMap<String, u64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    let (_, rest) = text
        .split_once("\n## The system calls of a run\n")
        .expect("the heading");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let mut counts = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let calls = row.trim_start_matches("| ").split(" | ").next();
        for call in calls.unwrap_or_default().split(", ") {
            let (name, count) = call.trim_start_matches('`').split_once('`').expect(row);
            let count = match count.trim() {
                "" => 1,
                count => count.parse().expect(row),
            };
            *counts.entry(name.to_owned()).or_insert(0) += count;
        }
    }
    counts
}

fn instructions(scratch: &Scratch, runtime: &Runtime, words: &[&str]) -> u64 {
    let tool = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
    ];
    let stderr = watched(runtime, scratch, &tool, words).ok().stderr;
    let line = stderr.lines().find(|line| line.contains("Collected : "));
    let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("callgrind counted nothing:\n{stderr}"))
}

#[test]
fn system_calls_of_a_run() {
    let scratch = Scratch::new();
    let runtime = pipkin();
    let bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    let explained = explained();
    let mut counts = BTreeMap::new();
    // A program that has ended before the runtime looks costs it a few calls more.
    for _ in 0..5 {
        counts = system_calls(&scratch, &runtime, &bundle);
        if counts == explained {
            break;
        }
    }
    let sum = counts.values().sum();
    judge("system calls", "SYSTEM_CALLS", sum, SYSTEM_CALLS, 5);
    if !is_same() {
        return;
    }
    let names: BTreeSet<&String> = counts.keys().chain(explained.keys()).collect();
    let count = |of: &BTreeMap<String, u64>, name| of.get(name).copied().unwrap_or(0);
    let differing: Vec<String> = names
        .into_iter()
        .filter(|name| counts.get(*name) != explained.get(*name))
        .map(|name| {
            let (made, told) = (count(&counts, name), count(&explained, name));
            format!("{name}: {made} made, {told} explained")
        })
        .collect();
    assert!(
        differing.is_empty(),
        "ARCHITECTURE.md, \"The system calls of a run\":\n{}",
        differing.join("\n")
    );
}

#[test]
fn instructions_of_a_plan() {
    let scratch = Scratch::new();
    let bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    let words = ["plan", "--bundle", bundle.path()];
    let count = instructions(&scratch, &pipkin(), &words);
    judge(
        "instructions of plan",
        "INSTRUCTIONS_OF_PLAN",
        count,
        INSTRUCTIONS_OF_PLAN,
        25,
    );
}

#[test]
fn instructions_of_state() {
    let scratch = Scratch::new();
    let runtime = pipkin();
    let bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    let container = Container::create(&scratch, &runtime, &bundle);
    let count = instructions(&scratch, &runtime, &["state", &container.id]);
    judge(
        "instructions of state",
        "INSTRUCTIONS_OF_STATE",
        count,
        INSTRUCTIONS_OF_STATE,
        25,
    );
    container.end();
}
