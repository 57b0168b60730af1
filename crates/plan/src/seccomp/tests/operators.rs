//! Every operator at the values where its outcome changes.

use super::*;

/// What the specification says of an operator.
fn holds(op: &str, argument: u64, value: u64, value_two: u64) -> bool {
    match op {
        "EQ" => argument == value,
        "NE" => argument != value,
        "LT" => argument < value,
        "LE" => argument <= value,
        "GT" => argument > value,
        "GE" => argument >= value,
        "MASKED_EQ" => argument & value == value_two & value,
        _ => unreachable!("{op}"),
    }
}

/// Values next to `value`, with the same low half and another high one, and the other
/// way round.
fn edges(value: u64) -> Vec<u64> {
    let mut all = vec![
        0,
        1,
        u64::from(u32::MAX),
        1 << 32,
        u64::MAX - 1,
        u64::MAX,
        1 << 63,
        !value,
        value.swap_bytes(),
        value.rotate_left(32),
    ];
    for high in [0, 1, 1 << 31, u64::from(u32::MAX)] {
        for low in [-1i64, 0, 1] {
            let near = value.wrapping_add_signed(low);
            all.extend([near, near ^ high << 32, near.wrapping_add(high << 32)]);
            all.push(near & u64::from(u32::MAX) | high << 32);
        }
    }
    all
}

const VALUES: [u64; 13] = [
    0,
    1,
    2,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0001,
    0x1234_5678_9abc_def0,
    0x8000_0000_0000_0000,
    0xffff_ffff_0000_0000,
    u64::MAX,
];

fn every_operator(native: Arch, arch: Arch, cut: u64) {
    for op in OPERATORS {
        let op = op.trim_start_matches("SCMP_CMP_");
        for (i, value) in VALUES.into_iter().enumerate() {
            let index = i as u32 % 6;
            let seconds: &[u64] = match op {
                "MASKED_EQ" => &VALUES,
                _ => &[0],
            };
            for two in seconds.iter().copied() {
                let rule = allow("ioctl", vec![arg(index, op, value, two)]);
                let mut profile = profile(vec![rule]);
                profile.architectures = vec![arch.name().into()];
                let program = Program::new(&profile, native);
                for argument in edges(value).into_iter().chain(edges(two)) {
                    let expected = holds(op, argument & cut, value & cut, two & cut);
                    let verdict = program.call(arch, "ioctl", with(index, argument));
                    assert_eq!(
                        verdict,
                        if expected { ALLOW } else { EPERM },
                        "{arch:?}: {argument:#x} {op} {value:#x} {two:#x}"
                    );
                }
            }
        }
    }
}

#[test]
fn operators_compare_all_64_bits() {
    every_operator(Arch::X86_64, Arch::X86_64, u64::MAX);
}

#[test]
fn big_endian_machines_store_the_high_half_first() {
    every_operator(Arch::S390x, Arch::S390x, u64::MAX);
}

#[test]
fn architectures_of_32_bits_compare_low_halves() {
    for (native, arch) in [
        (Arch::X86_64, Arch::X86),
        (Arch::X86_64, Arch::X32),
        (Arch::Aarch64, Arch::Arm),
        (Arch::Ppc, Arch::Ppc),
    ] {
        every_operator(native, arch, u64::from(u32::MAX));
    }
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let args = vec![
        arg(5, "LT", 10, 0),
        arg(0, "EQ", 1 << 33, 0),
        arg(2, "MASKED_EQ", 0xff00, 0x1200),
    ];
    let program = Program::new(&profile(vec![allow("mmap", args)]), Arch::X86_64);
    let good = [1 << 33, 7, 0xab12cd, 7, 7, 9];
    assert_eq!(program.call(Arch::X86_64, "mmap", good), ALLOW);
    for (index, bad) in [(0, 1), (2, 0xab13cd), (5, 10)] {
        let mut args = good;
        args[index] = bad;
        assert_eq!(program.call(Arch::X86_64, "mmap", args), EPERM, "{index}");
    }
}

#[test]
fn conditions_on_one_argument_are_alternatives() {
    let args = vec![arg(0, "EQ", 1, 0), arg(0, "EQ", 7, 0), arg(1, "GT", 100, 0)];
    let program = Program::new(&profile(vec![allow("socket", args)]), Arch::X86_64);
    let call = |args| program.call(Arch::X86_64, "socket", args);
    assert_eq!(call([1, 0, 0, 0, 0, 0]), ALLOW);
    assert_eq!(call([7, 0, 0, 0, 0, 0]), ALLOW);
    // The other argument's condition has become an alternative too.
    assert_eq!(call([2, 101, 0, 0, 0, 0]), ALLOW);
    assert_eq!(call([2, 100, 0, 0, 0, 0]), EPERM);
}

#[test]
fn a_mask_of_no_bits_is_no_condition() {
    let args = vec![arg(1, "MASKED_EQ", 0, 5), arg(2, "EQ", 3, 0)];
    let rules = vec![
        allow("ioctl", args),
        allow("fcntl", vec![arg(0, "MASKED_EQ", 0, 9)]),
        allow("prctl", vec![arg(0, "MASKED_EQ", 7 << 32, 1 << 32)]),
    ];
    let mut profile = profile(rules);
    profile.architectures = vec!["SCMP_ARCH_X86".into()];
    let program = Program::new(&profile, Arch::X86_64);
    assert_eq!(program.call(Arch::X86_64, "ioctl", with(2, 3)), ALLOW);
    assert_eq!(program.call(Arch::X86_64, "ioctl", with(2, 4)), EPERM);
    assert_eq!(program.call(Arch::X86_64, "fcntl", with(0, 4)), ALLOW);
    // Only bits that this architecture's arguments do not have.
    assert_eq!(program.call(Arch::X86, "prctl", with(0, 4)), ALLOW);
    assert_eq!(program.call(Arch::X86_64, "prctl", with(0, 4)), EPERM);
    assert_eq!(program.call(Arch::X86_64, "prctl", with(0, 9 << 32)), ALLOW);
}

#[test]
fn multiplexed_calls_are_told_by_the_first_argument() {
    // socketcall(2) hides the call's own arguments behind a pointer.
    let rules = vec![
        allow("socket", vec![arg(0, "EQ", 1, 0)]),
        allow("shmget", vec![]),
        allow("bind", vec![arg(0, "EQ", 3, 0), arg(2, "LT", 9, 0)]),
    ];
    let mut profile = profile(rules);
    profile.architectures = vec!["SCMP_ARCH_X86".into()];
    let program = Program::new(&profile, Arch::X86_64);
    let socketcall = |args| program.call(Arch::X86, "socketcall", args);
    assert_eq!(socketcall([1, 0, 0, 0, 0, 0]), ALLOW);
    assert_eq!(socketcall([2, 0, 8, 0, 0, 0]), ALLOW);
    assert_eq!(socketcall([2, 0, 9, 0, 0, 0]), EPERM);
    assert_eq!(socketcall([3, 0, 0, 0, 0, 0]), EPERM);
    let ipc = |args| program.call(Arch::X86, "ipc", args);
    assert_eq!(ipc([23, 0, 0, 0, 0, 0]), ALLOW);
    assert_eq!(ipc([24, 0, 0, 0, 0, 0]), EPERM);
    assert_eq!(program.call(Arch::X86, "socket", with(0, 1)), ALLOW);
    assert_eq!(program.call(Arch::X86, "socket", with(0, 2)), EPERM);
}
