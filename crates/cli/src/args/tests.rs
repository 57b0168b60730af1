//! Tables: a command line, and what it means or what is wrong with it.

use std::path::PathBuf;

use pipkin_runtime::log::{Format, Level};
use pipkin_runtime::request::{CgroupManager, Rootless, Target};

use super::*;

fn read(line: &str) -> Result<Line, Failure> {
    parse(
        std::iter::once("pipkin")
            .chain(line.split_whitespace())
            .map(OsString::from),
    )
}

fn command(line: &str) -> Command {
    read(line)
        .unwrap_or_else(|failure| panic!("{line}: {}", failure.error))
        .command
}

fn global(line: &str) -> GlobalArgs {
    let line = format!("{line} state web");
    read(&line)
        .unwrap_or_else(|failure| panic!("{line}: {}", failure.error))
        .global
}

fn mistake(line: &str) -> String {
    read(line)
        .map(|line| line.command)
        .expect_err(line)
        .error
        .to_string()
}

fn web() -> CreateRequest {
    CreateRequest {
        id: "web".into(),
        ..CreateRequest::default()
    }
}

#[test]
fn create_and_run() {
    let bundle = CreateRequest {
        bundle: "/b".into(),
        ..web()
    };
    for line in [
        "create -b /b web",
        "create -b/b web",
        "create -b=/b web",
        "create --bundle /b web",
        "create --bundle=/b web",
        "create web --bundle /b",
        "create --bundle /a --bundle /b -- web",
    ] {
        assert_eq!(command(line), Command::Create(bundle.clone()), "{line}");
    }
    let all = CreateRequest {
        id: "web".into(),
        bundle: "/b".into(),
        config_file: Some("/c".into()),
        pid_file: Some("/p".into()),
        console_socket: Some("/s".into()),
        no_pivot: true,
        no_new_keyring: true,
        preserve_fds: 3,
    };
    let options = "-b /b --config=/c --pid-file /p --console-socket /s --no-pivot \
                   --no-new-keyring --preserve-fds 3";
    assert_eq!(
        command(&format!("create {options} web")),
        Command::Create(all.clone())
    );
    assert_eq!(
        command(&format!("create web {options}")),
        Command::Create(all.clone())
    );
    assert_eq!(
        command(&format!("plan {options} web")),
        Command::Plan(PlanRequest {
            create: all.clone()
        })
    );
    assert_eq!(
        command(&format!("run {options} -d --keep web")),
        Command::Run(RunRequest {
            create: all,
            detach: true,
            keep: true
        })
    );
    for line in [
        "run -db /b web",
        "run -db/b web",
        "run --detach=true web -b /b",
    ] {
        let run = RunRequest {
            create: bundle.clone(),
            detach: true,
            keep: false,
        };
        assert_eq!(command(line), Command::Run(run), "{line}");
    }
    let plain = Command::Run(RunRequest {
        create: web(),
        ..RunRequest::default()
    });
    assert_eq!(command("run --detach=false web"), plain);
}

#[test]
fn a_plan_needs_no_name() {
    let create = CreateRequest {
        id: "plan".into(),
        ..CreateRequest::default()
    };
    assert_eq!(command("plan"), Command::Plan(PlanRequest { create }));
}

#[test]
fn start_and_state() {
    assert_eq!(command("start web"), Command::Start { id: "web".into() });
    assert_eq!(command("state web"), Command::State { id: "web".into() });
    assert_eq!(
        command("state -- -web"),
        Command::State { id: "-web".into() }
    );
}

#[test]
fn kill_and_delete() {
    let id = || Target::Id("web".into());
    let regex = || Target::Regex("w.*".into());
    for (line, target, signal, all) in [
        ("kill web", id(), 15, false),
        ("kill web 9", id(), 9, false),
        ("kill web KILL", id(), 9, false),
        ("kill web SIGKILL", id(), 9, false),
        ("kill web SIGRTMIN+2", id(), 36, false),
        ("kill --all web 9", id(), 9, true),
        ("kill web 9 -a", id(), 9, true),
        ("kill -ar w.* HUP", regex(), 1, true),
        ("kill --regex w.*", regex(), 15, false),
    ] {
        assert_eq!(
            command(line),
            Command::Kill(KillRequest {
                target,
                signal,
                all
            }),
            "{line}"
        );
    }
    for (line, target, force) in [
        ("delete web", id(), false),
        ("delete --force web", id(), true),
        ("delete web -f", id(), true),
        ("delete -fr w.*", regex(), true),
        ("delete --regex w.*", regex(), false),
    ] {
        assert_eq!(
            command(line),
            Command::Delete(DeleteRequest { target, force }),
            "{line}"
        );
    }
}

#[test]
fn list_spec_and_features() {
    let list = |quiet, format| Command::List(ListArgs { quiet, format });
    assert_eq!(command("list"), list(false, ListFormat::Table));
    assert_eq!(command("list -q"), list(true, ListFormat::Table));
    assert_eq!(command("list -qfjson"), list(true, ListFormat::Json));
    assert_eq!(
        command("list --format json --quiet"),
        list(true, ListFormat::Json)
    );
    assert_eq!(command("list -f table"), list(false, ListFormat::Table));
    let spec = |bundle, rootless| Command::Spec(SpecArgs { bundle, rootless });
    assert_eq!(command("spec"), spec(PathBuf::new(), false));
    assert_eq!(command("spec --rootless -b /b"), spec("/b".into(), true));
    assert_eq!(command("features"), Command::Features);
}

#[test]
fn try_takes_a_command_line_as_it_is() {
    let attempt = |net, words: &[&str]| {
        let command = words.iter().map(OsString::from).collect();
        Command::Try(TryRequest { command, net })
    };
    assert_eq!(command("try"), attempt(false, &[]));
    assert_eq!(command("try --net"), attempt(true, &[]));
    assert_eq!(
        command("try ls -l --net"),
        attempt(false, &["ls", "-l", "--net"])
    );
    assert_eq!(command("try --net -- ls -l"), attempt(true, &["ls", "-l"]));
    assert_eq!(command("try ls -- -l"), attempt(false, &["ls", "--", "-l"]));
    assert_eq!(command("try -- --odd"), attempt(false, &["--odd"]));
}

#[test]
fn global_options() {
    let none = GlobalArgs::default;
    for (line, args) in [
        ("", none()),
        (
            "--root /r",
            GlobalArgs {
                root: Some("/r".into()),
                ..none()
            },
        ),
        (
            "--root=/r",
            GlobalArgs {
                root: Some("/r".into()),
                ..none()
            },
        ),
        (
            "--log /l",
            GlobalArgs {
                log: Some("/l".into()),
                ..none()
            },
        ),
        (
            "--log=file:/l",
            GlobalArgs {
                log: Some("/l".into()),
                ..none()
            },
        ),
        (
            "--log-format=json",
            GlobalArgs {
                log_format: Format::Json,
                ..none()
            },
        ),
        ("--log-format text", none()),
        (
            "--log-level=error",
            GlobalArgs {
                log_level: Some(Level::Error),
                ..none()
            },
        ),
        (
            "--log-level warn",
            GlobalArgs {
                log_level: Some(Level::Warning),
                ..none()
            },
        ),
        (
            "--debug",
            GlobalArgs {
                log_level: Some(Level::Debug),
                ..none()
            },
        ),
        ("--debug=false", none()),
        ("--systemd-cgroup=false", none()),
        (
            "--rootless",
            GlobalArgs {
                rootless: Rootless::True,
                ..none()
            },
        ),
        (
            "--rootless=true",
            GlobalArgs {
                rootless: Rootless::True,
                ..none()
            },
        ),
        (
            "--rootless true",
            GlobalArgs {
                rootless: Rootless::True,
                ..none()
            },
        ),
        (
            "--rootless false",
            GlobalArgs {
                rootless: Rootless::False,
                ..none()
            },
        ),
        ("--rootless=auto", none()),
        ("--cgroup-manager cgroupfs", none()),
        (
            "--cgroup-manager=disabled",
            GlobalArgs {
                cgroup_manager: CgroupManager::Disabled,
                ..none()
            },
        ),
        (
            "--inject-fault 7",
            GlobalArgs {
                inject_fault: Some(7),
                ..none()
            },
        ),
    ] {
        assert_eq!(global(line), args, "{line}");
    }
}

#[test]
fn help_and_version() {
    for line in [
        "--help",
        "-h",
        "-?",
        "help",
        "create --help",
        "run -h web",
        "kill -?",
        "help delete",
        "list --help",
        "try --help",
        "state --usage",
        "features -h",
        "spec -h",
        "plan -h",
    ] {
        let Command::Print(text) = command(line) else {
            panic!("{line}")
        };
        assert!(text.contains("Usage: pipkin"), "{line}");
        assert!(text.lines().all(|line| line.len() <= 88), "{line}");
    }
    for line in ["--version", "-v", "-V", "--root /r --version"] {
        let Command::Print(text) = command(line) else {
            panic!("{line}")
        };
        assert!(text.starts_with(concat!("pipkin version ", env!("CARGO_PKG_VERSION"), "\n")));
        assert!(text.ends_with("\nspec: 1.3.0\n"));
    }
}

#[test]
fn mistakes() {
    for (line, text) in [
        ("", "a command is missing"),
        ("--root", "--root needs a value: a directory"),
        ("frobnicate", "unknown command \"frobnicate\""),
        ("help frobnicate", "help: unknown command \"frobnicate\""),
        ("exec web", "exec is not implemented yet"),
        ("pause web", "pause is not implemented yet"),
        ("--bundle /b create web", "unknown option --bundle"),
        ("create", "create: the container's name is missing"),
        ("create a b", "create: \"b\" is one argument too many"),
        ("create --foo web", "create: unknown option --foo"),
        ("create --detach web", "create: unknown option --detach"),
        ("create -x web", "create: unknown option -x"),
        ("create web -b", "create: -b needs a value: a directory"),
        (
            "create --preserve-fds -1 web",
            "create: --preserve-fds: \"-1\" is not a number from 0 to 1048576",
        ),
        (
            "create --preserve-fds=9999999 web",
            "create: --preserve-fds: \"9999999\" is not a number from 0 to 1048576",
        ),
        (
            "create --no-pivot=maybe web",
            "create: --no-pivot: \"maybe\" is not true or false",
        ),
        ("start", "start: the container's name is missing"),
        ("start web --force", "start: unknown option --force"),
        ("start a b", "start: \"b\" is one argument too many"),
        (
            "kill web FOO",
            "kill: SIGNAL: \"FOO\" is not a signal's name (TERM, SIGTERM, RTMIN+1) or number \
             (0 to 64)",
        ),
        ("kill a 9 b", "kill: \"b\" is one argument too many"),
        ("list web", "list: \"web\": no argument is expected here"),
        ("list -f yaml", "list: -f: \"yaml\" is not table or json"),
        ("features -x", "features: unknown option -x"),
        ("try --nett ls", "try: unknown option --nett"),
        (
            "--log-format xml state a",
            "--log-format: \"xml\" is not text or json",
        ),
        (
            "--log-level loud state a",
            "--log-level: \"loud\" is not error, warning, info or debug",
        ),
        (
            "--log journald:x state a",
            "--log journald: is not implemented yet; name a file",
        ),
        ("--log= state a", "--log: \"\" is not a file"),
        (
            "--rootless=maybe state a",
            "--rootless: \"maybe\" is not auto, true or false",
        ),
        (
            "--inject-fault 0 state a",
            "--inject-fault: \"0\" is not a number from 1 to 4294967295",
        ),
        (
            "--systemd-cgroup create web",
            "--systemd-cgroup: the systemd cgroup manager is not implemented yet",
        ),
        (
            "--cgroup-manager systemd create web",
            "--cgroup-manager systemd: the systemd cgroup manager is not implemented yet",
        ),
        (
            "--cgroup-manager=lxc create web",
            "--cgroup-manager: \"lxc\" is not cgroupfs, systemd or disabled",
        ),
    ] {
        assert_eq!(mistake(line), text, "{line}");
    }
}

#[test]
fn a_mistake_is_reported_in_the_form_that_came_before_it() {
    let failure = read("--log-format json create --foo").expect_err("an unknown option");
    assert_eq!(failure.log.format, Format::Json);
    assert_eq!(
        failure.error.hint.as_deref(),
        Some("see pipkin create --help")
    );
}

#[test]
fn names_must_be_text() {
    use std::os::unix::ffi::OsStringExt;
    let bad = OsString::from_vec(b"w\xffb".to_vec());
    let line = ["pipkin".into(), "state".into(), bad].into_iter();
    let error = parse(line).expect_err("not UTF-8").error;
    assert_eq!(
        error.to_string(),
        "state: CONTAINER: \"w\u{fffd}b\" is not UTF-8"
    );
}
