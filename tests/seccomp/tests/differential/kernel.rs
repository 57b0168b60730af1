//! Filters in the running kernel. A child of this program loads one and makes calls.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use pipkin_plan::seccomp::{Arch, Filter, compile};
use pipkin_seccomp_diff::{REAL, data, parse, raw, run};
use serde_json::{Value, json};

/// The argument that makes the test program such a child.
pub const LOAD: &str = "--load";

/// A call: number, arguments.
type Call = (i64, [u64; 6]);

/// What came of a child: an errno or 0 for each call, lines of its status, its end.
struct Outcome {
    results: Vec<i64>,
    status: String,
    end: ExitStatus,
}

fn number(name: &str) -> i64 {
    i64::from(Arch::NATIVE.number(name).expect(name))
}

fn call(name: &str) -> Call {
    (number(name), [0; 6])
}

fn try_out(filter: &Filter, calls: &[Call]) -> Outcome {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .arg(LOAD)
        .arg(filter.flags.to_string())
        .arg(serde_json::to_string(calls).expect("calls"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("own program");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&filter.to_bytes()).expect("a reader");
    drop(stdin);
    let output = child.wait_with_output().expect("a child");
    let text = String::from_utf8(output.stdout).expect("text");
    let result = |line: &str| line.strip_prefix("= ")?.parse().ok();
    Outcome {
        results: text.lines().filter_map(result).collect(),
        status: text
            .lines()
            .filter(|line| line.starts_with("Seccomp"))
            .collect(),
        end: output.status,
    }
}

/// Loads the filter on standard input with the flags and makes the calls that `args` has.
pub fn load(args: &[String]) {
    let flags: c_ulong = args[0].parse().expect("flags");
    let calls: Vec<Call> = serde_json::from_str(&args[1]).expect("calls");
    let mut program = Vec::new();
    std::io::stdin()
        .read_to_end(&mut program)
        .expect("a program");
    let fprog = Fprog {
        len: (program.len() / 8) as u16,
        filter: program.as_ptr().cast(),
    };
    const NO_NEW_PRIVS: c_int = 38;
    const SET_MODE_FILTER: c_long = 1;
    // SAFETY: the option takes numbers and no pointer.
    let result = unsafe {
        prctl(
            NO_NEW_PRIVS,
            1 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
        )
    };
    assert_eq!(result, 0, "PR_SET_NO_NEW_PRIVS");
    // SAFETY: `fprog` points at as many instructions of 8 bytes as it says, which outlive
    // the call; the kernel copies them, to any alignment.
    let result = unsafe { syscall(number("seccomp"), SET_MODE_FILTER, flags, &raw const fprog) };
    assert!(result >= 0, "seccomp: {}", std::io::Error::last_os_error());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| line.starts_with("Seccomp"));
    lines.for_each(|line| println!("{line}"));
    for (number, [a, b, c, d, e, f]) in calls {
        // SAFETY: the calls that the tests ask for take numbers, or pointers for which
        // they give NULL, and change nothing that Rust relies on.
        let result = unsafe { syscall(number, a, b, c, d, e, f) };
        let errno = std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default();
        println!("= {}", if result == -1 { errno } else { 0 });
    }
}

/// `struct sock_fprog`.
#[repr(C)]
struct Fprog {
    len: u16,
    filter: *const c_void,
}

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

const SIGSYS: i32 = 31;
const ENOSYS: i64 = 38;

fn profile(rules: Value) -> Filter {
    let profile = json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules });
    compile(&parse(&profile), Arch::NATIVE).expect("a filter")
}

/// Every action that needs no listener and no tracer.
pub fn verdicts() -> String {
    let filter = profile(json!([
        { "names": ["getpid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 77 },
        { "names": ["getuid"], "action": "SCMP_ACT_ERRNO" },
        { "names": ["getppid"], "action": "SCMP_ACT_LOG" },
        // Nobody traces: the kernel makes ENOSYS of it.
        { "names": ["getgid"], "action": "SCMP_ACT_TRACE", "errnoRet": 5 },
        { "names": ["personality"], "action": "SCMP_ACT_ERRNO", "errnoRet": 78, "args": [
            { "index": 0, "op": "SCMP_CMP_NE", "value": 0xffff_ffffu32 },
            { "index": 5, "op": "SCMP_CMP_GE", "value": 1u64 << 33 }]},
        { "names": ["getpgid"], "action": "SCMP_ACT_TRAP" },
        { "names": ["getsid"], "action": "SCMP_ACT_KILL_PROCESS" },
        { "names": ["getgroups"], "action": "SCMP_ACT_KILL_THREAD" },
    ]));
    let personality = |persona, last| (number("personality"), [persona, 0, 0, 0, 0, last]);
    let outcome = try_out(
        &filter,
        &[
            call("getpid"),
            call("getuid"),
            call("getppid"),
            call("getgid"),
            call("geteuid"),
            personality(0xffff_ffff, 1 << 33),
            personality(0, 1 << 33),
            personality(0, (1 << 33) - 1),
            personality(0, 1 << 34),
        ],
    );
    assert_eq!(outcome.results, [77, 1, 0, ENOSYS, 0, 0, 78, 0, 78]);
    assert!(outcome.status.contains("Seccomp:\t2"), "{}", outcome.status);
    assert!(outcome.end.success());
    for fatal in ["getpgid", "getsid", "getgroups"] {
        let outcome = try_out(&filter, &[call("getpid"), call(fatal), call("getpid")]);
        assert_eq!(outcome.results, [77], "{fatal}");
        // Killing the last thread ends the process with the same signal.
        assert_eq!(outcome.end.signal(), Some(SIGSYS), "{fatal}");
    }
    flags();
    outcome.status
}

/// The kernel takes every flag.
fn flags() {
    let rules = json!([{ "names": ["getpid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 77 }]);
    for flag in ["LOG", "SPEC_ALLOW", "TSYNC", "WAIT_KILLABLE_RECV"] {
        let profile = json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "flags": [format!("SECCOMP_FILTER_FLAG_{flag}")],
            "syscalls": rules,
        });
        let filter = compile(&parse(&profile), Arch::NATIVE).expect("a filter");
        assert_eq!(try_out(&filter, &[call("getpid")]).results, [77], "{flag}");
    }
    let notify = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "flags": ["SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"],
        "syscalls": [{ "names": ["getpid"], "action": "SCMP_ACT_NOTIFY" }],
    });
    let filter = compile(&parse(&notify), Arch::NATIVE).expect("a filter");
    assert!(filter.notify);
    assert!(try_out(&filter, &[call("geteuid")]).end.success());
}

/// The kernel does with the real profiles what the interpreter does: every number whose
/// verdict is an errno, and some that are allowed.
pub fn real() -> String {
    const ERRNO: u32 = 0x0005_0000;
    let mut calls = 0;
    for name in REAL {
        let profile = parse(&pipkin_seccomp_diff::real(name));
        let filter = compile(&profile, Arch::NATIVE).expect("a filter");
        let program = raw(&filter);
        let mut tried: Vec<Call> = Vec::new();
        let mut expected = Vec::new();
        let big_endian = cfg!(target_endian = "big");
        // Since 6.14 the kernel lets uprobes' own calls pass every filter, and kills who
        // makes them without a probe.
        let probes = ["uprobe", "uretprobe"].map(|name| Arch::NATIVE.number(name));
        for number in (0..700u32).filter(|number| !probes.contains(&Some(*number))) {
            let data = data(number, Arch::NATIVE.audit(), [0; 6], big_endian);
            let (verdict, _) = run(&program, &data);
            if verdict & 0xffff_0000 == ERRNO {
                tried.push((i64::from(number), [0; 6]));
                expected.push(i64::from(verdict & 0xffff));
            }
        }
        tried.push(call("getpid"));
        expected.push(0);
        let outcome = try_out(&filter, &tried);
        assert_eq!(outcome.results, expected, "{name}");
        assert!(outcome.end.success());
        calls += tried.len();
    }
    format!("{calls} calls")
}
