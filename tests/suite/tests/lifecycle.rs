//! The commands of a container's life, and each way to use them wrongly.

use pipkin_tests::container::wait_for_text;
use pipkin_tests::runtime::Kind;
use pipkin_tests::{Bundle, Container, Finished, Run, Runtime, Scratch, Snapshot, scratch};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Ends with status 3 on TERM, and tells in /log about each signal.
const PATIENT: &str = "\
for number in 1 2 10 12 15 37; do trap \"echo got $number >> /log\" $number; done\n\
trap 'echo got 15 >> /log; exit 3' 15\n\
echo ready >> /log\n\
while :; do sleep 0.02; done";

fn sleeper(scratch: &Scratch) -> Bundle {
    Bundle::new(scratch, "containerd", &["/bin/sleep", "300"])
}

fn patient(scratch: &Scratch) -> Bundle {
    Bundle::new(scratch, "containerd", &["/bin/sh", "-c", PATIENT])
}

fn run_shell(scratch: &Scratch, line: &str) -> Finished {
    let bundle = Bundle::new(scratch, "containerd", &["/bin/sh", "-c", line]);
    Container::named(scratch, &Runtime::pipkin())
        .command(&["run", "--bundle", bundle.path()])
        .finish()
}

#[test]
fn a_whole_life() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundle = patient(&scratch);
    let container = Container::create(&scratch, &runtime, &bundle);
    assert_eq!(container.state()["status"], "created");
    assert!(
        !bundle.rootfs().join("log").exists(),
        "ran before it was started"
    );
    let pid = container.pid();
    assert!(scratch::state_letter(pid).is_some(), "no process {pid}");
    container.command(&["start"]).ok();
    assert_eq!(container.state()["status"], "running");
    assert_eq!(container.pid(), pid, "the pid stays the same");
    wait_for_text(&bundle.rootfs().join("log"), "ready");
    // TERM is the default.
    container.command(&["kill"]).ok();
    container.wait_for("stopped");
    let state = container.state();
    assert!(
        matches!(state.get("pid"), None | Some(Value::Null)) || state["pid"] == 0,
        "{state}"
    );
    container.command(&["delete"]).ok();
    container.command(&["state"]).fails().says(&[&container.id]);
    before.assert_unchanged(&scratch, "create, start, kill, delete");
}

#[test]
fn a_created_container_can_be_killed_and_deleted() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundle = sleeper(&scratch);
    let container = Container::create(&scratch, &runtime, &bundle);
    container.end();
    before.assert_unchanged(&scratch, "create, kill, delete");
    let container = Container::create(&scratch, &runtime, &bundle);
    container.command(&["delete", "--force"]).ok();
    scratch.reap();
    before.assert_unchanged(&scratch, "create, delete --force");
}

#[test]
fn state_tells_what_runc_tells() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let documents =
        [(Runtime::pipkin(), &scratch), (Runtime::runc(), &other)].map(|(runtime, scratch)| {
            let mut bundle = sleeper(scratch);
            bundle
                .set("/annotations", json!({ "a.b": "c", "empty": "" }))
                .write();
            let container = Container::create(scratch, &runtime, &bundle);
            let mut created = container.state();
            container.command(&["start"]).ok();
            let mut running = container.state();
            container.kill("KILL").ok();
            container.wait_for("stopped");
            let mut stopped = container.state();
            container.command(&["delete"]).ok();
            for state in [&mut created, &mut running, &mut stopped] {
                for (name, text) in [("id", &*container.id), ("bundle", bundle.path())] {
                    assert_eq!(state[name], text, "{state}");
                    state[name] = json!("normal");
                }
                state["pid"] = json!(state["pid"].as_i64().unwrap_or(0) > 0);
                let version = state["ociVersion"].as_str().expect("ociVersion");
                assert!(version.starts_with("1."), "{version}");
                state["ociVersion"] = json!("1");
                let map = state.as_object_mut().expect("an object");
                // What runc adds to the specification may be there.
                for extra in ["rootfs", "created", "owner"] {
                    map.remove(extra);
                }
            }
            json!([created, running, stopped])
        });
    assert_eq!(documents[0], documents[1]);
}

/// Each mistake, with words that its message must have.
#[test]
fn each_mistake_has_its_own_sentence() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = sleeper(&scratch);
    let running = Container::started(&scratch, &runtime, &bundle);
    let stopped = Container::started(&scratch, &runtime, &sleeper(&scratch));
    stopped.kill("KILL").ok();
    stopped.wait_for("stopped");
    let before = Snapshot::take(&scratch);
    let create = |bundle: &Path, id: &str| {
        let bundle = bundle.to_string_lossy();
        runtime
            .command(&scratch, &["create", "--bundle", &bundle, id])
            .finish()
    };
    let with = |name: &str, change: &dyn Fn(&mut Bundle)| {
        let mut bundle = sleeper(&scratch);
        change(&mut bundle);
        bundle.write();
        (name.to_owned(), create(bundle.dir(), &scratch.unique()))
    };
    let text = |name: &str, text: &str| {
        let bundle = sleeper(&scratch);
        std::fs::write(bundle.dir().join("config.json"), text).expect("write config.json");
        (name.to_owned(), create(bundle.dir(), &scratch.unique()))
    };
    let id = |name: &str, id: &str| (name.to_owned(), create(bundle.dir(), id));
    let file = bundle.file("file", "");
    let missing = bundle.dir().join("missing");
    let no_config = scratch.dir().join("no-config");
    std::fs::create_dir(&no_config).expect("make a directory");
    let all: Vec<(String, Finished)> = vec![
        id("a slash in the id", "a/b"),
        id("an id that is a directory", ".."),
        id("an empty id", ""),
        id("an id in use", &running.id),
        (
            "a start of a running one".into(),
            running.command(&["start"]).fails(),
        ),
        (
            "a start of a stopped one".into(),
            stopped.command(&["start"]).fails(),
        ),
        (
            "a kill of a stopped one".into(),
            stopped.kill("TERM").fails(),
        ),
        (
            "a delete of a running one".into(),
            running.command(&["delete"]).fails(),
        ),
        (
            "an unknown signal".into(),
            running.kill("NOPE").fails().says(&["NOPE"]),
        ),
        (
            "a signal that is too large".into(),
            running.kill("99").fails().says(&["99"]),
        ),
        (
            "a state of none".into(),
            runtime.command(&scratch, &["state", "none"]).fails(),
        ),
        (
            "a missing root".into(),
            with("", &|bundle| {
                bundle.set("/root/path", json!("nowhere"));
            })
            .1
            .says(&["nowhere"]),
        ),
        (
            "a bundle that is a file".into(),
            create(&file, "x").says(&["not a directory"]),
        ),
        (
            "a bundle that is not there".into(),
            create(&missing, "x").says(&["missing", "no such file"]),
        ),
        (
            "a bundle without config.json".into(),
            create(&no_config, "x").says(&["config.json"]),
        ),
        text("an end too early", "{\n  \"ociVersion\": \"1.0.2\",\n"),
        text("a stray character", "{\n  \"ociVersion\": ?\n}"),
        with("a wrong type", &|bundle| {
            bundle.set("/process/args", json!(7));
        }),
        with("an unknown capability", &|bundle| {
            bundle.set("/process/capabilities/bounding/2", json!("CAP_FOO"));
        }),
        with("an unknown namespace", &|bundle| {
            bundle.set("/linux/namespaces/1/type", json!("foo"));
        }),
        with("an unknown limit", &|bundle| {
            bundle.set("/process/rlimits/0/type", json!("RLIMIT_FOO"));
        }),
        with("a relative directory", &|bundle| {
            bundle.set("/process/cwd", json!("tmp"));
        }),
        with("no program", &|bundle| {
            bundle.set("/process/args", json!([]));
        }),
        with("no process", &|bundle| {
            bundle.remove("/process");
        }),
        with("no root", &|bundle| {
            bundle.remove("/root");
        }),
        with("an unknown version", &|bundle| {
            bundle.set("/ociVersion", json!("2.0.0"));
        }),
        with("a namespace twice", &|bundle| {
            bundle.set("/linux/namespaces/-", json!({ "type": "pid" }));
        }),
        with("a namespace file that is not there", &|bundle| {
            bundle.namespace("network", Some("/nowhere/net"));
        }),
        with("a namespace file of another kind", &|bundle| {
            bundle.namespace("network", Some("/proc/self/ns/uts"));
        }),
        with("a user namespace without mappings", &|bundle| {
            bundle.namespace("user", None);
        }),
        with("a program that is not there", &|bundle| {
            bundle.args(&["/nowhere/program"]);
        }),
        with("a program that is not on PATH", &|bundle| {
            bundle.args(&["nowhere"]);
        }),
        with("a program that is no program", &|bundle| {
            bundle.args(&["/etc/passwd"]);
        }),
        // Only the kernel, at the execution, knows what a program needs.
        ("a program without its interpreter".to_owned(), {
            let mut bundle = sleeper(&scratch);
            let script = bundle.rootfs().join("script");
            std::fs::write(&script, "#!/nowhere/sh\n").expect("write");
            scratch::set_mode(&script, 0o755);
            bundle.args(&["/script"]);
            bundle.write();
            let words = ["run", "--bundle", bundle.path(), &scratch.unique()];
            runtime.command(&scratch, &words).fails()
        }),
        with("a mount of nothing", &|bundle| {
            bundle.mount("bind", "/nowhere/source", "/mnt", &["bind"]);
        }),
        with("a sysctl of the host", &|bundle| {
            bundle.set("/linux/sysctl", json!({ "kernel.panic": "7" }));
        }),
        with("a sysctl that is not there", &|bundle| {
            bundle.set("/linux/sysctl", json!({ "net.nowhere": "7" }));
        }),
        with("an unknown seccomp action", &|bundle| {
            bundle.set("/linux/seccomp/defaultAction", json!("SCMP_ACT_FOO"));
        }),
        with("an unknown architecture", &|bundle| {
            bundle.set("/linux/seccomp/architectures/0", json!("SCMP_ARCH_FOO"));
        }),
        with("an unknown propagation", &|bundle| {
            bundle.set("/linux/rootfsPropagation", json!("sideways"));
        }),
        with("a hook without a full path", &|bundle| {
            bundle.set("/hooks/prestart/-", json!({ "path": "true" }));
        }),
        with("a host name without its namespace", &|bundle| {
            bundle.without_namespace("uts");
            bundle.set("/hostname", json!("x"));
        }),
        with("a terminal without a console socket", &|bundle| {
            bundle.set("/process/terminal", json!(true));
        }),
        (
            "an unknown command".into(),
            runtime
                .command(&scratch, &["frobnicate"])
                .fails()
                .says(&["frobnicate"]),
        ),
        (
            "an unknown option".into(),
            running
                .command(&["kill", "--frobnicate"])
                .fails()
                .says(&["frobnicate"]),
        ),
        (
            "an unknown format".into(),
            runtime
                .command(&scratch, &["list", "-f", "xml"])
                .fails()
                .says(&["xml"]),
        ),
    ];
    let mut messages: BTreeMap<String, &str> = BTreeMap::new();
    for (name, finished) in &all {
        assert!(
            !finished.status.success(),
            "{name}: should have failed: {finished}"
        );
        finished.clone().fails();
        let message = finished.stderr.replace(scratch.token(), "").to_lowercase();
        assert!(message.starts_with("pipkin: "), "{name}: {finished}");
        // What differs is the sentence, not only the name in it.
        let sentence: String = message
            .chars()
            .filter(|one| !one.is_ascii_digit())
            .collect();
        if let Some(twin) = messages.insert(sentence, name) {
            panic!("{name} and {twin} are told in the same words: {finished}");
        }
    }
    let place = |name: &str, words: &[&str]| {
        let (_, finished) = all.iter().find(|(other, _)| other == name).expect("a case");
        finished.clone().says(words);
    };
    place("an id in use", &[&running.id, "exists"]);
    place("a start of a running one", &["running"]);
    place("a start of a stopped one", &["stopped"]);
    place("a kill of a stopped one", &["not running"]);
    place("a delete of a running one", &["running"]);
    place("a state of none", &["does not exist"]);
    place("an end too early", &["line 3", "column"]);
    place("a stray character", &["line 2", "column 17"]);
    place("a wrong type", &["/process/args"]);
    place(
        "an unknown capability",
        &[
            "/process/capabilities/bounding/2",
            "unknown capability",
            "\"CAP_FOO\"",
        ],
    );
    place(
        "an unknown namespace",
        &["/linux/namespaces/1/type", "\"foo\"", "pid"],
    );
    place(
        "an unknown limit",
        &["/process/rlimits/0/type", "RLIMIT_FOO"],
    );
    place(
        "a relative directory",
        &["/process/cwd", "\"tmp\"", "absolute"],
    );
    place("no program", &["/process/args"]);
    place("an unknown version", &["/ociVersion", "2.0.0"]);
    place("a namespace twice", &["/linux/namespaces", "pid"]);
    place(
        "a namespace file that is not there",
        &["/nowhere/net", "no such file or directory"],
    );
    place("a user namespace without mappings", &["uidMappings"]);
    place(
        "a program that is not there",
        &["/nowhere/program", "no such file or directory"],
    );
    place(
        "a program that is not on PATH",
        &["nowhere", "executable file not found in $PATH"],
    );
    place(
        "a program that is no program",
        &["/etc/passwd", "permission denied"],
    );
    place("a program without its interpreter", &["/nowhere/sh"]);
    place(
        "a mount of nothing",
        &["/mounts/7", "/nowhere/source", "no such file or directory"],
    );
    place("a sysctl of the host", &["/linux/sysctl", "kernel.panic"]);
    place(
        "an unknown seccomp action",
        &["/linux/seccomp/defaultAction", "SCMP_ACT_FOO"],
    );
    place(
        "an unknown architecture",
        &["/linux/seccomp/architectures/0", "SCMP_ARCH_FOO"],
    );
    place(
        "an unknown propagation",
        &["/linux/rootfsPropagation", "sideways"],
    );
    place("a hook without a full path", &["/hooks/prestart/0"]);
    place("a host name without its namespace", &["/hostname"]);
    before.assert_unchanged(&scratch, "nothing but mistakes");
    running.end();
    stopped.command(&["delete"]).ok();
}

#[test]
fn unknown_members_are_ignored_and_known_ones_are_not() {
    let scratch = Scratch::new();
    let runtime = Runtime::pipkin();
    let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
    bundle
        .set("/nobody/knows", json!([1]))
        .set("/process/nor", json!({ "this": true }))
        .write();
    Container::named(&scratch, &runtime)
        .command(&["run", "-b", bundle.path()])
        .ok();
    for (pointer, value) in [
        ("/linux/intelRdt", json!({ "closID": "x" })),
        ("/linux/netDevices", json!({ "eth0": {} })),
        ("/process/apparmorProfile", json!("some-profile")),
        (
            "/process/selinuxLabel",
            json!("system_u:system_r:container_t:s0"),
        ),
    ] {
        let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
        bundle.set(pointer, value).write();
        // The kernel has not got what this needs, so doing it cannot succeed either.
        let run = Container::named(&scratch, &runtime).command(&["run", "-b", bundle.path()]);
        run.fails().says(&[pointer]);
    }
    // These may be done or refused, but not ignored.
    for (pointer, value, seen, effect) in [
        (
            "/process/scheduler",
            json!({ "policy": "SCHED_BATCH" }),
            "/scheduling/policy",
            json!("3"),
        ),
        (
            "/process/ioPriority",
            json!({ "class": "IOPRIO_CLASS_IDLE", "priority": 0 }),
            "/scheduling/ioprio",
            json!(3 << 13),
        ),
    ] {
        let mut bundle = Bundle::new(&scratch, "containerd", &["/probe"]);
        bundle.with_probe().set(pointer, value).write();
        let run = Container::named(&scratch, &runtime).command(&["run", "-b", bundle.path()]);
        let finished = run.finish();
        if finished.status.success() {
            assert_eq!(
                finished.json().pointer(seen),
                Some(&effect),
                "{pointer} is ignored"
            );
        } else {
            finished.says(&[pointer]);
        }
    }
}

#[test]
fn kill_knows_every_spelling() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = patient(&scratch);
    let container = Container::started(&scratch, &runtime, &bundle);
    let log = bundle.rootfs().join("log");
    wait_for_text(&log, "ready");
    for (spelling, number) in [
        ("HUP", 1),
        ("SIGHUP", 1),
        ("1", 1),
        ("hup", 1),
        ("sigint", 2),
        ("INT", 2),
        ("USR1", 10),
        ("SIGUSR2", 12),
        ("12", 12),
        ("37", 37),
        ("RTMIN+3", 37),
        ("SIGRTMIN+3", 37),
    ] {
        std::fs::write(&log, "").expect("clear the log");
        container.kill(spelling).ok();
        wait_for_text(&log, &format!("got {number}\n"));
    }
    // A signal of 0 asks whether the process is there.
    container.kill("0").ok();
    for spelling in ["", "SIG", "SIGSIGHUP", "-1", "65", "1x", "HUP ", "RTMIN+99"] {
        let finished = runtime
            .command(&scratch, &["kill", "--", &container.id, spelling])
            .finish();
        finished.fails();
    }
    assert_eq!(
        container.state()["status"],
        "running",
        "a wrong spelling ended it"
    );
    container.end();
}

#[test]
fn kill_all_reaches_every_process() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let mut bundle = Bundle::new(&scratch, "containerd", &[]);
    // Without a process namespace nothing else ends the children.
    bundle.without_namespace("pid");
    bundle
        .shell("sleep 300 & sleep 300 & echo ready > /log; wait; wait")
        .write();
    let container = Container::started(&scratch, &runtime, &bundle);
    wait_for_text(&bundle.rootfs().join("log"), "ready");
    assert!(scratch.processes().len() >= 3);
    container.command(&["kill", "--all"]).arg("KILL").ok();
    container.wait_for("stopped");
    container.command(&["delete"]).ok();
    scratch.reap();
    before.assert_unchanged(&scratch, "kill --all");
}

#[test]
fn delete_ends_what_still_runs_in_the_group() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let mut bundle = Bundle::new(&scratch, "containerd", &[]);
    bundle.without_namespace("pid");
    bundle
        .shell("sleep 300 & echo ready > /log; sleep 0.1")
        .write();
    let container = Container::started(&scratch, &runtime, &bundle);
    wait_for_text(&bundle.rootfs().join("log"), "ready");
    container.wait_for("stopped");
    container.command(&["delete"]).ok();
    scratch.reap();
    before.assert_unchanged(&scratch, "a child that outlived its parent");
}

#[test]
fn delete_force() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    runtime
        .command(&scratch, &["delete", "--force", "nobody"])
        .ok();
    runtime.command(&scratch, &["delete", "-f", "nobody"]).ok();
    runtime
        .command(&scratch, &["delete", "nobody"])
        .fails()
        .says(&["nobody", "does not exist"]);
    let bundle = sleeper(&scratch);
    let container = Container::started(&scratch, &runtime, &bundle);
    container.command(&["delete", "--force"]).ok();
    scratch.reap();
    before.assert_unchanged(&scratch, "delete --force of a running one");
}

#[test]
fn kill_and_delete_by_pattern() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundles = [sleeper(&scratch), sleeper(&scratch), sleeper(&scratch)];
    for (name, bundle) in ["red-1", "red-2", "blue-1"].iter().zip(&bundles) {
        let id = format!("{}-{name}", scratch.token());
        runtime
            .command(
                &scratch,
                &["run", "--detach", "--bundle", bundle.path(), &id],
            )
            .ok();
    }
    let pattern = format!("^{}-red", scratch.token());
    runtime
        .command(&scratch, &["kill", "--regex", &pattern, "KILL"])
        .ok();
    std::thread::sleep(Duration::from_millis(100));
    scratch.reap();
    runtime
        .command(&scratch, &["delete", "--regex", &pattern])
        .ok();
    let left = runtime.command(&scratch, &["list", "-q"]).ok().stdout;
    assert_eq!(left, format!("{}-blue-1\n", scratch.token()));
    runtime
        .command(&scratch, &["delete", "--force", "--regex", "blue"])
        .ok();
    scratch.reap();
    before.assert_unchanged(&scratch, "kill and delete by pattern");
    runtime
        .command(&scratch, &["delete", "--regex", "(("])
        .fails()
        .says(&["(("]);
}

#[test]
fn list_in_each_form() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    assert_eq!(runtime.command(&scratch, &["list", "-q"]).ok().stdout, "");
    let empty = runtime
        .command(&scratch, &["list", "--format", "json"])
        .ok()
        .json();
    assert!(empty.is_null() || empty == json!([]), "{empty}");
    let bundle = sleeper(&scratch);
    let container = Container::create(&scratch, &runtime, &bundle);
    let other = Container::started(&scratch, &runtime, &sleeper(&scratch));
    let mut names: Vec<&str> = vec![&container.id, &other.id];
    names.sort_unstable();
    let quiet = runtime.command(&scratch, &["list", "--quiet"]).ok().stdout;
    assert_eq!(quiet.lines().collect::<Vec<_>>(), names);
    let list = runtime
        .command(&scratch, &["list", "-f", "json"])
        .ok()
        .json();
    let list = list.as_array().expect("a list");
    assert_eq!(list.len(), 2);
    let own = list
        .iter()
        .find(|entry| entry["id"] == *container.id)
        .expect("the container");
    assert_eq!(own["status"], "created");
    assert_eq!(own["pid"], container.pid());
    assert_eq!(own["bundle"], bundle.path());
    let created = own["created"].as_str().expect("a time");
    assert!(created.ends_with('Z') && created.contains('T'), "{created}");
    let table = runtime.command(&scratch, &["list"]).ok().stdout;
    let header = table.lines().next().expect("a header");
    for column in ["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"] {
        assert!(header.contains(column), "{table}");
    }
    assert!(
        table.contains("running") && table.contains("created"),
        "{table}"
    );
    container.end();
    other.end();
}

#[test]
fn run_exits_as_the_container_did() {
    let scratch = Scratch::new();
    let before = Snapshot::take(&scratch);
    run_shell(&scratch, "exit 0").code(0);
    run_shell(&scratch, "exit 7").code(7);
    run_shell(&scratch, "exit 255").code(255);
    let finished = run_shell(&scratch, "echo to stdout; echo to stderr >&2; exit 1").code(1);
    assert_eq!(
        (finished.stdout.as_str(), finished.stderr.as_str()),
        ("to stdout\n", "to stderr\n")
    );
    before.assert_unchanged(&scratch, "runs");
}

/// A program that has the init program's name and ends at once is not taken for that.
#[test]
fn run_exits_as_a_program_with_the_name_of_pipkins_did() {
    use std::os::unix::fs::PermissionsExt as _;
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "podman", &["/memfd:pipkin"]);
    let program = bundle.rootfs().join("memfd:pipkin");
    std::fs::write(&program, "#!/bin/sh\nexit 7\n").expect("a program");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("its mode");
    for _ in 0..40 {
        let container = Container::named(&scratch, &runtime);
        container
            .command(&["run", "--bundle", bundle.path()])
            .finish()
            .code(7);
    }
}

#[test]
fn run_tells_the_signal_that_ended_the_container() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundle = patient(&scratch);
    for (signal, code) in [("KILL", 137), ("TERM", 3)] {
        let _ = std::fs::remove_file(bundle.rootfs().join("log"));
        let container = Container::named(&scratch, &runtime);
        let running = container
            .command(&["run", "--bundle", bundle.path()])
            .start();
        wait_for_text(&bundle.rootfs().join("log"), "ready");
        container.kill(signal).ok();
        running.finish().code(code);
    }
    before.assert_unchanged(&scratch, "runs that were killed");
}

#[test]
fn run_passes_signals_on() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundle = patient(&scratch);
    let log = bundle.rootfs().join("log");
    let container = Container::named(&scratch, &runtime);
    let running = container
        .command(&["run", "--bundle", bundle.path()])
        .start();
    wait_for_text(&log, "ready");
    for (signal, number) in [
        (Signal::HUP, 1),
        (Signal::INT, 2),
        (Signal::USR1, 10),
        (Signal::USR2, 12),
    ] {
        kill_process(running.pid(), signal).expect("kill");
        wait_for_text(&log, &format!("got {number}\n"));
    }
    kill_process(running.pid(), Signal::TERM).expect("kill");
    running.finish().code(3);
    before.assert_unchanged(&scratch, "a run that passed signals on");
}

#[test]
fn many_short_runs_end() {
    // youki hung in such a loop: SIGCHLD was blocked too late.
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
    for _ in 0..50 {
        Container::named(&scratch, &runtime)
            .command(&["run", "-b", bundle.path()])
            .ok();
    }
}

#[test]
fn pid_file() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = sleeper(&scratch);
    for words in [&["create"][..], &["run", "--detach"]] {
        let file = scratch.dir().join(scratch.unique());
        let container = Container::named(&scratch, &runtime);
        let mut words = words.to_vec();
        let path = file.to_string_lossy().into_owned();
        words.extend(["--pid-file", &path, "--bundle", bundle.path()]);
        container.command(&words).ok();
        let content = std::fs::read_to_string(&file).expect("a pid file");
        assert_eq!(content, container.pid().to_string());
        container.end();
    }
}

#[test]
fn run_detached_returns_at_once() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundle = sleeper(&scratch);
    let container = Container::named(&scratch, &runtime);
    container.command(&["run", "-d", "-b", bundle.path()]).ok();
    assert_eq!(container.state()["status"], "running");
    container.end();
    before.assert_unchanged(&scratch, "run --detach");
}

#[test]
fn run_keep_leaves_it_to_be_looked_at() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundle = Bundle::new(&scratch, "containerd", &["/bin/sh", "-c", "exit 4"]);
    let container = Container::named(&scratch, &runtime);
    container
        .command(&["run", "--keep", "-b", bundle.path()])
        .finish()
        .code(4);
    assert_eq!(container.state()["status"], "stopped");
    container.command(&["delete"]).ok();
    before.assert_unchanged(&scratch, "run --keep and delete");
}

#[test]
fn run_reads_and_writes_pipes() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(
        &scratch,
        "containerd",
        &["/bin/sh", "-c", "wc -c; echo done >&2"],
    );
    let input = "x".repeat(300_000);
    let container = Container::named(&scratch, &runtime);
    let finished = container
        .command(&["run", "-b", bundle.path()])
        .input(&input)
        .ok();
    assert_eq!(
        (finished.stdout.trim(), finished.stderr.as_str()),
        ("300000", "done\n")
    );
    // All of a large output arrives.
    let finished = run_shell(&scratch, "yes 123456789 | head -c 3000000").ok();
    assert_eq!(finished.stdout.len(), 3_000_000);
}

/// The descriptors of the container for `RUNTIME WORDS`, called with 3, 4 and 5 open.
fn descriptors(runtime: &Runtime, words: &[&str], env: &[(&str, &str)]) -> Value {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, "containerd", &["/probe"]);
    bundle.with_probe();
    let file = bundle.file("inherited", "content");
    let id = scratch.unique();
    // A service manager names the process that its descriptors are for; exec keeps the pid.
    let listen = if env.is_empty() {
        ""
    } else {
        "export LISTEN_PID=$$;"
    };
    let open = format!(
        "{listen} exec 3<{0} 4<{0} 5<{0} 9<{1}; exec \"$@\"",
        file.display(),
        bundle.path()
    );
    let mut line: Vec<String> = ["sh", "-c", &open, "sh"].map(str::to_owned).to_vec();
    line.extend(runtime.wrapper());
    line.push(runtime.path.to_string_lossy().into_owned());
    line.extend([
        "--root".into(),
        scratch.state_root().to_string_lossy().into_owned(),
    ]);
    line.extend(words.iter().map(|word| (*word).to_owned()));
    line.extend(["-b".into(), bundle.path().to_owned(), id]);
    let mut run = Run::new(&scratch, &line);
    for (name, value) in env {
        run = run.env(name, value);
    }
    run.ok().json()
}

fn numbers(seen: &Value) -> Vec<&str> {
    seen["descriptors"]
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn no_descriptor_leaks_into_the_container() {
    let seen = descriptors(&Runtime::pipkin(), &["run"], &[]);
    assert_eq!(numbers(&seen), ["0", "1", "2"], "{}", seen["descriptors"]);
}

#[test]
fn descriptors_that_are_asked_for_arrive() {
    let seen = descriptors(&Runtime::pipkin(), &["run", "--preserve-fds", "2"], &[]);
    assert_eq!(
        numbers(&seen),
        ["0", "1", "2", "3", "4"],
        "{}",
        seen["descriptors"]
    );
    assert_eq!(seen["descriptors"]["4"]["type"], "file");
    // Socket activation: LISTEN_FDS descriptors come first, and the process is told.
    let env = [("LISTEN_FDS", "1")];
    let seen = descriptors(&Runtime::pipkin(), &["run", "--preserve-fds", "1"], &env);
    assert_eq!(
        numbers(&seen),
        ["0", "1", "2", "3", "4"],
        "{}",
        seen["descriptors"]
    );
    let theirs = descriptors(&Runtime::runc(), &["run", "--preserve-fds", "1"], &env);
    let listen = |seen: &Value| {
        let mut env: Vec<String> = seen["env"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one.as_str().map(str::to_owned))
            .filter(|one| one.starts_with("LISTEN_"))
            .collect();
        env.sort();
        env
    };
    assert_eq!(listen(&seen), listen(&theirs));
}

#[test]
fn a_descriptor_that_is_not_open_cannot_be_preserved() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
    let container = Container::named(&scratch, &runtime);
    container
        .command(&["run", "--preserve-fds", "5", "-b", bundle.path()])
        .fails();
    container
        .command(&["run", "--preserve-fds", "x", "-b", bundle.path()])
        .fails()
        .says(&["x"]);
    // pipkin's own must not take the number of one that is missing.
    let words = ["run", "--preserve-fds", "2", "-b", bundle.path(), "hole"];
    let pipkin = runtime.path.to_string_lossy().into_owned();
    let root = scratch.state_root().to_string_lossy().into_owned();
    let mut line = vec!["sh", "-c", "exec 3<&- 4</dev/null; exec \"$@\"", "sh"];
    line.extend([pipkin.as_str(), "--root", &root]);
    line.extend(words);
    Run::new(&scratch, &line)
        .fails()
        .says(&["descriptor 3 is not open"]);
}

/// A directory is copied up however few files may be open.
#[test]
fn copying_up_keeps_nothing_open() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "containerd", &[]);
    for number in 0..40 {
        let path = format!("rootfs/many/{number}/below");
        std::fs::create_dir_all(bundle.dir().join(path)).expect("make a directory");
    }
    bundle.remove("/process/rlimits");
    bundle.mount("tmpfs", "tmpfs", "/many", &["tmpcopyup"]);
    bundle.shell("test $(ls /many | wc -l) = 40").write();
    let root = scratch.state_root().to_string_lossy().into_owned();
    let pipkin = runtime.path.to_string_lossy().into_owned();
    let mut line = vec!["prlimit", "--nofile=40:40", "--", &pipkin];
    line.extend(["--root", &root, "run", "-b", bundle.path(), "few"]);
    Run::new(&scratch, &line).ok();
}

/// Where the container's directory cannot be opened, it does not stay either.
#[test]
fn a_start_without_room_for_files_leaves_nothing() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
    let root = scratch.state_root().to_string_lossy().into_owned();
    let pipkin = runtime.path.to_string_lossy().into_owned();
    for limit in 3..8 {
        let limit = format!("--nofile={limit}:{limit}");
        let mut line = vec!["prlimit", &limit, "--", &pipkin];
        line.extend(["--root", &root, "run", "-b", bundle.path(), "none"]);
        Run::new(&scratch, &line).fails();
        let left = std::fs::read_dir(scratch.state_root()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{limit}");
    }
}

#[test]
fn another_configuration_file() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/sh", "-c", "exit 9"]);
    bundle.write();
    let other = bundle.dir().join("other.json");
    std::fs::rename(bundle.dir().join("config.json"), &other).expect("rename");
    let container = Container::named(&scratch, &runtime);
    // As with crun, a relative name is looked for in the current directory.
    for name in [other.to_str().expect("a path"), "other.json"] {
        container
            .command(&["run", "-b", bundle.path(), "--config", name])
            .current_dir(bundle.dir())
            .finish()
            .code(9);
    }
    container
        .command(&["run", "-b", bundle.path(), "-f", "none.json"])
        .fails()
        .says(&["none.json"]);
}

#[test]
fn the_bundle_is_the_current_directory_by_default() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "containerd", &["/bin/sh", "-c", "exit 8"]);
    let container = Container::named(&scratch, &runtime);
    container
        .command(&["run"])
        .current_dir(bundle.dir())
        .finish()
        .code(8);
    let bundle = sleeper(&scratch);
    container
        .command(&["run", "-d"])
        .current_dir(bundle.dir())
        .ok();
    assert_eq!(
        container.state()["bundle"],
        bundle.path(),
        "an absolute path"
    );
    container.end();
}

#[test]
fn one_of_many_with_the_same_id_wins() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let container = Container::named(&scratch, &runtime);
    let bundles: Vec<Bundle> = (0..6).map(|_| sleeper(&scratch)).collect();
    let racers: Vec<_> = bundles
        .iter()
        .map(|bundle| container.command(&["create", "-b", bundle.path()]).start())
        .collect();
    let winners = racers.into_iter().map(|one| one.finish());
    let winners = winners.filter(|finished| finished.status.success()).count();
    assert_eq!(winners, 1);
    container.end();
    before.assert_unchanged(&scratch, "a race for an id");
}

#[test]
fn one_of_many_starts_wins() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let container = Container::create(&scratch, &runtime, &sleeper(&scratch));
    let racers: Vec<_> = (0..4)
        .map(|_| container.command(&["start"]).start())
        .collect();
    let winners = racers.into_iter().map(|one| one.finish());
    assert_eq!(
        winners.filter(|finished| finished.status.success()).count(),
        1
    );
    container.end();
}

/// Scripts for all six kinds that write their name to /log of the image, their state
/// to a file of that name, and their environment.
fn hooks(bundle: &mut Bundle) {
    for kind in [
        "prestart",
        "createRuntime",
        "createContainer",
        "poststart",
        "poststop",
    ] {
        let root = bundle.rootfs();
        let root = root.display();
        let script = bundle.script(
            &format!("hook-{kind}"),
            &format!("echo {kind} >>{root}/log; cat >{root}/{kind}.json; echo \"$1 $2\" >{root}/{kind}.args; env >{root}/{kind}.env"),
        );
        let hook = json!({
            "path": script, "args": ["name", "one", "two"], "env": ["HOOK=set", "PATH=/usr/bin:/bin"]
        });
        bundle.set(&format!("/hooks/{kind}"), json!([hook]));
    }
    // This kind alone is looked up in the container.
    let inside = bundle.rootfs().join("hook");
    let text = "#!/bin/sh\necho startContainer >>/log; cat >/startContainer.json; echo \"$1 $2\" >/startContainer.args; env >/startContainer.env\n";
    std::fs::write(&inside, text).expect("write");
    scratch::set_mode(&inside, 0o755);
    bundle.set(
        "/hooks/startContainer",
        json!([{ "path": "/hook", "args": ["name", "one", "two"], "env": ["HOOK=set", "PATH=/bin"] }]),
    );
}

#[test]
fn hooks_of_all_kinds() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let mut bundle = Bundle::new(
        &scratch,
        "containerd",
        &["/bin/sh", "-c", "sleep 0.3; echo process >>/log"],
    );
    hooks(&mut bundle);
    bundle
        .set("/annotations", json!({ "key": "value" }))
        .write();
    let container = Container::named(&scratch, &runtime);
    container.command(&["run", "-b", bundle.path()]).ok();
    let log = std::fs::read_to_string(bundle.rootfs().join("log")).expect("a log");
    assert_eq!(
        log.lines().collect::<Vec<_>>(),
        [
            "prestart",
            "createRuntime",
            "createContainer",
            "startContainer",
            "poststart",
            "process",
            "poststop"
        ]
    );
    for (kind, status) in [
        ("prestart", "creating"),
        ("createRuntime", "creating"),
        ("createContainer", "creating"),
        ("startContainer", "created"),
        ("poststart", "running"),
        ("poststop", "stopped"),
    ] {
        let read = |suffix: &str| {
            let path = bundle.rootfs().join(format!("{kind}.{suffix}"));
            std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let state: Value = serde_json::from_str(&read("json"))
            .unwrap_or_else(|error| panic!("{kind}: {error}: {:?}", read("json")));
        assert_eq!(state["id"], *container.id, "{kind}");
        assert_eq!(state["status"], status, "{kind}");
        assert_eq!(state["bundle"], bundle.path(), "{kind}");
        assert_eq!(state["annotations"], json!({ "key": "value" }), "{kind}");
        assert!(state["ociVersion"].is_string(), "{kind}");
        assert_eq!(
            state["pid"].as_i64().unwrap_or(0) > 0,
            kind != "poststop",
            "{kind}: {state}"
        );
        assert_eq!(read("args"), "one two\n", "{kind}");
        let env = read("env");
        assert!(env.contains("HOOK=set\n"), "{kind}: {env}");
        assert!(
            !env.contains(scratch::TOKEN_VARIABLE),
            "{kind}: the caller's environment: {env}"
        );
    }
    before.assert_unchanged(&scratch, "a run with hooks");
}

/// What a caller thinks of its own children is passed on by execve(2): the end of a process
/// would never be told.
#[test]
fn a_caller_that_ignores_its_childrens_end_is_no_obstacle() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/sh", "-c", "exit 7"]);
    let script = bundle.script("hook", "cat >/dev/null");
    for kind in ["createRuntime", "poststart", "poststop"] {
        bundle.set(&format!("/hooks/{kind}/-"), json!({ "path": script }));
    }
    bundle.write();
    let before = Snapshot::take(&scratch);
    let (root, id) = (scratch.state_root(), scratch.unique());
    let words = [
        "env",
        "--ignore-signal=CHLD",
        &runtime.path.to_string_lossy(),
        "--root",
        &root.to_string_lossy(),
        "run",
        "--bundle",
        bundle.path(),
        &id,
    ];
    let finished = Run::new(&scratch, &words).finish().code(7);
    assert_eq!(finished.stderr, "");
    before.assert_unchanged(&scratch, "a run whose caller ignores SIGCHLD");
}

#[test]
fn hooks_run_in_their_order_and_namespaces() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    let log = bundle.dir().join("order");
    let place = log.display().to_string();
    let line = "readlink /proc/self/ns/net /proc/self/ns/uts /proc/self/ns/mnt";
    for kind in ["prestart", "createRuntime", "createContainer"] {
        for number in [1, 2] {
            let script = bundle.script(
                &format!("{kind}-{number}"),
                &format!("cat >/dev/null; echo {kind} {number} $({line}) >>{place}"),
            );
            bundle.set(&format!("/hooks/{kind}/-"), json!({ "path": script }));
        }
    }
    bundle.write();
    Container::named(&scratch, &runtime)
        .command(&["run", "-b", bundle.path()])
        .ok();
    let text = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let order: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {}", line[0], line[1]))
        .collect();
    assert_eq!(
        order,
        [
            "prestart 1",
            "prestart 2",
            "createRuntime 1",
            "createRuntime 2",
            "createContainer 1",
            "createContainer 2"
        ]
    );
    for line in &lines {
        let inside = line[0] == "createContainer";
        for (link, name) in line[2..].iter().zip(["net", "uts", "mnt"]) {
            let own = std::fs::read_link(format!("/proc/self/ns/{name}")).expect("a link");
            assert_eq!(own != Path::new(link), inside, "{line:?}: {name}");
        }
    }
}

#[test]
fn a_hook_that_fails_ends_the_container() {
    for kind in [
        "prestart",
        "createRuntime",
        "createContainer",
        "startContainer",
        "poststart",
    ] {
        let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
        let before = Snapshot::take(&scratch);
        let mut bundle = Bundle::new(&scratch, "containerd", &[]);
        bundle.shell("sleep 0.5; echo ran > /log");
        let script = bundle.script("hook", "cat >/dev/null; echo because >&2; exit 3");
        let inside = bundle.rootfs().join("hook");
        std::fs::copy(&script, &inside).expect("copy");
        let path = if kind == "startContainer" {
            Path::new("/hook")
        } else {
            &script
        };
        bundle
            .set(&format!("/hooks/{kind}/-"), json!({ "path": path }))
            .write();
        let container = Container::named(&scratch, &runtime);
        let finished = container.command(&["run", "-b", bundle.path()]).fails();
        finished.says(&[&format!("/hooks/{kind}/0"), "3"]);
        assert!(
            !bundle.rootfs().join("log").exists(),
            "{kind}: the program ran"
        );
        before.assert_unchanged(&scratch, &format!("a {kind} hook that failed"));
    }
}

#[test]
fn a_poststop_hook_that_fails_is_told_and_no_more() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/sh", "-c", "exit 5"]);
    let failing = bundle.script("failing", "exit 3");
    let place = bundle.dir().join("second");
    let second = bundle.script(
        "second-hook",
        &format!("cat >/dev/null; echo ran >{}", place.display()),
    );
    bundle
        .set(
            "/hooks/poststop",
            json!([{ "path": failing }, { "path": second }]),
        )
        .write();
    let container = Container::named(&scratch, &runtime);
    let finished = container
        .command(&["run", "-b", bundle.path()])
        .finish()
        .code(5);
    finished.says(&["/hooks/poststop/0"]);
    assert!(place.exists(), "the second hook did not run");
    before.assert_unchanged(&scratch, "a poststop hook that failed");
}

#[test]
fn a_hook_that_does_not_end_is_ended() {
    for kind in ["prestart", "createContainer", "startContainer"] {
        let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
        let before = Snapshot::take(&scratch);
        let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
        // Waits for ever in a child, whose command line has the token in it.
        let inside = kind == "startContainer";
        let fifo = bundle.rootfs().join("fifo");
        make_fifo(&fifo);
        let place = if inside {
            "/fifo".to_owned()
        } else {
            fifo.display().to_string()
        };
        let line = format!("sh -c ': <{place} # {}'; :", scratch.token());
        let script = bundle.script("hook", &line);
        std::fs::copy(&script, bundle.rootfs().join("hook")).expect("copy");
        let path = if inside { Path::new("/hook") } else { &script };
        bundle
            .set(
                &format!("/hooks/{kind}/-"),
                json!({ "path": path, "timeout": 1 }),
            )
            .write();
        let start = Instant::now();
        let container = Container::named(&scratch, &runtime);
        let finished = container.command(&["run", "-b", bundle.path()]).fails();
        let took = start.elapsed();
        assert!(
            took >= Duration::from_millis(900),
            "{kind}: not even waited for: {finished}"
        );
        assert!(took < Duration::from_secs(10), "{kind}: waited {took:?}");
        finished.says(&[&format!("/hooks/{kind}/0"), "timeout"]);
        // The script's own child is nobody's: it must not be found either.
        before.assert_unchanged(&scratch, &format!("a {kind} hook that hung"));
    }
}

#[test]
fn spec_features_version_and_help() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = sleeper(&scratch);
    let file = bundle.dir().join("config.json");
    runtime
        .command(&scratch, &["spec"])
        .current_dir(bundle.dir())
        .fails()
        .says(&["config.json"]);
    std::fs::remove_file(&file).expect("remove");
    runtime
        .command(&scratch, &["spec"])
        .current_dir(bundle.dir())
        .ok();
    let text = std::fs::read_to_string(&file).expect("a configuration");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(config["process"]["args"], json!(["sh"]));
    // It works as it is, but for the terminal.
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(["sh", "-c", "exit 6"]);
    config["linux"]["cgroupsPath"] = json!(bundle.cgroup);
    std::fs::write(&file, config.to_string()).expect("write");
    let container = Container::named(&scratch, &runtime);
    container
        .command(&["run", "-b", bundle.path()])
        .finish()
        .code(6);

    let ours = runtime.command(&scratch, &["features"]).ok().json();
    let runc = Runtime::runc().command(&scratch, &["features"]).ok().json();
    for list in [
        "/hooks",
        "/mountOptions",
        "/linux/namespaces",
        "/linux/capabilities",
        "/linux/seccomp/actions",
        "/linux/seccomp/operators",
    ] {
        let ours = ours.pointer(list).and_then(Value::as_array).expect(list);
        for item in runc.pointer(list).and_then(Value::as_array).expect(list) {
            assert!(ours.contains(item), "features: {list} lacks {item}");
        }
    }
    let version = runtime.command(&scratch, &["--version"]).ok().stdout;
    assert!(version.starts_with("pipkin version "), "{version}");
    assert!(version.contains("spec: 1."), "{version}");
    let help = runtime.command(&scratch, &["--help"]).ok().stdout;
    for command in [
        "create", "start", "run", "state", "kill", "delete", "list", "spec", "features",
    ] {
        assert!(help.contains(command), "{help}");
    }
}

#[test]
fn the_log_file_takes_the_message() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let log = scratch.dir().join("log");
    let path = log.to_str().expect("a path");
    let words = ["--log", path, "--log-format", "json", "state", "nobody"];
    let finished = runtime.command(&scratch, &words).fails();
    let text = std::fs::read_to_string(&log).expect("a log");
    let line: Value = serde_json::from_str(text.trim()).expect("one line of JSON");
    assert_eq!(line["level"], "error");
    let message = line["msg"].as_str().expect("a message");
    assert!(message.contains("does not exist"), "{message}");
    assert!(
        line["time"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z')),
        "{line}"
    );
    finished.says(&["does not exist"]);
    runtime
        .command(&scratch, &["--log-format", "xml", "list"])
        .fails()
        .says(&["xml"]);
    runtime
        .command(&scratch, &["--log", "/nowhere/log", "list"])
        .fails()
        .says(&["/nowhere/log"]);
}

#[test]
fn the_killer_of_run_does_not_leave_the_container_alone_for_ever() {
    // `run` killed by force cannot tidy up; the container is then to be deleted by hand.
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundle = patient(&scratch);
    let container = Container::named(&scratch, &runtime);
    let running = container.command(&["run", "-b", bundle.path()]).start();
    wait_for_text(&bundle.rootfs().join("log"), "ready");
    kill_process(running.pid(), Signal::KILL).expect("kill");
    assert_eq!(running.finish().status.signal(), Some(9));
    container.command(&["delete", "--force"]).ok();
    scratch.reap();
    before.assert_unchanged(&scratch, "a run that was killed");
}

#[test]
fn the_runtimes_agree_on_a_life() {
    // The same commands work with the two others, so that this file tests behaviour
    // and not one implementation.
    for runtime in [Runtime::pipkin(), Runtime::runc(), Runtime::crun()] {
        let scratch = Scratch::new();
        let bundle = sleeper(&scratch);
        let container = Container::create(&scratch, &runtime, &bundle);
        container.command(&["start"]).ok();
        container.command(&["start"]).fails();
        container.command(&["delete"]).fails();
        container.kill("KILL").ok();
        container.wait_for("stopped");
        container.kill("TERM").fails();
        container.command(&["delete"]).ok();
        container.command(&["delete"]).fails();
        container.command(&["delete", "--force"]).ok();
        if runtime.kind != Kind::Crun {
            assert!(
                scratch
                    .cgroups()
                    .iter()
                    .all(|path| path.ends_with(scratch.token()))
            );
        }
    }
}

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
        .expect("mkfifo");
}
