//! Forms of a start that the engines' configurations do not have, seen from inside.

use std::fs::File;
use std::io::{IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::unix::net::{UnixListener, UnixStream};

use pipkin_tests::command::Run;
use pipkin_tests::runtime::private_mounts;
use pipkin_tests::{Bundle, Container, Runtime, Scratch, Snapshot, host};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use serde_json::json;

/// Runs a shell line and gives what it prints.
fn run(scratch: &Scratch, bundle: &Bundle, options: &[&str]) -> String {
    let runtime = Runtime::pipkin();
    let container = Container::named(scratch, &runtime);
    let mut words = vec!["run", "-b", bundle.path()];
    words.extend(options);
    container.command(&words).ok().stdout
}

#[test]
fn an_id_mapped_mount() {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, "containerd", &[]);
    let shared = bundle.file("shared", "");
    std::os::unix::fs::chown(&shared, Some(1000), Some(2000)).expect("chown");
    bundle.shell("stat -c '%u %g' /plain /mapped");
    let source = shared.to_string_lossy().into_owned();
    bundle.mount("bind", &source, "/plain", &["bind"]);
    let mapping = |id: u32| json!([{ "containerID": id, "hostID": 0, "size": 1 }]);
    bundle.set(
        "/mounts/-",
        json!({
            "destination": "/mapped", "type": "bind", "source": source,
            "options": ["bind", "idmap"],
            "uidMappings": mapping(1000), "gidMappings": mapping(2000)
        }),
    );
    bundle.write();
    if host::hides_newer_calls() {
        let runtime = Runtime::pipkin();
        let container = Container::named(&scratch, &runtime);
        let refused = container.command(&["run", "-b", bundle.path()]).fails();
        refused.says(&["/mounts/", "id-mapped", "5.12", "filter"]);
        return;
    }
    assert_eq!(run(&scratch, &bundle, &[]), "1000 2000\n0 0\n");
}

#[test]
fn a_root_that_is_not_pivoted() {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, "containerd", &[]);
    bundle.shell("ls -d /proc/1 /bin/busybox; ls -d /../bin/busybox; grep -c . /proc/1/comm");
    bundle.write();
    let seen = run(&scratch, &bundle, &["--no-pivot"]);
    assert_eq!(seen, "/bin/busybox\n/proc/1\n/../bin/busybox\n1\n");
}

#[test]
fn a_container_without_a_mount_namespace() {
    let scratch = Scratch::new();
    let mut bundle = Bundle::new(&scratch, "containerd", &[]);
    bundle.without_namespace("mount");
    bundle.set("/mounts", json!([]));
    bundle.set("/linux/maskedPaths", json!([]));
    bundle.set("/linux/readonlyPaths", json!([]));
    bundle.shell("test -e /bin/busybox && test ! -e /proc/mounts && echo $$");
    bundle.write();
    let before = Snapshot::take(&scratch);
    assert_eq!(run(&scratch, &bundle, &[]), "1\n");
    before.assert_unchanged(&scratch, "a run in the host's mount namespace");
}

/// The descriptor that comes with a message.
fn receive(socket: &UnixStream) -> File {
    let mut bytes = [0; 64];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(socket, &mut parts, &mut control, flags).expect("a message");
    assert_eq!(message.flags & ReturnFlags::CTRUNC, ReturnFlags::empty());
    let mut files = control.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.next().and_then(|mut files| files.next());
    File::from(file.expect("a descriptor"))
}

#[test]
fn a_terminal() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "podman", &[]);
    bundle.set("/process/terminal", json!(true));
    bundle.set("/process/consoleSize", json!({ "height": 33, "width": 77 }));
    bundle.shell("tty; stty size; stat -c %t:%T /dev/console; echo x >/dev/console; test -t 2");
    bundle.write();
    let path = scratch.dir().join("console.sock");
    let listener = UnixListener::bind(&path).expect("listen");
    let path = path.to_string_lossy().into_owned();
    let container = Container::named(&scratch, &runtime);
    let words = ["run", "--console-socket", &path, "-b", bundle.path()];
    let running = container.command(&words).start();
    let (socket, _) = listener.accept().expect("a connection");
    let mut master = receive(&socket);
    let mut text = Vec::new();
    let mut buffer = [0; 1024];
    // The end of the other side is an error (EIO) on a master.
    while let Ok(length @ 1..) = master.read(&mut buffer) {
        text.extend_from_slice(&buffer[..length]);
    }
    running.finish().ok();
    // No carriage returns: the engine's own terminal adds them.
    assert_eq!(
        String::from_utf8_lossy(&text),
        "/dev/pts/0\n33 77\n88:0\nx\n"
    );
}

#[test]
fn a_terminal_in_the_foreground_is_refused_by_name() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    bundle.set("/process/terminal", json!(true)).write();
    let container = Container::named(&scratch, &runtime);
    let refused = container.command(&["run", "-b", bundle.path()]).fails();
    refused.says(&["/process/terminal", "foreground", "--console-socket"]);
    let words = ["run", "--systemd-cgroup", "-b", bundle.path()];
    container.command(&words).fails().says(&["systemd"]);
}

/// What is opened and not needed any more is left open for execve(2) to close, unless the
/// process may not have so many.
#[test]
fn few_descriptors() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "podman", &["/bin/ls", "/proc/self/fd"]);
    bundle.set("/process/rlimits", json!([])).write();
    let program = runtime.path.to_string_lossy().into_owned();
    let root = scratch.state_root().to_string_lossy().into_owned();
    for limit in [24, 30, 40, 60, 100] {
        let id = scratch.unique();
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let words = [
            "sh",
            "-c",
            &script,
            "sh",
            &program,
            "--root",
            &root,
            "run",
            "-b",
            bundle.path(),
            &id,
        ];
        // ls opens the directory that it lists.
        let seen = Run::new(&scratch, &words).ok().stdout;
        assert_eq!(seen, "0\n1\n2\n3\n", "at most {limit}");
    }
}

/// A caller that ignores signals, as nohup and an interactive shell's background do, does not
/// hand that down: the container's processes could not be interrupted.
#[test]
fn what_the_caller_ignores_is_not_ignored_inside() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(
        &scratch,
        "podman",
        &["/bin/grep", "Sig", "/proc/self/status"],
    );
    let script = "trap '' HUP INT QUIT PIPE TERM USR1; exec \"$@\"";
    let program = runtime.path.to_string_lossy().into_owned();
    let root = scratch.state_root().to_string_lossy().into_owned();
    let id = scratch.unique();
    let words = [
        "sh",
        "-c",
        script,
        "sh",
        &program,
        "--root",
        &root,
        "run",
        "-b",
        bundle.path(),
        &id,
    ];
    let seen = Run::new(&scratch, &words).ok().stdout;
    let mask = |name: &str| {
        let line = seen.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.expect("a line").trim(), 16).expect("a mask")
    };
    // Numbers from 32 on are a C library's own.
    assert_eq!(mask("SigIgn:") & 0x7fff_ffff, 0, "{seen}");
    assert_eq!(mask("SigBlk:"), 0, "{seen}");
}

/// What the host mounts later arrives in a slave and in a shared mount; what the container
/// mounts arrives on the host from the shared one alone.
#[test]
fn mounts_that_come_later() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "containerd", &["/bin/sleep", "300"]);
    let host = scratch.dir().join("host");
    std::fs::create_dir(&host).expect("make a directory");
    let host = host.to_string_lossy().into_owned();
    for (kind, place) in [
        ("rprivate", "/private"),
        ("rslave", "/slave"),
        ("rshared", "/shared"),
    ] {
        bundle.mount("bind", &host, place, &["rbind", kind]);
    }
    bundle.write();
    let id = scratch.unique();
    let program = runtime.path.to_string_lossy().into_owned();
    let root = scratch.state_root().to_string_lossy().into_owned();
    let script = format!(
        "set -e; mount -t tmpfs tmpfs {host}; mount --make-shared {host}; mkdir {host}/late {host}/own
         run() {{ {program} --root {root} \"$@\"; }}
         run run -d -b {bundle} {id} </dev/null >/dev/null 2>&1
         trap 'run delete --force {id}' EXIT
         pid=$(run state {id} | jq .pid)
         mount -t tmpfs tmpfs {host}/late
         seen() {{ grep -c \" $2 \" /proc/$1/mountinfo || :; }}
         for place in private slave shared; do seen $pid /$place/late; done
         nsenter -m -t $pid /bin/busybox mount -t tmpfs tmpfs /slave/own
         seen self {host}/own
         nsenter -m -t $pid /bin/busybox mount -t tmpfs tmpfs /shared/own
         seen self {host}/own",
        bundle = bundle.path(),
    );
    let seen = Run::new(&scratch, &private_mounts(&script)).ok().stdout;
    assert_eq!(seen, "0\n1\n1\n0\n1\n");
}

/// The pinned mount namespace is made by whoever comes first, also when many come at once.
#[test]
fn many_first_starts_at_once() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let bundle = Bundle::new(&scratch, "containerd", &["/bin/true"]);
    let program = runtime.path.to_string_lossy().into_owned();
    let root = scratch.state_root().to_string_lossy().into_owned();
    let script = format!(
        "mkdir -p /run/pipkin; mount -t tmpfs -o mode=700 tmpfs /run/pipkin; failed=0; jobs=
         for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
             jq --arg number $number '.linux.cgroupsPath += $number' {bundle}/config.json >{bundle}/$number.json
             {program} --root {root} run -b {bundle} -f $number.json {id}-$number & jobs=\"$jobs $!\"
         done
         for job in $jobs; do wait $job || failed=1; done
         grep -c ' /run/pipkin/@empty ' /proc/self/mountinfo
         exit $failed",
        bundle = bundle.path(),
        id = scratch.unique(),
    );
    let seen = Run::new(&scratch, &private_mounts(&script)).ok().stdout;
    assert_eq!(seen, "1\n");
}

/// A container in another's user namespace owns its own new namespaces there, and shares those
/// that it joins.
#[test]
fn a_user_namespace_that_is_joined() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let with_user = |args: &[&str], path: Option<&str>| {
        let mut bundle = Bundle::new(&scratch, "containerd", args);
        bundle.namespace("user", path);
        let mapping = json!([{ "containerID": 0, "hostID": 100_000, "size": 65_536 }]);
        bundle.set("/linux/uidMappings", mapping.clone());
        bundle.set("/linux/gidMappings", mapping);
        bundle
    };
    let mut holder = with_user(&["/bin/sleep", "300"], None);
    holder.write();
    let held = Container::started(&scratch, &runtime, &holder);
    let file = |kind: &str| format!("/proc/{}/ns/{kind}", held.pid());
    let line = "id -u; cat /proc/self/uid_map; readlink /proc/self/ns/net; echo $$";
    for joins_all in [false, true] {
        let mut bundle = with_user(&[], Some(&file("user")));
        if joins_all {
            for (kind, name) in [
                ("network", "net"),
                ("pid", "pid"),
                ("ipc", "ipc"),
                ("uts", "uts"),
            ] {
                bundle.without_namespace(kind);
                bundle.namespace(kind, Some(&file(name)));
            }
        }
        bundle.shell(line).write();
        let seen = run(&scratch, &bundle, &[]);
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines[0], "0");
        let map: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(map, ["0", "100000", "65536"]);
        let network = std::fs::read_link(file("net")).expect("a link");
        assert_eq!(lines[2] == network.to_string_lossy(), joins_all, "{seen}");
        assert_eq!(lines[3] == "1", !joins_all, "{seen}");
    }
}
