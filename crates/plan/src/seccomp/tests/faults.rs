//! Values that are refused, with their place and what would be right.

use super::*;

/// Pointer, message, hint.
fn refused(profile: &Seccomp) -> (String, String, String) {
    let fault = super::super::compile(profile, Arch::X86_64).unwrap_err();
    (fault.pointer, fault.message, fault.hint.unwrap())
}

/// A good rule, then the bad one.
fn second(bad: Rule) -> (String, String, String) {
    refused(&profile(vec![allow("read", vec![]), bad]))
}

fn one_of(names: &[&str]) -> String {
    format!("one of {}", names.join(", "))
}

#[test]
fn unknown_actions() {
    let (pointer, message, hint) = second(rule(&["write"], "EXPLODE", vec![]));
    assert_eq!(pointer, "/linux/seccomp/syscalls/1/action");
    assert_eq!(message, "unknown action \"SCMP_ACT_EXPLODE\"");
    assert_eq!(hint, one_of(&ACTIONS));

    let mut profile = profile(vec![]);
    profile.default_action = "allow".into();
    let (pointer, message, hint) = refused(&profile);
    assert_eq!(pointer, "/linux/seccomp/defaultAction");
    assert_eq!(message, "unknown action \"allow\"");
    assert_eq!(hint, one_of(&ACTIONS));
    let (pointer, message, _) = refused(&Seccomp::default());
    assert_eq!(pointer, "/linux/seccomp/defaultAction");
    assert_eq!(message, "no action");
}

#[test]
fn a_bad_rule_is_refused_though_it_names_no_call() {
    let (pointer, ..) = second(rule(&[], "EXPLODE", vec![]));
    assert_eq!(pointer, "/linux/seccomp/syscalls/1/action");
    let (pointer, ..) = second(rule(&["nosuchcall"], "ALLOW", vec![arg(6, "EQ", 0, 0)]));
    assert_eq!(pointer, "/linux/seccomp/syscalls/1/args/0/index");
}

#[test]
fn errors_that_an_action_cannot_return() {
    let with = |action, errno| {
        let mut bad = rule(&["write"], action, vec![]);
        bad.errno_ret = Some(errno);
        bad
    };
    for (action, errno, right) in [
        ("ERRNO", 4096, "0 to 4095"),
        ("ERRNO", u32::MAX, "0 to 4095"),
        ("TRACE", 0x1_0000, "0 to 65535"),
        (
            "ALLOW",
            1,
            "only SCMP_ACT_ERRNO and SCMP_ACT_TRACE take one",
        ),
        ("KILL", 0, "only SCMP_ACT_ERRNO and SCMP_ACT_TRACE take one"),
    ] {
        let (pointer, message, hint) = second(with(action, errno));
        assert_eq!(pointer, "/linux/seccomp/syscalls/1/errnoRet");
        assert_eq!(message, format!("errno {errno} for SCMP_ACT_{action}"));
        assert_eq!(hint, right);
    }
    let mut profile = profile(vec![]);
    profile.default_errno_ret = Some(5000);
    assert_eq!(refused(&profile).0, "/linux/seccomp/defaultErrnoRet");
}

#[test]
fn unknown_operators_and_arguments() {
    let bad = vec![arg(0, "EQ", 0, 0), arg(1, "ALMOST", 0, 0)];
    let (pointer, message, hint) = second(allow("write", bad));
    assert_eq!(pointer, "/linux/seccomp/syscalls/1/args/1/op");
    assert_eq!(message, "unknown operator \"SCMP_CMP_ALMOST\"");
    assert_eq!(hint, one_of(&OPERATORS));
    for index in [6, 256, 257, u32::MAX] {
        let bad = vec![arg(5, "EQ", 0, 0), arg(index, "EQ", 0, 0)];
        let (pointer, message, hint) = second(allow("write", bad));
        assert_eq!(pointer, "/linux/seccomp/syscalls/1/args/1/index");
        assert_eq!(message, format!("argument {index} of a system call"));
        assert_eq!(hint, "0 to 5");
    }
}

#[test]
fn unknown_architectures() {
    let mut profile = profile(vec![]);
    profile.architectures = vec!["SCMP_ARCH_X86".into(), "SCMP_ARCH_VAX".into()];
    let (pointer, message, hint) = refused(&profile);
    assert_eq!(pointer, "/linux/seccomp/architectures/1");
    assert_eq!(message, "unknown architecture \"SCMP_ARCH_VAX\"");
    assert_eq!(hint, one_of(&ARCHITECTURES));
}

#[test]
fn architectures_of_the_other_byte_order() {
    let mut profile = profile(vec![]);
    profile.architectures = vec!["SCMP_ARCH_S390X".into()];
    let (pointer, message, hint) = refused(&profile);
    assert_eq!(pointer, "/linux/seccomp/architectures/0");
    assert_eq!(
        message,
        "SCMP_ARCH_S390X has the other byte order than SCMP_ARCH_X86_64"
    );
    assert_eq!(
        hint,
        "only architectures that the kernel can run at the same time"
    );
}

#[test]
fn unknown_flags() {
    let mut profile = profile(vec![]);
    profile.flags = Some(vec![
        "SECCOMP_FILTER_FLAG_LOG".into(),
        "SECCOMP_FILTER_FLAG_NEW_LISTENER".into(),
    ]);
    let (pointer, message, hint) = refused(&profile);
    assert_eq!(pointer, "/linux/seccomp/flags/1");
    assert_eq!(message, "unknown flag \"SECCOMP_FILTER_FLAG_NEW_LISTENER\"");
    assert_eq!(hint, one_of(&FLAGS));
}

#[test]
fn rules_that_contradict_each_other() {
    let args = || vec![arg(0, "EQ", 5, 0), arg(1, "NE", 0, 0)];
    let rules = vec![
        allow("ioctl", args()),
        allow("read", vec![]),
        rule(&["ioctl"], "KILL", args()),
    ];
    let (pointer, message, hint) = refused(&profile(rules));
    assert_eq!(pointer, "/linux/seccomp/syscalls/2/action");
    assert_eq!(
        message,
        "not what /linux/seccomp/syscalls/0 does under the same conditions on ioctl"
    );
    assert_eq!(hint, "drop one of the two rules");

    // The later would take all that is left to the earlier.
    let mut more = args();
    more.push(arg(2, "EQ", 1, 0));
    let rules = vec![
        allow("ioctl", more.clone()),
        rule(&["read", "ioctl"], "KILL", args()),
    ];
    let (pointer, message, _) = refused(&profile(rules));
    assert_eq!(pointer, "/linux/seccomp/syscalls/1/action");
    assert_eq!(
        message,
        "not what /linux/seccomp/syscalls/0 does under the same conditions and more on one of \
         its calls"
    );
    // The other way round, the one with more conditions says nothing.
    let rules = vec![rule(&["ioctl"], "KILL", args()), allow("ioctl", more)];
    let program = Program::new(&profile(rules), Arch::X86_64);
    let verdict = program.call(Arch::X86_64, "ioctl", [5, 1, 1, 0, 0, 0]);
    assert_eq!(verdict, KILL_THREAD);

    // The same twice is no contradiction.
    let rules = vec![allow("ioctl", args()), allow("ioctl", args())];
    assert!(super::super::compile(&profile(rules), Arch::X86_64).is_ok());
}

#[test]
fn rules_contradict_each_other_only_as_they_are_written() {
    let errno = |name: &str, errno, args| Rule {
        errno_ret: Some(errno),
        ..rule(&[name], "ERRNO", args)
    };
    let high = || arg(1, "MASKED_EQ", 1 << 40, 1 << 40);
    let rules = vec![
        // The same to an architecture of 32 bits, where the first stands.
        errno("read", 11, vec![arg(0, "EQ", 5, 0)]),
        errno("read", 12, vec![arg(0, "EQ", (1 << 32) | 5, 0)]),
        errno("write", 11, vec![arg(0, "EQ", 5, 0)]),
        errno("write", 12, vec![arg(0, "EQ", 5, 0), high()]),
        // The same through socketcall(2).
        errno("socket", 11, vec![arg(0, "EQ", 2, 0)]),
        errno("socket", 12, vec![arg(0, "EQ", 3, 0)]),
        // The last two are never asked.
        errno("openat", 11, vec![arg(0, "EQ", 1, 0)]),
        errno("openat", 12, vec![arg(0, "EQ", 1, 0), arg(1, "EQ", 1, 0)]),
        errno("openat", 13, vec![arg(0, "EQ", 1, 0), arg(1, "EQ", 1, 0)]),
    ];
    let mut profile = profile(rules);
    profile.architectures = vec!["SCMP_ARCH_X86".into()];
    let program = Program::new(&profile, Arch::X86_64);
    for (name, argument) in [("read", 5), ("write", 5), ("socketcall", 1), ("openat", 1)] {
        let verdict = program.call(Arch::X86, name, [argument; 6]);
        assert_eq!(verdict, ERRNO | 11, "{name}");
    }
}
