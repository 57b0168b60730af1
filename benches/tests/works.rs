//! That the bench works: each of its axes is measured once or twice, and no time is judged.
//! `make bench` and `make bench-mounts` are what measures.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use pipkin_tests::{Scratch, host};
use serde_json::Value;

/// Runs a program and gives what it printed.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("a program that can be executed");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

/// A directory with the bench's programs as it expects them beside itself. The one that is
/// executed in containers is static: `make build-tests` builds it.
fn programs(scratch: &Scratch) -> std::path::PathBuf {
    let directory = scratch.dir().join("programs");
    fs::create_dir(&directory).expect("a new directory");
    let nothing = host::workspace_root().join("bin/bench/nothing");
    assert!(
        nothing.is_file(),
        "{} is not there: run `make build-tests`",
        nothing.display()
    );
    for (name, program) in [
        ("floor", Path::new(env!("CARGO_BIN_EXE_floor"))),
        ("mounts", Path::new(env!("CARGO_BIN_EXE_mounts"))),
        ("seccomp", Path::new(env!("CARGO_BIN_EXE_seccomp"))),
        ("nothing", &nothing),
    ] {
        symlink(program, directory.join(name)).expect("a new name");
    }
    directory
}

#[test]
fn the_cost_of_empty_data_is_printed() {
    let text = output(Command::new(env!("CARGO_BIN_EXE_mounts")).arg("100"));
    for part in [
        "Linux ",
        "user",
        "system",
        "elapsed",
        "faults",
        "ratio",
        "100 calls of mount(2) with MS_REMOUNT",
        "100 calls of mount(2) with MS_PRIVATE",
        "NULL ",
        "\"\" ",
        "\"\" at the start of a page",
        "20 binds:",
        "open_tree, move_mount",
        "20 read-only binds:",
        "open_tree, mount_setattr, move_mount",
        "open_tree_attr, move_mount",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn every_axis_is_measured_and_reported() {
    let scratch = Scratch::new();
    let out = scratch.dir().join("out");
    let page = output(
        Command::new(env!("CARGO_BIN_EXE_pipkin-bench"))
            .args(["--quick", "--runs", "1"])
            .args(["--runtimes", "absent=/there/is/no/such/runtime"])
            .arg("--programs")
            .arg(programs(&scratch))
            .arg("--out")
            .arg(&out),
    );
    assert_eq!(
        page.trim_end(),
        fs::read_to_string(out.join("performance.md"))
            .expect("the page")
            .trim_end()
    );
    let absent = "| absent | everything | it is not on this machine |";
    assert!(page.contains(absent), "{page}");

    let json = fs::read_to_string(out.join("performance.json")).expect("the raw figures");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    // Debian's crun fails where version 2 of the control groups is alone, without the right to
    // raise limits.
    for failure in json["failures"].as_array().expect("failures") {
        let (who, places) = (&failure[0], &failure[2]);
        let is_expected = who == "absent" || who == "crun" || places[0] == "exec";
        assert!(is_expected, "{failure}:\n{page}");
    }
    let series = json["series"].as_array().expect("series");
    let has = |axis: &str, point: &str, runtime: &str| {
        series.iter().any(|one| {
            one["axis"] == axis
                && one["point"] == point
                && one["runtime"] == runtime
                && one["values"]
                    .as_array()
                    .is_some_and(|values| !values.is_empty())
        })
    };
    for runtime in ["pipkin", "floor", "crun", "runc"] {
        for (axis, point) in [
            ("run", "podman"),
            ("run", "containerd"),
            ("run", "docker"),
            ("run", "spec"),
            ("run", "podman, no seccomp"),
            ("host mounts", "0"),
            ("host mounts", "5000"),
            ("binds", "10"),
            ("binds", "500"),
            ("rate", "1"),
            ("rate", "64"),
            ("latency", "8"),
            ("calls", "podman"),
            ("calls for groups", "spec"),
            ("empty data", "docker"),
        ] {
            assert!(
                has(axis, point, runtime),
                "{axis} {point} {runtime}:\n{page}"
            );
        }
    }
    for runtime in ["pipkin", "crun", "runc"] {
        for (axis, point) in [
            ("command", "create"),
            ("command", "start"),
            ("command", "state"),
            ("command", "kill"),
            ("command", "delete"),
            ("waiting", "RSS"),
            ("peak", "RSS"),
            ("limit", "memory"),
            ("instructions", "podman"),
        ] {
            assert!(
                has(axis, point, runtime),
                "{axis} {point} {runtime}:\n{page}"
            );
        }
    }
    assert!(has("seccomp", "podman", "pipkin"), "{page}");

    for plot in [
        "run",
        "commands",
        "host-mounts",
        "binds",
        "parallel",
        "memory",
        "calls",
    ] {
        let name = format!("performance-{plot}.svg");
        assert!(page.contains(&format!("({name})")), "{name}:\n{page}");
        let plot = fs::read_to_string(out.join(&name)).expect("a plot");
        assert!(plot.ends_with("</svg>\n"), "{name}");
    }
    // What a reader sees first, and in which order.
    let places: Vec<usize> = [
        "measured on",
        "What it is to reach",
        "A whole run",
        "How it",
    ]
    .iter()
    .map(|part| page.find(part).unwrap_or_else(|| panic!("{part}:\n{page}")))
    .collect();
    assert!(places.is_sorted(), "{places:?}");
}
