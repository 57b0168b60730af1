//! Each field: what is written on v1 and on v2.

use crate::cgroup::{Limits, Write, convert, normalise, v1_writes, v2_writes};

pub(super) fn limits(json: &str) -> Limits {
    normalise(&serde_json::from_str(json).unwrap()).unwrap()
}

fn lines(writes: &[Write]) -> Vec<String> {
    writes
        .iter()
        .map(|w| format!("{}={}", w.file, w.value))
        .collect()
}

/// (configuration, v1 writes, v2 writes)
type Case = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const BOTH: [Case; 31] = [
    // What engines write for "not set".
    ("{}", &[], &[]),
    (
        r#"{"memory": {"limit": 0, "swap": 0, "reservation": 0, "kernel": 0, "kernelTCP": 0,
            "disableOOMKiller": false, "checkBeforeUpdate": false},
            "cpu": {"shares": 0, "quota": 0, "period": 0, "realtimeRuntime": 0,
            "realtimePeriod": 0, "cpus": "", "mems": ""}, "pids": {"limit": 0},
            "blockIO": {"weight": 0, "leafWeight": 0, "weightDevice": null},
            "network": {"classID": 0, "priorities": []}, "hugepageLimits": [], "rdma": {},
            "unified": null}"#,
        &[],
        &[],
    ),
    (
        r#"{"pids": {"limit": 20}}"#,
        &["pids.max=20"],
        &["pids.max=20"],
    ),
    (
        r#"{"pids": {"limit": -1}}"#,
        &["pids.max=max"],
        &["pids.max=max"],
    ),
    (
        r#"{"memory": {"limit": 67108864}}"#,
        &["memory.limit_in_bytes=67108864"],
        &["memory.max=67108864"],
    ),
    (
        r#"{"memory": {"limit": -1}}"#,
        &["memory.limit_in_bytes=-1", "memory.memsw.limit_in_bytes=-1"],
        &["memory.swap.max=max", "memory.max=max"],
    ),
    (
        r#"{"memory": {"limit": 100, "swap": 300}}"#,
        &[
            "memory.limit_in_bytes=100",
            "memory.memsw.limit_in_bytes=300",
        ],
        &["memory.swap.max=200", "memory.max=100"],
    ),
    (
        r#"{"memory": {"limit": 100, "swap": 100}}"#,
        &[
            "memory.limit_in_bytes=100",
            "memory.memsw.limit_in_bytes=100",
        ],
        &["memory.swap.max=0", "memory.max=100"],
    ),
    (
        r#"{"memory": {"limit": 100, "swap": -1}}"#,
        &[
            "memory.limit_in_bytes=100",
            "memory.memsw.limit_in_bytes=-1",
        ],
        &["memory.swap.max=max", "memory.max=100"],
    ),
    (
        r#"{"memory": {"swap": -1}}"#,
        &["memory.memsw.limit_in_bytes=-1"],
        &["memory.swap.max=max"],
    ),
    (
        r#"{"memory": {"reservation": 50}}"#,
        &["memory.soft_limit_in_bytes=50"],
        &["memory.low=50"],
    ),
    (
        r#"{"memory": {"reservation": -1, "useHierarchy": true}}"#,
        &["memory.use_hierarchy=1", "memory.soft_limit_in_bytes=-1"],
        &["memory.low=max"],
    ),
    (
        r#"{"cpu": {"shares": 2}}"#,
        &["cpu.shares=2"],
        &["cpu.weight=1"],
    ),
    (
        r#"{"cpu": {"shares": 1024}}"#,
        &["cpu.shares=1024"],
        &["cpu.weight=100"],
    ),
    (
        r#"{"cpu": {"shares": 1}}"#,
        &["cpu.shares=2"],
        &["cpu.weight=1"],
    ),
    (
        r#"{"cpu": {"shares": 999999}}"#,
        &["cpu.shares=262144"],
        &["cpu.weight=10000"],
    ),
    (
        r#"{"cpu": {"quota": 50000, "period": 200000}}"#,
        &["cpu.cfs_period_us=200000", "cpu.cfs_quota_us=50000"],
        &["cpu.max=50000 200000"],
    ),
    (
        r#"{"cpu": {"quota": 50000}}"#,
        &["cpu.cfs_quota_us=50000"],
        &["cpu.max=50000 100000"],
    ),
    (
        r#"{"cpu": {"quota": -1}}"#,
        &["cpu.cfs_quota_us=-1"],
        &["cpu.max=max 100000"],
    ),
    (
        r#"{"cpu": {"period": 50000}}"#,
        &["cpu.cfs_period_us=50000"],
        &["cpu.max=max 50000"],
    ),
    (
        r#"{"cpu": {"quota": 50000, "burst": 1000}}"#,
        &["cpu.cfs_quota_us=50000", "cpu.cfs_burst_us=1000"],
        &["cpu.max=50000 100000", "cpu.max.burst=1000"],
    ),
    (
        r#"{"cpu": {"idle": 1, "shares": 512}}"#,
        &["cpu.idle=1"],
        &["cpu.idle=1"],
    ),
    (
        r#"{"cpu": {"idle": 0, "shares": 512}}"#,
        &["cpu.idle=0", "cpu.shares=512"],
        &["cpu.idle=0", "cpu.weight=59"],
    ),
    (
        r#"{"cpu": {"cpus": "0-3,7", "mems": "0"}}"#,
        &["cpuset.cpus=0-3,7", "cpuset.mems=0"],
        &["cpuset.cpus=0-3,7", "cpuset.mems=0"],
    ),
    (
        r#"{"blockIO": {"weight": 500}}"#,
        &["blkio.weight=500"],
        &["io.bfq.weight=500"],
    ),
    (
        r#"{"blockIO": {"weightDevice": [{"major": 8, "minor": 0, "weight": 0},
            {"major": 8, "minor": 16, "weight": 300}]}}"#,
        &["blkio.weight_device=8:16 300"],
        &["io.bfq.weight=8:16 300"],
    ),
    (
        r#"{"blockIO": {
            "throttleReadBpsDevice": [{"major": 8, "minor": 0, "rate": 1000}],
            "throttleWriteBpsDevice": [{"major": 8, "minor": 16, "rate": 5},
                {"major": 8, "minor": 0, "rate": 0}],
            "throttleReadIOPSDevice": [{"major": 8, "minor": 0, "rate": 30}],
            "throttleWriteIOPSDevice": [{"major": 8, "minor": 16, "rate": 40}]}}"#,
        &[
            "blkio.throttle.read_bps_device=8:0 1000",
            "blkio.throttle.write_bps_device=8:0 0",
            "blkio.throttle.read_iops_device=8:0 30",
            "blkio.throttle.write_bps_device=8:16 5",
            "blkio.throttle.write_iops_device=8:16 40",
        ],
        &[
            "io.max=8:0 rbps=1000 wbps=max riops=30",
            "io.max=8:16 wbps=5 wiops=40",
        ],
    ),
    (
        r#"{"hugepageLimits": [{"pageSize": "2MB", "limit": 4194304},
            {"pageSize": "1GB", "limit": 0}]}"#,
        &[
            "hugetlb.2MB.limit_in_bytes=4194304",
            "hugetlb.2MB.rsvd.limit_in_bytes=4194304",
            "hugetlb.1GB.limit_in_bytes=0",
            "hugetlb.1GB.rsvd.limit_in_bytes=0",
        ],
        &[
            "hugetlb.2MB.max=4194304",
            "hugetlb.2MB.rsvd.max=4194304",
            "hugetlb.1GB.max=0",
            "hugetlb.1GB.rsvd.max=0",
        ],
    ),
    (
        r#"{"rdma": {"mlx5_1": {"hcaHandles": 3, "hcaObjects": 10000}, "mlx4_0": {"hcaObjects": 0}}}"#,
        &[
            "rdma.max=mlx4_0 hca_object=0",
            "rdma.max=mlx5_1 hca_handle=3 hca_object=10000",
        ],
        &[
            "rdma.max=mlx4_0 hca_object=0",
            "rdma.max=mlx5_1 hca_handle=3 hca_object=10000",
        ],
    ),
    (
        r#"{"memory": {"limit": 200, "checkBeforeUpdate": true}}"#,
        &["memory.limit_in_bytes=200"],
        &["memory.max=200"],
    ),
    // Docker's.
    (
        r#"{"memory": {"limit": 67108864, "swap": 134217728, "disableOOMKiller": false},
            "cpu": {"shares": 0, "quota": 50000, "period": 100000}, "pids": {"limit": 20},
            "blockIO": {"weight": 0}}"#,
        &[
            "pids.max=20",
            "memory.limit_in_bytes=67108864",
            "memory.memsw.limit_in_bytes=134217728",
            "cpu.cfs_period_us=100000",
            "cpu.cfs_quota_us=50000",
        ],
        &[
            "pids.max=20",
            "memory.swap.max=67108864",
            "memory.max=67108864",
            "cpu.max=50000 100000",
        ],
    ),
];

#[test]
fn both_sides() {
    for (json, v1, v2) in BOTH {
        let limits = limits(json);
        assert_eq!(lines(&v1_writes(&limits).unwrap()), v1, "v1 of {json}");
        assert_eq!(lines(&v2_writes(&limits).unwrap()), v2, "v2 of {json}");
    }
}

#[test]
fn v1_alone() {
    let cases: [(&str, &[&str]); 8] = [
        (
            r#"{"memory": {"kernel": 1000}}"#,
            &["memory.kmem.limit_in_bytes=1000"],
        ),
        (
            r#"{"memory": {"kernelTCP": -1}}"#,
            &["memory.kmem.tcp.limit_in_bytes=-1"],
        ),
        (r#"{"memory": {"swappiness": 0}}"#, &["memory.swappiness=0"]),
        (
            r#"{"memory": {"disableOOMKiller": true}}"#,
            &["memory.oom_control=1"],
        ),
        (
            r#"{"cpu": {"realtimeRuntime": 950000, "realtimePeriod": 1000000}}"#,
            &["cpu.rt_period_us=1000000", "cpu.rt_runtime_us=950000"],
        ),
        (
            r#"{"blockIO": {"leafWeight": 10, "weightDevice": [{"major": 8, "minor": 0, "leafWeight": 20}]}}"#,
            &["blkio.leaf_weight=10", "blkio.leaf_weight_device=8:0 20"],
        ),
        (
            r#"{"network": {"classID": 1048577}}"#,
            &["net_cls.classid=1048577"],
        ),
        (
            r#"{"network": {"priorities": [{"name": "eth0", "priority": 500}, {"name": "lo", "priority": 0}]}}"#,
            &["net_prio.ifpriomap=eth0 500", "net_prio.ifpriomap=lo 0"],
        ),
    ];
    for (json, want) in cases {
        let limits = limits(json);
        assert_eq!(lines(&v1_writes(&limits).unwrap()), want, "{json}");
        let error = v2_writes(&limits).unwrap_err();
        assert!(error.message.starts_with("cgroup v2 has no "), "{error}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn unified_is_written_line_by_line_and_last() {
    let limits = limits(
        r#"{"unified": {"io.max": "8:0 rbps=1\n8:16 wbps=2\n", "memory.high": " 5 ", "cpuset.cpus": ""},
            "pids": {"limit": 3}}"#,
    );
    let want = [
        "pids.max=3",
        "cpuset.cpus=\n",
        "io.max=8:0 rbps=1",
        "io.max=8:16 wbps=2",
        "memory.high=5",
    ];
    let writes = v2_writes(&limits).unwrap();
    assert_eq!(lines(&writes), want);
    assert_eq!(writes[4].pointer, "/linux/resources/unified/memory.high");
    let error = v1_writes(&limits).unwrap_err();
    assert_eq!(error.pointer, "/linux/resources/unified/cpuset.cpus");
}

#[test]
fn conversions() {
    // The curve through (2, 1), (1024, 100), (262144, 10000).
    for (shares, weight) in [
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 2),
        (100, 17),
        (256, 35),
        (512, 59),
        (1024, 100),
        (2000, 170),
        (2048, 174),
        (4096, 303),
        (8192, 532),
        (10240, 639),
        (65536, 3023),
        (262_143, 10_000),
        (262_144, 10_000),
        (u64::MAX, 10_000),
    ] {
        assert_eq!(convert::shares_to_weight(shares), weight, "{shares} shares");
    }
    let weights: Vec<u64> = (2..=262_144).map(convert::shares_to_weight).collect();
    assert!(weights.is_sorted() && weights.iter().all(|w| (1..=10_000).contains(w)));
    for (blkio, io) in [
        (0, 1),
        (10, 1),
        (11, 11),
        (100, 910),
        (500, 4950),
        (1000, 10_000),
    ] {
        assert_eq!(convert::blkio_to_io_weight(blkio), io, "{blkio}");
    }
}

#[test]
fn fallbacks() {
    use crate::cgroup::Missing;
    let limits = limits(
        r#"{"blockIO": {"weight": 500}, "memory": {"limit": 5, "swap": 5, "checkBeforeUpdate": true}}"#,
    );
    let v1 = v1_writes(&limits).unwrap();
    let v2 = v2_writes(&limits).unwrap();
    assert_eq!(v1[0].used, Some("memory.usage_in_bytes"));
    assert!(
        v1[0].retry,
        "the limit may be above the swap limit of before"
    );
    assert_eq!(v1[1].missing, Missing::Fail);
    let bfq = Missing::Instead {
        file: "blkio.bfq.weight",
        value: "500".to_owned(),
    };
    assert_eq!(v1[2].missing, bfq);
    assert_eq!(
        v2[0].missing,
        Missing::Skip,
        "no swap is what a kernel without swap has"
    );
    assert_eq!(v2[1].used, Some("memory.current"));
    let io = Missing::Instead {
        file: "io.weight",
        value: "4950".to_owned(),
    };
    assert_eq!(v2[2].missing, io);
}
