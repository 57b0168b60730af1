//! Starts where the calls that came after Linux 5.4 are hidden: `src/bin/older.rs` loads a filter
//! that does so and becomes pipkin.
//!
//! The kernel is newer than pipkin is let believe, so what it must do without is proven, not what
//! an older one does otherwise.

#[path = "forms.rs"]
mod forms;
#[path = "security.rs"]
mod security;

use pipkin_tests::runtime::View;
use pipkin_tests::{Bundle, Container, Run, Runtime, Scratch, host, observe};
use serde_json::{Value, json};

/// The runtime under test without the filter.
fn newer() -> Runtime {
    Runtime {
        path: host::program(),
        ..Runtime::pipkin()
    }
}

/// What the probe sees, without the number of filters, of which there is one more.
fn seen(scratch: &Scratch, runtime: &Runtime, bundle: &Bundle) -> Value {
    let seen = observe::observe(scratch, runtime, bundle);
    let mut seen = seen.unwrap_or_else(|failed| panic!("{failed}"));
    seen["protection"]["Seccomp_filters"] = json!(null);
    seen
}

/// None of the newer calls succeeds, and all are tried.
#[test]
fn the_filter_hides_what_it_should() {
    let scratch = Scratch::new();
    let bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    let counts = scratch.dir().join("counts").to_string_lossy().into_owned();
    let program = Runtime::pipkin().path.to_string_lossy().into_owned();
    let root = scratch.state_root().to_string_lossy().into_owned();
    let id = scratch.unique();
    let strace = ["strace", "-f", "-c", "-o", &counts, &program];
    let words = ["--root", &root, "run", "-b", bundle.path(), &id];
    Run::new(&scratch, &[strace, words].concat()).ok();
    let table = std::fs::read_to_string(counts).expect("what strace counted");
    // `0.00    0.000000           0        62        62 openat2`
    let counted = |call: &str| {
        let line = table.lines().find(|line| line.ends_with(call));
        let line = line.unwrap_or_else(|| panic!("{call} was not tried:\n{table}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.len(), 6, "{line}");
        (words[3].to_owned(), words[4].to_owned())
    };
    for call in ["openat2", "mount_setattr", "close_range"] {
        let (calls, errors) = counted(call);
        assert_eq!(calls, errors, "{call}");
    }
    // One without MFD_EXEC follows.
    counted("memfd_create");
}

/// A container sees the same as with the newer calls.
#[test]
fn what_is_seen_inside_is_the_same() {
    type Change = fn(&mut Bundle);
    let changes: [(&str, Change); 4] = [
        ("nothing", |_| {}),
        ("mounts", |bundle| {
            let files = bundle.dir().join("files").to_string_lossy().into_owned();
            let hosts = format!("{files}/hosts");
            for (place, options) in [
                ("/ro", &["rbind", "ro"][..]),
                ("/flags", &["bind", "nosuid", "nodev", "noexec", "noatime"]),
                ("/strict", &["bind", "strictatime", "nodiratime", "ro"]),
                ("/slave", &["rbind", "rslave"]),
                ("/shared", &["bind", "rshared", "rro"]),
            ] {
                bundle.mount("bind", &files, place, options);
            }
            bundle.mount("bind", &hosts, "/file", &["bind", "ro", "noexec"]);
            bundle.mount("tmpfs", "tmpfs", "/new", &["ro", "rnoexec", "size=1m"]);
            bundle.mount("tmpfs", "tmpfs", "/up", &["tmpcopyup", "nosuid"]);
            bundle.set("/linux/readonlyPaths/-", json!("/file"));
            bundle.set("/linux/maskedPaths/-", json!("/slave"));
            bundle.set("/root/readonly", json!(true));
        }),
        ("a user namespace", |bundle| {
            bundle.with_user_namespace();
        }),
        ("a shared root", |bundle| {
            bundle.set("/linux/rootfsPropagation", json!("rshared"));
            bundle.set("/process/user", json!({ "uid": 1000, "gid": 1000 }));
        }),
    ];
    for engine in pipkin_tests::bundle::ENGINES {
        for (name, change) in changes {
            for view in [View::Host, View::NoUnified, View::OnlyUnified] {
                let scratch = Scratch::new();
                let mut bundle = Bundle::new(&scratch, engine, &["/probe"]);
                bundle.with_probe();
                if view == View::OnlyUnified {
                    bundle.set("/linux/resources", json!({}));
                }
                change(&mut bundle);
                bundle.write();
                let newer = seen(&scratch, &newer().seeing(view), &bundle);
                let older = seen(&scratch, &Runtime::pipkin().seeing(view), &bundle);
                let newer = observe::leaves(&newer);
                let older = observe::leaves(&older);
                let all = newer.keys().chain(older.keys());
                for place in all {
                    let (newer, older) = (newer.get(place), older.get(place));
                    assert_eq!(newer, older, "{engine}, {name}, {view:?}: {place}");
                }
            }
        }
    }
}

/// A path that is made read-only takes the mounts below it along, as with the newer calls.
#[test]
fn mounts_below_a_read_only_path() {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, "podman", &[]);
    bundle.mount("tmpfs", "tmpfs", "/data/below", &["size=1m"]);
    bundle.mount("tmpfs", "tmpfs", "/data/below/deep", &["size=1m"]);
    bundle.mount("tmpfs", "tmpfs", "/beside", &["size=1m"]);
    bundle.set("/linux/readonlyPaths/-", json!("/data"));
    bundle.shell("for way in data data/below data/below/deep beside; do touch /$way/x && echo $way; done 2>/dev/null");
    bundle.write();
    for runtime in [Runtime::pipkin(), newer()] {
        let container = Container::named(&scratch, &runtime);
        let seen = container.command(&["run", "-b", bundle.path()]).ok();
        assert_eq!(seen.stdout, "beside\n");
    }
}

/// What needs the newer calls is refused with its place, and with what hides them.
#[test]
fn what_cannot_be_had_is_refused_by_name() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
    let source = bundle.dir().to_string_lossy().into_owned();
    bundle.mount("bind", &source, "/all", &["rbind", "rro"]);
    bundle.write();
    let container = Container::named(&scratch, &runtime);
    let refused = container.command(&["run", "-b", bundle.path()]).fails();
    refused.says(&["/options", "rro", "5.12", "filter"]);
}

/// Some engines' filters say that what they hide is not permitted.
#[test]
fn a_filter_that_says_eperm() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "docker", &["/bin/true"]);
    let container = Container::named(&scratch, &runtime);
    let run = container.command(&["run", "-b", bundle.path()]);
    run.env("OLDER", "EPERM").ok();
}
