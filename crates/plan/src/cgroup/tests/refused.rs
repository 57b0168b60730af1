//! What is refused, and where it says that it stands.

use super::limits::limits;
use crate::cgroup::{Controller, Controllers, Host, Version, controllers, normalise, writes};

#[test]
fn wrong_values() {
    let cases = [
        (r#"{"memory": {"limit": -2}}"#, "memory/limit"),
        (r#"{"memory": {"reservation": -5}}"#, "memory/reservation"),
        (r#"{"memory": {"limit": 100, "swap": 99}}"#, "memory/swap"),
        (r#"{"memory": {"swap": 99}}"#, "memory/swap"),
        (r#"{"memory": {"limit": -1, "swap": 99}}"#, "memory/swap"),
        (r#"{"memory": {"swappiness": 101}}"#, "memory/swappiness"),
        (
            r#"{"memory": {"swappiness": 18446744073709551615}}"#,
            "memory/swappiness",
        ),
        (r#"{"cpu": {"quota": 999}}"#, "cpu/quota"),
        (r#"{"cpu": {"quota": -3}}"#, "cpu/quota"),
        (r#"{"cpu": {"period": 999}}"#, "cpu/period"),
        (r#"{"cpu": {"period": 1000001}}"#, "cpu/period"),
        (r#"{"cpu": {"quota": 1000, "burst": 1001}}"#, "cpu/burst"),
        (r#"{"cpu": {"idle": 2}}"#, "cpu/idle"),
        (r#"{"cpu": {"cpus": "3-1"}}"#, "cpu/cpus"),
        (r#"{"cpu": {"cpus": "0,a"}}"#, "cpu/cpus"),
        (r#"{"cpu": {"cpus": "0-7:3/2"}}"#, "cpu/cpus"),
        (r#"{"cpu": {"mems": "-1"}}"#, "cpu/mems"),
        (r#"{"pids": {"limit": -7}}"#, "pids/limit"),
        (r#"{"blockIO": {"weight": 9}}"#, "blockIO/weight"),
        (r#"{"blockIO": {"leafWeight": 1001}}"#, "blockIO/leafWeight"),
        (
            r#"{"blockIO": {"weightDevice": [{"major": 8, "minor": -1, "weight": 10}]}}"#,
            "blockIO/weightDevice/0/minor",
        ),
        (
            r#"{"blockIO": {"weightDevice": [{"major": 8, "minor": 0}, {"major": 8, "minor": 0, "weight": 1}]}}"#,
            "blockIO/weightDevice/1/weight",
        ),
        (
            r#"{"blockIO": {"throttleReadIOPSDevice": [{"major": 9999999999, "minor": 0, "rate": 1}]}}"#,
            "blockIO/throttleReadIOPSDevice/0/major",
        ),
        (
            r#"{"hugepageLimits": [{"pageSize": "2mb", "limit": 1}]}"#,
            "hugepageLimits/0/pageSize",
        ),
        (
            r#"{"hugepageLimits": [{"pageSize": "../MB", "limit": 1}]}"#,
            "hugepageLimits/0/pageSize",
        ),
        (
            r#"{"network": {"priorities": [{"name": "a b", "priority": 1}]}}"#,
            "network/priorities/0/name",
        ),
        (r#"{"rdma": {"a/b": {"hcaHandles": 1}}}"#, "rdma/a~1b"),
        (r#"{"rdma": {"mlx": {}}}"#, "rdma/mlx"),
        (
            r#"{"unified": {"../memory.max": "1"}}"#,
            "unified/..~1memory.max",
        ),
        (r#"{"unified": {"": "1"}}"#, "unified/"),
        (r#"{"unified": {"..": "1"}}"#, "unified/.."),
        (r#"{"unified": {"tasks": "1"}}"#, "unified/tasks"),
        (
            r#"{"unified": {"cgroup.procs": "0"}}"#,
            "unified/cgroup.procs",
        ),
        (
            r#"{"unified": {"cgroup.freeze": "1"}}"#,
            "unified/cgroup.freeze",
        ),
        (
            r#"{"unified": {"memory.max": "1\u0000"}}"#,
            "unified/memory.max",
        ),
    ];
    for (json, place) in cases {
        let error = normalise(&serde_json::from_str(json).unwrap()).expect_err(json);
        assert_eq!(error.pointer, format!("/linux/resources/{place}"), "{json}");
        assert!(error.hint.is_some(), "{json}");
    }
}

#[test]
fn lists_of_the_kernels_format() {
    for list in [
        "0",
        "0-3",
        "0,2-4,7",
        "all",
        "0-N",
        "N",
        "0-31:2/4",
        "0-31:2/4,40",
        " 0 ",
        "all:1/2",
    ] {
        let json = format!(r#"{{"cpu": {{"cpus": "{list}"}}}}"#);
        assert_eq!(limits(&json).cpu.cpus.as_deref(), Some(list.trim()));
    }
}

#[test]
fn each_controller_on_its_side() {
    let limits = limits(
        r#"{"pids": {"limit": 5}, "hugepageLimits": [{"pageSize": "2MB", "limit": 0}],
            "unified": {"hugetlb.1GB.max": "0", "cgroup.max.depth": "3", "newer.max": "1"}}"#,
    );
    let v1 = Controllers::NONE
        .with(Controller::Pids)
        .with(Controller::Memory);
    let hybrid = Host {
        v1,
        v2: Some(Controllers::NONE.with(Controller::Hugetlb)),
    };
    let all = writes(&limits, &hybrid).unwrap();
    let sides: Vec<_> = all.iter().map(|w| (w.version, w.file.as_ref())).collect();
    assert_eq!(
        sides,
        [
            (Version::V1, "pids.max"),
            (Version::V2, "hugetlb.2MB.max"),
            (Version::V2, "hugetlb.2MB.rsvd.max"),
            (Version::V2, "cgroup.max.depth"),
            (Version::V2, "hugetlb.1GB.max"),
            (Version::V2, "newer.max"),
        ]
    );
    assert_eq!(
        controllers(&all, Version::V2),
        Controllers::NONE.with(Controller::Hugetlb)
    );

    let none = Host::default();
    let error = writes(&limits, &none).unwrap_err();
    assert_eq!(error.pointer, "/linux/resources/pids/limit");
    assert!(error.hint.unwrap().contains("no cgroup controller"));
}

#[test]
fn a_controller_on_the_other_side() {
    let limits = limits(r#"{"unified": {"memory.high": "5"}}"#);
    let v1 = Controllers::NONE.with(Controller::Memory);
    let hybrid = Host {
        v1,
        v2: Some(Controllers::NONE.with(Controller::Hugetlb)),
    };
    let error = writes(&limits, &hybrid).unwrap_err();
    assert!(error.message.contains("v1 side"), "{error}");
    let pure = Host { v1, v2: None };
    let error = writes(&limits, &pure).unwrap_err();
    assert!(error.message.contains("not mounted"), "{error}");
}

#[test]
fn names() {
    for controller in Controller::ALL {
        assert_eq!(
            Controller::from_name(controller.name(Version::V1)),
            Some(controller)
        );
        assert_eq!(
            Controller::from_name(controller.name(Version::V2)),
            Some(controller)
        );
    }
    assert_eq!(
        Controllers::parse("cpu,cpuacct unknown\nio").iter().count(),
        3
    );
}
