//! What a start costs, in counts: they do not depend on what else a machine does, as times
//! do. A count above its ceiling has to be explained or brought down; one that is far below
//! has to become the new ceiling, or the next loss would not be seen.

use pipkin_tests::runtime::View;
use pipkin_tests::{Bundle, Container, Run, Runtime, Scratch, host};

/// System calls of `run` with podman's configuration, those of the program (/bin/true of
/// busybox, 20) among them.
const SYSTEM_CALLS: u64 = 612;

/// Instructions outside the kernel of `plan` with podman's configuration: reading it, the
/// plan and its filter, and printing it all.
const INSTRUCTIONS_OF_PLAN: u64 = 1_500_000;

/// Instructions outside the kernel of `state`.
const INSTRUCTIONS_OF_STATE: u64 = 70_000;

/// The number of hierarchies that the ceilings were taken with: each costs several calls.
const HIERARCHIES: usize = 9;

/// Judges a count. How far below its ceiling it may be, in percent, depends on how much the
/// compiler has to do with it.
#[track_caller]
fn judge(what: &str, constant: &str, count: u64, ceiling: u64, percent: u64) {
    assert!(
        count <= ceiling,
        "{what}: {count}, but {constant} in {} is {ceiling}: what has become dearer?",
        file!()
    );
    // On another layout of control groups, or with another C library, counts differ.
    let is_same = host::mount_points("cgroup").len() == HIERARCHIES && cfg!(target_arch = "x86_64");
    assert!(
        !is_same || count >= ceiling - ceiling * percent / 100,
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

fn system_calls(scratch: &Scratch, runtime: &Runtime, bundle: &Bundle) -> u64 {
    let file = scratch.dir().join("counts");
    let root = scratch.state_root();
    // The first run makes the mount points that are missing in the image, and in this view the
    // mount namespace that containers begin from.
    let script = r#""$1" --root "$2" run --bundle "$3" "$4" &&
        strace -f -c -o "$5" "$1" --root "$2" run --bundle "$3" "$4""#;
    let mut line = runtime.wrapper();
    line.extend(["sh", "-c", script, "sh"].map(str::to_owned));
    let paths = [&runtime.path, &root, std::path::Path::new(bundle.path())];
    line.extend(paths.map(|path| path.to_string_lossy().into_owned()));
    line.extend([scratch.unique(), file.to_string_lossy().into_owned()]);
    Run::new(scratch, &line).ok();
    let table = std::fs::read_to_string(&file).expect("what strace counted");
    // `100.00    0.001462           7       200         9 total`
    let total = table.lines().find(|line| line.ends_with(" total"));
    let total = total.and_then(|line| line.split_whitespace().nth(3));
    let total = total.and_then(|number| number.parse().ok());
    total.unwrap_or_else(|| panic!("strace counted nothing:\n{table}"))
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
    let count = system_calls(&scratch, &runtime, &bundle);
    judge("system calls", "SYSTEM_CALLS", count, SYSTEM_CALLS, 10);
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
