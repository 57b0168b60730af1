//! Every step of a plan fails in turn; each time the message names it and nothing is left.
//!
//! `--inject-fault N` makes step N fail with EIO before it is performed.

use pipkin_tests::bundle::ENGINES;
use pipkin_tests::{Bundle, Container, Finished, Runtime, Scratch, Snapshot};
use serde_json::{Value, json};

/// More steps than any plan has.
const LIMIT: usize = 1_000;

/// `step N of M` in a message.
fn step(message: &str) -> Option<(usize, usize)> {
    let (_, rest) = message.split_once("step ")?;
    let mut words = rest.split(|one: char| !one.is_ascii_alphanumeric());
    let number = words.next()?.parse().ok()?;
    (words.next()? == "of").then_some(())?;
    Some((number, words.next()?.parse().ok()?))
}

/// Calls `attempt` with 1, 2, … until it succeeds; the number of steps.
fn each_step(name: &str, attempt: &dyn Fn(&str) -> Finished, check: &dyn Fn(&str)) -> usize {
    let mut total = None;
    for number in 1..LIMIT {
        let finished = attempt(&number.to_string());
        if finished.status.success() {
            assert!(
                number > 1,
                "{name}: the first step did not fail: {finished}"
            );
            assert_eq!(
                total,
                Some(number - 1),
                "{name}: succeeded before its last step"
            );
            return number - 1;
        }
        let finished = finished.fails();
        let Some((told, of)) = step(&finished.stderr) else {
            panic!("{name}: the message does not name step {number}: {finished}");
        };
        assert_eq!(told, number, "{name}: {finished}");
        let first = *total.get_or_insert(of);
        assert_eq!(of, first, "{name}: another number of steps: {finished}");
        assert!(
            finished.stderr.contains("Input/output error") || finished.stderr.contains("EIO"),
            "{name}: the kernel's words are missing: {finished}"
        );
        check(&format!(
            "{name}: a fault at step {number} of {of}\n{finished}\n"
        ));
    }
    panic!("{name}: still failing at step {LIMIT}")
}

/// How many steps the plan of a bundle has, as `plan` prints them.
fn planned(scratch: &Scratch, runtime: &Runtime, bundle: &Bundle) -> usize {
    let plan = runtime
        .command(scratch, &["plan", "-b", bundle.path()])
        .ok()
        .stdout;
    let numbers: Vec<usize> = plan
        .lines()
        .filter_map(|line| {
            let word = line.split_whitespace().next()?;
            word.trim_end_matches(['.', ':']).parse().ok()
        })
        .collect();
    let expected: Vec<usize> = (1..=numbers.len()).collect();
    assert!(!numbers.is_empty(), "no numbered lines:\n{plan}");
    assert_eq!(
        numbers, expected,
        "the lines are not numbered from 1:\n{plan}"
    );
    numbers.len()
}

/// The number of the step at which the container waits for `start`.
fn waits(scratch: &Scratch, runtime: &Runtime, bundle: &Bundle) -> usize {
    let words = ["plan", "-b", bundle.path()];
    let plan = runtime.command(scratch, &words).ok().stdout;
    let before = plan
        .lines()
        .position(|line| line.contains("wait for start"));
    before.expect("a step that waits for start") + 1
}

fn run(engine: &str, change: &dyn Fn(&mut Bundle)) {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, engine, &["/bin/true"]);
    change(&mut bundle);
    bundle.write();
    // Once without a fault: what stays for all later runs is there before the count.
    Container::named(&scratch, &runtime)
        .command(&["run", "-b", bundle.path()])
        .ok();
    let before = Snapshot::take(&scratch);
    let clean = |after: &str| before.assert_unchanged(&scratch, after);
    let steps = each_step(
        &format!("{engine}: run"),
        &|number| {
            let words = [
                "--inject-fault",
                number,
                "run",
                "-b",
                bundle.path(),
                &scratch.unique(),
            ];
            runtime.command(&scratch, &words).finish()
        },
        &clean,
    );
    clean("the run without a fault");
    assert!(steps >= 20, "{engine}: only {steps} steps");
}

#[test]
fn every_step_of_a_run() {
    for engine in ENGINES {
        run(engine, &|_| {});
    }
}

#[test]
fn every_step_of_a_run_with_all_there_is() {
    run("docker", &|bundle| {
        let success = bundle.script("hook", "cat >/dev/null");
        std::fs::copy(&success, bundle.rootfs().join("hook")).expect("copy");
        for kind in ["prestart", "createRuntime", "createContainer"] {
            bundle.set(&format!("/hooks/{kind}"), json!([{ "path": success }]));
        }
        bundle.set("/hooks/startContainer", json!([{ "path": "/hook" }]));
        bundle.namespace("cgroup", None);
        bundle.set(
            "/process/user",
            json!({ "uid": 1000, "gid": 1000, "additionalGids": [7] }),
        );
        bundle.set("/process/oomScoreAdj", json!(100));
        bundle.set(
            "/process/rlimits",
            json!([{ "type": "RLIMIT_NOFILE", "hard": 99, "soft": 99 }]),
        );
        bundle.set("/linux/rootfsPropagation", json!("rslave"));
        bundle.set("/root/readonly", json!(true));
        bundle.mount("tmpfs", "tmpfs", "/etc", &["tmpcopyup"]);
        bundle.set(
            "/linux/devices",
            json!([
                { "path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 438 }
            ]),
        );
    });
}

/// The last steps come after `create` has returned: the container waits for its start,
/// whose failure nobody is there to be told about, and goes on to execute its program,
/// whose failure is the error of `start`.
#[test]
fn every_step_of_a_create_and_a_start() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "podman", &["/bin/sleep", "300"]);
    Container::started(&scratch, &runtime, &bundle).end();
    let before = Snapshot::take(&scratch);
    let total = planned(&scratch, &runtime, &bundle);
    let waits = waits(&scratch, &runtime, &bundle);
    // The same name each time: a failure must leave it free.
    let id = scratch.unique();
    for number in 1..=total {
        let fault = number.to_string();
        let words = ["--inject-fault", &fault, "create", "-b", bundle.path(), &id];
        let created = runtime.command(&scratch, &words).finish();
        let told = Some((number, total));
        if number < waits {
            let created = created.fails();
            assert_eq!(step(&created.stderr), told, "{created}");
            before.assert_unchanged(&scratch, &created.to_string());
            continue;
        }
        created.ok();
        let started = runtime.command(&scratch, &["start", &id]).fails();
        if number > waits {
            assert_eq!(step(&started.stderr), told, "{started}");
        } else {
            started.says(&["stopped"]);
        }
        runtime.command(&scratch, &["delete", "--force", &id]).ok();
        scratch.reap();
        before.assert_unchanged(&scratch, &format!("a start that failed at step {number}"));
    }
}

#[test]
fn the_log_has_the_fields() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
    // A run's plan is a create's without the wait for the start.
    let words = [
        "--inject-fault",
        "1",
        "run",
        "-b",
        bundle.path(),
        &scratch.unique(),
    ];
    let first = runtime.command(&scratch, &words).fails();
    let (_, total) = step(&first.stderr).expect("a message with the number of steps");
    let mut pointers = Vec::new();
    for number in 1..=total {
        let log = scratch.dir().join(format!("log-{number}"));
        let path = log.to_string_lossy().into_owned();
        let fault = number.to_string();
        let words = [
            "--log",
            &path,
            "--log-format",
            "json",
            "--inject-fault",
            &fault,
            "run",
            "-b",
            bundle.path(),
            &scratch.unique(),
        ];
        let finished = runtime.command(&scratch, &words).fails();
        let text = std::fs::read_to_string(&log).expect("a log");
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect();
        let errors: Vec<&Value> = lines
            .iter()
            .filter(|line| line["level"] == "error")
            .collect();
        let [line] = errors.as_slice() else {
            panic!(
                "step {number}: {} lines of level error: {text}\n{finished}",
                errors.len()
            );
        };
        assert_eq!(line["step"], number, "{line}");
        assert!(line["errno"] == 5 || line["errno"] == "EIO", "{line}");
        let message = line["msg"].as_str().expect("msg");
        assert_eq!(step(message), Some((number, total)), "{line}");
        let time = line["time"].as_str().expect("time");
        assert!(time.len() >= 20 && time.ends_with('Z'), "{time}");
        // Not every step comes from a place in the configuration; those that do name it.
        if let Some(pointer) = line.get("pointer").and_then(Value::as_str) {
            assert!(pointer.is_empty() || pointer.starts_with('/'), "{line}");
            if !pointer.is_empty() {
                // A default comes from a member that is not there, in one that is.
                let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
                assert!(
                    bundle.config.pointer(parent).is_some(),
                    "{pointer} is not in the file"
                );
                assert!(message.contains(pointer), "{line}");
                pointers.push(pointer.to_owned());
            }
        }
    }
    for pointer in [
        "/mounts/0",
        "/linux/maskedPaths/",
        "/process/capabilities",
        "/linux/seccomp",
    ] {
        let found = pointers.iter().any(|one| one.starts_with(pointer));
        assert!(found, "no step comes from {pointer}: {pointers:?}");
    }
}

#[test]
fn a_fault_beyond_the_end_is_no_fault() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "containerd", &["/bin/sh", "-c", "exit 3"]);
    let words = [
        "--inject-fault",
        "100000",
        "run",
        "-b",
        bundle.path(),
        &scratch.unique(),
    ];
    runtime.command(&scratch, &words).finish().code(3);
}
