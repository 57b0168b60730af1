//! Programs as long as they may be and longer, and as short as they should be.

use super::*;
use serde_json::Value;

/// Rules on `calls` that each allow values of an argument of their own.
fn hundreds(calls: &[&str], values: u64) -> Vec<Rule> {
    let allow = |value: u64| {
        calls.iter().zip(1..).map(move |(name, call)| {
            // Spread, so that neither half of one is that of another.
            let value = ((value * 64 + call) << 32) | (value * 64 + call);
            rule(
                &[name],
                "ALLOW",
                vec![arg((call % 6) as u32, "EQ", value, 0)],
            )
        })
    };
    (1..=values).flat_map(allow).collect()
}

#[test]
fn jumps_reach_over_hundreds_of_rules() {
    let calls = ["read", "ioctl", "fcntl", "prctl", "openat"];
    let rules = hundreds(&calls, 150);
    let program = Program::new(&profile(rules.clone()), Arch::X86_64);
    assert!(program.raw.len() > 1500, "{}", program.raw.len());
    let far = program.raw.iter().filter(|insn| insn.0 == 0x05).count();
    assert!(far > 0, "no jump is long");
    for rule in &rules {
        let name = &rule.names[0];
        let Arg { index, value, .. } = rule.args[0];
        let call = |value| program.call(Arch::X86_64, name, with(index, value));
        assert_eq!(call(value), ALLOW);
        for other in [value - 1, value + 1, value ^ 1 << 32, value ^ 1 << 63] {
            assert_eq!(call(other), EPERM);
        }
    }
    assert_eq!(program.call(Arch::X86_64, "write", [0; 6]), EPERM);
    assert_eq!(program.call(Arch::X86_64, "close", [0; 6]), EPERM);
    assert_eq!(program.number(Arch::X86_64, 1000, [0; 6]), ENOSYS);
    assert_eq!(program.number(Arch::X86, 0, [0; 6]), KILL_THREAD);
}

#[test]
fn jumps_of_every_length_around_the_reach_are_right() {
    // Each more rule moves every jump's target by a few instructions.
    for values in 50..140 {
        let rules = hundreds(&["ioctl", "fcntl"], values);
        let program = Program::new(&profile(rules.clone()), Arch::X86_64);
        for rule in &rules {
            let Arg { index, value, .. } = rule.args[0];
            let args = with(index, value);
            let verdict = program.call(Arch::X86_64, &rule.names[0], args);
            assert_eq!(verdict, ALLOW, "{values}");
            let verdict = program.call(Arch::X86_64, &rule.names[0], with(index, value + 1));
            assert_eq!(verdict, EPERM, "{values}");
        }
    }
}

#[test]
fn a_program_too_long_for_the_kernel_is_refused() {
    let length = |values| {
        super::super::compile(&profile(hundreds(&["ioctl"], values)), Arch::X86_64)
            .map(|filter| filter.program.len())
    };
    let fault = length(2500).unwrap_err();
    assert_eq!(fault.pointer, "/linux/seccomp/syscalls");
    let (length_said, rest) = fault.message.split_once(' ').unwrap();
    assert!(length_said.parse::<usize>().unwrap() > 4096);
    assert_eq!(rest, "instructions or more for the rules");
    assert_eq!(
        fault.hint.unwrap(),
        "at most 4096: fewer conditions or architectures"
    );

    // The longest that passes and the first that does not.
    let (mut passes, mut fails) = (1, 2500);
    while passes + 1 < fails {
        let middle = (passes + fails) / 2;
        match length(middle) {
            Ok(_) => passes = middle,
            Err(_) => fails = middle,
        }
    }
    let longest = length(passes).unwrap();
    assert!((4088..=4096).contains(&longest), "{longest}");
    Program::new(&profile(hundreds(&["ioctl"], passes)), Arch::X86_64);
}

fn real(text: &str) -> Seccomp {
    let config: Value = serde_json::from_str(text).unwrap();
    serde_json::from_value(config["linux"]["seccomp"].clone()).unwrap()
}

#[test]
fn real_profiles_are_short() {
    for (text, most) in [
        (
            include_str!("../../../../../tests/bundles/podman.json"),
            250,
        ),
        (
            include_str!("../../../../../tests/bundles/docker.json"),
            250,
        ),
        (
            include_str!("../../../../../tests/bundles/containerd.json"),
            250,
        ),
    ] {
        let program = Program::new(&real(text), Arch::X86_64);
        assert!(program.raw.len() < most, "{}", program.raw.len());
        assert_eq!(program.filter.to_bytes().len(), 8 * program.raw.len());
        for arch in [Arch::X86_64, Arch::X86, Arch::X32] {
            assert_eq!(program.call(arch, "read", [0; 6]), ALLOW);
            // Few comparisons even for the worst number.
            for number in 0..1024 {
                let number = arch.facts().base + number;
                let data = interpreter::data(number, arch.audit(), [0; 6], false);
                let (_, steps) = interpreter::run(&program.raw, &data);
                assert!(steps <= 40, "{arch:?} {number}: {steps}");
            }
        }
    }
}

#[test]
fn an_instruction_is_laid_out_as_the_kernel_reads_it() {
    let program = Program::new(&profile(vec![]), Arch::X86_64);
    let bytes = program.filter.to_bytes();
    for (insn, bytes) in program.raw.iter().zip(bytes.chunks(8)) {
        let (code, jt, jf, k) = *insn;
        assert_eq!(bytes[..2], code.to_ne_bytes());
        assert_eq!(bytes[2..4], [jt, jf]);
        assert_eq!(bytes[4..], k.to_ne_bytes());
    }
}
