//! No mount(2) gets an empty string for data: the kernel would copy a page for it.

use std::os::unix::net::UnixListener;

use pipkin_tests::bundle::ENGINES;
use pipkin_tests::runtime::View;
use pipkin_tests::{Bundle, Run, Runtime, Scratch, host};
use serde_json::json;

/// The calls that set up mounts by either interface: at least one must be seen, or the
/// trace saw nothing at all.
const CALLS: &str =
    "mount,umount2,pivot_root,open_tree,move_mount,fsopen,fsconfig,fsmount,mount_setattr";

/// What strace sees of `run`, with options of its own.
fn trace(scratch: &Scratch, bundle: &Bundle, view: View, options: &[&str]) -> String {
    let runtime = Runtime::pipkin().seeing(view);
    let output = scratch.dir().join("trace");
    let mut line = runtime.wrapper();
    line.extend([
        host::find("strace").to_string_lossy().into_owned(),
        "-f".into(),
        "-o".into(),
        output.to_string_lossy().into_owned(),
        "-e".into(),
        format!("trace={CALLS}"),
        runtime.path.to_string_lossy().into_owned(),
        "--root".into(),
        scratch.state_root().to_string_lossy().into_owned(),
        "run".into(),
    ]);
    line.extend(options.iter().map(|option| (*option).to_owned()));
    line.extend(["-b", bundle.path(), &scratch.unique()].map(str::to_owned));
    Run::new(scratch, &line).ok();
    std::fs::read_to_string(&output).expect("a trace")
}

/// The calls of mount(2) whose last argument is "".
fn with_empty_data(trace: &str) -> Vec<&str> {
    trace
        .lines()
        .filter(|line| line.contains(" mount(") || line.starts_with("mount("))
        .filter(|line| {
            // `… , "") = 0`, or, when another process came between, `… , "" <unfinished ...>`.
            let call = line.split(" = ").next().unwrap_or(line);
            let call = call.trim_end_matches(" <unfinished ...>").trim_end();
            call.trim_end_matches(')').ends_with(", \"\"")
        })
        .collect()
}

fn check(name: &str, engine: &str, change: &dyn Fn(&mut Bundle)) {
    check_form(name, engine, View::Host, &[], change);
}

fn check_form(
    name: &str,
    engine: &str,
    view: View,
    options: &[&str],
    change: &dyn Fn(&mut Bundle),
) {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, engine, &["/bin/true"]);
    change(&mut bundle);
    bundle.write();
    look(name, &trace(&scratch, &bundle, view, options));
}

fn look(name: &str, trace: &str) {
    let seen = CALLS
        .split(',')
        .any(|call| trace.contains(&format!(" {call}(")));
    assert!(seen, "{name}: strace saw no mount at all:\n{trace}");
    let found = with_empty_data(trace);
    assert!(
        found.is_empty(),
        "{name}: empty data:\n{}",
        found.join("\n")
    );
}

#[test]
fn the_search_finds_what_it_looks_for() {
    let trace = "1 mount(\"\", \"/\", NULL, MS_PRIVATE, \"\") = 0\n\
        2 mount(\"a\", \"/b\", \"tmpfs\", 0, \"\" <unfinished ...>\n\
        3 mount(\"\", \"\", \"\", 0, NULL) = 0\n\
        4 mount(\"a\", \"/b\", \"tmpfs\", 0, \"size=1k\") = 0\n\
        5 fsconfig(3, FSCONFIG_SET_STRING, \"a\", \"\", 0) = 0\n";
    let found = with_empty_data(trace);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn no_mount_has_empty_data() {
    for engine in ENGINES {
        check(engine, engine, &|_| {});
        check("read-only root", engine, &|bundle| {
            bundle.set("/root/readonly", json!(true));
        });
        check("no cgroup mount", engine, &|bundle| {
            bundle.without_mount("/sys/fs/cgroup");
        });
        check("no dev mount", engine, &|bundle| {
            for place in ["/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"] {
                bundle.without_mount(place);
            }
        });
        check("every kind of mount", engine, &|bundle| {
            let files = bundle.dir().join("files").to_string_lossy().into_owned();
            bundle.mount("tmpfs", "tmpfs", "/m/plain", &[]);
            bundle.mount("tmpfs", "tmpfs", "/m/ro", &["ro"]);
            bundle.mount("tmpfs", "tmpfs", "/etc", &["tmpcopyup"]);
            bundle.mount(
                "bind",
                &files,
                "/m/bind",
                &["rbind", "ro", "nosuid", "rshared"],
            );
            bundle.mount("bind", &files, "/m/rro", &["rbind", "rro"]);
            bundle.mount("proc", "proc", "/proc", &["ro"]);
            bundle.mount("devpts", "devpts", "/m/pts", &["newinstance"]);
            bundle.set("/linux/rootfsPropagation", json!("rslave"));
        });
    }
}

/// The same of the ways to start that differ in how mounts are made.
#[test]
fn no_form_of_a_start_has_empty_data() {
    let mapping = || json!([{ "containerID": 0, "hostID": 100_000, "size": 65_536 }]);
    let nothing = |_: &mut Bundle| {};
    for engine in ENGINES {
        check_form("--no-pivot", engine, View::Host, &["--no-pivot"], &nothing);
        check_form("v1 alone", engine, View::NoUnified, &[], &nothing);
        check_form("v2 alone", engine, View::OnlyUnified, &[], &|bundle| {
            bundle.remove("/linux/resources");
        });
        for propagation in ["private", "rshared", "slave", "unbindable"] {
            check(propagation, engine, &|bundle| {
                bundle.set("/linux/rootfsPropagation", json!(propagation));
            });
        }
    }
    // The other engines' files have no mount points in the image, which is not its root's.
    check("a user namespace", "containerd", &|bundle| {
        bundle.namespace("user", None);
        bundle.set("/linux/uidMappings", mapping());
        bundle.set("/linux/gidMappings", mapping());
    });
    check("an id-mapped mount", "containerd", &|bundle| {
        let shared = bundle.file("shared", "").to_string_lossy().into_owned();
        bundle.set(
            "/mounts/-",
            json!({
                "destination": "/mapped", "type": "bind", "source": shared,
                "options": ["bind", "idmap"],
                "uidMappings": mapping(), "gidMappings": mapping()
            }),
        );
    });
    check("no cgroup namespace", "podman", &|bundle| {
        bundle.without_namespace("cgroup");
    });
}

/// What `pipkin spec` writes, and a terminal, which is a mount on /dev/console.
#[test]
fn neither_the_spec_configuration_nor_a_terminal_has_empty_data() {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    let file = host::workspace_root().join("crates/cli/src/commands/spec.json");
    let text = std::fs::read_to_string(file).expect("what spec writes");
    bundle.config = serde_json::from_str(&text).expect("JSON");
    bundle.args(&["/bin/true"]);
    bundle.set("/linux/cgroupsPath", json!(bundle.cgroup.clone()));
    bundle.write();
    // Its terminal is sent to this socket and waits there; nobody has to take it.
    let path = scratch.dir().join("console.sock");
    let _listener = UnixListener::bind(&path).expect("listen");
    let path = path.to_string_lossy().into_owned();
    let trace = trace(&scratch, &bundle, View::Host, &["--console-socket", &path]);
    look("spec with a terminal", &trace);
}
