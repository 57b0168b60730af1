//! A test for each published escape that concerns creating and running a container.
//!
//! The image, what is mounted into it and every process in it are hostile. Each test
//! looks at what the host would lose, not at how the runtime defends it: a run may be
//! refused or may be harmless.

use pipkin_tests::runtime::{Kind, private_mounts};
use pipkin_tests::{
    Bundle, Container, Finished, Run, Runtime, Scratch, Snapshot, View, host, scratch,
};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A directory of the host that no container may touch, and how it was.
struct Precious {
    path: PathBuf,
    before: Vec<String>,
}

impl Precious {
    fn new(scratch: &Scratch) -> Self {
        let path = scratch.dir().join("precious");
        fs::create_dir(&path).expect("make a directory");
        fs::write(path.join("file"), "the host's").expect("write");
        fs::create_dir(path.join("directory")).expect("make a directory");
        let before = Self::look(&path);
        Self { path, before }
    }

    fn look(path: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(path).expect("read").flatten() {
            let metadata = entry.path().symlink_metadata().expect("metadata");
            let content = if metadata.is_file() {
                fs::read_to_string(entry.path()).expect("read")
            } else {
                String::new()
            };
            found.push(format!(
                "{} {:o} {}:{} {content}",
                entry.path().display(),
                metadata.mode(),
                metadata.uid(),
                metadata.gid()
            ));
            if metadata.is_dir() {
                found.extend(Self::look(&entry.path()));
            }
        }
        found.sort();
        found
    }

    /// A link target that leads from any directory of the image to the precious one,
    /// when it is followed on the host.
    fn escape(&self) -> String {
        format!(
            "{}{}",
            "../".repeat(20),
            self.path.display().to_string().trim_start_matches('/')
        )
    }

    #[track_caller]
    fn assert_untouched(&self, after: &str) {
        assert_eq!(Self::look(&self.path), self.before, "{after}");
    }
}

fn replace_with_link(image: &Path, name: &str, target: impl AsRef<Path>) {
    let path = image.join(name);
    if path.is_dir() {
        fs::remove_dir_all(&path).expect("remove");
    } else {
        let _ = fs::remove_file(&path);
    }
    symlink(target, path).expect("link");
}

fn run(scratch: &Scratch, bundle: &mut Bundle) -> Finished {
    bundle.write();
    let runtime = Runtime::pipkin();
    Container::named(scratch, &runtime)
        .command(&["run", "-b", bundle.path()])
        .finish()
}

/// CVE-2026-41579, CVE-2026-47766: the image's /dev is a link to a directory of the host.
#[test]
fn dev_of_the_image_is_a_link() {
    for absolute in [false, true] {
        for engine in ["podman", "containerd", "no mount"] {
            let scratch = Scratch::new();
            let before = Snapshot::take(&scratch);
            let precious = Precious::new(&scratch);
            let name = if engine == "no mount" {
                "containerd"
            } else {
                engine
            };
            let mut bundle = Bundle::new(&scratch, name, &["/bin/true"]);
            if engine == "no mount" {
                for place in ["/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"] {
                    bundle.without_mount(place);
                }
            }
            let target = precious.path.display().to_string();
            replace_with_link(
                &bundle.rootfs(),
                "dev",
                if absolute { target } else { precious.escape() },
            );
            let finished = run(&scratch, &mut bundle);
            precious.assert_untouched(&format!("{engine}: {finished}"));
            before.assert_unchanged(&scratch, engine);
        }
    }
}

/// CVE-2019-19921, CVE-2023-27561, CVE-2023-28642, CVE-2025-54867: /proc or /sys of the
/// image is a link; what is written below it would go elsewhere.
#[test]
fn proc_or_sys_of_the_image_is_a_link() {
    for name in ["proc", "sys"] {
        for inside in [true, false] {
            let scratch = Scratch::new();
            let before = Snapshot::take(&scratch);
            let precious = Precious::new(&scratch);
            let mut bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
            fs::create_dir(bundle.rootfs().join("elsewhere")).expect("make a directory");
            let target = if inside {
                "elsewhere".to_owned()
            } else {
                precious.escape()
            };
            replace_with_link(&bundle.rootfs(), name, target);
            let finished = run(&scratch, &mut bundle).fails();
            finished.says(&[&format!("/{name}"), "link"]);
            precious.assert_untouched(name);
            before.assert_unchanged(&scratch, name);
        }
    }
}

/// CVE-2019-18837 and its kin: the way to a mount's destination leaves the image.
#[test]
fn destinations_behind_links() {
    for kind in [
        "tmpfs",
        "directory",
        "file",
        "device",
        "masked",
        "directory of work",
    ] {
        let scratch = Scratch::new();
        let precious = Precious::new(&scratch);
        let mut bundle = Bundle::new(&scratch, "docker", &["/bin/true"]);
        let image = bundle.rootfs();
        replace_with_link(&image, "out", precious.escape());
        replace_with_link(&image, "absolute", &precious.path);
        let files = bundle.dir().join("files").to_string_lossy().into_owned();
        for way in ["/out", "/absolute"] {
            let place = |name: &str| format!("{way}/{name}");
            match kind {
                "tmpfs" => {
                    bundle.mount("tmpfs", "tmpfs", &place("new"), &["size=1m"]);
                    bundle.mount("tmpfs", "tmpfs", &place("directory"), &["size=1m"]);
                }
                "directory" => {
                    bundle.mount("bind", &files, &place("new/deep"), &["rbind"]);
                }
                "file" => {
                    bundle.mount(
                        "bind",
                        &format!("{files}/hosts"),
                        &place("new/file"),
                        &["bind"],
                    );
                    bundle.mount("bind", &format!("{files}/hosts"), &place("file"), &["bind"]);
                }
                "device" => {
                    let path = place("device");
                    bundle.set(
                        "/linux/devices/-",
                        json!(
                        { "path": path, "type": "c", "major": 1, "minor": 3, "fileMode": 438 }),
                    );
                }
                "masked" => {
                    bundle.set("/linux/maskedPaths/-", json!(place("file")));
                    bundle.set("/linux/readonlyPaths/-", json!(place("directory")));
                }
                _ => {
                    bundle.set("/process/cwd", json!(place("work")));
                }
            }
        }
        let finished = run(&scratch, &mut bundle);
        precious.assert_untouched(&format!("{kind}: {finished}"));
    }
}

/// A mount that a link of the image puts over a file system which the plan has made: what
/// follows is mounted where its path leads, not below what was covered, and a name that is there
/// after all is used.
#[test]
fn mounts_over_what_was_made_by_a_link() {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, "podman", &[]);
    replace_with_link(&bundle.rootfs(), "var/run", "/run");
    for name in ["first", "volume", "second", "third"] {
        bundle.file(&format!("{name}/{name}"), "");
    }
    fs::create_dir(bundle.dir().join("volume/third")).expect("make a directory");
    bundle.mount("tmpfs", "tmpfs", "/run", &["mode=755"]);
    for (name, place) in [
        // Both are one place, and then all of it is covered.
        ("volume", "/var/run/first"),
        ("first", "/run/first"),
        ("volume", "/var/run"),
        ("second", "/run/second"),
        ("third", "/run/third"),
    ] {
        let source = bundle.dir().join(name).to_string_lossy().into_owned();
        bundle.mount("bind", &source, place, &["bind"]);
    }
    bundle.shell("ls -d /run/volume /run/second/second /run/third/third");
    run(&scratch, &mut bundle).code(0);
}

/// CVE-2025-31133, CVE-2025-62161: masks come from the container's /dev/null, which the
/// image made a link to a file of /proc, so that the mask is that file, writable.
#[test]
fn masks_are_not_the_images_null() {
    for target in ["/proc/sys/kernel/panic", "/proc/version", "/data/file"] {
        let scratch = Scratch::new();
        let mut bundle = Bundle::new(&scratch, "docker", &[]);
        let image = bundle.rootfs();
        fs::create_dir(image.join("data")).expect("make a directory");
        fs::write(image.join("data/file"), "the image's").expect("write");
        for place in ["/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"] {
            bundle.without_mount(place);
        }
        replace_with_link(&image, "dev/null", target);
        bundle.set(
            "/linux/maskedPaths",
            json!(["/proc/keys", "/proc/timer_list", "/data/file"]),
        );
        bundle.shell("for file in /proc/keys /proc/timer_list; do stat -c '%F %t:%T' $file; done");
        let finished = run(&scratch, &mut bundle);
        if finished.status.success() {
            assert_eq!(
                finished.stdout, "character special file 1:3\ncharacter special file 1:3\n",
                "{target}: {finished}"
            );
        }
    }
}

/// CVE-2026-88265, and the same from another side: the owner of a standard stream is
/// changed, and the stream is not the container's.
#[test]
fn null_of_the_host_keeps_its_owner() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    // Not the machine's own: a runtime that fails must not break it.
    let null = scratch.dir().join("null");
    let number = rustix::fs::makedev(1, 3);
    rustix::fs::mknodat(
        CWD,
        &null,
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o666),
        number,
    )
    .expect("mknod");
    let mut bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    with_user_namespace(&mut bundle);
    bundle
        .set("/process/user", json!({ "uid": 1000, "gid": 1000 }))
        .write();
    let script = format!(
        "chown -R 100000:100000 $0 && exec \"$@\" <{0} >{0}",
        null.display()
    );
    let image = bundle.rootfs().to_string_lossy().into_owned();
    let mut line: Vec<String> = ["sh", "-c", &script, &image].map(str::to_owned).to_vec();
    line.push(runtime.path.to_string_lossy().into_owned());
    line.extend([
        "--root".into(),
        scratch.state_root().to_string_lossy().into_owned(),
    ]);
    line.extend(["run", "-b", bundle.path(), &scratch.unique()].map(str::to_owned));
    Run::new(&scratch, &line).ok();
    let metadata = null.metadata().expect("metadata");
    assert_eq!(
        (metadata.uid(), metadata.gid()),
        (0, 0),
        "the container's user has it now"
    );
}

fn with_user_namespace(bundle: &mut Bundle) {
    let mapping = json!([{ "containerID": 0, "hostID": 100_000, "size": 65536 }]);
    bundle.namespace("user", None);
    bundle
        .set("/linux/uidMappings", mapping.clone())
        .set("/linux/gidMappings", mapping);
    bundle.remove("/linux/sysctl");
}

/// CVE-2026-88264: /dev/console of the image is a link, and the console is made there.
#[test]
fn console_behind_a_link() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let precious = Precious::new(&scratch);
    let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
    for place in ["/dev", "/dev/shm", "/dev/mqueue"] {
        bundle.without_mount(place);
    }
    bundle.set("/process/terminal", json!(true)).write();
    replace_with_link(
        &bundle.rootfs(),
        "dev/console",
        format!("{}/console", precious.escape()),
    );
    let socket = scratch.dir().join("console.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("listen");
    listener.set_nonblocking(true).expect("nonblocking");
    let container = Container::named(&scratch, &runtime);
    let path = socket.to_string_lossy().into_owned();
    let words = ["create", "--console-socket", &path, "-b", bundle.path()];
    let finished = container.command(&words).finish();
    if finished.status.success() {
        container.command(&["start"]).finish();
    }
    container.command(&["delete", "--force"]).ok();
    precious.assert_untouched(&finished.to_string());
}

/// CVE-2024-21626: the current directory is a descriptor of the host that is still open.
#[test]
fn working_directory_outside_the_root() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let precious = Precious::new(&scratch);
    for number in (0..20).chain([99]) {
        let mut bundle = Bundle::new(&scratch, "containerd", &[]);
        // Where the way up ends is the container's root, or else the host's.
        bundle.shell("cd ../../../../../../../../../..; ls -d precious-mark tmp/*/precious 2>&1; ls -di .; ls -di /");
        bundle
            .set("/process/cwd", json!(format!("/proc/self/fd/{number}")))
            .write();
        let script = format!("exec 9<{0} 99<{0}; exec \"$@\"", precious.path.display());
        let mut line: Vec<String> = ["bash", "-c", &script, "bash"].map(str::to_owned).to_vec();
        line.push(runtime.path.to_string_lossy().into_owned());
        line.extend([
            "--root".into(),
            scratch.state_root().to_string_lossy().into_owned(),
        ]);
        line.extend(["run", "-b", bundle.path(), &scratch.unique()].map(str::to_owned));
        let finished = Run::new(&scratch, &line).finish();
        if finished.status.success() {
            let inodes: Vec<&str> = finished
                .stdout
                .lines()
                .rev()
                .take(2)
                .filter_map(|line| line.split_whitespace().next())
                .collect();
            assert_eq!(
                inodes.first(),
                inodes.get(1),
                "outside the root: {finished}"
            );
        }
        assert!(
            !finished.stdout.contains("/precious"),
            "the host is in sight: {finished}"
        );
    }
}

/// CVE-2026-135844: files of the image are read whole.
#[test]
fn passwd_of_the_image_without_end() {
    let long = format!("root:x:0:0:{}:/root:/bin/sh\n", "x".repeat(1 << 20));
    for kind in [
        "sparse",
        "long line",
        "pipe",
        "directory",
        "device",
        "link out",
    ] {
        let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
        let precious = Precious::new(&scratch);
        let mut bundle = Bundle::new(
            &scratch,
            "containerd",
            &["/bin/sh", "-c", "echo home $HOME"],
        );
        bundle.set("/process/env", json!(["PATH=/bin"]));
        bundle
            .set("/process/user", json!({ "uid": 4242, "gid": 4242 }))
            .write();
        for name in ["etc/passwd", "etc/group"] {
            let path = bundle.rootfs().join(name);
            let _ = fs::remove_file(&path);
            match kind {
                "sparse" => {
                    let file = fs::File::create(&path).expect("create");
                    file.set_len(16 << 30).expect("make it large");
                }
                "long line" => fs::write(&path, &long).expect("write"),
                "pipe" => {
                    let mode = Mode::from_raw_mode(0o644);
                    rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("mkfifo");
                }
                "directory" => fs::create_dir(&path).expect("make a directory"),
                "device" => {
                    let (kind, mode) = (FileType::CharacterDevice, Mode::from_raw_mode(0o644));
                    rustix::fs::mknodat(CWD, &path, kind, mode, rustix::fs::makedev(1, 5))
                        .expect("mknod");
                }
                _ => {
                    let stolen = precious.path.join("file");
                    fs::write(&stolen, "thief:x:4242:4242::/stolen:/bin/sh\n").expect("write");
                    symlink(format!("{}/file", precious.escape()), &path).expect("link");
                }
            }
        }
        // Enough for any honest start, too little for the whole file.
        let limit = "ulimit -v 4194304; exec \"$@\"";
        let mut line: Vec<String> = ["sh", "-c", limit, "sh"].map(str::to_owned).to_vec();
        line.push(runtime.path.to_string_lossy().into_owned());
        line.extend([
            "--root".into(),
            scratch.state_root().to_string_lossy().into_owned(),
        ]);
        line.extend(["run", "-b", bundle.path(), &scratch.unique()].map(str::to_owned));
        let finished = Run::new(&scratch, &line)
            .patience(Duration::from_secs(10))
            .finish();
        if finished.status.success() {
            assert!(!finished.stdout.contains("stolen"), "{kind}: {finished}");
        } else {
            let finished = finished.fails();
            assert!(
                !finished.stderr.contains("memory allocation"),
                "{kind}: {finished}"
            );
        }
    }
}

/// CVE-2021-30465, CVE-2024-45310: while mounts are made, another process exchanges a
/// directory on the way with a link that leads out.
#[test]
fn directories_that_turn_into_links() {
    let scratch = Scratch::new();
    let precious = Precious::new(&scratch);
    let mut bundle = Bundle::new(&scratch, "docker", &["/bin/true"]);
    // The volume is the attacker's: other containers have it too.
    let volume = bundle.dir().join("volume");
    for directory in [volume.clone(), bundle.rootfs().join("in-image")] {
        fs::create_dir_all(directory.join("way/deep")).expect("make directories");
        symlink(precious.escape(), directory.join("way.evil")).expect("link");
    }
    let source = volume.to_string_lossy().into_owned();
    bundle.mount("bind", &source, "/volume", &["rbind"]);
    for place in ["/volume", "/in-image"] {
        bundle.mount(
            "tmpfs",
            "tmpfs",
            &format!("{place}/way/deep/one"),
            &["size=1m"],
        );
        bundle.mount("bind", &source, &format!("{place}/way/two"), &["bind"]);
        bundle.mount(
            "bind",
            &format!("{source}/../config.json"),
            &format!("{place}/way/file"),
            &["bind", "ro"],
        );
        bundle.set(
            "/linux/devices/-",
            json!(
            { "path": format!("{place}/way/null"), "type": "c", "major": 1, "minor": 3 }),
        );
    }
    bundle.write();
    let stop = AtomicBool::new(false);
    let exchanged = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut count = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                for directory in [volume.clone(), bundle.rootfs().join("in-image")] {
                    let (one, two) = (directory.join("way"), directory.join("way.evil"));
                    let flags = RenameFlags::EXCHANGE;
                    count +=
                        u64::from(rustix::fs::renameat_with(CWD, &one, CWD, &two, flags).is_ok());
                }
            }
            count
        });
        let runtime = Runtime::pipkin();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..60 {
                let container = Container::named(&scratch, &runtime);
                let finished = container.command(&["run", "-b", bundle.path()]).finish();
                precious.assert_untouched(&finished.to_string());
            }
        }));
        stop.store(true, Ordering::Relaxed);
        let count = swapper.join().expect("the swapper");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
        count
    });
    assert!(
        exchanged > 1_000,
        "only {exchanged} exchanges: no race was tried"
    );
}

/// CVE-2022-29162, CVE-2022-27650, CVE-2025-27612: programs with file capabilities gain
/// what the inheritable set has.
#[test]
fn inheritable_capabilities_are_empty() {
    for engine in pipkin_tests::bundle::ENGINES {
        for user in [0, 1000] {
            let scratch = Scratch::new();
            let mut bundle = Bundle::new(&scratch, engine, &["/probe"]);
            bundle
                .with_probe()
                .set("/process/user", json!({ "uid": user, "gid": user }));
            let seen = run(&scratch, &mut bundle).ok().json();
            assert_eq!(seen["capabilities"]["inheritable"], json!([]), "{engine}");
            assert_eq!(seen["capabilities"]["ambient"], json!([]), "{engine}");
        }
    }
}

/// GHSA-g54h-m393-cpwq: without a rule that denies, every device is allowed.
#[test]
fn devices_are_denied_without_a_rule() {
    for view in [View::Host, View::OnlyUnified] {
        for rules in [
            None,
            Some(json!([])),
            Some(
                json!([{ "allow": true, "type": "c", "major": 10, "minor": 229, "access": "rwm" }]),
            ),
            Some(
                json!([{ "allow": false, "type": "c", "major": 10, "minor": 229, "access": "rwm" }]),
            ),
        ] {
            let scratch = Scratch::new();
            let runtime = Runtime::pipkin().seeing(view);
            let mut bundle = Bundle::new(&scratch, "docker", &["/probe"]);
            bundle.with_probe().remove("/linux/resources");
            if let Some(rules) = &rules {
                bundle.set("/linux/resources", json!({ "devices": rules }));
            }
            bundle.write();
            let container = Container::named(&scratch, &runtime);
            let seen = container.command(&["run", "-b", bundle.path()]).ok().json();
            let open = |trial: &str| seen["trials"][trial]["open"].clone();
            assert_eq!(open("open disk"), "EPERM", "{view:?} {rules:?}");
            assert_eq!(open("open device"), "EPERM", "{view:?} {rules:?}");
            assert_eq!(open("open null"), "ok", "{view:?} {rules:?}");
        }
    }
}

/// CVE-2023-25809: without a cgroup namespace, the host's groups are writable inside.
#[test]
fn groups_of_the_host_cannot_be_made() {
    for view in [View::Host, View::NoUnified, View::OnlyUnified] {
        for options in [&["nosuid", "noexec", "nodev"][..], &["rw"], &["ro"]] {
            let scratch = Scratch::new();
            let runtime = Runtime::pipkin().seeing(view);
            let mut bundle = Bundle::new(&scratch, "docker", &[]);
            bundle
                .remove("/linux/resources")
                .without_mount("/sys/fs/cgroup");
            bundle.mount("cgroup", "cgroup", "/sys/fs/cgroup", options);
            let name = format!("escape-{}", scratch.token());
            bundle.shell(&format!(
                "mkdir /sys/fs/cgroup/{name} /sys/fs/cgroup/*/{name} 2>/dev/null; \
                 echo 1 2>/dev/null >/sys/fs/cgroup/cgroup.procs; sleep 300"
            ));
            bundle.write();
            let container = Container::started(&scratch, &runtime, &bundle);
            std::thread::sleep(Duration::from_millis(100));
            let own = bundle.cgroup.clone();
            let outside: Vec<PathBuf> = scratch
                .cgroups()
                .into_iter()
                .filter(|path| path.to_string_lossy().contains(&name))
                .filter(|path| !path.to_string_lossy().contains(&own))
                .collect();
            container.command(&["delete", "--force"]).ok();
            assert!(outside.is_empty(), "{view:?} {options:?}: {outside:?}");
        }
    }
}

/// CVE-2019-16884, CVE-2025-52881, CVE-2026-115521: a mount makes a false /proc; what the
/// runtime writes below it or opens through it goes where the image wants.
#[test]
fn writes_do_not_go_through_a_false_proc() {
    for place in ["/proc", "/proc/sys", "/proc/self", "/proc/sys/net/ipv4"] {
        let scratch = Scratch::new();
        let precious = Precious::new(&scratch);
        let mut bundle = Bundle::new(&scratch, "docker", &[]);
        let volume = bundle.dir().join("volume");
        for directory in [
            "sys/net/ipv4",
            "net/ipv4",
            "self/fd",
            "self/attr",
            "fd",
            "attr",
        ] {
            fs::create_dir_all(volume.join(directory)).expect("make directories");
        }
        let target = format!("{}/file", precious.escape());
        for name in [
            "sys/net/ipv4/ping_group_range",
            "net/ipv4/ping_group_range",
            "ping_group_range",
            "sys/net/ipv4/ip_unprivileged_port_start",
            "net/ipv4/ip_unprivileged_port_start",
            "ip_unprivileged_port_start",
            "self/oom_score_adj",
            "oom_score_adj",
            "self/attr/exec",
            "attr/exec",
            "self/setgroups",
            "setgroups",
        ] {
            symlink(&target, volume.join(name)).expect("link");
        }
        for number in 0..30 {
            for directory in ["self/fd", "fd"] {
                symlink("/tmp", volume.join(format!("{directory}/{number}"))).expect("link");
            }
        }
        let source = volume.to_string_lossy().into_owned();
        bundle.mount("bind", &source, place, &["rbind"]);
        bundle
            .set("/process/oomScoreAdj", json!(7))
            .set("/root/readonly", json!(true));
        bundle.shell("if touch /written 2>/dev/null; then echo the root is writable; fi");
        let finished = run(&scratch, &mut bundle);
        precious.assert_untouched(&format!("{place}: {finished}"));
        assert!(!finished.stdout.contains("writable"), "{place}: {finished}");
        assert!(
            !bundle.rootfs().join("written").exists(),
            "{place}: {finished}"
        );
        assert!(
            fs::read_to_string(precious.path.join("file")).is_ok_and(|text| text == "the host's")
        );
    }
}

type Change<'a> = &'a dyn Fn(&mut Bundle);

/// CVE-2021-43784: a length that overflows on the way to the process that sets up.
#[test]
fn very_long_values_are_refused_or_work() {
    let scratch = Scratch::new();
    let before = Snapshot::take(&scratch);
    let long = format!("/{}", "x".repeat(70_000));
    let changes: [(&str, Change); 5] = [
        ("namespace", &|bundle| {
            bundle.namespace("network", Some(&long));
        }),
        ("mapping", &|bundle| {
            with_user_namespace(bundle);
            let range = |number: u32| json!({ "containerID": number, "hostID": 100_000 + number, "size": 1 });
            bundle.set("/linux/uidMappings", (0..400).map(range).collect());
        }),
        ("destination", &|bundle| {
            bundle.mount("tmpfs", "tmpfs", &long, &[]);
        }),
        ("options", &|bundle| {
            bundle.mount(
                "tmpfs",
                "tmpfs",
                "/mnt",
                &[&format!("size={}", "9".repeat(9_000))],
            );
        }),
        ("program", &|bundle| {
            bundle.args(&[&long]);
        }),
    ];
    for (name, change) in changes {
        let mut bundle = Bundle::new(&scratch, "docker", &["/bin/true"]);
        change(&mut bundle);
        let finished = run(&scratch, &mut bundle);
        if name == "options" && finished.status.success() {
            // The kernel's own reading of a size has no limit on its length.
            continue;
        }
        finished.fails();
        before.assert_unchanged(&scratch, name);
    }
    // What is long but right works.
    let mut bundle = Bundle::new(
        &scratch,
        "docker",
        &["/bin/sh", "-c", "exit ${#LONG}", &long],
    );
    bundle.set("/process/env/-", json!(format!("LONG={}", "y".repeat(99))));
    for number in 0..300 {
        bundle.set(
            "/process/env/-",
            json!(format!("V{number}={}", "z".repeat(200))),
        );
    }
    run(&scratch, &mut bundle).code(99);
}

/// CVE-2019-5736: a process of a container gets a handle of the runtime's program and
/// writes to it when nobody executes it any more.
#[test]
fn the_runtimes_program_cannot_be_overwritten() {
    for trick in [
        "/proc/self/exe",
        "script",
        "script with arguments",
        "nothing",
    ] {
        let scratch = Scratch::new();
        // A copy: a runtime that fails this test must not destroy itself.
        let copy = scratch.dir().join("runtime");
        fs::copy(host::program(), &copy).expect("copy the runtime");
        let content = fs::read(&copy).expect("read the copy");
        let runtime = Runtime {
            kind: Kind::Pipkin,
            path: copy.clone(),
            view: View::Host,
        };
        // The attacker waits in a container whose process namespace the victims join. It
        // has every right that a container can be given.
        let mut bundle = Bundle::new(&scratch, "docker", &["/probe", "attack-exe", "3"]);
        bundle.with_probe();
        all_rights(&mut bundle);
        bundle.write();
        let attacker = Container::named(&scratch, &runtime);
        let attack = attacker.command(&["run", "-b", bundle.path()]).start();
        let end = Instant::now() + Duration::from_secs(10);
        let namespace = loop {
            let state = attacker.command(&["state"]).finish();
            if state.status.success() && state.json()["status"] == "running" {
                break format!("/proc/{}/ns/pid", attacker.pid());
            }
            assert!(Instant::now() < end, "the attacker does not start: {state}");
            std::thread::sleep(Duration::from_millis(10));
        };
        for _ in 0..12 {
            let mut victim = Bundle::new(&scratch, "docker", &["/bin/true"]);
            all_rights(&mut victim);
            victim.namespace("pid", Some(&namespace));
            let script = victim.rootfs().join("script");
            fs::write(&script, "#!/proc/self/exe --help\n").expect("write");
            scratch::set_mode(&script, 0o755);
            match trick {
                "/proc/self/exe" => victim.args(&["/proc/self/exe", "--version"]),
                "script" => victim.args(&["/script"]),
                "script with arguments" => victim.args(&["/script", "run", "x"]),
                _ => victim.args(&["/bin/true"]),
            };
            victim.write();
            let container = Container::named(&scratch, &runtime);
            // It may fail, and it may try to be a runtime; it must end.
            container.command(&["run", "-b", victim.path()]).finish();
        }
        let report = attack.finish();
        let seen = report.json();
        assert!(
            seen["looks"].as_u64().is_some_and(|looks| looks > 10),
            "no attack: {seen}"
        );
        assert!(
            fs::read(&copy).is_ok_and(|now| now == content),
            "{trick}: overwritten: {seen}"
        );
        let inode = copy.metadata().expect("metadata").ino();
        let handles = seen["handles"].as_array().expect("a list");
        for handle in handles {
            assert!(
                handle["inode"] != inode || handle["write"] != "ok",
                "{trick}: the host's program could be written to: {seen}"
            );
        }
    }
}

fn all_rights(bundle: &mut Bundle) {
    let all: Vec<String> = [
        "CHOWN",
        "DAC_OVERRIDE",
        "DAC_READ_SEARCH",
        "FOWNER",
        "KILL",
        "SETGID",
        "SETUID",
        "SETPCAP",
        "SYS_ADMIN",
        "SYS_CHROOT",
        "SYS_PTRACE",
        "MKNOD",
        "SETFCAP",
        "LINUX_IMMUTABLE",
    ]
    .map(|name| format!("CAP_{name}"))
    .to_vec();
    for set in ["bounding", "effective", "permitted"] {
        bundle.set(&format!("/process/capabilities/{set}"), json!(all));
    }
    bundle.remove("/linux/seccomp").remove("/linux/resources");
    bundle
        .set("/linux/maskedPaths", json!([]))
        .set("/linux/readonlyPaths", json!([]));
}

/// Rule 6: the process that sets the container up cannot be looked into by those
/// that are already in the namespaces that it joins.
#[test]
fn nothing_of_the_host_is_open_in_a_waiting_container() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "podman", &["/bin/sleep", "300"]);
    let container = Container::create(&scratch, &runtime, &bundle);
    let pid = container.pid();
    let host_root = fs::metadata("/").expect("metadata");
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).expect(name);
    let mounts = read("mountinfo");
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("descriptors")
        .flatten()
    {
        let number = entry.file_name().to_string_lossy().into_owned();
        if ["0", "1", "2"].contains(&number.as_str()) {
            continue;
        }
        let target = fs::read_link(entry.path()).expect("a target");
        let kind = fs::metadata(entry.path()).expect("metadata").file_type();
        assert!(
            !kind.is_block_device(),
            "descriptor {number} is {}",
            target.display()
        );
        if kind.is_dir() {
            // A directory must be one of the container's own mounts.
            let info = read(&format!("fdinfo/{number}"));
            let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
            let mount = format!("{} ", mount.expect("mnt_id").trim());
            let own = mounts.lines().any(|line| line.starts_with(&mount));
            assert!(
                own,
                "descriptor {number} is the host's {}",
                target.display()
            );
        }
    }
    let root = fs::metadata(format!("/proc/{pid}/root/")).expect("metadata");
    assert_ne!(
        (root.dev(), root.ino()),
        (host_root.dev(), host_root.ino()),
        "the root is the host's"
    );
    container.command(&["start"]).ok();
    // `start` may return a moment before the program is executed.
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let open = fs::read_dir(format!("/proc/{pid}/fd"))
            .expect("descriptors")
            .count();
        if open == 3 {
            break;
        }
        assert!(Instant::now() < end, "{open} descriptors are open");
        std::thread::sleep(Duration::from_millis(5));
    }
    container.end();
}

/// Nothing of the host's mounts is reachable, also not by taking mounts away.
#[test]
fn the_hosts_mounts_are_out_of_reach() {
    let scratch = Scratch::new();
    let precious = Precious::new(&scratch);
    let mut bundle = Bundle::new(&scratch, "docker", &[]);
    all_rights(&mut bundle);
    let looks = "ls -d /../tmp/pipkin-*/precious /proc/1/root/tmp/pipkin-*/precious tmp/*/precious";
    bundle.shell(&format!(
        "{looks}; umount -l /proc; umount -l / && cd / && {looks}; cd ..; pwd; {looks}; chroot . ls -R / | grep precious; true"
    ));
    let finished = run(&scratch, &mut bundle);
    assert!(!finished.stdout.contains("precious"), "{finished}");
    precious.assert_untouched(&finished.to_string());
}

/// The mounts of a container do not come back to the host, whatever their propagation.
#[test]
fn mounts_do_not_come_back() {
    let scratch = Scratch::new();
    let before = Snapshot::take(&scratch);
    for propagation in ["shared", "rshared", "slave", "private"] {
        let mut bundle = Bundle::new(&scratch, "docker", &[]);
        all_rights(&mut bundle);
        bundle.set("/linux/rootfsPropagation", json!(propagation));
        bundle
            .shell("mount -t tmpfs inside /tmp && mount -t tmpfs inside /root")
            .write();
        // The bundle lies on a shared mount, as on any machine with systemd.
        let place = bundle.path();
        let arrange = format!("mount --bind {place} {place} && mount --make-shared {place}");
        let script = format!("{arrange} && \"$@\" && ! grep inside /proc/self/mountinfo",);
        let runtime = Runtime::pipkin();
        let mut line = private_mounts(&script);
        line.push(runtime.path.to_string_lossy().into_owned());
        line.extend([
            "--root".into(),
            scratch.state_root().to_string_lossy().into_owned(),
        ]);
        line.extend(["run", "-b", place, &scratch.unique()].map(str::to_owned));
        Run::new(&scratch, &line).ok();
    }
    before.assert_unchanged(&scratch, "mounts in containers");
}

/// What a container mounts on a device or on a masked file, which the host's own nodes are, is not
/// mounted on the host, whose mounts are shared where systemd runs.
#[test]
fn mounts_on_devices_stay_inside() {
    for user_namespace in [false, true] {
        let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
        let mut bundle = Bundle::new(&scratch, "docker", &[]);
        if user_namespace {
            bundle.with_user_namespace();
        }
        all_rights(&mut bundle);
        bundle.set(
            "/linux/maskedPaths",
            json!(["/proc/keys", "/proc/timer_list"]),
        );
        // Where it is not the host's node there is nothing to try.
        bundle.shell(
            "for place in /proc/keys /proc/timer_list /dev/zero /dev/null; do
                 mount -o bind /etc/hostname $place || exit 1
             done; grep -c ' /etc/hostname ' /proc/self/mountinfo",
        );
        bundle.write();
        let program = runtime.path.to_string_lossy().into_owned();
        let root = scratch.state_root().to_string_lossy().into_owned();
        let script =
            "mount --make-rshared / && \"$@\" && ! grep ' /dev/[nz][^ ]* ' /proc/self/mountinfo";
        let mut line = private_mounts(script);
        line.extend([&program, "--root", &root, "run", "-b", bundle.path()].map(str::to_owned));
        line.push(scratch.unique());
        Run::new(&scratch, &line).ok();
    }
}

/// What hides directories of one container is not what hides those of another: one that may
/// mount can make it writable.
#[test]
fn masks_are_the_containers_own() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "docker", &[]);
    all_rights(&mut bundle);
    bundle.set("/linux/maskedPaths", json!(["/proc/acpi", "/sys/firmware"]));
    bundle.shell(
        "ls -A /proc/acpi /sys/firmware
         mount -o remount,rw /proc/acpi; mount -o remount,bind,rw /proc/acpi
         touch /proc/acpi/mark && echo marked",
    );
    bundle.write();
    for _ in 0..2 {
        let container = Container::named(&scratch, &runtime);
        let seen = container.command(&["run", "-b", bundle.path()]).ok().stdout;
        assert_eq!(seen, "/proc/acpi:\n\n/sys/firmware:\nmarked\n");
    }
}

/// The state document of a container that lies about its bundle cannot be made by it.
#[test]
fn the_state_directory_is_for_its_owner_alone() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "podman", &["/bin/sleep", "300"]);
    let container = Container::create(&scratch, &runtime, &bundle);
    let mut pending = vec![scratch.state_root()];
    let mut count = 0;
    while let Some(path) = pending.pop() {
        let metadata = path.symlink_metadata().expect("metadata");
        count += 1;
        // The mode of a link means nothing, and a pipe may be there to be opened.
        if metadata.is_symlink() || metadata.file_type().is_fifo() {
            continue;
        }
        let mode = metadata.mode() & 0o7777;
        assert_eq!(
            (metadata.uid(), mode & 0o022),
            (0, 0),
            "{}: {mode:o}",
            path.display()
        );
        if metadata.is_dir() {
            pending.extend(
                fs::read_dir(&path)
                    .expect("read")
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
    }
    assert!(count >= 2, "no state at all");
    let state: Value = container.state();
    assert_eq!(state["status"], "created");
    container.end();
}
