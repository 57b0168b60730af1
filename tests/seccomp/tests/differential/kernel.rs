//! Filters in the running kernel. A child of this program loads one, by the same calls as
//! a container does, and makes calls.

use std::ffi::c_long;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use pipkin_plan::seccomp::{Arch, Filter, compile};
use pipkin_seccomp_diff::random::Random;
use pipkin_seccomp_diff::{REAL, calls, data, parse, raw, run};
use serde_json::{Value, json};

/// The argument that makes the test program such a child.
pub const LOAD: &str = "--load";

/// A call: number, arguments.
type Call = (u32, [u64; 6]);

/// What came of a child: an errno or 0 for each call, lines of its status, its end.
struct Outcome {
    results: Vec<u32>,
    status: String,
    end: ExitStatus,
}

fn number(name: &str) -> u32 {
    Arch::NATIVE.number(name).expect(name)
}

fn call(name: &str) -> Call {
    (number(name), [0; 6])
}

fn try_out(filter: &Filter, calls: &[Call]) -> Outcome {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .arg(LOAD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("own program");
    let mut stdin = child.stdin.take().expect("a pipe");
    let question = (filter.flags, filter.to_bytes(), calls);
    serde_json::to_writer(&mut stdin, &question).expect("a reader");
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

/// In the child: loads the filter on standard input and makes the calls that follow it.
pub fn load() {
    let mut question = Vec::new();
    std::io::stdin()
        .read_to_end(&mut question)
        .expect("a question");
    let (flags, program, calls): (u32, Vec<u8>, Vec<Call>) =
        serde_json::from_slice(&question).expect("a question");
    pipkin_sys::process::no_new_privs().expect("no_new_privs");
    pipkin_sys::process::seccomp_filter(&program, flags).expect("the filter");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| line.starts_with("Seccomp"));
    lines.for_each(|line| println!("{line}"));
    let mut stdout = std::io::stdout();
    for (number, [a, b, c, d, e, f]) in calls {
        // SAFETY: the calls that the tests ask for are refused by the filter, or take
        // numbers alone and change nothing that Rust relies on.
        let result = unsafe { syscall(c_long::from(number), a, b, c, d, e, f) };
        let errno = std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default();
        println!("= {}", if result == -1 { errno } else { 0 });
        // Before the next call kills.
        stdout.flush().expect("a reader");
    }
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

const SIGSYS: i32 = 31;
const ENOSYS: u32 = 38;

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
        killed(&filter, call(fatal));
    }
    if Arch::NATIVE == Arch::X86_64 {
        // X32 is not listed.
        killed(&filter, (0x4000_0000 | number("getpid"), [0; 6]));
    }
    flags();
    "errno, log, trace, trap, kill and flags".into()
}

fn killed(filter: &Filter, fatal: Call) {
    let outcome = try_out(filter, &[call("getpid"), fatal, call("getpid")]);
    assert_eq!(outcome.results, [77], "{fatal:?}");
    // Killing the last thread ends the process with the same signal.
    assert_eq!(outcome.end.signal(), Some(SIGSYS), "{fatal:?}");
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

/// The kernel does with the real profiles what the interpreter does: every number that may
/// fail by the filter, with arguments for which it does, and some that are allowed.
pub fn real() -> String {
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    /// uretprobe(2) and uprobe(2) of x86_64: the kernel's own trampolines make them, it
    /// asks no filter, and another who makes them gets SIGILL.
    const UNFILTERED: [u32; 2] = [335, 336];
    let (mut refused, mut conditional) = (0, 0);
    for name in REAL {
        let profile = parse(&pipkin_seccomp_diff::real(name));
        let filter = compile(&profile, Arch::NATIVE).expect("a filter");
        let program = raw(&filter);
        let big_endian = cfg!(target_endian = "big");
        let verdict = |(number, args): Call| {
            let data = data(number, Arch::NATIVE.audit(), args, big_endian);
            run(&program, &data).0
        };
        let mut tried: Vec<Call> = vec![call("getpid")];
        let mut expected = vec![0];
        let random = &mut Random::new(11);
        let values = calls::values(&profile);
        for number in (0..700).filter(|number| !UNFILTERED.contains(number)) {
            let mut of_number = 0;
            for _ in 0..20 {
                let call = (number, calls::arguments(&values, random));
                let verdict = verdict(call);
                if verdict & 0xffff_0000 == ERRNO {
                    tried.push(call);
                    expected.push(verdict & 0xffff);
                    of_number += 1;
                } else {
                    assert_eq!(verdict, ALLOW);
                }
            }
            refused += usize::from(of_number > 0);
            conditional += usize::from((1..20).contains(&of_number));
        }
        // Of this one, some values are allowed. The query is, and harmless.
        for argument in [0xffff_ffff, 0x123, 1 << 32, 0xffff_ffff | 1 << 32] {
            let call = (number("personality"), [argument, 0, 0, 0, 0, 0]);
            let verdict = verdict(call);
            assert_eq!(verdict == ALLOW, argument == 0xffff_ffff, "{argument:#x}");
            tried.push(call);
            expected.push(if verdict == ALLOW {
                0
            } else {
                verdict & 0xffff
            });
        }
        let outcome = try_out(&filter, &tried);
        assert_eq!(outcome.results.len(), expected.len(), "{:?}", outcome.end);
        for ((call, result), expected) in tried.iter().zip(outcome.results).zip(expected) {
            assert_eq!(result, expected, "{name}: {call:x?}");
        }
        assert!(outcome.end.success());
    }
    format!("{refused} calls refused, {conditional} of them for some arguments only")
}
