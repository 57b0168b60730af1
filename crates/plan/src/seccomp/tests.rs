//! Filters run by an interpreter. What libseccomp and the kernel make of the same
//! profiles is tested in tests/seccomp.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use pipkin_spec::Seccomp;
use pipkin_spec::seccomp::{Arg, Rule};

use super::interpreter::{Raw, check, data, run};
use super::*;

const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;

fn rule(names: &[&str], action: &str, errno_ret: Option<u32>, args: &[Arg]) -> Rule {
    Rule {
        names: names.iter().map(ToString::to_string).collect(),
        action: action.into(),
        errno_ret,
        args: args.to_vec(),
    }
}

fn errno(name: &str, errno: u32, args: &[Arg]) -> Rule {
    rule(&[name], "SCMP_ACT_ERRNO", Some(errno), args)
}

fn arg(index: u32, op: &str, value: u64, value_two: u64) -> Arg {
    let op = format!("SCMP_CMP_{op}");
    Arg {
        index,
        value,
        value_two,
        op,
    }
}

fn profile(rules: Vec<Rule>) -> Seccomp {
    Seccomp {
        default_action: "SCMP_ACT_ALLOW".into(),
        syscalls: rules,
        ..Seccomp::default()
    }
}

fn listing(archs: &[Arch], rules: Vec<Rule>) -> Seccomp {
    Seccomp {
        architectures: archs.iter().map(|arch| arch.name().to_string()).collect(),
        ..profile(rules)
    }
}

struct Ready {
    program: Vec<Raw>,
    big_endian: bool,
}

impl Ready {
    fn new(profile: &Seccomp, native: Arch, options: Options) -> Self {
        let filter = compile_with(profile, native, options).unwrap();
        let program: Vec<Raw> = filter
            .program
            .iter()
            .map(|i| (i.code, i.jt, i.jf, i.k))
            .collect();
        check(&program).unwrap();
        Self {
            program,
            big_endian: native.facts().big_endian,
        }
    }

    fn of(&self, arch: Arch, name: &str, args: [u64; 6]) -> u32 {
        self.numbered(arch, arch.number(name).unwrap(), args)
    }

    fn numbered(&self, arch: Arch, number: u32, args: [u64; 6]) -> u32 {
        run(
            &self.program,
            &data(number, arch.audit(), args, self.big_endian),
        )
        .0
    }
}

fn ready(profile: &Seccomp, native: Arch) -> Ready {
    Ready::new(profile, native, Options::default())
}

fn fault(profile: &Seccomp) -> Invalid {
    compile(profile, Arch::X86_64).unwrap_err()
}

#[test]
fn actions_have_their_verdicts() {
    for (action, errno, verdict) in [
        ("ALLOW", None, ALLOW),
        ("ERRNO", None, ERRNO | 1),
        ("ERRNO", Some(0), ERRNO),
        ("ERRNO", Some(4095), ERRNO | 4095),
        ("KILL", None, 0),
        ("KILL_PROCESS", None, 0x8000_0000),
        ("KILL_THREAD", None, 0),
        ("LOG", None, 0x7ffc_0000),
        ("NOTIFY", None, 0x7fc0_0000),
        ("TRACE", None, 0x7ff0_0001),
        ("TRACE", Some(0xffff), 0x7ff0_ffff),
        ("TRAP", None, 0x0003_0000),
    ] {
        let action = format!("SCMP_ACT_{action}");
        let as_rule = Seccomp {
            default_action: "SCMP_ACT_ERRNO".into(),
            default_errno_ret: Some(99),
            ..profile(vec![rule(&["read"], &action, errno, &[])])
        };
        let filter = ready(&as_rule, Arch::X86_64);
        assert_eq!(filter.of(Arch::X86_64, "read", [0; 6]), verdict, "{action}");
        assert_eq!(
            filter.numbered(Arch::X86_64, 0x1fff_ffff, [0; 6]),
            ERRNO | 38
        );
        let as_default = Seccomp {
            default_action: action.clone(),
            default_errno_ret: errno,
            ..Seccomp::default()
        };
        let filter = ready(&as_default, Arch::X86_64);
        assert_eq!(filter.of(Arch::X86_64, "read", [0; 6]), verdict, "{action}");
        assert!(ACTIONS.contains(&action.as_str()));
    }
}

#[test]
fn operators_compare_all_64_bits_or_32() {
    let value = 5 << 32 | 7;
    let edges = [
        0,
        7,
        value - 1,
        value,
        value + 1,
        6 << 32,
        4 << 32 | 9,
        5 << 32,
        u64::MAX,
    ];
    type Holds = fn(u64, u64) -> bool;
    let cases: [(&str, Holds); 7] = [
        ("NE", |a, b| a != b),
        ("LT", |a, b| a < b),
        ("LE", |a, b| a <= b),
        ("EQ", |a, b| a == b),
        ("GE", |a, b| a >= b),
        ("GT", |a, b| a > b),
        ("MASKED_EQ", |a, b| a & b == 3 & b),
    ];
    for (op, holds) in cases {
        assert!(OPERATORS.contains(&format!("SCMP_CMP_{op}").as_str()));
        for arch in [Arch::X86_64, Arch::S390x, Arch::X86, Arch::Mips] {
            for constant in [value, 0, 7, u64::from(u32::MAX), u64::MAX] {
                let rules = vec![errno("ioctl", 9, &[arg(1, op, constant, 3)])];
                let filter = ready(&profile(rules), arch);
                for edge in edges {
                    let cut = |n| {
                        if arch.facts().wide {
                            n
                        } else {
                            n & u64::from(u32::MAX)
                        }
                    };
                    let expected = if holds(cut(edge), cut(constant)) {
                        ERRNO | 9
                    } else {
                        ALLOW
                    };
                    let got = filter.of(arch, "ioctl", [1, edge, 2, 3, 4, 5]);
                    assert_eq!(got, expected, "{arch:?}: {edge:#x} {op} {constant:#x}");
                }
            }
        }
    }
}

#[test]
fn every_architecture_finds_its_calls_and_kills_the_others() {
    for native in Arch::ALL {
        let big = native.facts().big_endian;
        let fellows: Vec<Arch> = Arch::ALL
            .into_iter()
            .filter(|a| a.facts().big_endian == big)
            .collect();
        let rules = vec![
            errno("read", 7, &[]),
            errno("write", 8, &[arg(0, "EQ", 3, 0)]),
        ];
        let alone = ready(&profile(rules.clone()), native);
        let all = ready(&listing(&fellows, rules), native);
        for arch in fellows {
            assert_eq!(all.of(arch, "read", [0; 6]), ERRNO | 7, "{arch:?}");
            assert_eq!(
                all.of(arch, "write", [3, 0, 0, 0, 0, 0]),
                ERRNO | 8,
                "{arch:?}"
            );
            assert_eq!(all.of(arch, "write", [2, 0, 0, 0, 0, 0]), ALLOW, "{arch:?}");
            let verdict = if arch == native { ERRNO | 7 } else { 0 };
            assert_eq!(
                alone.of(arch, "read", [0; 6]),
                verdict,
                "{arch:?} on {native:?}"
            );
        }
    }
}

#[test]
fn x32_is_told_from_x86_64() {
    let rules = vec![errno("read", 7, &[])];
    let without = ready(&profile(rules.clone()), Arch::X86_64);
    let with = ready(&listing(&[Arch::X32], rules), Arch::X86_64);
    for (number, one, both) in [
        (0, ERRNO | 7, ERRNO | 7),
        (0x3fff_ffff, ALLOW, ALLOW),
        (0x4000_0000, 0, ERRNO | 7),
        (0x4000_0001, 0, ALLOW),
        (u32::MAX - 1, 0, ALLOW),
        (u32::MAX, ALLOW, ALLOW),
    ] {
        assert_eq!(
            without.numbered(Arch::X86_64, number, [0; 6]),
            one,
            "{number:#x}"
        );
        assert_eq!(
            with.numbered(Arch::X86_64, number, [0; 6]),
            both,
            "{number:#x}"
        );
    }
}

#[test]
fn multiplexed_calls_are_met_on_both_ways() {
    let rules = vec![
        errno("connect", 7, &[arg(0, "EQ", 9, 0), arg(1, "EQ", 4, 0)]),
        errno("shmget", 8, &[]),
    ];
    let filter = ready(&profile(rules), Arch::X86);
    let of = |name: &str, args| filter.of(Arch::X86, name, args);
    assert_eq!(of("connect", [9, 4, 0, 0, 0, 0]), ERRNO | 7);
    assert_eq!(of("connect", [8, 4, 0, 0, 0, 0]), ALLOW);
    // SYS_CONNECT is 3; the rule's first argument is out of reach.
    assert_eq!(of("socketcall", [3, 4, 0, 0, 0, 0]), ERRNO | 7);
    assert_eq!(of("socketcall", [3, 5, 0, 0, 0, 0]), ALLOW);
    assert_eq!(of("socketcall", [9, 4, 0, 0, 0, 0]), ALLOW);
    assert_eq!(of("ipc", [23, 0, 0, 0, 0, 0]), ERRNO | 8);
    assert_eq!(of("ipc", [24, 0, 0, 0, 0, 0]), ALLOW);
}

#[test]
fn the_first_rule_without_conditions_stands() {
    let five = [arg(0, "EQ", 5, 0)];
    let rules = vec![
        errno("read", 1, &five),
        errno("read", 2, &[]),
        errno("read", 3, &[]),
        errno("read", 4, &five),
        // Says nothing, being the default.
        rule(&["write"], "SCMP_ACT_ALLOW", None, &[]),
        errno("write", 5, &five),
        // A mask of no bits is no condition.
        errno("openat", 6, &[arg(0, "MASKED_EQ", 0, 1)]),
        errno("openat", 7, &five),
    ];
    let filter = ready(&profile(rules), Arch::X86_64);
    assert_eq!(filter.of(Arch::X86_64, "read", [5; 6]), ERRNO | 2);
    assert_eq!(filter.of(Arch::X86_64, "write", [5; 6]), ERRNO | 5);
    assert_eq!(filter.of(Arch::X86_64, "write", [6; 6]), ALLOW);
    assert_eq!(filter.of(Arch::X86_64, "openat", [5; 6]), ERRNO | 6);
}

#[test]
fn conflicts_are_decided_as_libseccomp_decides_them() {
    let filter = ready(
        &profile(vec![
            errno("read", 1, &[arg(0, "LT", 10, 0)]),
            errno("read", 2, &[arg(0, "GT", 2, 0)]),
            errno("read", 3, &[arg(0, "EQ", 5, 0)]),
            errno("read", 4, &[arg(1, "EQ", 9, 0)]),
            // "Or", being twice on one argument.
            errno(
                "write",
                5,
                &[arg(2, "EQ", 1, 0), arg(2, "EQ", 2, 0), arg(0, "EQ", 3, 0)],
            ),
        ]),
        Arch::X86_64,
    );
    let read = |a, b| filter.of(Arch::X86_64, "read", [a, b, 0, 0, 0, 0]);
    assert_eq!(read(5, 9), ERRNO | 4);
    assert_eq!(read(5, 0), ERRNO | 3);
    assert_eq!(read(6, 0), ERRNO | 1);
    assert_eq!(read(12, 0), ERRNO | 2);
    let write = |a, c| filter.of(Arch::X86_64, "write", [a, 0, c, 0, 0, 0]);
    assert_eq!([write(0, 1), write(0, 2), write(3, 0)], [ERRNO | 5; 3]);
    assert_eq!(write(0, 3), ALLOW);
}

#[test]
fn rules_contradict_each_other_only_as_they_are_written() {
    let high = arg(1, "MASKED_EQ", 1 << 40, 1 << 40);
    let rules = vec![
        // The same to an architecture of 32 bits, where the first stands.
        errno("read", 1, &[arg(0, "EQ", 5, 0)]),
        errno("read", 2, &[arg(0, "EQ", 1 << 32 | 5, 0)]),
        errno("write", 1, &[arg(0, "EQ", 5, 0)]),
        errno("write", 2, &[arg(0, "EQ", 5, 0), high]),
        // The same through socketcall(2).
        errno("socket", 1, &[arg(0, "EQ", 2, 0)]),
        errno("socket", 2, &[arg(0, "EQ", 3, 0)]),
        // The last two are never asked.
        errno("openat", 1, &[arg(0, "EQ", 1, 0)]),
        errno("openat", 2, &[arg(0, "EQ", 1, 0), arg(1, "EQ", 1, 0)]),
        errno("openat", 3, &[arg(0, "EQ", 1, 0), arg(1, "EQ", 1, 0)]),
    ];
    let filter = ready(&listing(&[Arch::X86], rules), Arch::X86_64);
    for name in ["read", "write"] {
        assert_eq!(filter.of(Arch::X86, name, [5; 6]), ERRNO | 1);
    }
    assert_eq!(filter.of(Arch::X86, "socketcall", [1; 6]), ERRNO | 1);
    assert_eq!(filter.of(Arch::X86, "openat", [1; 6]), ERRNO | 1);
}

#[test]
fn newer_calls_fail_with_enosys_on_request() {
    let kill = |rules| Seccomp {
        default_action: "SCMP_ACT_KILL_PROCESS".into(),
        ..listing(&[Arch::S390], rules)
    };
    // A rule counts though it says what the default says, and ENOSYS starts after it.
    let kill = kill(vec![
        rule(&["read"], "SCMP_ACT_ALLOW", None, &[]),
        rule(&["openat2"], "SCMP_ACT_KILL_PROCESS", None, &[]),
    ]);
    let plain = Ready::new(
        &kill,
        Arch::S390x,
        Options {
            newer_is_enosys: false,
        },
    );
    let newer = ready(&kill, Arch::S390x);
    for arch in [Arch::S390, Arch::S390x] {
        for (number, verdict) in [
            (3, ALLOW),
            (4, 0x8000_0000),
            (437, 0x8000_0000),
            (438, ERRNO | 38),
            (u32::MAX, ERRNO | 38),
            // What the kernel shows for a number that it does not know.
            (0, ERRNO | 38),
        ] {
            assert_eq!(newer.numbered(arch, number, [0; 6]), verdict, "{number}");
            let plainly = if verdict == ALLOW { ALLOW } else { 0x8000_0000 };
            assert_eq!(plain.numbered(arch, number, [0; 6]), plainly, "{number}");
        }
    }
    // ARM's private calls are not newer than others.
    let arm = Seccomp {
        default_action: "SCMP_ACT_ERRNO".into(),
        ..profile(vec![rule(
            &["read", "set_tls"],
            "SCMP_ACT_ALLOW",
            None,
            &[],
        )])
    };
    let arm = ready(&arm, Arch::Arm);
    for (number, verdict) in [
        (3, ALLOW),
        (4, ERRNO | 38),
        (0xf0004, ERRNO | 1),
        (0xf0005, ALLOW),
        (0xf0006, ERRNO | 1),
        (0xf0007, ERRNO | 1),
    ] {
        assert_eq!(
            arm.numbered(Arch::Arm, number, [0; 6]),
            verdict,
            "{number:#x}"
        );
    }
}

#[test]
fn long_programs_jump_far_and_end_at_the_limit() {
    let values = |count: u64| {
        (0..count)
            .map(|n| errno("ioctl", 9, &[arg(1, "EQ", n * 3, 0)]))
            .collect::<Vec<_>>()
    };
    let filter = ready(&listing(&[Arch::X86], values(1900)), Arch::X86_64);
    for arch in [Arch::X86_64, Arch::X86] {
        for n in [0, 1, 2, 3, 2998, 3000, 5697] {
            let expected = if n % 3 == 0 { ERRNO | 9 } else { ALLOW };
            assert_eq!(
                filter.of(arch, "ioctl", [0, n, 0, 0, 0, 0]),
                expected,
                "{n}"
            );
        }
        assert_eq!(filter.of(arch, "ioctl", [0, 5700, 0, 0, 0, 0]), ALLOW);
    }
    let fault = fault(&profile(values(4200)));
    assert_eq!(fault.pointer, "/linux/seccomp/syscalls");
    assert!(
        fault
            .message
            .ends_with("instructions or more for the rules"),
        "{fault}"
    );
}

#[test]
fn faults_say_where_and_what() {
    let read = |action: &str, errno| profile(vec![rule(&["read"], action, errno, &[])]);
    let with = |arg| profile(vec![errno("write", 1, &[]), errno("read", 1, &[arg])]);
    let five = [arg(0, "EQ", 5, 0)];
    let cases = [
        (Seccomp::default(), "defaultAction: no action"),
        (
            Seccomp {
                default_action: "SCMP_ACT_X".into(),
                ..Seccomp::default()
            },
            "defaultAction: unknown action \"SCMP_ACT_X\"",
        ),
        (
            Seccomp {
                default_errno_ret: Some(1),
                ..profile(vec![])
            },
            "defaultErrnoRet: errno 1 for SCMP_ACT_ALLOW",
        ),
        (
            read("ALLOW", None),
            "syscalls/0/action: unknown action \"ALLOW\"",
        ),
        (
            read("SCMP_ACT_LOG", Some(2)),
            "syscalls/0/errnoRet: errno 2 for SCMP_ACT_LOG",
        ),
        (
            read("SCMP_ACT_ERRNO", Some(4096)),
            "syscalls/0/errnoRet: errno 4096 for SCMP_ACT_ERRNO",
        ),
        (
            read("SCMP_ACT_TRACE", Some(65536)),
            "syscalls/0/errnoRet: errno 65536 for SCMP_ACT_TRACE",
        ),
        (
            with(arg(0, "XX", 0, 0)),
            "syscalls/1/args/0/op: unknown operator \"SCMP_CMP_XX\"",
        ),
        (
            with(arg(6, "EQ", 0, 0)),
            "syscalls/1/args/0/index: argument 6 of a system call",
        ),
        (
            Seccomp {
                architectures: vec!["SCMP_ARCH_Z80".into()],
                ..profile(vec![])
            },
            "architectures/0: unknown architecture \"SCMP_ARCH_Z80\"",
        ),
        (
            listing(&[Arch::X86, Arch::S390x], vec![]),
            "architectures/1: SCMP_ARCH_S390X has the other byte order than SCMP_ARCH_X86_64",
        ),
        (
            Seccomp {
                flags: Some(vec!["TSYNC".into()]),
                ..profile(vec![])
            },
            "flags/0: unknown flag \"TSYNC\"",
        ),
        (
            profile(vec![errno("read", 1, &five), errno("read", 2, &five)]),
            "syscalls/1/action: not what /linux/seccomp/syscalls/0 does under the same \
             conditions on read",
        ),
    ];
    for (profile, expected) in cases {
        let fault = fault(&profile);
        assert_eq!(fault.to_string(), format!("/linux/seccomp/{expected}"));
        assert!(fault.hint.is_some(), "{fault}");
    }
}

#[test]
fn flags_are_what_the_kernel_takes() {
    let flags = |names: &[&str], action| {
        let names = names
            .iter()
            .map(|name| format!("SECCOMP_FILTER_FLAG_{name}"));
        let rules = vec![rule(&["getpid"], action, None, &[])];
        let profile = Seccomp {
            flags: (names.len() > 0).then(|| names.collect()),
            ..profile(rules)
        };
        let filter = compile(&profile, Arch::X86_64).unwrap();
        (filter.flags, filter.notify)
    };
    assert_eq!(flags(&[], "SCMP_ACT_LOG"), (4, false));
    assert_eq!(flags(&["LOG"], "SCMP_ACT_LOG"), (2, false));
    assert_eq!(flags(&["TSYNC", "SPEC_ALLOW"], "SCMP_ACT_LOG"), (5, false));
    assert_eq!(flags(&["WAIT_KILLABLE_RECV"], "SCMP_ACT_LOG"), (0, false));
    assert_eq!(
        flags(&["WAIT_KILLABLE_RECV"], "SCMP_ACT_NOTIFY"),
        (0x28, true)
    );
    assert_eq!(flags(&["TSYNC"], "SCMP_ACT_NOTIFY"), (0x19, true));
}

#[test]
fn a_profile_that_allows_everything_does_nothing() {
    let noop = |rules| compile(&profile(rules), Arch::X86_64).unwrap().is_noop();
    assert!(noop(vec![]));
    assert!(noop(vec![rule(&["read"], "SCMP_ACT_ALLOW", None, &[])]));
    assert!(noop(vec![errno("no_such_call", 1, &[])]));
    assert!(!noop(vec![errno("read", 1, &[])]));
    assert!(!noop(vec![errno("read", 1, &[arg(0, "EQ", 1, 0)])]));
    let log = Seccomp {
        default_action: "SCMP_ACT_LOG".into(),
        ..Seccomp::default()
    };
    assert!(!compile(&log, Arch::X86_64).unwrap().is_noop());
}

#[test]
fn instructions_are_laid_out_as_the_kernel_has_them() {
    let filter = compile(&profile(vec![errno("read", 1, &[])]), Arch::NATIVE).unwrap();
    let bytes = filter.to_bytes();
    assert_eq!(bytes.len(), filter.program.len() * 8);
    // Load the architecture first.
    let [a, b] = 0x20u16.to_ne_bytes();
    let [c, d, e, f] = 4u32.to_ne_bytes();
    assert_eq!(bytes[..8], [a, b, 0, 0, c, d, e, f]);
    assert_eq!(size_of::<Insn>(), 8);
}
