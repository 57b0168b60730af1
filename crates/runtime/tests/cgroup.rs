//! Control groups against the kernel, as root: on the host's own layout, on a view with
//! v1 only and on one with v2 only. The views are private mount namespaces, in which this
//! program runs itself again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::time::Duration;

use common::{Inside, SECOND, limits, nothing_left, request, unique, view};
use pipkin_plan::cgroup::{Controller, Controllers, Version, Write, devices, writes};
use pipkin_runtime::cgroup::{Created, Kind, Layout, Location, create};

/// Runs each `inner` test in the view of the host, of v1 and of v2.
macro_rules! everywhere {
    ($($name:ident => $inner:ident;)*) => {
        $(
            mod $name {
                #[test]
                fn host() { super::view("true", stringify!($inner)); }
                #[test]
                fn v1() { super::hybrid_view("umount /sys/fs/cgroup/unified", stringify!($inner)); }
                #[test]
                fn v2() {
                    super::hybrid_view("mount -t cgroup2 none /sys/fs/cgroup", stringify!($inner));
                }
            }
        )*
    };
}

/// A view that a hybrid host can give; others are tested as they are.
fn hybrid_view(prepare: &str, test: &str) {
    if Layout::probe().unwrap().kind == Kind::Hybrid {
        view(prepare, test);
    }
}

everywhere! {
    life => inner_life;
    sub_groups => inner_sub_groups;
    in_use => inner_in_use;
    undo => inner_undo;
    fork_bomb => inner_fork_bomb;
    device_rules => inner_device_rules;
    values => inner_values;
    absent => inner_absent;
    updates => inner_updates;
    deep => inner_deep;
}

fn made(name: &str, writes: &[Write]) -> (Layout, Created) {
    let layout = Layout::probe().unwrap();
    let location = Location::resolve(Some(&unique(name)), "id").unwrap();
    let created = create(&layout, &request(&location, writes)).unwrap();
    created.group.apply(writes).unwrap();
    (layout, created)
}

#[test]
#[ignore = "run by the tests of each view"]
fn inner_life() {
    let (layout, created) = made("life", &[]);
    let group = created.group.clone();
    assert_eq!(
        group.dirs.len(),
        layout.v1.len() + usize::from(layout.v2.is_some())
    );
    let mut inside = Inside::start(&group, "exec sleep 100");
    assert_eq!(group.pids().unwrap(), [inside.pid()]);
    let known: Vec<String> = inside
        .groups()
        .into_iter()
        .filter(|(name, _)| group.dirs.iter().any(|d| d.hierarchy == *name))
        .map(|(_, path)| path)
        .collect();
    assert_eq!(known.len(), group.dirs.len());
    assert!(known.iter().all(|p| *p == unique("life")), "{known:?}");

    assert!(!group.is_frozen().unwrap());
    group.freeze(SECOND).unwrap();
    assert!(group.is_frozen().unwrap());
    group.thaw(SECOND).unwrap();
    assert!(!group.is_frozen().unwrap());

    // Signals reach a frozen group, and it is still frozen. (Frozen by v2, a process
    // would die of SIGTERM at once.)
    group.freeze(SECOND).unwrap();
    group.kill_all(28).unwrap();
    assert!(group.is_frozen().unwrap());
    assert!(inside.runs());
    let error = group.remove(Duration::from_millis(50)).unwrap_err();
    let hint = error.hint.clone().unwrap();
    assert!(
        hint.contains("(sleep)") && hint.contains(&inside.number()),
        "{error}: {hint}"
    );
    assert_eq!(error.errno.unwrap(), pipkin_sys::Errno::EBUSY);

    group.kill_all(9).unwrap();
    // Not reaped and perhaps not dead yet: removal waits.
    group.remove(SECOND * 5).unwrap();
    inside.wait();
    assert_eq!(group.pids().unwrap(), []);
    assert!(!group.is_frozen().unwrap());
    group.kill_all(9).unwrap();
    group.remove(SECOND).unwrap();
    nothing_left("life");
}

#[test]
#[ignore = "run by the tests of each view"]
fn inner_sub_groups() {
    let (_, created) = made("sub", &[]);
    let group = created.group;
    let mut insides = Vec::new();
    for dir in &group.dirs {
        let mut path = dir.path.clone();
        for name in ["a", "b c", "d"] {
            path = path.join(name);
            std::fs::create_dir(&path).unwrap();
            if dir.hierarchy.contains("cpuset") {
                std::fs::write(path.join("cpuset.cpus"), "0").unwrap();
                std::fs::write(path.join("cpuset.mems"), "0").unwrap();
            }
        }
        std::fs::create_dir(dir.path.join("empty")).unwrap();
        let sub = pipkin_runtime::cgroup::Group {
            dirs: vec![pipkin_runtime::cgroup::Dir {
                hierarchy: dir.hierarchy.clone(),
                path,
            }],
        };
        let top = Inside::start(&group, "exec sleep 100");
        let deep = Inside::start_in(&group, &sub, "exec sleep 100");
        insides.extend([top, deep]);
    }
    assert_eq!(group.pids().unwrap().len(), insides.len());
    group.kill_all(9).unwrap();
    group.remove(SECOND * 5).unwrap();
    insides.iter_mut().for_each(Inside::wait);
    nothing_left("sub");
}

#[test]
#[ignore = "run by the tests of each view"]
fn inner_in_use() {
    let (layout, created) = made("used", &[]);
    let mut inside = Inside::start(&created.group, "exec sleep 100");
    let location = Location::resolve(Some(&unique("used")), "id").unwrap();
    let error = create(&layout, &request(&location, &[])).unwrap_err();
    assert!(error.to_string().contains("has 1 processes"), "{error}");
    assert_eq!(
        created.group.pids().unwrap().len(),
        1,
        "the other's group was touched"
    );
    created.group.kill_all(9).unwrap();
    inside.wait();

    // Empty and there is fine, and undo leaves what was there.
    let again = create(&layout, &request(&location, &[])).unwrap();
    assert_eq!(again.made, Vec::<std::path::PathBuf>::new());
    again.undo().unwrap();
    assert!(created.group.dirs.iter().all(|d| d.path.is_dir()));

    created.group.freeze(SECOND).unwrap();
    let error = create(&layout, &request(&location, &[])).unwrap_err();
    assert!(error.to_string().contains("is frozen"), "{error}");
    created.group.thaw(SECOND).unwrap();
    created.undo().unwrap();
    nothing_left("used");
}

#[test]
#[ignore = "run by the tests of each view"]
fn inner_undo() {
    let layout = Layout::probe().unwrap();
    let path = unique("undo");
    let location = Location::resolve(Some(&format!("{path}/b/c")), "id").unwrap();
    let created = create(&layout, &request(&location, &[])).unwrap();
    assert_eq!(created.made.len(), 3 * created.group.dirs.len());
    // A neighbour that has come to use a parent keeps it.
    let neighbour = created.group.dirs[0].path.parent().unwrap().join("other");
    std::fs::create_dir(&neighbour).unwrap();
    created.undo().unwrap();
    assert!(neighbour.is_dir());
    std::fs::remove_dir(&neighbour).unwrap();
    std::fs::remove_dir(neighbour.parent().unwrap()).unwrap();
    std::fs::remove_dir(neighbour.parent().unwrap().parent().unwrap()).unwrap();
    nothing_left("undo");

    // A failure half-way leaves nothing: the last hierarchy has a file of that name.
    let file = match layout.kind {
        Kind::V1 => "release_agent",
        _ => "cgroup.max.depth",
    };
    let location = Location::resolve(Some(&format!("{path}/{file}/x")), "id").unwrap();
    let created = create(&layout, &request(&location, &[]));
    match layout.kind {
        Kind::V1 => created.unwrap().undo().unwrap(),
        _ => {
            let error = created.unwrap_err();
            assert_eq!(error.errno, Some(pipkin_sys::Errno::EEXIST), "{error}");
        }
    }
    nothing_left("undo");
}

#[test]
#[ignore = "run by the tests of each view"]
fn inner_fork_bomb() {
    let (layout, created) = made("bomb", &[]);
    let script = "f() { sleep 0.01 & sleep 0.01 & f & f; }; i=0; \
                  while [ $i -lt 20 ]; do (while :; do (sleep 0.01 &) ; done) & i=$((i+1)); done; wait";
    let mut inside = Inside::start(&created.group, script);
    std::thread::sleep(Duration::from_millis(100));
    created.group.kill_all(9).unwrap();
    inside.wait();
    created
        .group
        .remove(SECOND * 5)
        .unwrap_or_else(|e| panic!("{e} {:?} {:?}", e.hint, layout.kind));
    nothing_left("bomb");
}

#[test]
#[ignore = "run by the tests of each view"]
fn inner_device_rules() {
    use pipkin_spec::resources::DeviceRule;
    let rule = |allow, kind: &str, major, minor, access: &str| DeviceRule {
        allow,
        kind: Some(kind.to_owned()),
        major,
        minor,
        access: Some(access.to_owned()),
    };
    let deny_all = || rule(false, "a", None, None, "rwm");
    let cases = [
        vec![],
        vec![deny_all()],
        vec![deny_all(), rule(true, "c", Some(10), Some(200), "r")],
        vec![
            rule(true, "c", Some(10), None, "r"),
            rule(true, "c", Some(10), Some(200), "w"),
        ],
        vec![rule(true, "a", None, None, "rwm")],
        vec![
            rule(true, "a", None, None, "rwm"),
            rule(false, "c", Some(10), Some(200), "w"),
        ],
        vec![
            rule(true, "c", None, None, "rw"),
            rule(false, "c", Some(10), Some(200), "rw"),
        ],
        vec![
            rule(true, "b", Some(7), None, "rw"),
            rule(false, "b", Some(7), Some(77), "rw"),
        ],
    ];
    let host = Layout::probe().unwrap().host();
    let on_v1 = host.side(Controller::Devices) == Some(Version::V1);
    let nodes = [
        (devices::Kind::Char, 1, 3),
        (devices::Kind::Char, 1, 4),
        (devices::Kind::Char, 10, 200),
        (devices::Kind::Char, 10, 777),
        (devices::Kind::Block, 7, 77),
        (devices::Kind::Block, 7, 78),
    ];
    let dir = common::Nodes::make(&nodes);
    for rules in cases {
        let policy = devices::policy(&rules).unwrap();
        let writes = match (on_v1, policy.v1_writes()) {
            (true, Ok(writes)) => writes,
            (true, Err(_)) => continue,
            (false, _) => Vec::new(),
        };
        let (_, created) = made("devices", &writes);
        if !on_v1 {
            // Twice: the second takes the first one's place.
            let everything = devices::policy(&[rule(true, "a", None, None, "rwm")]).unwrap();
            created.group.attach_devices(&everything.program()).unwrap();
            created.group.attach_devices(&policy.program()).unwrap();
        }
        let got = dir.try_all(&created.group);
        let want = dir.expect(&policy);
        assert_eq!(got, want, "{rules:?}");
        created.group.remove(SECOND * 5).unwrap();
    }
    nothing_left("devices");
}

/// Every limit that this view has a controller for reads back as it was written.
#[test]
#[ignore = "run by the tests of each view"]
fn inner_values() {
    let layout = Layout::probe().unwrap();
    let (limits, expect) = limits(&layout.host());
    let writes = writes(&limits, &layout.host()).unwrap();
    let (_, created) = made("values", &writes);
    for (version, controller, file, value) in expect {
        let dir = match version {
            Version::V1 => created.group.v1(controller),
            Version::V2 => created.group.unified(),
        };
        let text = std::fs::read_to_string(dir.unwrap().join(file)).unwrap();
        assert!(
            text.lines().any(|l| l == value),
            "{file}: {text:?}, not {value:?}"
        );
    }
    // An update in the other direction, where the order of the writes is the other way.
    created.group.apply(&writes).unwrap();
    created.group.remove(SECOND).unwrap();
    nothing_left("values");
}

#[test]
#[ignore = "run by the tests of each view"]
fn inner_absent() {
    let layout = Layout::probe().unwrap();
    let host = layout.host();
    let with = |pids| pipkin_spec::Resources {
        pids: Some(pipkin_spec::resources::Pids { limit: Some(pids) }),
        ..Default::default()
    };
    let limits = pipkin_plan::cgroup::normalise(&with(10)).unwrap();
    if host.side(Controller::Pids).is_none() {
        let error = writes(&limits, &host).unwrap_err();
        assert_eq!(error.pointer, "/linux/resources/pids/limit");
        assert!(error.to_string().contains("controller pids"), "{error}");
        // And where the plan believed in it, the kernel's answer is explained.
        let all: Controllers = Controller::ALL.into_iter().collect();
        let believed = pipkin_plan::cgroup::Host {
            v1: Controllers::NONE,
            v2: Some(all),
        };
        let wrong = writes(&limits, &believed).unwrap();
        let location = Location::resolve(Some(&unique("absent")), "id").unwrap();
        let error = create(&layout, &request(&location, &wrong)).unwrap_err();
        assert!(error.to_string().contains("no controller pids"), "{error}");
    }
    let zero = pipkin_plan::cgroup::normalise(&with(0)).unwrap();
    assert_eq!(writes(&zero, &host).unwrap(), []);
    nothing_left("absent");
}

/// Limits that bound each other go up and down in whatever order is right.
#[test]
#[ignore = "run by the tests of each view"]
fn inner_updates() {
    let layout = Layout::probe().unwrap();
    let host = layout.host();
    let plan = |memory: u64, quota: u64, check: bool| {
        let mut text = Vec::new();
        if host.side(Controller::Memory).is_some() {
            let swap = memory * 2;
            text.push(format!(
                r#""memory": {{"limit": {memory}, "swap": {swap}, "checkBeforeUpdate": {check}}}"#
            ));
        }
        if host.side(Controller::Cpu).is_some() {
            text.push(format!(r#""cpu": {{"quota": {quota}, "burst": {quota}}}"#));
        }
        let text = format!("{{{}}}", text.join(","));
        let limits = pipkin_plan::cgroup::normalise(&serde_json::from_str(&text).unwrap());
        writes(&limits.unwrap(), &host).unwrap()
    };
    let (_, created) = made("updates", &plan(64 << 20, 50_000, false));
    let group = &created.group;
    for (memory, quota) in [(256 << 20, 90_000), (32 << 20, 20_000), (512 << 20, 60_000)] {
        group.apply(&plan(memory, quota, true)).unwrap();
        if let Some(dir) = group.v1(Controller::Memory) {
            let text = std::fs::read_to_string(dir.join("memory.memsw.limit_in_bytes")).unwrap();
            assert_eq!(text.trim(), (memory * 2).to_string());
        }
    }
    if host.side(Controller::Memory).is_some() {
        let mut inside = Inside::start(group, "exec sleep 100");
        let error = group.apply(&plan(4096, 20_000, true)).unwrap_err();
        assert!(
            error.to_string().contains("not above what is used"),
            "{error}"
        );
        assert_eq!(
            error.pointer.as_deref(),
            Some("/linux/resources/memory/limit")
        );
        group.kill_all(9).unwrap();
        inside.wait();
    }
    created.undo().unwrap();
    nothing_left("updates");
}

/// A container may make groups deeper than any path can say.
#[test]
#[ignore = "run by the tests of each view"]
fn inner_deep() {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let (_, created) = made("deep", &[]);
    let group = created.group;
    let dir = group.unified().unwrap_or(&group.dirs[0].path);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = openat(rustix::fs::CWD, dir, flags, Mode::empty()).unwrap();
    let name = "a-name-of-some-length".repeat(10);
    for _ in 0..60 {
        mkdirat(&here, &name, Mode::RWXU).unwrap();
        here = openat(&here, &name, flags, Mode::empty()).unwrap();
    }
    drop(here);
    assert_eq!(group.pids().unwrap(), []);
    group.remove(SECOND).unwrap();
    nothing_left("deep");
}

/// Read-only cgroups: no group without limits, an error with some.
#[test]
fn read_only() {
    let all = "for d in /sys/fs/cgroup/*; do mount -o remount,bind,ro \"$d\" || exit 1; done";
    let v2 = "mount -o remount,bind,ro /sys/fs/cgroup";
    match Layout::probe().unwrap().kind {
        Kind::V2 => view(v2, "inner_read_only"),
        Kind::V1 => view(all, "inner_read_only"),
        _ => {
            view(all, "inner_read_only");
            view(
                &format!("mount -t cgroup2 none /sys/fs/cgroup && {v2}"),
                "inner_read_only",
            );
        }
    }
}

#[test]
#[ignore = "run by read_only"]
fn inner_read_only() {
    let layout = Layout::probe().unwrap();
    let location = Location::resolve(Some("/pipkin-test-ro"), "id").unwrap();
    let created = create(&layout, &request(&location, &[])).unwrap();
    assert_eq!(created.group.dirs, []);
    assert!(created.made.is_empty());
    assert_eq!(created.group.pids().unwrap(), []);
    assert!(!created.group.is_frozen().unwrap());
    created.group.kill_all(9).unwrap();
    created.group.freeze(SECOND).unwrap_err();
    created.group.remove(SECOND).unwrap();

    let (limits, _) = limits(&layout.host());
    let writes = writes(&limits, &layout.host()).unwrap();
    let error = create(&layout, &request(&location, &writes)).unwrap_err();
    assert_eq!(error.errno, Some(pipkin_sys::Errno::EROFS), "{error}");
    assert!(error.hint.is_some());
}

#[test]
fn errors_name_file_value_pointer_and_hint() {
    let text = r#"{"cpu": {"cpus": "4000"}}"#;
    let resources: pipkin_spec::Resources = serde_json::from_str(text).unwrap();
    let layout = Layout::probe().unwrap();
    if layout.host().side(Controller::Cpuset) != Some(Version::V1) {
        return;
    }
    let limits = pipkin_plan::cgroup::normalise(&resources).unwrap();
    let writes = writes(&limits, &layout.host()).unwrap();
    let location = Location::resolve(Some(&unique("errors")), "id").unwrap();
    let created = create(&layout, &request(&location, &writes)).unwrap();
    let error = created.group.apply(&writes).unwrap_err();
    assert_eq!(error.pointer.as_deref(), Some("/linux/resources/cpu/cpus"));
    assert_eq!(error.value.as_deref(), Some("4000"));
    assert!(error.path.ends_with("cpuset.cpus"));
    assert!(
        error
            .hint
            .as_ref()
            .unwrap()
            .contains("parent group has \"0"),
        "{:?}",
        error.hint
    );
    created.undo().unwrap();
    nothing_left("errors");
}

/// Whatever the rules, the kernel's verifier takes the program.
#[test]
fn random_programs_load() {
    let mut seed = 7u64;
    let mut next = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for _ in 0..500 {
        let rules: Vec<pipkin_spec::resources::DeviceRule> = (0..next(12))
            .map(|_| pipkin_spec::resources::DeviceRule {
                allow: next(2) == 0,
                kind: Some(["a", "c", "b"][next(3) as usize].to_owned()),
                major: [None, Some(1), Some(10), Some(4095)][next(4) as usize],
                minor: [None, Some(3), Some(31), Some(1_048_575)][next(4) as usize],
                access: Some(["r", "rw", "rwm", "m", "w"][next(5) as usize].to_owned()),
            })
            .collect();
        let program = devices::policy(&rules).unwrap().program();
        let mut log = vec![0; 65536];
        if let Err(errno) = pipkin_sys::bpf::prog_load_cgroup_device(&program, Some(&mut log)) {
            panic!("{errno}: {}\n{rules:?}", String::from_utf8_lossy(&log));
        }
    }
    let errors = [(&[][..], 22), (&[0; 7][..], 22), (&[0; 8][..], 22)];
    for (program, number) in errors {
        let error = pipkin_sys::bpf::prog_load_cgroup_device(program, None).unwrap_err();
        assert_eq!(error.number(), number);
    }
}
