//! The same bundles under pipkin, runc and crun: a program inside sees the same.
//!
//! At each leaf of the probe's document pipkin must equal one of the two others (they
//! differ among themselves), or the difference stands in `src/differences.rs`. What a
//! case is about is also expected by value, so that three runtimes that all ignore a
//! setting do not agree their way through.

use pipkin_tests::compare::{self, Ledger};
use pipkin_tests::runtime::{Kind, Runtime, View};
use pipkin_tests::{Bundle, Run, Scratch, host, observe, scratch};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

type Build = fn(&Scratch, &mut Bundle);

struct Case {
    name: &'static str,
    engine: &'static str,
    build: Build,
    view: View,
    /// Oracles that cannot do this, and how they say so.
    unable: Vec<(Kind, &'static str)>,
    expected: Vec<(&'static str, Value)>,
}

fn case(name: &'static str, engine: &'static str, build: Build) -> Case {
    let view = View::NoUnified;
    Case {
        name,
        engine,
        build,
        view,
        unable: Vec::new(),
        expected: Vec::new(),
    }
}

impl Case {
    fn expect(mut self, pointer: &'static str, value: Value) -> Self {
        self.expected.push((pointer, value));
        self
    }

    /// This oracle fails with these words; when it stops failing, the case must change.
    fn unable(mut self, kind: Kind, words: &'static str) -> Self {
        self.unable.push((kind, words));
        self
    }

    /// The same, on machines where this holds.
    fn unable_where(self, here: bool, kind: Kind, words: &'static str) -> Self {
        if here { self.unable(kind, words) } else { self }
    }

    fn seeing(mut self, view: View) -> Self {
        self.view = view;
        self
    }
}

const CRUN_WANTS_ONE_VERSION: &str = "hybrid";
const CRUN_WANTS_MEMORY: &str = "RLIM_MEMLOCK";

/// The unified hierarchy may have no controllers; devices need none.
fn only_devices(bundle: &mut Bundle) {
    let devices = bundle.config["linux"]["resources"]["devices"].clone();
    bundle.set("/linux/resources", json!({ "devices": devices }));
}

/// The engines' own configurations.
fn engines() -> Vec<Case> {
    vec![
        case("podman", "podman", |_, _| {}),
        case("containerd", "containerd", |_, _| {}),
        case("docker", "docker", |_, _| {}),
        case("podman hybrid", "podman", |_, _| {})
            .seeing(View::Host)
            .unable_where(
                host::unified_besides_v1().is_some(),
                Kind::Crun,
                CRUN_WANTS_ONE_VERSION,
            ),
        case("containerd hybrid", "containerd", |_, _| {})
            .seeing(View::Host)
            .unable_where(
                host::unified_besides_v1().is_some(),
                Kind::Crun,
                CRUN_WANTS_ONE_VERSION,
            ),
        case("docker hybrid", "docker", |_, _| {})
            .seeing(View::Host)
            .unable_where(
                host::unified_besides_v1().is_some(),
                Kind::Crun,
                CRUN_WANTS_ONE_VERSION,
            ),
        case("podman version 2", "podman", |_, bundle| {
            only_devices(bundle)
        })
        .seeing(View::OnlyUnified)
        .unable_where(!host::may_raise_limits(), Kind::Crun, CRUN_WANTS_MEMORY),
        case("containerd version 2", "containerd", |_, bundle| {
            only_devices(bundle)
        })
        .seeing(View::OnlyUnified)
        .unable_where(!host::may_raise_limits(), Kind::Crun, CRUN_WANTS_MEMORY),
        case("docker version 2", "docker", |_, bundle| {
            only_devices(bundle)
        })
        .seeing(View::OnlyUnified)
        .unable_where(!host::may_raise_limits(), Kind::Crun, CRUN_WANTS_MEMORY),
    ]
}

/// Who the process is.
fn identity() -> Vec<Case> {
    vec![
        case("user", "podman", |_, bundle| {
            bundle.set(
                "/process/user",
                json!({ "uid": 1000, "gid": 1001, "additionalGids": [10, 2000], "umask": 23 }),
            );
        })
        .expect("/ids/Uid", json!("1000 1000 1000 1000"))
        .expect("/ids/Groups", json!("10 2000"))
        .expect("/ids/Umask", json!("0027"))
        .expect("/capabilities/effective", json!([])),
        case("user without umask", "containerd", |_, bundle| {
            bundle.set("/process/user", json!({ "uid": 65534, "gid": 65534 }));
        })
        .expect("/ids/Gid", json!("65534 65534 65534 65534")),
        case("ambient capabilities", "podman", |_, bundle| {
            let set = json!(["CAP_NET_BIND_SERVICE", "CAP_CHOWN"]);
            bundle.set("/process/user", json!({ "uid": 1000, "gid": 1000 }));
            bundle.set("/process/capabilities/inheritable", set.clone());
            bundle.set("/process/capabilities/ambient", set);
        })
        .expect(
            "/capabilities/ambient",
            json!(["CHOWN", "NET_BIND_SERVICE"]),
        )
        .expect(
            "/capabilities/effective",
            json!(["CHOWN", "NET_BIND_SERVICE"]),
        ),
        case("inheritable capabilities", "docker", |_, bundle| {
            bundle.set("/process/capabilities/inheritable", json!(["CAP_KILL"]));
        })
        .expect("/capabilities/inheritable", json!(["KILL"])),
        case("no capabilities", "podman", |_, bundle| {
            bundle.set("/process/capabilities", json!({}));
        })
        .expect("/capabilities/bounding", json!([])),
        case("capabilities unset", "podman", |_, bundle| {
            bundle.remove("/process/capabilities");
        }),
        case("no new privileges", "podman", |_, bundle| {
            bundle.set("/process/noNewPrivileges", json!(true));
        })
        .expect("/protection/NoNewPrivs", json!("1")),
        case("no seccomp", "docker", |_, bundle| {
            bundle.remove("/linux/seccomp");
        })
        .expect("/protection/Seccomp", json!("0")),
        case(
            "unprivileged user with seccomp and privileges to gain",
            "docker",
            |_, bundle| {
                bundle.set("/process/user", json!({ "uid": 1000, "gid": 1000 }));
                bundle.set("/process/noNewPrivileges", json!(false));
            },
        )
        .expect("/protection/NoNewPrivs", json!("0"))
        .expect("/protection/Seccomp", json!("2")),
        case("limits", "podman", |_, bundle| {
            bundle.set(
                "/process/rlimits",
                json!([
                    { "type": "RLIMIT_NOFILE", "hard": 512, "soft": 256 },
                    { "type": "RLIMIT_CORE", "hard": 0, "soft": 0 },
                    { "type": "RLIMIT_AS", "hard": 4294967296_u64, "soft": 2147483648_u64 },
                    { "type": "RLIMIT_STACK", "hard": 16777216, "soft": 4194304 },
                    { "type": "RLIMIT_CPU", "hard": 100, "soft": 50 },
                    { "type": "RLIMIT_MEMLOCK", "hard": 65536, "soft": 65536 },
                    { "type": "RLIMIT_SIGPENDING", "hard": 100, "soft": 50 },
                    { "type": "RLIMIT_MSGQUEUE", "hard": 1000, "soft": 500 },
                    { "type": "RLIMIT_FSIZE", "hard": 1073741824, "soft": 1048576 },
                    { "type": "RLIMIT_DATA", "hard": 4294967296_u64, "soft": 2147483648_u64 },
                    { "type": "RLIMIT_RSS", "hard": 4294967296_u64, "soft": 2147483648_u64 },
                    { "type": "RLIMIT_LOCKS", "hard": 100, "soft": 50 },
                    { "type": "RLIMIT_RTTIME", "hard": 100000, "soft": 50000 },
                    { "type": "RLIMIT_NPROC", "hard": 200, "soft": 100 }
                ]),
            );
        })
        .expect("/rlimits/Max open files", json!("256 512"))
        .expect("/rlimits/Max realtime timeout", json!("50000 100000")),
        case("oom score", "podman", |_, bundle| {
            bundle.set("/process/oomScoreAdj", json!(500));
        })
        .expect("/process/oom_score_adj", json!("500")),
        case("personality", "docker", |_, bundle| {
            bundle.set("/linux/personality", json!({ "domain": "LINUX32" }));
            bundle.remove("/linux/seccomp");
        })
        .expect("/process/personality", json!("00000008")),
        case("keyring and environment", "podman", |_, bundle| {
            bundle.set(
                "/process/env",
                json!([
                    "B=1",
                    "PATH=/bin",
                    "A=2",
                    "B=3",
                    "EMPTY=",
                    "WITH=a=b",
                    "HOME=/x"
                ]),
            );
        }),
        case("home from passwd", "podman", |_, bundle| {
            bundle.set("/process/env", json!(["PATH=/bin"]));
            bundle.set("/process/user", json!({ "uid": 65534, "gid": 65534 }));
        }),
        case("home for an unknown user", "podman", |_, bundle| {
            bundle.set("/process/env", json!(["PATH=/bin"]));
            bundle.set("/process/user", json!({ "uid": 4242, "gid": 4242 }));
        }),
        case("program from PATH", "podman", |_, bundle| {
            bundle.set("/process/env", json!(["PATH=/nowhere:/:/bin"]));
            bundle.set("/process/args", json!(["probe"]));
        })
        .expect("/args", json!(["probe"])),
        case("directory that is not there", "podman", |_, bundle| {
            bundle.set("/process/cwd", json!("/some/deep/place"));
            bundle.set("/process/user", json!({ "uid": 1000, "gid": 1000 }));
        })
        .expect("/cwd", json!("/some/deep/place")),
        case("directory through a link", "podman", |_, bundle| {
            std::os::unix::fs::symlink("/tmp", bundle.rootfs().join("link")).expect("link");
            bundle.set("/process/cwd", json!("/link"));
        })
        .expect("/cwd", json!("/tmp")),
    ]
}

/// Namespaces and what lives in them.
fn namespaces() -> Vec<Case> {
    vec![
        case("user namespace", "podman", |_, bundle| {
            with_user_namespace(bundle)
        })
        .expect("/idmaps/uid", json!(["0 100000 65536"]))
        .expect("/namespaces/user", json!("other")),
        case("user namespace, docker", "docker", |_, bundle| {
            with_user_namespace(bundle)
        })
        .expect("/idmaps/gid", json!(["0 200000 65536"])),
        case("user namespace and user", "podman", |_, bundle| {
            with_user_namespace(bundle);
            bundle.set(
                "/process/user",
                json!({ "uid": 1000, "gid": 1000, "additionalGids": [7, 8] }),
            );
        })
        .expect("/ids/Uid", json!("1000 1000 1000 1000"))
        .expect("/ids/Groups", json!("7 8")),
        case(
            "user namespace with two ranges",
            "containerd",
            |_, bundle| {
                with_user_namespace(bundle);
                bundle.set(
                    "/linux/uidMappings",
                    json!([
                        { "containerID": 0, "hostID": 100000, "size": 1000 },
                        { "containerID": 1000, "hostID": 300000, "size": 5 }
                    ]),
                );
            },
        )
        .expect("/idmaps/uid", json!(["0 100000 1000", "1000 300000 5"])),
        case("time namespace", "podman", |_, bundle| {
            bundle.namespace("time", None);
            bundle.set(
                "/linux/timeOffsets",
                json!({
                    "monotonic": { "secs": 172800, "nanosecs": 5 },
                    "boottime": { "secs": 604800 }
                }),
            );
        })
        .unable(Kind::Runc, "time")
        .unable(Kind::Crun, "")
        .expect(
            "/timens_offsets",
            json!(["monotonic 172800 5", "boottime 604800 0"]),
        )
        .expect("/namespaces/time", json!("other"))
        .expect("/namespaces/time_for_children", json!("other")),
        case("joined namespaces", "podman", |scratch, bundle| {
            let pid = hold_namespaces(scratch);
            for (kind, file) in [("network", "net"), ("ipc", "ipc"), ("uts", "uts")] {
                bundle.namespace(kind, Some(&format!("/proc/{pid}/ns/{file}")));
            }
            bundle.remove("/hostname");
            bundle.remove("/linux/sysctl");
        })
        .expect("/host/hostname", json!("held"))
        .expect("/namespaces/net", json!("other"))
        .expect("/network/lo_connect", json!("ENETUNREACH")),
        case("joined process namespace", "podman", |scratch, bundle| {
            let pid = hold_namespaces(scratch);
            bundle.namespace("pid", Some(&format!("/proc/{pid}/ns/pid_for_children")));
        })
        .expect("/process/visible_pids", json!(2)),
        case("host's network", "docker", |_, bundle| {
            bundle.without_namespace("network");
            bundle.remove("/linux/sysctl");
        })
        .expect("/namespaces/net", json!("host")),
        case("host's processes", "containerd", |_, bundle| {
            bundle.without_namespace("pid");
        })
        .expect("/namespaces/pid", json!("host"))
        .expect("/process/visible_pids", json!(2)),
        case("host's ipc and names", "containerd", |_, bundle| {
            bundle.without_namespace("ipc");
            bundle.without_namespace("uts");
            bundle.without_mount("/dev/mqueue");
        })
        .expect("/namespaces/uts", json!("host")),
        case("only a mount namespace", "containerd", |_, bundle| {
            bundle.set("/linux/namespaces", json!([{ "type": "mount" }]));
            bundle.without_mount("/dev/mqueue");
        })
        .expect("/namespaces/ipc", json!("host")),
        case("sysctls, also with slashes", "podman", |_, bundle| {
            bundle.set(
                "/linux/sysctl",
                json!({
                    "net.ipv4.ip_forward": "1",
                    "net/ipv4/ip_unprivileged_port_start": "80",
                    "kernel.msgmax": "4096",
                    "kernel.sem": "100 2000 30 40",
                    "fs.mqueue.msg_max": "20"
                }),
            );
        })
        .expect("/sysctls/net.ipv4.ip_unprivileged_port_start", json!("80")),
        case("host and domain name", "podman", |_, bundle| {
            bundle.set("/hostname", json!("a-name"));
            bundle.set("/domainname", json!("a.domain"));
        })
        .expect("/host/hostname", json!("a-name"))
        .expect("/host/domainname", json!("a.domain")),
        case("cgroup namespace", "docker", |_, bundle| {
            bundle.namespace("cgroup", None);
        })
        .expect("/cgroup/membership/memory", json!("/")),
        case(
            "cgroups writable in their own namespace",
            "docker",
            |_, bundle| {
                bundle.namespace("cgroup", None);
                bundle.without_mount("/sys/fs/cgroup");
                bundle.mount(
                    "cgroup",
                    "cgroup",
                    "/sys/fs/cgroup",
                    &["nosuid", "noexec", "nodev"],
                );
            },
        )
        .expect("/cgroup/make_group/~1sys~1fs~1cgroup~1pids", json!("ok")),
    ]
}

/// Mounts, devices and paths.
fn file_systems() -> Vec<Case> {
    let mut cases = vec![
        case("read-only root", "podman", |_, bundle| {
            bundle.set("/root/readonly", json!(true));
        })
        .expect("/paths/~1/write", json!("EROFS"))
        .expect("/paths/~1tmp/write", json!("EROFS"))
        .expect("/paths/~1dev/write", json!("ok")),
        case("read-only root, docker", "docker", |_, bundle| {
            bundle.set("/root/readonly", json!(true));
        })
        .expect("/paths/~1/write", json!("EROFS")),
        case("bind options", "podman", |_, bundle| {
            data(bundle);
            for options in [
                "ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime",
                "strictatime", "ro,nosuid,nodev,noexec,noatime", "suid,dev,exec,rw", "rprivate",
                "rslave", "rshared", "private", "slave", "shared", "runbindable",
            ] {
                let place = format!("/data/{}", options.replace(',', "-"));
                let mut words: Vec<&str> = options.split(',').collect();
                words.push("rbind");
                let source = bundle.dir().join("files/data").to_string_lossy().into_owned();
                bundle.mount("bind", &source, &place, &words);
            }
        })
        .expect("/mounts/~1data~1ro-nosuid-nodev-noexec-noatime/options",
            json!(["ro", "nosuid", "nodev", "noexec", "noatime"])),
        case("bind of files and directories with missing mount points", "docker", |_, bundle| {
            data(bundle);
            let source = bundle.dir().join("files/data").to_string_lossy().into_owned();
            bundle.mount("bind", &source, "/data/new/directory", &["bind"]);
            bundle.mount("bind", &format!("{source}/file"), "/data/new/er/file", &["bind", "ro"]);
            bundle.mount("none", &format!("{source}/file"), "/data/no/type", &["bind", "ro"]);
            bundle.set("/mounts/-", json!({
                "destination": "/data/untyped", "source": source, "options": ["rbind", "ro"]
            }));
        })
        .expect("/mounts/~1data~1new~1er~1file/options", json!(["ro", "relatime"])),
        case("bind through links of the image", "podman", |_, bundle| {
            data(bundle);
            let root = bundle.rootfs();
            std::fs::create_dir_all(root.join("data/real")).expect("make");
            std::os::unix::fs::symlink("/data/real", root.join("data/absolute")).expect("link");
            std::os::unix::fs::symlink("real", root.join("data/relative")).expect("link");
            std::os::unix::fs::symlink("../../../../data/real", root.join("data/above"))
                .expect("link");
            let source = bundle.dir().join("files/data").to_string_lossy().into_owned();
            bundle.mount("bind", &source, "/data/absolute/one", &["bind"]);
            bundle.mount("bind", &source, "/data/relative/two", &["bind"]);
            bundle.mount("bind", &source, "/data/above/three", &["bind"]);
        })
        .expect("/mounts/~1data~1real~1three/type", json!(root_type())),
        case("recursive attributes", "docker", |scratch, bundle| {
            let source = nested(scratch);
            bundle.mount("bind", &source, "/data/rro", &["rbind", "rro"]);
            bundle.mount("bind", &source, "/data/more", &["rbind", "rnosuid", "rnodev", "rnoexec"]);
        })
        .expect("/mounts/~1data~1rro~1shm/options", json!(["ro", "relatime"])),
        case("recursive access times", "docker", |scratch, bundle| {
            let source = nested(scratch);
            bundle.mount("bind", &source, "/data/time", &["rbind", "rnoatime"]);
        })
        .unable(Kind::Crun, "mount_setattr")
        .expect("/mounts/~1data~1time~1shm/options", json!(["rw", "noatime"])),
        case("tmpfs", "podman", |_, bundle| {
            bundle.mount("tmpfs", "tmpfs", "/data/plain", &[]);
            bundle.mount("tmpfs", "name", "/data/sized", &["size=1m", "mode=0700", "nosuid"]);
            bundle.mount("tmpfs", "tmpfs", "/data/owned", &["uid=5", "gid=6", "mode=1777"]);
            bundle.mount("tmpfs", "tmpfs", "/data/ro", &["ro", "noexec", "nr_inodes=100"]);
            bundle.mount("tmpfs", "tmpfs", "/data/all",
                &["nosuid", "nodev", "noexec", "noatime", "size=65536k", "rprivate"]);
            bundle.mount("tmpfs", "tmpfs", "/data/shared", &["rshared"]);
            bundle.set("/process/args/1", json!(
                r#"{"paths":["/data/plain","/data/sized","/data/owned","/data/ro","/data/all"]}"#));

        })
        .expect("/mounts/~1data~1sized/source", json!("name"))
        .expect("/paths/~1data~1ro/write", json!("EROFS")),
        case("tmpfs with a copy of what was there", "podman", |_, bundle| {
            let root = bundle.rootfs();
            std::fs::create_dir_all(root.join("data/copy/deep")).expect("make");
            std::fs::write(root.join("data/copy/deep/file"), "copied").expect("write");
            std::fs::write(root.join("data/copy/tool"), "run").expect("write");
            scratch::set_mode(&root.join("data/copy/tool"), 0o4755);
            std::os::unix::fs::symlink("tool", root.join("data/copy/link")).expect("link");
            std::os::unix::fs::chown(root.join("data/copy/deep/file"), Some(7), Some(8))
                .expect("chown");
            bundle.mount("tmpfs", "tmpfs", "/data/copy", &["tmpcopyup", "mode=0755"]);
            bundle.set("/process/args/1", json!(
                r#"{"paths":["/data/copy","/data/copy/deep","/data/copy/deep/file","/data/copy/tool","/data/copy/link"]}"#
            ));
        })
        .expect("/paths/~1data~1copy~1deep~1file/content", json!("copied"))
        .expect("/mounts/~1data~1copy/type", json!("tmpfs")),
        case("other file systems", "podman", |_, bundle| {
            bundle.without_mount("/proc");
            bundle.set("/mounts/0", json!({ "destination": "/proc", "type": "proc",
                "source": "proc", "options": ["hidepid=2", "nosuid"] }));

            bundle.mount("devpts", "devpts", "/data/pts", &["newinstance", "mode=0600"]);
            let files = bundle.dir().join("files");
            for name in ["lower", "upper", "work"] {
                std::fs::create_dir_all(files.join(name)).expect("make");
            }
            std::fs::write(files.join("lower/file"), "below").expect("write");
            let data: Vec<String> = ["lower", "upper", "work"]
                .map(|name| format!("{name}dir={}", files.join(name).display())).to_vec();
            let options: Vec<&str> = data.iter().map(String::as_str).collect();
            bundle.mount("overlay", "overlay", "/data/overlay", &options);
            bundle.set("/process/args/1", json!(r#"{"paths":["/data/overlay/file"]}"#));
        })
        .expect("/paths/~1data~1overlay~1file/content", json!("below")),
        case("mounts over mounts", "podman", |_, bundle| {
            data(bundle);
            let source = bundle.dir().join("files/data").to_string_lossy().into_owned();
            bundle.mount("tmpfs", "one", "/data/over", &[]);
            bundle.mount("tmpfs", "two", "/data/over/inner", &["mode=0711"]);
            bundle.mount("bind", &source, "/data/over/inner/bound", &["bind", "ro"]);
            bundle.mount("tmpfs", "three", "/data/over", &["ro"]);
        }),
        case("proc that stays writable", "podman", |_, bundle| {
            bundle.set("/linux/maskedPaths", json!([]));
            bundle.set("/linux/readonlyPaths", json!([]));
        })
        .expect("/paths/~1proc~1sys~1kernel~1panic/write", json!("ok")),
        case("masked and read-only paths of the image", "docker", |_, bundle| {
            data(bundle);
            let root = bundle.rootfs();
            std::fs::create_dir_all(root.join("data/directory/inner")).expect("make");
            std::fs::create_dir_all(root.join("data/kept")).expect("make");
            for name in ["data/file", "data/directory/inner/file", "data/kept/file"] {
                std::fs::write(root.join(name), "secret").expect("write");
            }
            bundle.mount("tmpfs", "tmpfs", "/data/volatile", &["noexec", "nosuid"]);
            bundle.set("/linux/maskedPaths",
                json!(["/data/file", "/data/directory", "/data/missing", "/proc/interrupts"]));
            bundle.set("/linux/readonlyPaths",
                json!(["/data/kept", "/data/kept/file", "/data/absent", "/proc/sys", "/data/volatile"]));
            bundle.set("/process/args/1", json!(
                r#"{"paths":["/data/file","/data/directory","/data/directory/inner","/data/kept","/data/kept/file","/data/missing","/data/absent","/data/volatile"]}"#
            ));
        })
        .expect("/paths/~1data~1file/read", json!("empty"))
        .expect("/paths/~1data~1directory/read", json!("empty"))
        .expect("/paths/~1data~1kept~1file/write", json!("EROFS"))
        .expect("/paths/~1data~1volatile/write", json!("EROFS")),
        case("more devices", "docker", |_, bundle| {
            bundle.set("/linux/devices", json!([
                { "path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 438,
                  "uid": 3, "gid": 4 },
                { "path": "/dev/deep/er/nothing", "type": "c", "major": 1, "minor": 3 },
                { "path": "/dev/pipe", "type": "p", "fileMode": 384 },
                { "path": "/dev/disk", "type": "b", "major": 7, "minor": 99, "fileMode": 416 },
                { "path": "/dev/null", "type": "c", "major": 1, "minor": 3, "fileMode": 438 }
            ]));
            bundle.set("/linux/resources/devices/-", json!(
                { "allow": true, "type": "c", "major": 10, "minor": 229, "access": "rw" }));
        })
        .expect("/dev/~1dev~1fuse/device", json!("10:229"))
        .expect("/dev/~1dev~1fuse/owner", json!("3:4"))
        .expect("/dev/~1dev~1pipe/type", json!("fifo")),
        case("devices of a user namespace", "docker", |_, bundle| {
            with_user_namespace(bundle);
            bundle.set("/linux/devices/-", json!(
                { "path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 438 }));
        })
        .expect("/dev/~1dev~1null/device", json!("1:3")),
        case("no dev mount", "containerd", |_, bundle| {
            for place in ["/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"] {
                bundle.without_mount(place);
            }
        })
        .expect("/dev/~1dev~1null/device", json!("1:3")),
        case("least configuration", "podman", |_, bundle| {
            let cgroup = bundle.cgroup.clone();
            bundle.config = json!({
                "ociVersion": "1.0.2",
                "process": { "args": ["/probe"], "cwd": "/", "user": { "uid": 0, "gid": 0 } },
                "root": { "path": "rootfs" },
                "mounts": [{ "destination": "/proc", "type": "proc", "source": "proc" }],
                "linux": { "cgroupsPath": cgroup, "namespaces": [{ "type": "mount" }, { "type": "pid" }] }
            });
        }),
        case("absolute root", "podman", |_, bundle| {
            let root = bundle.rootfs().to_string_lossy().into_owned();
            bundle.set("/root/path", json!(root));
        }),
        case("empty members", "podman", |_, bundle| {
            bundle.set("/process/rlimits", Value::Null);
            bundle.set("/linux/devices", Value::Null);
            bundle.set("/linux/maskedPaths", Value::Null);
            bundle.set("/hooks", json!({ "poststop": null }));
            bundle.set("/linux/resources", json!({ "devices": null, "unknown member": 1 }));
            bundle.set("/unknown", json!({ "a": [1, 2] }));
        }),
    ];
    cases.extend(propagations());
    cases
}

/// Each propagation of the root.
fn propagations() -> Vec<Case> {
    macro_rules! propagation {
        ($name:literal) => {
            case(
                concat!("root propagation ", $name),
                "podman",
                |_, bundle| {
                    bundle.set("/linux/rootfsPropagation", json!($name));
                },
            )
        };
    }
    vec![
        propagation!("private").expect("/mounts/~1/propagation", json!(["private"])),
        propagation!("rprivate").expect("/mounts/~1/propagation", json!(["private"])),
        propagation!("slave"),
        propagation!("rslave"),
        propagation!("shared").expect("/mounts/~1/propagation", json!(["shared"])),
        propagation!("rshared").expect("/mounts/~1/propagation", json!(["shared"])),
        propagation!("unbindable")
            .unable(Kind::Runc, "invalid argument")
            .expect("/mounts/~1/propagation", json!(["unbindable"])),
        propagation!("runbindable")
            .unable(Kind::Runc, "invalid argument")
            .unable(Kind::Crun, "Invalid argument")
            .expect("/mounts/~1/propagation", json!(["unbindable"])),
    ]
}

fn with_user_namespace(bundle: &mut Bundle) {
    bundle.with_user_namespace();
}

/// A directory with a file, beside the image.
fn data(bundle: &Bundle) {
    let directory = bundle.dir().join("files/data");
    std::fs::create_dir_all(&directory).expect("make");
    std::fs::write(directory.join("file"), "data").expect("write");
}

/// A directory of the host that has another mount below it.
fn nested(_: &Scratch) -> String {
    "/dev".to_owned()
}

/// The type of the file system that the bundles lie on.
fn root_type() -> String {
    let temporary = std::env::temp_dir()
        .canonicalize()
        .expect("a temporary directory");
    let table = host::mountinfo();
    let best = table
        .lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let point = left.split(' ').nth(4)?;
            temporary
                .starts_with(point)
                .then(|| (point.len(), right.split(' ').next()))
        })
        .max_by_key(|(length, _)| *length);
    best.and_then(|(_, kind)| kind).expect("a mount").to_owned()
}

/// A process with namespaces of its own; its pid. It ends with the scratch directory.
fn hold_namespaces(scratch: &Scratch) -> i32 {
    let ready = scratch.dir().join(scratch.unique());
    let script = format!(
        "hostname held && touch {} && exec sleep 300",
        ready.display()
    );
    let words = [
        "unshare", "--net", "--ipc", "--uts", "--pid", "--fork", "sh", "-c", &script,
    ];
    let running = Run::new(scratch, &words).start();
    let end = Instant::now() + Duration::from_secs(10);
    while !ready.exists() {
        assert!(
            Instant::now() < end,
            "unshare did not start: {}",
            running.stderr()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    running.pid().as_raw_nonzero().get()
}

/// What one runtime shows for one case.
fn look(case: &Case, runtime: Runtime) -> Result<Value, String> {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, case.engine, &["/probe"]);
    bundle.with_probe();
    (case.build)(&scratch, &mut bundle);
    bundle.write();
    let runtime = runtime.seeing(case.view);
    observe::observe(&scratch, &runtime, &bundle).map_err(|finished| finished.to_string())
}

/// The engine's own configuration under an oracle that is not able to do the case: in
/// all that the case is not about, pipkin may be like it.
fn look_at_the_plain_one(case: &Case, runtime: Runtime) -> Result<Value, String> {
    look(&self::case(case.name, case.engine, |_, _| {}), runtime)
}

/// All that is wrong with one case, and the deviations that the list must explain.
fn judge(case: &Case) -> (Vec<String>, Vec<compare::Deviation>) {
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for runtime in [Runtime::runc(), Runtime::crun()] {
        let kind = runtime.kind;
        let unable = case.unable.iter().find(|(unable, _)| *unable == kind);
        match (look(case, runtime.clone()), unable) {
            (Ok(value), None) => seen.push((kind.to_string(), value)),
            (Ok(_), Some((_, words))) => {
                wrong.push(format!(
                    "{kind} was expected to fail with {words:?} and does not"
                ));
            }
            (Err(message), Some((_, words))) if message.contains(words) => {
                match look_at_the_plain_one(case, runtime) {
                    Ok(value) => seen.push((format!("plain {kind}"), value)),
                    Err(message) => wrong.push(format!("plain {kind}: {message}")),
                }
            }
            (Err(message), _) => wrong.push(format!("{kind}: {message}")),
        }
    }
    let ours = match look(case, Runtime::pipkin()) {
        Ok(value) => value,
        Err(message) => {
            wrong.push(message);
            return (named(case, wrong), Vec::new());
        }
    };
    for (pointer, value) in &case.expected {
        if ours.pointer(pointer) != Some(value) {
            let found = ours
                .pointer(pointer)
                .map_or_else(|| "nothing".into(), Value::to_string);
            wrong.push(format!("{pointer} should be {value}, is {found}"));
        }
    }
    if seen.is_empty() {
        return (named(case, wrong), Vec::new());
    }
    let oracles: Vec<(&str, &Value)> = seen
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    let mut deviations = compare::deviations(case.name, &ours, &oracles);
    // What was expected by value is judged already.
    deviations.retain(|one| {
        case.expected
            .iter()
            .all(|(pointer, _)| one.path != *pointer)
    });
    (named(case, wrong), deviations)
}

fn named(case: &Case, lines: Vec<String>) -> Vec<String> {
    lines
        .into_iter()
        .map(|line| format!("{}: {line}", case.name))
        .collect()
}

/// Judges the cases two at a time and settles what they found.
#[test]
fn the_probe_sees_the_same() {
    let mut cases = engines();
    cases.extend(identity());
    cases.extend(namespaces());
    cases.extend(file_systems());
    let only = std::env::var("PIPKIN_CASE").ok();
    cases.retain(|case| {
        only.as_ref()
            .is_none_or(|only| case.name.contains(only.as_str()))
    });
    assert!(!cases.is_empty(), "no case has this name");
    let next = AtomicUsize::new(0);
    let results = Mutex::new((Vec::new(), Ledger::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (wrong, deviations) = judge(case);
                    let mut results = results.lock().expect("no one panicked");
                    results.0.extend(wrong);
                    results.1.add(deviations);
                }
            });
        }
    });
    let (mut wrong, ledger) = results.into_inner().expect("no one panicked");
    wrong.extend(ledger.unlisted());
    if only.is_none() {
        wrong.extend(
            ledger
                .stale()
                .into_iter()
                .map(|line| format!("no longer differs: {line}")),
        );
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases are done; {} things are wrong:\n{}",
        cases.len(),
        cases.len(),
        wrong.len(),
        wrong.join("\n")
    );
}
