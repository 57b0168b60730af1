//! Golden plans: a configuration and a host make exactly this list of steps.
//!
//! `tests/plans/NAME.plan` holds the plan of the case NAME below. After a change that is
//! meant, `UPDATE=1 cargo test -p pipkin-plan --test golden` writes them anew; read the
//! difference before it is committed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

use std::path::{Path, PathBuf};

use pipkin_plan::cgroup::{Controller, Controllers};
use pipkin_plan::{Hierarchy, Host, Request, Until, cgroup, create};
use pipkin_spec::Config;
use serde_json::{Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A configuration that an engine wrote.
fn engine(name: &str) -> Value {
    let path = repository().join(format!("tests/bundles/{name}.json"));
    let text = std::fs::read_to_string(path)
        .unwrap()
        .replace("@BUNDLE@", "/bundle");
    serde_json::from_str(&text).unwrap()
}

/// The least that a container needs.
fn least() -> Value {
    json!({
        "root": {"path": "rootfs"},
        "process": {"cwd": "/", "args": ["sh"], "env": ["PATH=/bin", "HOME=/root"]},
        "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}]}
    })
}

/// The same with other values at some JSON pointers.
fn with(mut config: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = config
            .pointer_mut(parent)
            .unwrap_or_else(|| panic!("no {parent}"));
        match parent {
            Value::Array(list) => list.push(value.clone()),
            parent => parent[name] = value.clone(),
        }
    }
    config
}

fn v2() -> Host {
    let controllers = [
        Controller::Cpu,
        Controller::Cpuset,
        Controller::Memory,
        Controller::Pids,
        Controller::Io,
        Controller::Hugetlb,
    ];
    Host {
        kernel: (6, 18),
        privileged: true,
        cgroup: cgroup::Host {
            v1: Controllers::NONE,
            v2: Some(controllers.into_iter().collect()),
        },
        hierarchies: vec![hierarchy("", "/sys/fs/cgroup")],
        ..Host::default()
    }
}

fn hierarchy(name: &str, mount: &str) -> Hierarchy {
    Hierarchy {
        name: name.into(),
        mount: mount.into(),
        group: "/group".into(),
    }
}

fn hybrid() -> Host {
    let names = [
        "cpu,cpuacct",
        "memory",
        "pids",
        "devices",
        "freezer",
        "blkio",
        "cpuset",
    ];
    let mut hierarchies: Vec<Hierarchy> = names
        .iter()
        .map(|name| hierarchy(name, &format!("/sys/fs/cgroup/{name}")))
        .collect();
    hierarchies.push(hierarchy("name=systemd", "/sys/fs/cgroup/systemd"));
    hierarchies.push(hierarchy("", "/sys/fs/cgroup/unified"));
    let v1 = names.iter().map(|name| Controllers::parse(name));
    Host {
        cgroup: cgroup::Host {
            v1: v1.fold(Controllers::NONE, Controllers::union),
            v2: Some(Controllers::NONE.with(Controller::Hugetlb)),
        },
        hierarchies,
        ..v2()
    }
}

fn request() -> Request {
    Request {
        id: "web".into(),
        bundle: "/bundle".into(),
        cgroup: "/group".into(),
        ..Request::default()
    }
}

fn check(name: &str, config: Value, request: &Request, host: &Host) {
    let config: Config = serde_json::from_value(config).unwrap();
    let plan = create(&config, request, host).unwrap().to_string();
    let path = repository().join(format!("tests/plans/{name}.plan"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &plan).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (is, was)) in plan.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, was, "{name}: line {}", number + 1);
    }
    assert_eq!(
        plan.lines().count(),
        golden.lines().count(),
        "{name}: number of steps"
    );
}

#[test]
fn engines_on_each_layout() {
    for name in ["podman", "containerd", "docker"] {
        check(
            &format!("{name}-hybrid"),
            engine(name),
            &request(),
            &hybrid(),
        );
        check(&format!("{name}-v2"), engine(name), &request(), &v2());
    }
}

/// What begins from the pinned mount namespace, and what cannot.
#[test]
fn the_empty_mount_namespace() {
    let host = Host {
        pinned: true,
        ..v2()
    };
    check("podman-pinned", engine("podman"), &request(), &host);
    let overlay = json!({"destination": "/data", "type": "overlay", "source": "overlay",
        "options": ["lowerdir=/a:/b"]});
    let with_overlay = with(least(), &[("/mounts", json!([overlay]))]);
    let with_hook = with(
        least(),
        &[(
            "/hooks",
            json!({"createContainer": [{"path": "/bin/true"}]}),
        )],
    );
    for (config, request) in [
        (with_overlay, request()),
        (with_hook, request()),
        (
            least(),
            Request {
                no_pivot: true,
                ..request()
            },
        ),
    ] {
        let config: Config = serde_json::from_value(config).unwrap();
        let plan = create(&config, &request, &host).unwrap().to_string();
        assert!(plan.contains("clone3 mount,"), "{plan}");
    }
    let config: Config = serde_json::from_value(least()).unwrap();
    let plan = create(
        &config,
        &request(),
        &Host {
            in_user_namespace: true,
            ..host
        },
    )
    .unwrap();
    assert!(plan.to_string().contains("pivot_root"));
}

#[test]
fn run_does_not_wait_for_start() {
    let request = Request {
        until: Until::Running,
        ..request()
    };
    check("run", least(), &request, &v2());
}

#[test]
fn without_control_groups() {
    let host = Host {
        kernel: (5, 4),
        privileged: true,
        ..Host::default()
    };
    check("no-cgroup", least(), &request(), &host);
}

/// Without CLONE_INTO_CGROUP (5.7) and mount_setattr (5.12).
#[test]
fn an_older_kernel() {
    let bind = |destination: &str, options: &[&str]| json!({"destination": destination, "type": "bind", "source": "/src", "options": options});
    let changes = [
        ("/mounts/-", bind("/plain", &["bind"])),
        (
            "/mounts/-",
            bind("/both", &["rbind", "ro", "nosuid", "shared"]),
        ),
        ("/mounts/-", bind("/all", &["bind", "rro", "rslave"])),
        (
            "/mounts/-",
            json!({"destination": "/new", "type": "tmpfs", "options": ["ro", "rnoexec", "rslave"]}),
        ),
        ("/linux/readonlyPaths/-", json!("/both")),
        ("/mounts/-", bind("/both/below", &["bind"])),
        ("/root/readonly", json!(true)),
    ];
    let old = Host {
        kernel: (5, 4),
        ..v2()
    };
    let config = with(engine("podman"), &changes);
    check("kernel-5.4", config.clone(), &request(), &old);
    let pinned = Host {
        pinned: true,
        ..old.clone()
    };
    check("kernel-5.4-pinned", config.clone(), &request(), &pinned);
    // A filter that hides the calls makes a new kernel the same.
    let filtered = Host {
        filtered: true,
        pinned: true,
        ..v2()
    };
    check("kernel-5.4-pinned", config, &request(), &filtered);
    let without_mounts = with(least(), &[("/linux/namespaces", json!([{"type": "pid"}]))]);
    let config: Config = serde_json::from_value(without_mounts).unwrap();
    let plan = create(&config, &request(), &old).unwrap().to_string();
    assert!(!plan.contains("open /proc"), "{plan}");
}

/// What mount(2) cannot do is refused by name, with the version that can.
#[test]
fn what_an_older_kernel_does_not_have() {
    let mapping = json!([{"containerID": 0, "hostID": 1000, "size": 1}]);
    let bind = |options: &[&str]| json!([{"destination": "/a", "type": "bind", "source": "/src", "options": options}]);
    let mapped = json!([{"destination": "/a", "source": "/src", "options": ["bind"],
        "uidMappings": mapping, "gidMappings": mapping}]);
    let cases = [
        (bind(&["rbind", "rro"]), "/mounts/0/options", "Linux 5.12"),
        (
            bind(&["rbind", "nodev", "rnoexec", "rshared"]),
            "/mounts/0/options",
            "Linux 5.12",
        ),
        (mapped, "/mounts/0", "Linux 5.12"),
        (
            bind(&["bind", "nosymfollow"]),
            "/mounts/0/options",
            "Linux 5.14",
        ),
    ];
    for (mounts, pointer, version) in cases {
        let config: Config = serde_json::from_value(with(least(), &[("/mounts", mounts)])).unwrap();
        assert!(create(&config, &request(), &v2()).is_ok());
        let old = Host {
            kernel: (5, 11),
            ..v2()
        };
        let invalid = create(&config, &request(), &old).unwrap_err();
        assert_eq!(invalid.pointer, pointer);
        assert!(invalid.message.contains(version), "{invalid}");
        let filtered = Host {
            filtered: true,
            ..v2()
        };
        // The version alone does not help where a filter hides what it has.
        let hint = create(&config, &request(), &filtered).err();
        let hint = hint.and_then(|invalid| invalid.hint).unwrap_or_default();
        assert_eq!(hint.contains("filter"), version == "Linux 5.12", "{hint}");
    }
}

#[test]
fn a_user_namespace() {
    let config = with(
        engine("podman"),
        &[
            ("/linux/namespaces/-", json!({"type": "user"})),
            (
                "/linux/uidMappings",
                json!([{"containerID": 0, "hostID": 1000, "size": 10}]),
            ),
            (
                "/linux/gidMappings",
                json!([{"containerID": 0, "hostID": 2000, "size": 20}]),
            ),
            ("/process/oomScoreAdj", json!(100)),
        ],
    );
    check("user", config, &request(), &v2());
}

#[test]
fn an_ordinary_user_shows_the_hosts_kernel_file_systems() {
    let mounts = json!([
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue"}
    ]);
    let config = with(
        least(),
        &[
            ("/mounts", mounts),
            (
                "/linux/namespaces",
                json!([{"type": "mount"}, {"type": "user"}]),
            ),
            (
                "/linux/uidMappings",
                json!([{"containerID": 0, "hostID": 1000, "size": 1}]),
            ),
            (
                "/linux/gidMappings",
                json!([{"containerID": 0, "hostID": 1000, "size": 1}]),
            ),
        ],
    );
    let host = Host {
        privileged: false,
        ..Host {
            kernel: (6, 1),
            ..Host::default()
        }
    };
    check("rootless", config, &request(), &host);
}

#[test]
fn joined_namespaces() {
    let joined = |kind: &str| json!({"type": kind, "path": format!("/ns/{kind}")});
    let all = ["pid", "network", "ipc", "uts", "user", "cgroup", "time"];
    let mut namespaces: Vec<Value> = all.iter().map(|kind| joined(kind)).collect();
    namespaces.push(json!({"type": "mount"}));
    let config = with(least(), &[("/linux/namespaces", json!(namespaces))]);
    check("joined", config, &request(), &v2());
    let namespaces = json!([{"type": "mount"}, {"type": "user"}, joined("network"), joined("pid")]);
    let mapping = json!([{"containerID": 0, "hostID": 1000, "size": 1}]);
    let changes = [
        ("/linux/namespaces", namespaces),
        ("/linux/uidMappings", mapping.clone()),
        ("/linux/gidMappings", mapping),
    ];
    check(
        "joined-into-new-user",
        with(least(), &changes),
        &request(),
        &v2(),
    );
}

#[test]
fn time_offsets() {
    let config = with(
        least(),
        &[
            ("/linux/namespaces/-", json!({"type": "time"})),
            (
                "/linux/timeOffsets",
                json!({"boottime": {"secs": -5, "nanosecs": 7}}),
            ),
        ],
    );
    check("time", config, &request(), &v2());
}

#[test]
fn every_kind_of_hook() {
    let hook =
        |path: &str| json!([{"path": path, "args": ["a", "b"], "env": ["X=1"], "timeout": 3}]);
    let config = with(
        least(),
        &[(
            "/hooks",
            json!({
                "prestart": hook("/prestart"), "createRuntime": hook("/create-runtime"),
                "createContainer": hook("/create-container"), "poststart": hook("/poststart"),
                "startContainer": hook("/start-container"), "poststop": hook("/poststop")
            }),
        )],
    );
    check("hooks", config, &request(), &v2());
}

#[test]
fn a_terminal() {
    let config = with(
        engine("docker"),
        &[
            ("/process/terminal", json!(true)),
            ("/process/consoleSize", json!({"height": 40, "width": 100})),
        ],
    );
    let console_socket = Some("/run/console.sock".to_owned());
    let pid_file = Some("/run/pid".to_owned());
    let request = Request {
        console_socket,
        pid_file,
        preserve_fds: 2,
        ..request()
    };
    check("terminal", config, &request, &v2());
}

#[test]
fn every_form_of_mount() {
    let bind = |destination: &str, options: &[&str]| json!({"destination": destination, "type": "bind", "source": "/src", "options": options});
    let tmpfs = |destination: &str, options: &[&str]| json!({"destination": destination, "type": "tmpfs", "source": "tmpfs", "options": options});
    let mounts = json!([
        {"destination": "proc", "type": "proc", "options": ["hidepid=2"]},
        bind("/plain", &["bind"]),
        bind("/attributes", &["rbind", "ro", "nosuid", "noatime"]),
        bind("/recursive", &["rbind", "rro", "rnoexec", "rslave"]),
        bind("/both", &["rbind", "nodev", "rro", "shared"]),
        bind("/nofollow", &["bind", "src-nofollow", "dest-nofollow"]),
        {"destination": "/relative", "type": "none", "source": "data", "options": ["bind"]},
        {"destination": "/mapped", "source": "/src", "options": ["bind", "idmap"],
            "uidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}],
            "gidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}]},
        tmpfs("/tmp", &["ro", "size=1m", "mode=1777"]),
        tmpfs("/up", &["tmpcopyup", "nosuid"]),
        tmpfs("/shared", &["rshared"]),
        {"destination": "/data", "type": "ext4", "source": "/dev/vdb",
            "options": ["sync", "strictatime", "data=ordered"]},
        {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["ro"]}
    ]);
    let config = with(least(), &[("/mounts", mounts)]);
    check("mounts-v2", config.clone(), &request(), &v2());
    check("mounts-hybrid", config, &request(), &hybrid());
}

#[test]
fn the_root() {
    for propagation in ["shared", "rslave", "private", "unbindable"] {
        let config = with(
            least(),
            &[
                ("/linux/rootfsPropagation", json!(propagation)),
                ("/root", json!({"path": "/image", "readonly": true})),
            ],
        );
        check(&format!("root-{propagation}"), config, &request(), &v2());
    }
    let no_pivot = Request {
        no_pivot: true,
        no_new_keyring: true,
        ..request()
    };
    check("root-no-pivot", least(), &no_pivot, &v2());
    let config = with(least(), &[("/linux/namespaces", json!([{"type": "pid"}]))]);
    check("root-chroot", config, &request(), &v2());
}

#[test]
fn every_property_of_a_process() {
    let process = json!({
        "cwd": "/srv", "args": ["/bin/app", "x"], "env": ["A=1", "B=2", "A=3"],
        "user": {"uid": 5, "gid": 6, "additionalGids": [7, 8], "umask": 63},
        "capabilities": {
            "bounding": ["CAP_KILL"], "effective": ["CAP_KILL"], "permitted": ["CAP_KILL"],
            "inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL"]
        },
        "rlimits": [{"type": "RLIMIT_CORE", "soft": 0, "hard": 1}],
        "noNewPrivileges": true,
        "scheduler": {"policy": "SCHED_BATCH", "nice": 5, "flags": ["SCHED_FLAG_RESET_ON_FORK"]},
        "ioPriority": {"class": "IOPRIO_CLASS_IDLE", "priority": 4}
    });
    let config = with(
        least(),
        &[
            ("/process", process),
            ("/linux/personality", json!({"domain": "LINUX32"})),
            (
                "/linux/seccomp",
                json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                {"names": ["swapon"], "action": "SCMP_ACT_ERRNO"}]}),
            ),
        ],
    );
    check("process", config, &request(), &v2());
}

#[test]
fn devices() {
    let device = |kind: &str, path: &str, major: i64, minor: i64| json!({"type": kind, "path": path, "major": major, "minor": minor, "fileMode": 384, "uid": 9});
    let config = with(
        least(),
        &[(
            "/linux/devices",
            json!([
                device("c", "/dev/fuse", 10, 229),
                device("b", "/dev/disk/a", 7, 0),
                device("p", "/dev/pipe", 0, 0),
                device("c", "/dev/null", 1, 3)
            ]),
        )],
    );
    check("devices", config, &request(), &v2());
}
