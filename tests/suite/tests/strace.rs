//! No mount(2) gets an empty string for data: the kernel would copy a page for it.

use pipkin_tests::bundle::ENGINES;
use pipkin_tests::{Bundle, Run, Runtime, Scratch, host};
use serde_json::json;

/// The calls that set up mounts by either interface: at least one must be seen, or the
/// trace saw nothing at all.
const CALLS: &str =
    "mount,umount2,pivot_root,open_tree,move_mount,fsopen,fsconfig,fsmount,mount_setattr";

fn trace(scratch: &Scratch, bundle: &Bundle) -> String {
    let runtime = Runtime::pipkin();
    let output = scratch.dir().join("trace");
    let mut line: Vec<String> = vec![
        host::find("strace").to_string_lossy().into_owned(),
        "-f".into(),
        "-o".into(),
        output.to_string_lossy().into_owned(),
        "-e".into(),
        format!("trace={CALLS}"),
    ];
    line.push(runtime.path.to_string_lossy().into_owned());
    line.extend([
        "--root".into(),
        scratch.state_root().to_string_lossy().into_owned(),
    ]);
    line.extend(["run", "-b", bundle.path(), &scratch.unique()].map(str::to_owned));
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
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, engine, &["/bin/true"]);
    change(&mut bundle);
    bundle.write();
    let trace = trace(&scratch, &bundle);
    let seen = CALLS
        .split(',')
        .any(|call| trace.contains(&format!(" {call}(")));
    assert!(seen, "{name}: strace saw no mount at all:\n{trace}");
    let found = with_empty_data(&trace);
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
