//! Limits: what is asked for is what the kernel has, and the same as runc asks it for.

use pipkin_tests::bundle::ENGINES;
use pipkin_tests::container::wait_for_text;
use pipkin_tests::{Bundle, Container, Runtime, Scratch, Snapshot, View, host};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The files that a runtime writes to; the ones that exist are read.
const FILES: &[&str] = &[
    "memory.limit_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.kmem.tcp.limit_in_bytes",
    "memory.swappiness",
    "memory.oom_control",
    "memory.use_hierarchy",
    "cpu.shares",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "cpu.cfs_burst_us",
    "cpu.rt_runtime_us",
    "cpu.idle",
    "cpuset.cpus",
    "cpuset.mems",
    "cpuset.cpu_exclusive",
    "pids.max",
    "devices.list",
    "blkio.weight",
    "blkio.bfq.weight",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_iops_device",
    "freezer.state",
    "hugetlb.2MB.max",
    "memory.max",
    "memory.swap.max",
    "memory.low",
    "memory.high",
    "cpu.weight",
    "cpu.max",
    "io.weight",
    "io.bfq.weight",
];

type Files = BTreeMap<String, String>;

/// The limits in the container's group in every hierarchy, by file name.
fn read(bundle: &Bundle) -> Files {
    let mut found = Files::new();
    for top in host::cgroup_hierarchies() {
        let group = top.join(bundle.cgroup.trim_start_matches('/'));
        for file in FILES {
            if let Ok(text) = fs::read_to_string(group.join(file)) {
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort_unstable();
                found.insert((*file).to_owned(), lines.join("\n"));
            }
        }
    }
    found
}

/// The limits that a runtime sets for a change of an engine's configuration.
fn set_by(runtime: &Runtime, engine: &str, change: &dyn Fn(&mut Bundle)) -> Files {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, engine, &["/bin/sleep", "300"]);
    change(&mut bundle);
    bundle.write();
    let container = Container::started(&scratch, runtime, &bundle);
    let files = read(&bundle);
    let group = bundle.cgroup.clone();
    let pid = container.pid();
    let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("cgroup");
    assert!(
        membership.lines().any(|line| line.ends_with(&group)),
        "not in {group}: {membership}"
    );
    container.end();
    assert!(!files.is_empty(), "{runtime:?}: no group {group}");
    files
}

/// pipkin sets what runc sets; the result is returned to be looked at further. Devices
/// are compared elsewhere: the oracles differ in what they allow beyond what is asked for.
#[track_caller]
fn same_as_runc(engine: &str, change: &dyn Fn(&mut Bundle)) -> Files {
    let mut ours = set_by(&Runtime::pipkin(), engine, change);
    let mut theirs = set_by(&Runtime::runc(), engine, change);
    ours.remove("devices.list");
    theirs.remove("devices.list");
    // A hierarchy beside the others has its controllers on or off; off is unlimited.
    let unlimited = |value: &str| value == "max" || value.starts_with("92233720368547");
    ours.retain(|name, value| theirs.contains_key(name) || !unlimited(value));
    assert_eq!(ours, theirs, "{engine}");
    ours
}

/// The value of the first of these files that the machine has.
#[track_caller]
fn expect(files: &Files, names: &[&str], value: &str) {
    let found = names
        .iter()
        .find_map(|name| files.get(*name).map(|value| (name, value)));
    let (name, found) = found.unwrap_or_else(|| panic!("none of {names:?} in {files:?}"));
    assert_eq!(found, value, "{name}");
}

#[test]
fn what_the_engines_ask_for() {
    for engine in ENGINES {
        same_as_runc(engine, &|_| {});
    }
}

#[test]
fn devices_are_those_of_one_of_the_oracles() {
    for engine in ENGINES {
        let [ours, runc, crun] = [Runtime::pipkin(), Runtime::runc(), Runtime::crun()]
            .map(|runtime| set_by(&runtime, engine, &|_| {}).remove("devices.list"));
        assert!(
            ours == runc || ours == crun,
            "{engine}: {ours:?}, runc {runc:?}, crun {crun:?}"
        );
    }
}

#[test]
fn every_limit() {
    let files = same_as_runc("podman", &|bundle| {
        bundle.set(
            "/linux/resources",
            json!({
                "devices": [{ "allow": false, "access": "rwm" }],
                "memory": { "limit": 67108864, "swap": 134217728, "reservation": 33554432,
                    "swappiness": 10, "disableOOMKiller": true },
                "cpu": { "shares": 512, "quota": 50000, "period": 200000, "cpus": "0", "mems": "0" },
                "pids": { "limit": 99 }
            }),
        );
    });
    expect(&files, &["memory.limit_in_bytes", "memory.max"], "67108864");
    expect(
        &files,
        &["memory.soft_limit_in_bytes", "memory.low"],
        "33554432",
    );
    expect(&files, &["pids.max"], "99");
    expect(&files, &["cpuset.cpus"], "0");
    if files.contains_key("cpu.shares") {
        expect(&files, &["memory.memsw.limit_in_bytes"], "134217728");
        expect(&files, &["cpu.shares"], "512");
        expect(&files, &["cpu.cfs_quota_us"], "50000");
        expect(&files, &["cpu.cfs_period_us"], "200000");
        expect(&files, &["memory.swappiness"], "10");
        assert!(
            files["memory.oom_control"].contains("oom_kill_disable 1"),
            "{files:?}"
        );
    } else {
        expect(&files, &["memory.swap.max"], "67108864");
        expect(&files, &["cpu.max"], "50000 200000");
    }
}

#[test]
fn a_burst_of_the_processors() {
    // runc of Debian 12 does not know it yet.
    let files = set_by(&Runtime::pipkin(), "podman", &|bundle| {
        bundle.set(
            "/linux/resources/cpu",
            json!({ "quota": 50000, "period": 100000, "burst": 20000 }),
        );
    });
    expect(&files, &["cpu.cfs_burst_us", "cpu.max.burst"], "20000");
}

#[test]
fn weight_of_block_devices() {
    let files = same_as_runc("podman", &|bundle| {
        bundle.set("/linux/resources/blockIO", json!({ "weight": 200 }));
    });
    expect(
        &files,
        &[
            "blkio.weight",
            "blkio.bfq.weight",
            "io.bfq.weight",
            "io.weight",
        ],
        "200",
    );
}

#[test]
fn throttled_block_devices() {
    let files = same_as_runc("podman", &|bundle| {
        bundle.set(
            "/linux/resources/blockIO",
            json!({
                "throttleReadBpsDevice": [{ "major": 254, "minor": 0, "rate": 1048576 }],
                "throttleWriteIOPSDevice": [{ "major": 254, "minor": 0, "rate": 100 }]
            }),
        );
    });
    if files.contains_key("blkio.throttle.read_bps_device") {
        expect(&files, &["blkio.throttle.read_bps_device"], "254:0 1048576");
        expect(&files, &["blkio.throttle.write_iops_device"], "254:0 100");
    }
}

#[test]
fn zero_is_unset() {
    let plain = same_as_runc("podman", &|bundle| {
        bundle.remove("/linux/resources/pids");
    });
    let zeros = same_as_runc("podman", &|bundle| {
        bundle.set(
            "/linux/resources/memory",
            json!({ "limit": 0, "swap": 0, "reservation": 0 }),
        );
        bundle.set(
            "/linux/resources/cpu",
            json!({ "shares": 0, "quota": 0, "period": 0, "cpus": "", "mems": "" }),
        );
        bundle.set("/linux/resources/pids", json!({ "limit": 0 }));
        bundle.set("/linux/resources/blockIO", json!({ "weight": 0 }));
        bundle.set("/linux/resources/hugepageLimits", json!([]));
    });
    assert_eq!(zeros, plain);
}

#[test]
fn minus_one_is_unlimited() {
    let files = same_as_runc("podman", &|bundle| {
        bundle.set(
            "/linux/resources/memory",
            json!({ "limit": -1, "swap": -1 }),
        );
        bundle.set("/linux/resources/cpu", json!({ "quota": -1 }));
        bundle.set("/linux/resources/pids", json!({ "limit": -1 }));
    });
    expect(&files, &["pids.max"], "max");
}

#[test]
fn a_limit_that_the_kernel_refuses_names_its_place() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    for (pointer, value) in [
        ("/linux/resources/cpu/cpus", json!("900-901")),
        ("/linux/resources/cpu/period", json!(1)),
        ("/linux/resources/memory/swap", json!(4096)),
        ("/linux/resources/blockIO/weight", json!(7)),
    ] {
        let mut bundle = Bundle::new(&scratch, "docker", &["/bin/true"]);
        bundle.set(pointer, value).write();
        let container = Container::named(&scratch, &runtime);
        let finished = container.command(&["run", "-b", bundle.path()]).fails();
        // The member, or the object that it is in.
        finished.says(&[pointer.rsplit_once('/').expect("a pointer").0]);
        before.assert_unchanged(&scratch, pointer);
    }
}

#[test]
fn the_unified_hierarchy_beside_version_1() {
    if host::unified_besides_v1().is_none() {
        // On other machines the same files are covered by `every_limit`.
        assert!(
            !host::cgroup_hierarchies().is_empty(),
            "no control groups at all"
        );
        return;
    }
    let files = set_by(&Runtime::pipkin(), "podman", &|bundle| {
        bundle.set(
            "/linux/resources/hugepageLimits",
            json!([{ "pageSize": "2MB", "limit": 4194304 }]),
        );
    });
    expect(
        &files,
        &["hugetlb.2MB.limit_in_bytes", "hugetlb.2MB.max"],
        "4194304",
    );
}

#[test]
fn unified_values_are_written_as_they_stand() {
    let runtime = Runtime::pipkin().seeing(View::OnlyUnified);
    let files = set_by(&runtime, "containerd", &|bundle| {
        bundle.set(
            "/linux/resources",
            json!({ "unified": { "hugetlb.2MB.max": "6291456" } }),
        );
    });
    expect(&files, &["hugetlb.2MB.max"], "6291456");
    let scratch = Scratch::new();
    let before = Snapshot::take(&scratch);
    for name in ["nobody.max", "../../cgroup.freeze", "/etc/passwd", ""] {
        let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
        bundle
            .set("/linux/resources", json!({ "unified": { name: "1" } }))
            .write();
        let container = Container::named(&scratch, &runtime);
        let finished = container.command(&["run", "-b", bundle.path()]).fails();
        finished.says(&["/linux/resources/unified"]);
        before.assert_unchanged(&scratch, name);
    }
}

#[test]
fn version_2_alone() {
    for runtime in [Runtime::pipkin(), Runtime::runc()] {
        let runtime = runtime.seeing(View::OnlyUnified);
        let scratch = Scratch::new();
        let before = Snapshot::take(&scratch);
        let mut bundle = Bundle::new(&scratch, "podman", &["/probe"]);
        bundle.with_probe().remove("/linux/resources/pids").write();
        let container = Container::named(&scratch, &runtime);
        let seen = container.command(&["run", "-b", bundle.path()]).ok().json();
        assert_eq!(
            seen["mounts"]["/sys/fs/cgroup"]["type"], "cgroup2",
            "{runtime:?}"
        );
        assert_eq!(seen["cgroup"]["membership"]["unified"], "/", "{runtime:?}");
        assert_eq!(seen["trials"]["write /dev/null"], "ok", "{runtime:?}");
        before.assert_unchanged(&scratch, "a run with version 2");
    }
}

#[test]
fn devices_of_version_2() {
    // CAP_MKNOD is docker's default, so only the control group stands in the way.
    for runtime in [Runtime::pipkin(), Runtime::runc()] {
        let runtime = runtime.seeing(View::OnlyUnified);
        let scratch = Scratch::new();
        let mut bundle = Bundle::new(&scratch, "docker", &["/probe"]);
        let devices = bundle.config["linux"]["resources"]["devices"].clone();
        bundle
            .with_probe()
            .set("/linux/resources", json!({ "devices": devices }))
            .write();
        let container = Container::named(&scratch, &runtime);
        let seen = container.command(&["run", "-b", bundle.path()]).ok().json();
        for (trial, open) in [
            ("open null", "ok"),
            ("open fuse", "EPERM"),
            ("open disk", "EPERM"),
            ("open device", "EPERM"),
        ] {
            assert_eq!(
                seen["trials"][trial],
                json!({ "make": "ok", "open": open }),
                "{trial} {runtime:?}"
            );
        }
    }
}

#[test]
fn a_limit_without_its_controller_is_an_error() {
    // Here the unified hierarchy has neither memory nor pids.
    let runtime = Runtime::pipkin().seeing(View::OnlyUnified);
    let scratch = Scratch::new();
    let before = Snapshot::take(&scratch);
    let top = host::mount_points("cgroup2");
    let controllers = top
        .first()
        .and_then(|top| fs::read_to_string(top.join("cgroup.controllers")).ok())
        .unwrap_or_default();
    for (controller, limit) in [
        ("memory", json!({ "limit": 67108864 })),
        ("pids", json!({ "limit": 10 })),
    ] {
        let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
        bundle
            .set("/linux/resources", json!({}))
            .set(&format!("/linux/resources/{controller}"), limit);
        bundle.write();
        let run = Container::named(&scratch, &runtime).command(&["run", "-b", bundle.path()]);
        if controllers
            .split_whitespace()
            .any(|name| name == controller)
        {
            run.ok();
        } else {
            run.fails()
                .says(&[&format!("/linux/resources/{controller}"), controller]);
        }
        before.assert_unchanged(&scratch, controller);
    }
}

#[test]
fn paths_of_each_form() {
    for form in ["relative", "absolute", "none"] {
        let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
        let before = Snapshot::take(&scratch);
        let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/sleep", "300"]);
        let name = format!("{}/deep/er", scratch.token());
        match form {
            "relative" => bundle.set("/linux/cgroupsPath", json!(name)),
            "absolute" => bundle.set("/linux/cgroupsPath", json!(format!("/{name}"))),
            _ => bundle.remove("/linux/cgroupsPath"),
        };
        bundle.write();
        let container = Container::started(&scratch, &runtime, &bundle);
        let membership = fs::read_to_string(format!("/proc/{}/cgroup", container.pid()));
        let membership = membership.expect("cgroup");
        let wanted = if form == "none" {
            container.id.clone()
        } else {
            name
        };
        for line in membership.lines() {
            let path = line.splitn(3, ':').nth(2).expect("a path");
            assert!(
                path.starts_with('/') && path.ends_with(&wanted),
                "{form}: {membership}"
            );
        }
        container.end();
        let left: Vec<PathBuf> = scratch
            .cgroups()
            .into_iter()
            .filter(|path| path.ends_with(&wanted))
            .collect();
        assert!(left.is_empty(), "{form}: {left:?}");
        if form == "none" {
            before.assert_unchanged(&scratch, "no cgroupsPath");
        }
    }
}

#[test]
fn groups_made_inside_go_with_the_container() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let mut bundle = Bundle::new(&scratch, "docker", &[]);
    bundle
        .namespace("cgroup", None)
        .without_mount("/sys/fs/cgroup");
    bundle.mount(
        "cgroup",
        "cgroup",
        "/sys/fs/cgroup",
        &["nosuid", "noexec", "nodev"],
    );
    bundle.shell(
        "mkdir -p /sys/fs/cgroup/pids/a/b /sys/fs/cgroup/a && echo made >/log; exec sleep 300",
    );
    bundle.write();
    let container = Container::started(&scratch, &runtime, &bundle);
    wait_for_text(&bundle.rootfs().join("log"), "made");
    container.end();
    before.assert_unchanged(&scratch, "groups made inside");
}

#[test]
fn a_frozen_container_can_be_deleted() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let before = Snapshot::take(&scratch);
    let bundle = Bundle::new(&scratch, "podman", &["/bin/sleep", "300"]);
    let container = Container::started(&scratch, &runtime, &bundle);
    let mut frozen = false;
    for top in host::cgroup_hierarchies() {
        let group = top.join(bundle.cgroup.trim_start_matches('/'));
        frozen |= fs::write(group.join("freezer.state"), "FROZEN").is_ok();
        frozen |= fs::write(group.join("cgroup.freeze"), "1").is_ok();
    }
    assert!(frozen, "nothing to freeze with");
    container.command(&["delete", "--force"]).ok();
    scratch.reap();
    before.assert_unchanged(&scratch, "delete --force of a frozen container");
}
