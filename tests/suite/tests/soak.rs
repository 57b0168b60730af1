//! The same container two hundred times in a row: each run works, nothing is left.

use pipkin_tests::bundle::ENGINES;
use pipkin_tests::{Bundle, Container, Runtime, Scratch, Snapshot, host};

const RUNS: usize = 200;

fn soak(engine: &str) {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, engine, &["/bin/true"]);
    let run = || {
        let container = Container::named(&scratch, &runtime);
        container.command(&["run", "--bundle", bundle.path()]).ok()
    };
    // What the first run sets up for all later ones may stay.
    run();
    let before = Snapshot::take(&scratch);
    let files = open_files_of_the_machine();
    for _ in 0..RUNS {
        let finished = run();
        assert!(finished.stderr.is_empty(), "a warning: {finished}");
    }
    before.assert_unchanged(&scratch, &format!("{RUNS} runs of {engine}"));
    let grown = open_files_of_the_machine().saturating_sub(files);
    assert!(
        grown < RUNS / 2,
        "{grown} more open files in the kernel after {RUNS} runs"
    );
    let groups = scratch.cgroups();
    assert!(
        groups.iter().all(|path| path.ends_with(scratch.token())),
        "{groups:?}"
    );
    assert_eq!(
        host::mountinfo().matches(scratch.token()).count(),
        0,
        "a mount with the test's name is left"
    );
}

/// The first number of /proc/sys/fs/file-nr.
fn open_files_of_the_machine() -> usize {
    let text = std::fs::read_to_string("/proc/sys/fs/file-nr").expect("file-nr");
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a number")
}

#[test]
fn two_hundred_runs_leave_nothing() {
    // One after the other: what the machine has in all is counted too.
    for engine in ENGINES {
        soak(engine);
    }
}

#[test]
fn a_hundred_lives_by_single_commands_leave_nothing() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "podman", &["/bin/sleep", "300"]);
    let live = || Container::started(&scratch, &runtime, &bundle).end();
    live();
    let before = Snapshot::take(&scratch);
    for _ in 0..100 {
        live();
    }
    before.assert_unchanged(&scratch, "100 times create, start, kill, delete");
}
