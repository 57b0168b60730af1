//! The files of a group as runc and crun leave them and as pipkin does, for the same
//! configuration. What is not installed is not compared.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[allow(dead_code)]
mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{SECOND, request, unique, view};
use pipkin_plan::cgroup::{devices, normalise, writes};
use pipkin_runtime::cgroup::{Kind, Layout, Location, create};
use serde_json::{Value, json};

/// Files that limit; the rest are counters.
const FILES: [&str; 43] = [
    "blkio.bfq.weight",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.write_iops_device",
    "cgroup.clone_children",
    "cgroup.freeze",
    "cgroup.max.depth",
    "cgroup.max.descendants",
    "cgroup.subtree_control",
    "cgroup.type",
    "cpu.cfs_burst_us",
    "cpu.cfs_period_us",
    "cpu.cfs_quota_us",
    "cpu.idle",
    "cpu.max",
    "cpu.max.burst",
    "cpu.rt_period_us",
    "cpu.rt_runtime_us",
    "cpu.shares",
    "cpu.weight",
    "cpuset.cpus",
    "cpuset.mems",
    "devices.list",
    "freezer.state",
    "hugetlb.2MB.max",
    "hugetlb.2MB.rsvd.max",
    "memory.kmem.tcp.limit_in_bytes",
    "io.bfq.weight",
    "io.max",
    "io.weight",
    "memory.high",
    "memory.limit_in_bytes",
    "memory.low",
    "memory.max",
    "memory.memsw.limit_in_bytes",
    "memory.oom_control",
    "memory.soft_limit_in_bytes",
    "memory.swap.max",
    "memory.swappiness",
    "memory.use_hierarchy",
    "notify_on_release",
    "pids.max",
];

fn cases() -> Vec<Value> {
    let deny = json!({"allow": false, "access": "rwm"});
    let allow = |major: u32, minor: u32| json!({"allow": true, "type": "c", "major": major, "minor": minor, "access": "rwm"});
    vec![
        json!({}),
        json!({"devices": [deny], "pids": {"limit": 2048}}),
        json!({"devices": [deny], "cpu": {"shares": 1024}}),
        json!({
            "devices": [deny, allow(1, 5), allow(1, 3), allow(5, 0),
                {"allow": false, "type": "c", "major": 10, "minor": 229, "access": "rwm"}],
            "memory": {"limit": 67108864, "swap": 134217728, "disableOOMKiller": false},
            "cpu": {"shares": 0, "quota": 50000, "period": 100000},
            "pids": {"limit": 20}, "blockIO": {"weight": 0}
        }),
        json!({"devices": [{"allow": true, "access": "rwm"}], "pids": {"limit": -1}}),
        json!({"devices": [deny, {"allow": true, "type": "b", "major": 8, "access": "r"}, allow(10, 229)]}),
        json!({"memory": {"limit": 67108864, "reservation": 33554432, "swappiness": 10}}),
        json!({"memory": {"limit": 67108864, "swap": -1, "kernelTCP": 33554432}}),
        json!({"memory": {"limit": 67108864, "disableOOMKiller": true}}),
        json!({"cpu": {"shares": 512, "quota": 20000, "period": 10000, "cpus": "0", "mems": "0"}}),
        json!({"cpu": {"quota": -1}, "blockIO": {"weight": 300}}),
    ]
}

fn bundle(dir: &Path, resources: &Value, cgroups_path: &str) {
    std::fs::create_dir_all(dir.join("rootfs/bin")).unwrap();
    for sub in ["proc", "dev", "sys"] {
        std::fs::create_dir_all(dir.join("rootfs").join(sub)).unwrap();
    }
    let namespaces = ["pid", "mount", "ipc", "uts"].map(|kind| json!({"type": kind}));
    let config = json!({
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs"},
        "process": {"args": ["/bin/true"], "cwd": "/", "env": ["PATH=/bin"],
            "user": {"uid": 0, "gid": 0}},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {"cgroupsPath": cgroups_path, "resources": resources,
            "namespaces": namespaces},
    });
    std::fs::write(dir.join("config.json"), config.to_string()).unwrap();
    // It is looked up and never executed.
    std::fs::copy(
        std::env::current_exe().unwrap(),
        dir.join("rootfs/bin/true"),
    )
    .unwrap();
}

/// File by hierarchy and name, with its lines in order.
fn snapshot(path: &str) -> BTreeMap<String, Vec<String>> {
    let layout = Layout::probe().unwrap();
    let mut all = BTreeMap::new();
    for hierarchy in layout.v1.iter().chain(&layout.v2) {
        let dir = hierarchy.mount.join(path.trim_start_matches('/'));
        for file in FILES {
            if let Ok(text) = std::fs::read_to_string(dir.join(file)) {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                // This counter stands beside the switch.
                lines.retain(|l| !l.starts_with("under_oom") && !l.starts_with("oom_kill "));
                lines.sort();
                all.insert(format!("{}/{file}", hierarchy.name), lines);
            }
        }
    }
    all
}

fn theirs(runtime: &str, dir: &Path, path: &str) -> BTreeMap<String, Vec<String>> {
    let id = format!("pipkin-oracle-{}", path.trim_start_matches("/pipkin-test-"));
    let output = Command::new(runtime)
        .args(["create", "--bundle"])
        .arg(dir)
        .arg(&id)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(dir.join("stderr")).unwrap())
        .status()
        .unwrap();
    let seen = snapshot(path);
    let _ = Command::new(runtime)
        .args(["delete", "--force", &id])
        .output();
    let text = std::fs::read_to_string(dir.join("stderr")).unwrap();
    assert!(output.success(), "{runtime}: {text}");
    seen
}

fn ours(resources: &Value, path: &str) -> BTreeMap<String, Vec<String>> {
    let resources: pipkin_spec::Resources = serde_json::from_value(resources.clone()).unwrap();
    let layout = Layout::probe().unwrap();
    let limits = normalise(&resources).unwrap();
    let mut all = writes(&limits, &layout.host()).unwrap();
    if layout.kind != Kind::V2 {
        let policy = devices::policy(&resources.devices).unwrap();
        all.extend(policy.v1_writes().unwrap());
    }
    let location = Location::resolve(Some(path), "id").unwrap();
    let created = create(&layout, &request(&location, &all)).unwrap();
    created.group.apply(&all).unwrap();
    let seen = snapshot(path);
    created.group.remove(SECOND).unwrap();
    seen
}

/// What differs on purpose, or in form only.
fn even_out(runtime: &str, resources: &Value, files: &mut BTreeMap<String, Vec<String>>) {
    if runtime == "crun" && resources.get("devices").is_none() {
        // crun allows everything to who says nothing about devices; runc and we deny.
        files.remove("devices/devices.list");
    }
    if runtime == "runc" {
        // runc takes kernelTCP and drops it.
        files.remove("memory/memory.kmem.tcp.limit_in_bytes");
    }
    // Both of Debian 12 convert shares by the older formula: see convert::shares_to_weight.
    files.remove("/cpu.weight");
    let Some(list) = files.get_mut("devices/devices.list") else {
        return;
    };
    // runc adds the tun device and leaves out the console: see devices::policy.
    list.retain(|l| !(l == "c 10:200 rwm" || l == "c 5:1 rwm"));
    // crun's default list comes on top of what is allowed anyway.
    if list.iter().any(|l| l.starts_with("a ")) {
        list.retain(|l| l.starts_with("a "));
    }
    // Whether a rule repeats that every node may be made makes no difference.
    for line in list.iter_mut().filter(|l| !l.ends_with('m')) {
        line.push('m');
    }
}

fn compare(runtime: &str) {
    let installed = Command::new(runtime).arg("--version").output().is_ok();
    if !installed {
        println!("{runtime} is not installed");
        return;
    }
    let dir: PathBuf = std::env::temp_dir().join(format!("pipkin-oracle-{runtime}"));
    let path = unique(runtime);
    for resources in cases() {
        let refused = resources["pids"]["limit"] == -1 || resources["blockIO"]["weight"] == 300;
        if runtime == "crun" && refused {
            // Debian 12's crun writes "-1" into pids.max, which the kernel refuses, and
            // knows no weight but CFQ's.
            continue;
        }
        let parsed: pipkin_spec::Resources = serde_json::from_value(resources.clone()).unwrap();
        if writes(
            &normalise(&parsed).unwrap(),
            &Layout::probe().unwrap().host(),
        )
        .is_err()
        {
            // What this side cannot express is refused: tested with the plan.
            continue;
        }
        bundle(&dir, &resources, &path);
        let mut theirs = theirs(runtime, &dir, &path);
        let mut ours = ours(&resources, &path);
        even_out(runtime, &resources, &mut theirs);
        even_out(runtime, &resources, &mut ours);
        let differences: Vec<String> = ours
            .keys()
            .chain(theirs.keys())
            .filter(|k| ours.get(*k) != theirs.get(*k))
            .map(|k| {
                format!(
                    "{k}: {runtime} {:?}, pipkin {:?}",
                    theirs.get(k),
                    ours.get(k)
                )
            })
            .collect();
        assert_eq!(differences, Vec::<String>::new(), "{resources}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn same_as_runc() {
    view("true", "inner_runc");
}

/// Debian's crun refuses hybrid.
#[test]
fn same_as_crun() {
    let hybrid = Layout::probe().unwrap().kind == Kind::Hybrid;
    view(
        if hybrid {
            "umount /sys/fs/cgroup/unified"
        } else {
            "true"
        },
        "inner_crun",
    );
}

#[test]
#[ignore = "run by same_as_runc"]
fn inner_runc() {
    compare("runc");
}

#[test]
#[ignore = "run by same_as_crun"]
fn inner_crun() {
    compare("crun");
}
