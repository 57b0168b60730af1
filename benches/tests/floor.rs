//! That the floor is honest: what a program sees in its container is what it sees in pipkin's.

use std::fs;
use std::path::Path;

use pipkin_tests::bundle::ENGINES;
use pipkin_tests::runtime::View;
use pipkin_tests::{Bundle, Run, Runtime, Scratch, host, observe};
use serde_json::{Value, json};

/// Files of /proc that are hidden: by the floor behind the container's /dev/null, by pipkin
/// behind the host's.
const HIDDEN: [&str; 6] = [
    "kcore",
    "keys",
    "latency_stats",
    "timer_list",
    "timer_stats",
    "sched_debug",
];

fn may_differ(place: &str) -> bool {
    let is_hidden = HIDDEN.iter().any(|file| {
        place.starts_with(&format!("/mounts/~1proc~1{file}/"))
            || place == format!("/paths/~1proc~1{file}/owner")
    });
    is_hidden
        // The name of the keyring is the floor's own.
        || place == "/keyring/description"
        // A name that means nothing.
        || (place.starts_with("/mounts/") && place.ends_with("/source"))
        // The floor closes nothing that its caller left open.
        || place.starts_with("/descriptors/")
}

/// The words after the floor's name.
fn words(bundle: &Bundle, profile: &str, view: View) -> Vec<String> {
    let cpuset = |file: &str| {
        fs::read_to_string(Path::new("/sys/fs/cgroup/cpuset").join(file))
            .map_or_else(|_| "0".to_owned(), |text| text.trim().to_owned())
    };
    let limits = if view == View::OnlyUnified {
        "free"
    } else {
        "limits"
    };
    let mut words = vec![
        profile.to_owned(),
        "filter".to_owned(),
        limits.to_owned(),
        bundle.cgroup.clone(),
        bundle.path().to_owned(),
        cpuset("cpuset.cpus"),
        cpuset("cpuset.mems"),
        "0".to_owned(),
    ];
    if view == View::OnlyUnified {
        words.push("=/sys/fs/cgroup".to_owned());
    } else {
        let v1 = host::mount_points("cgroup");
        let groups = fs::read_to_string("/proc/self/cgroup").expect("the groups");
        for name in groups.lines().filter_map(|line| line.split(':').nth(1)) {
            let point = Path::new("/sys/fs/cgroup").join(name.trim_start_matches("name="));
            if !name.is_empty() && v1.contains(&point) {
                words.push(format!("{name}={}", point.display()));
            }
        }
        if v1.is_empty() {
            words.push("=/sys/fs/cgroup".to_owned());
        }
    }
    words.extend(["--", "/probe"].map(str::to_owned));
    words
}

fn compare(profile: &str, view: View) {
    let scratch = Scratch::new();
    let runtime = Runtime::pipkin().seeing(view);
    let engine = if profile == "spec" { "podman" } else { profile };
    let mut bundle = Bundle::new(&scratch, engine, &["/probe"]);
    if profile == "spec" {
        let mut line = runtime.wrapper();
        line.extend([runtime.path.to_string_lossy().into_owned(), "spec".into()]);
        let place = scratch.dir().join("spec");
        fs::create_dir(&place).expect("a new directory");
        Run::new(&scratch, &line).current_dir(&place).ok();
        let text = fs::read_to_string(place.join("config.json")).expect("what spec writes");
        bundle.config = serde_json::from_str(&text).expect("JSON");
        bundle.args(&["/probe"]);
        bundle.set("/process/terminal", json!(false));
        bundle.set("/linux/cgroupsPath", json!(bundle.cgroup.clone()));
    }
    if view == View::OnlyUnified {
        let devices = bundle.config.pointer("/linux/resources/devices").cloned();
        bundle.set("/linux/resources", json!({ "devices": devices }));
    }
    bundle.with_probe().write();

    let seen = |run: Run, id: &str| {
        let mut seen = run.ok().json();
        observe::normalise(&mut seen, &bundle, id);
        observe::leaves(&seen)
    };
    // The first run makes the groups and mount points that the floor expects.
    let id = scratch.unique();
    let run = |id: &str| runtime.command(&scratch, &["run", "--bundle", bundle.path(), id]);
    run(&id).ok();
    let own = seen(run(&id), &id);
    let mut line = runtime.wrapper();
    line.push(env!("CARGO_BIN_EXE_floor").to_owned());
    line.extend(words(&bundle, profile, view));
    let floor = seen(Run::new(&scratch, &line), &id);

    let mut places: Vec<&String> = own.keys().chain(floor.keys()).collect();
    places.sort();
    places.dedup();
    let show = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
    let different: Vec<String> = places
        .into_iter()
        .filter(|place| own.get(*place) != floor.get(*place) && !may_differ(place))
        .map(|place| {
            let (own, floor) = (show(own.get(place)), show(floor.get(place)));
            format!("{place}: pipkin {own}, floor {floor}")
        })
        .collect();
    assert!(
        different.is_empty(),
        "{profile}, {view:?}:\n{}",
        different.join("\n")
    );
}

#[test]
fn the_floor_makes_the_same_container() {
    for profile in ENGINES.into_iter().chain(["spec"]) {
        compare(profile, View::NoUnified);
        compare(profile, View::OnlyUnified);
    }
}
