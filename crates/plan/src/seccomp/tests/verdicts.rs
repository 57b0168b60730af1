//! Which verdict a call gets: actions, architectures, and which rule decides.

use super::*;

/// `SECCOMP_RET_…` with the data that an absent errnoRet stands for.
const VERDICTS: [(&str, u32); 9] = [
    ("ALLOW", 0x7fff_0000),
    ("ERRNO", 0x0005_0001),
    ("KILL", 0),
    ("KILL_PROCESS", 0x8000_0000),
    ("KILL_THREAD", 0),
    ("LOG", 0x7ffc_0000),
    ("NOTIFY", 0x7fc0_0000),
    ("TRACE", 0x7ff0_0001),
    ("TRAP", 0x0003_0000),
];

#[test]
fn every_action_has_its_value() {
    assert_eq!(
        VERDICTS.map(|(name, _)| format!("SCMP_ACT_{name}")),
        ACTIONS
    );
    for (action, verdict) in VERDICTS {
        for (default, otherwise) in VERDICTS {
            let mut profile = profile(vec![rule(&["read"], action, vec![])]);
            profile.default_action = format!("SCMP_ACT_{default}");
            let program = Program::new(&profile, Arch::X86_64);
            let case = format!("{action} {default}");
            assert_eq!(
                program.call(Arch::X86_64, "read", [0; 6]),
                verdict,
                "{case}"
            );
            // Before the last call that is named, so that it is not "newer".
            profile.syscalls[0].names = vec!["write".into()];
            let program = Program::new(&profile, Arch::X86_64);
            assert_eq!(
                program.call(Arch::X86_64, "read", [0; 6]),
                otherwise,
                "{case}"
            );
            let notify = [action, default].contains(&"NOTIFY");
            assert_eq!(program.filter.notify, notify, "{case}");
            assert_eq!(
                program.filter.is_noop(),
                (action, default) == ("ALLOW", "ALLOW")
            );
        }
    }
}

#[test]
fn errno_ret_is_the_data() {
    for (action, errno, verdict) in [
        ("ERRNO", None, 0x0005_0001),
        ("ERRNO", Some(0), 0x0005_0000),
        ("ERRNO", Some(4095), 0x0005_0fff),
        ("TRACE", Some(0), 0x7ff0_0000),
        ("TRACE", Some(0xffff), 0x7ff0_ffff),
    ] {
        let mut of_rule = rule(&["read"], action, vec![]);
        of_rule.errno_ret = errno;
        let mut profile = profile(vec![of_rule, rule(&["close"], "KILL", vec![])]);
        profile.default_action = format!("SCMP_ACT_{action}");
        profile.default_errno_ret = Some(99);
        let program = Program::new(&profile, Arch::X86_64);
        assert_eq!(program.call(Arch::X86_64, "read", [0; 6]), verdict);
        let default = verdict & 0xffff_0000 | 99;
        assert_eq!(program.call(Arch::X86_64, "write", [0; 6]), default);
    }
}

#[test]
fn calls_of_architectures_that_are_not_listed_kill() {
    let program = Program::new(&profile(vec![allow("read", vec![])]), Arch::X86_64);
    for arch in Arch::ALL {
        let ours = arch.audit() == Arch::X86_64.audit();
        for number in [0, 3, 63, 4003, u32::MAX] {
            let verdict = program.number(arch, number, [0; 6]);
            assert_eq!(verdict == KILL_THREAD, !ours, "{arch:?} {number}");
        }
    }
    for audit in [0, 1, 62, 62 | 1 << 31, 62 | 1 << 30, u32::MAX] {
        assert_eq!(program.ask(0, audit, [0; 6]), KILL_THREAD, "{audit:#x}");
    }
}

#[test]
fn calls_of_x32_kill_where_it_is_not_listed() {
    let mut profile = profile(vec![allow("read", vec![])]);
    let x32 = Arch::X32.number("read").unwrap();
    let program = Program::new(&profile, Arch::X86_64);
    for number in [x32, x32 + 1, x32 + 511, 0x7fff_ffff, u32::MAX - 1] {
        assert_eq!(program.number(Arch::X86_64, number, [0; 6]), KILL_THREAD);
    }
    assert_eq!(program.number(Arch::X86_64, x32 - 1, [0; 6]), ENOSYS);
    // What a tracer sets to have a call skipped.
    assert_eq!(program.number(Arch::X86_64, u32::MAX, [0; 6]), EPERM);

    profile.architectures = vec!["SCMP_ARCH_X32".into()];
    let program = Program::new(&profile, Arch::X86_64);
    assert_eq!(program.number(Arch::X32, x32, [0; 6]), ALLOW);
    assert_eq!(program.number(Arch::X86_64, 0, [0; 6]), ALLOW);
    assert_eq!(program.number(Arch::X32, x32 + 1, [0; 6]), ENOSYS);
}

#[test]
fn each_listed_architecture_has_its_own_numbers() {
    let mut little = profile(vec![allow("execve", vec![]), allow("nosuchcall", vec![])]);
    let mut big = little.clone();
    for arch in Arch::ALL {
        match arch.facts().big_endian {
            true => big.architectures.push(arch.name().into()),
            false => little.architectures.push(arch.name().into()),
        }
    }
    for (profile, native) in [(little, Arch::Aarch64), (big, Arch::Mips)] {
        let program = Program::new(&profile, native);
        for name in &profile.architectures {
            let arch = Arch::find(name).unwrap();
            let number = arch.number("execve").unwrap();
            assert_eq!(program.number(arch, number, [0; 6]), ALLOW, "{name}");
            assert_ne!(program.number(arch, number + 1, [0; 6]), ALLOW, "{name}");
            assert_ne!(program.number(arch, number - 1, [0; 6]), ALLOW, "{name}");
        }
    }
}

#[test]
fn listing_an_architecture_twice_changes_nothing() {
    let mut profile = profile(vec![allow("read", vec![])]);
    let once = Program::new(&profile, Arch::X86_64);
    profile.architectures = vec!["SCMP_ARCH_X86_64".into(), "SCMP_ARCH_X86_64".into()];
    assert_eq!(Program::new(&profile, Arch::X86_64).filter, once.filter);
}

#[test]
fn a_rule_without_conditions_stands_against_those_with() {
    let conditional = || rule(&["openat"], "KILL", vec![arg(2, "EQ", 1, 0)]);
    let always = || allow("openat", vec![]);
    for rules in [
        vec![conditional(), always()],
        vec![always(), conditional()],
        vec![conditional(), always(), conditional()],
    ] {
        let program = Program::new(&profile(rules), Arch::X86_64);
        assert_eq!(program.call(Arch::X86_64, "openat", with(2, 1)), ALLOW);
        assert_eq!(program.call(Arch::X86_64, "openat", with(2, 0)), ALLOW);
    }
}

#[test]
fn of_two_rules_without_conditions_the_first_stands() {
    let rules = vec![allow("openat", vec![]), rule(&["openat"], "KILL", vec![])];
    let program = Program::new(&profile(rules), Arch::X86_64);
    assert_eq!(program.call(Arch::X86_64, "openat", [0; 6]), ALLOW);
}

#[test]
fn a_rule_with_the_default_verdict_says_nothing() {
    let rules = vec![
        rule(&["openat"], "ERRNO", vec![]),
        allow("openat", vec![arg(2, "EQ", 1, 0)]),
    ];
    let program = Program::new(&profile(rules), Arch::X86_64);
    assert_eq!(program.call(Arch::X86_64, "openat", with(2, 1)), ALLOW);
    assert_eq!(program.call(Arch::X86_64, "openat", with(2, 0)), EPERM);
}

#[test]
fn of_two_rules_that_hold_the_larger_value_or_later_argument_decides() {
    let one = |action, conditions| rule(&["ioctl"], action, conditions);
    let both = |a: &Rule, b: &Rule, args| {
        for rules in [vec![a.clone(), b.clone()], vec![b.clone(), a.clone()]] {
            let program = Program::new(&profile(rules), Arch::X86_64);
            assert_eq!(program.call(Arch::X86_64, "ioctl", args), ALLOW);
        }
    };
    let large = one("ALLOW", vec![arg(1, "GE", 20, 0)]);
    let small = one("TRAP", vec![arg(1, "GE", 10, 0)]);
    both(&large, &small, with(1, 30));
    let second = one("ALLOW", vec![arg(2, "EQ", 1, 0)]);
    let first = one("TRAP", vec![arg(1, "EQ", 1, 0)]);
    both(&second, &first, [0, 1, 1, 0, 0, 0]);
}

#[test]
fn newer_calls_fail_with_enosys() {
    let last = Arch::X86_64.number("openat").unwrap();
    for (default, newer) in [
        ("ERRNO", ENOSYS),
        ("KILL", ENOSYS),
        ("KILL_PROCESS", ENOSYS),
        ("TRAP", ENOSYS),
        ("ALLOW", ALLOW),
        ("LOG", 0x7ffc_0000),
        ("TRACE", 0x7ff0_0001),
        ("NOTIFY", 0x7fc0_0000),
    ] {
        let rules = vec![
            allow("read", vec![]),
            // Even a rule that says nothing else knows the call.
            rule(&["openat"], default, vec![]),
        ];
        let mut profile = profile(rules);
        profile.default_action = format!("SCMP_ACT_{default}");
        let (_, otherwise) = VERDICTS.into_iter().find(|v| v.0 == default).unwrap();

        let program = Program::new(&profile, Arch::X86_64);
        let ask = |number| program.number(Arch::X86_64, number, [0; 6]);
        assert_eq!(ask(last), otherwise, "{default}");
        for number in [last + 1, 451, 547, 548, 1000, 0x3fff_ffff] {
            assert_eq!(ask(number), newer, "{default} {number}");
        }
        assert_eq!(ask(u32::MAX), otherwise, "{default}");

        let program = Program::without_enosys(&profile, Arch::X86_64);
        for number in [last, last + 1, 547, 548, 0x3fff_ffff, u32::MAX] {
            let verdict = program.number(Arch::X86_64, number, [0; 6]);
            assert_eq!(verdict, otherwise, "{default} {number}");
        }
    }
}

#[test]
fn without_rules_nothing_is_newer() {
    let program = Program::new(&profile(vec![]), Arch::X86_64);
    for number in [0, 1, 500, 0x3fff_ffff] {
        assert_eq!(program.number(Arch::X86_64, number, [0; 6]), EPERM);
    }
}

#[test]
fn flags_are_those_asked_for_and_those_a_listener_needs() {
    let flags = |names: &[&str], action| {
        let mut profile = profile(vec![rule(&["read"], action, vec![])]);
        let names = names.iter().map(|n| format!("SECCOMP_FILTER_FLAG_{n}"));
        profile.flags = Some(names.collect());
        Program::new(&profile, Arch::X86_64).filter.flags
    };
    let (tsync, log, spec, listener, esrch, wait) = (1, 2, 4, 8, 16, 32);
    let unset = profile(vec![allow("read", vec![])]);
    assert_eq!(Program::new(&unset, Arch::X86_64).filter.flags, spec);
    assert_eq!(flags(&[], "ALLOW"), 0);
    assert_eq!(flags(&["LOG"], "ALLOW"), log);
    assert_eq!(flags(&["TSYNC", "SPEC_ALLOW"], "ALLOW"), tsync | spec);
    assert_eq!(flags(&["SPEC_ALLOW"], "NOTIFY"), spec | listener);
    assert_eq!(flags(&["TSYNC"], "NOTIFY"), tsync | esrch | listener);
    assert_eq!(flags(&["WAIT_KILLABLE_RECV"], "NOTIFY"), wait | listener);
    assert_eq!(flags(&["WAIT_KILLABLE_RECV"], "ALLOW"), 0);
}

#[test]
fn conflicts_are_decided_as_libseccomp_decides_them() {
    let errno = |errno, args| Rule {
        errno_ret: Some(errno),
        ..rule(&["read"], "ERRNO", args)
    };
    let rules = vec![
        errno(11, vec![arg(0, "LT", 10, 0)]),
        errno(12, vec![arg(0, "GT", 2, 0)]),
        errno(13, vec![arg(0, "EQ", 5, 0)]),
        errno(14, vec![arg(1, "EQ", 9, 0)]),
    ];
    let program = Program::new(&profile(rules), Arch::X86_64);
    let read = |a, b| program.call(Arch::X86_64, "read", [a, b, 0, 0, 0, 0]);
    assert_eq!(read(5, 9), ERRNO | 14);
    assert_eq!(read(5, 0), ERRNO | 13);
    assert_eq!(read(6, 0), ERRNO | 11);
    assert_eq!(read(12, 0), ERRNO | 12);
}

#[test]
fn s390_shows_an_unknown_number_as_zero() {
    let mut profile = profile(vec![allow("read", vec![]), allow("openat2", vec![])]);
    profile.architectures = vec!["SCMP_ARCH_S390".into()];
    let program = Program::new(&profile, Arch::S390x);
    for arch in [Arch::S390, Arch::S390x] {
        let last = arch.number("openat2").unwrap();
        for number in [0, last + 1, u32::MAX] {
            assert_eq!(program.number(arch, number, [0; 6]), ENOSYS, "{number}");
        }
        assert_eq!(program.number(arch, 1, [0; 6]), EPERM);
    }
}

#[test]
fn private_calls_of_arm_are_not_newer_than_others() {
    let rules = vec![allow("read", vec![]), allow("set_tls", vec![])];
    let program = Program::new(&profile(rules), Arch::Arm);
    for (number, verdict) in [
        (3, ALLOW),
        (4, ENOSYS),
        (0xf0000, ENOSYS),
        (0xf0004, EPERM),
        (0xf0005, ALLOW),
        (0xf0006, EPERM),
        (0xf0007, EPERM),
        (u32::MAX, EPERM),
    ] {
        let got = program.number(Arch::Arm, number, [0; 6]);
        assert_eq!(got, verdict, "{number:#x}");
    }
}

#[test]
fn a_profile_that_allows_everything_does_nothing() {
    let noop = |default: &str, rules| {
        let mut profile = profile(rules);
        profile.default_action = format!("SCMP_ACT_{default}");
        Program::new(&profile, Arch::X86_64).filter.is_noop()
    };
    let some = || vec![arg(0, "EQ", 1, 0)];
    assert!(noop("ALLOW", vec![]));
    assert!(noop("ALLOW", vec![allow("read", some())]));
    assert!(noop("ALLOW", vec![rule(&["nosuchcall"], "KILL", vec![])]));
    assert!(!noop("ALLOW", vec![rule(&["read"], "KILL", vec![])]));
    assert!(!noop("ALLOW", vec![rule(&["read"], "KILL", some())]));
    assert!(!noop("LOG", vec![]));
}
