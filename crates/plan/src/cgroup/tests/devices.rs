//! The policy against a naive reading of the rules, a model of the kernel's v1 lists
//! and an interpreter of the v2 program.

use pipkin_spec::resources::DeviceRule;

use crate::cgroup::Write;
use crate::cgroup::devices::{Access, Kind, Policy, policy};

fn rule(allow: bool, kind: &str, major: i64, minor: i64, access: &str) -> DeviceRule {
    DeviceRule {
        allow,
        kind: (!kind.is_empty()).then(|| kind.to_owned()),
        major: Some(major),
        minor: Some(minor),
        access: Some(access.to_owned()),
    }
}

fn deny_all() -> DeviceRule {
    DeviceRule {
        allow: false,
        access: Some("rwm".to_owned()),
        ..DeviceRule::default()
    }
}

/// What the specification says, read rule by rule: the last that matches decides.
fn naive(rules: &[DeviceRule], kind: Kind, major: i64, minor: i64, access: Access) -> bool {
    let ends = [
        rule(true, "c", -1, -1, "m"),
        rule(true, "b", -1, -1, "m"),
        rule(true, "c", 1, 3, "rwm"),
        rule(true, "c", 1, 5, "rwm"),
        rule(true, "c", 1, 7, "rwm"),
        rule(true, "c", 1, 8, "rwm"),
        rule(true, "c", 1, 9, "rwm"),
        rule(true, "c", 5, 0, "rwm"),
        rule(true, "c", 5, 1, "rwm"),
        rule(true, "c", 5, 2, "rwm"),
        rule(true, "c", 136, -1, "rwm"),
    ];
    let letter = |a: Access| match a {
        Access::READ => 'r',
        Access::WRITE => 'w',
        _ => 'm',
    };
    let own = if kind == Kind::Char { "c" } else { "b" };
    Access::EACH
        .into_iter()
        .filter(|a| access.overlaps(*a))
        .all(|a| {
            let mut verdict = false;
            for r in rules.iter().chain(&ends) {
                let text = r.access.clone().unwrap_or_else(|| "rwm".to_owned());
                let kinds = r.kind.clone().unwrap_or_else(|| "a".to_owned());
                if (kinds == "a" || kinds == own)
                    && (r.major.unwrap_or(-1) == -1 || r.major == Some(major))
                    && (r.minor.unwrap_or(-1) == -1 || r.minor == Some(minor))
                    && text.contains(letter(a))
                {
                    verdict = r.allow;
                }
            }
            verdict
        })
}

/// security/device_cgroup.c: a default and exceptions that are matched one at a time.
fn v1_kernel(writes: &[Write], kind: Kind, major: u32, minor: u32, access: Access) -> bool {
    let mut allow_default = true;
    let mut exceptions: Vec<(Kind, Option<u32>, Option<u32>, u8)> = Vec::new();
    for w in writes {
        let allow = w.file == "devices.allow";
        if w.value == "a" {
            allow_default = allow;
            exceptions.clear();
            continue;
        }
        assert_ne!(
            allow, allow_default,
            "an exception of the default's own kind: {w:?}"
        );
        let (kind, rest) = w.value.split_once(' ').unwrap();
        let (numbers, letters) = rest.split_once(' ').unwrap();
        let (major, minor) = numbers.split_once(':').unwrap();
        let bits = letters.chars().fold(0, |bits, c| {
            bits | if c == 'r' {
                2
            } else if c == 'w' {
                4
            } else {
                1
            }
        });
        let kind = if kind == "c" { Kind::Char } else { Kind::Block };
        exceptions.push((kind, major.parse().ok(), minor.parse().ok(), bits));
    }
    let mut matching = exceptions.iter().filter(|e| {
        e.0 == kind && e.1.is_none_or(|m| m == major) && e.2.is_none_or(|m| m == minor)
    });
    if allow_default {
        !matching.any(|e| e.3 & access.bits() != 0)
    } else {
        matching.any(|e| access.bits() & !e.3 == 0)
    }
}

/// The verifier's first demand: every instruction can be reached, and none runs off the
/// end.
fn verify(program: &[u8]) {
    let count = program.len() / 8;
    let mut reached = vec![false; count];
    let mut waiting = vec![0];
    while let Some(at) = waiting.pop() {
        assert!(at < count, "runs off the end");
        if std::mem::replace(&mut reached[at], true) {
            continue;
        }
        let offset = i16::from_ne_bytes([program[at * 8 + 2], program[at * 8 + 3]]);
        let there = at + 1 + usize::try_from(offset).expect("a jump backwards");
        match program[at * 8] {
            0x95 => {}
            0x05 => waiting.push(there),
            0x55 | 0x45 | 0x15 | 0x25 => waiting.extend([at + 1, there]),
            _ => waiting.push(at + 1),
        }
    }
    assert!(reached.iter().all(|r| *r), "unreachable instructions");
}

/// Runs the program as the kernel does.
fn interpret(program: &[u8], kind: Kind, major: u32, minor: u32, access: Access) -> bool {
    let kind = if kind == Kind::Char { 2 } else { 1 };
    let context = [u32::from(access.bits()) << 16 | kind, major, minor];
    let mut registers = [0u64; 11];
    let mut at = 0;
    for _ in 0..100_000 {
        let i = &program[at * 8..at * 8 + 8];
        let (target, source) = (usize::from(i[1] & 15), usize::from(i[1] >> 4));
        let offset = i16::from_ne_bytes([i[2], i[3]]);
        let value = i32::from_ne_bytes([i[4], i[5], i[6], i[7]]);
        let wide = value as i64 as u64;
        let mut jump = false;
        match i[0] {
            0x61 => registers[target] = u64::from(context[usize::try_from(offset).unwrap() / 4]),
            0xb4 => registers[target] = u64::from(value as u32),
            0xbc => registers[target] = u64::from(registers[source] as u32),
            0x54 => registers[target] = u64::from(registers[target] as u32 & value as u32),
            0x74 => registers[target] = u64::from(registers[target] as u32 >> value),
            0x55 => jump = registers[target] != wide,
            0x45 => jump = registers[target] & wide != 0,
            0x15 => jump = registers[target] == wide,
            0x25 => jump = registers[target] > wide,
            0x6c => {
                let by = registers[source] as u32;
                registers[target] = u64::from((registers[target] as u32).checked_shl(by).unwrap());
            }
            0x05 => jump = true,
            0x95 => return registers[0] != 0,
            other => panic!("unknown instruction {other:#x}"),
        }
        at += 1;
        if jump {
            at += usize::try_from(offset).expect("a jump backwards");
        }
    }
    panic!("the program does not end");
}

const NUMBERS: [(u32, u32); 14] = [
    (1, 3),
    (1, 4),
    (1, 5),
    (5, 0),
    (5, 1),
    (5, 2),
    (10, 200),
    (10, 229),
    (136, 0),
    (136, 77),
    (8, 0),
    (8, 1),
    (1, 35),
    (1, 31),
];
/// What the kernel asks: opening, or mknod by itself.
const ASKED: [Access; 4] = [
    Access::READ,
    Access::WRITE,
    Access::READ.union(Access::WRITE),
    Access::MKNOD,
];

fn check(rules: &[DeviceRule]) -> Policy {
    let policy = policy(rules).unwrap();
    let program = policy.program();
    verify(&program);
    let v1 = policy.v1_writes();
    for kind in [Kind::Char, Kind::Block] {
        for (major, minor) in NUMBERS {
            for access in ASKED {
                let want = naive(rules, kind, major.into(), minor.into(), access);
                let got = [
                    policy.allows(kind, major, minor, access),
                    interpret(&program, kind, major, minor, access),
                    v1.as_ref()
                        .map_or(want, |v1| v1_kernel(v1, kind, major, minor, access)),
                ];
                assert_eq!(
                    got, [want; 3],
                    "policy, v2, v1: {kind:?} {major}:{minor} {access} under {rules:?}\n{policy:?}\n{v1:?}"
                );
            }
        }
    }
    policy
}

fn values(policy: &Policy) -> Vec<String> {
    let writes = policy.v1_writes().unwrap();
    writes
        .iter()
        .map(|w| format!("{} {}", w.file.trim_start_matches("devices."), w.value))
        .collect()
}

const DEFAULT_LIST: [&str; 12] = [
    "deny a",
    "allow c *:* m",
    "allow b *:* m",
    "allow c 1:3 rwm",
    "allow c 1:5 rwm",
    "allow c 1:7 rwm",
    "allow c 1:8 rwm",
    "allow c 1:9 rwm",
    "allow c 5:0 rwm",
    "allow c 5:1 rwm",
    "allow c 5:2 rwm",
    "allow c 136:* rwm",
];

#[test]
fn denies_by_default() {
    assert_eq!(values(&check(&[])), DEFAULT_LIST);
    assert_eq!(values(&check(&[deny_all()])), DEFAULT_LIST);
}

#[test]
fn a_denial_of_what_is_denied_changes_nothing() {
    let rules = [
        deny_all(),
        rule(true, "c", 1, 5, "rwm"),
        rule(false, "c", 10, 229, "rwm"),
    ];
    let mut sorted = values(&check(&rules));
    sorted.sort();
    let mut want = DEFAULT_LIST.map(str::to_owned).to_vec();
    want.sort();
    assert_eq!(sorted, want);
}

#[test]
fn allowing_all_needs_nothing() {
    let all = DeviceRule {
        allow: true,
        access: Some("rwm".to_owned()),
        ..DeviceRule::default()
    };
    assert!(check(std::slice::from_ref(&all)).allows_all());
    assert_eq!(check(&[deny_all(), all]).v1_writes().unwrap(), []);
}

#[test]
fn the_last_rule_decides() {
    // (rules, v1 list or None where v1 cannot hold it)
    let all = rule(true, "a", -1, -1, "rwm");
    let cases: [(&[DeviceRule], Option<&[&str]>); 7] = [
        (
            &[all.clone(), rule(false, "c", 10, 229, "rwm")],
            Some(&["allow a", "deny c 10:229 rw"]),
        ),
        (
            &[
                all.clone(),
                rule(false, "c", 10, 229, "w"),
                rule(false, "c", 10, 229, "r"),
            ],
            Some(&["allow a", "deny c 10:229 rw"]),
        ),
        (
            &[
                all.clone(),
                rule(false, "c", 10, 229, "rwm"),
                rule(true, "c", 10, -1, "rw"),
            ],
            Some(&["allow a"]),
        ),
        // Holes in a wildcard, by the other default.
        (
            &[
                rule(true, "c", -1, -1, "rwm"),
                rule(false, "c", 10, 200, "rwm"),
            ],
            Some(&["allow a", "deny b *:* rw", "deny c 10:200 rw"]),
        ),
        // A hole in a range has no form on v1.
        (
            &[
                rule(true, "c", 10, -1, "rwm"),
                rule(false, "c", 10, 200, "rwm"),
            ],
            None,
        ),
        // Two crossing ranges allow both on the device where they cross.
        (
            &[rule(true, "b", 8, -1, "r"), rule(true, "b", -1, 1, "w")],
            Some(&[]),
        ),
        (&[all, rule(false, "a", 1, -1, "rwm")], None),
    ];
    for (rules, want) in cases {
        let policy = check(rules);
        match want {
            Some([]) => {}
            Some(["allow a"]) => assert!(values(&policy).len() <= 2, "{:?}", values(&policy)),
            Some(want) => assert_eq!(values(&policy), want),
            None => {
                let error = policy.v1_writes().unwrap_err();
                assert!(
                    error.pointer.starts_with("/linux/resources/devices/"),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn random_rules_hold_everywhere() {
    let mut seed = 1u64;
    let mut next = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut on_v1 = 0;
    for _ in 0..1500 {
        let rules: Vec<DeviceRule> = (0..next(7))
            .map(|_| {
                let letters = ["r", "w", "m", "rw", "rm", "wm", "rwm", ""][next(8) as usize];
                let number = |n: u64, list: [i64; 4]| list[n as usize];
                DeviceRule {
                    allow: next(2) == 0,
                    kind: Some(["a", "c", "b", "u"][next(4) as usize].to_owned())
                        .filter(|k| k != "u"),
                    major: Some(number(next(4), [-1, 1, 10, 8])),
                    minor: Some(number(next(4), [-1, 3, 200, 1])),
                    access: Some(letters.to_owned()).filter(|a| !a.is_empty()),
                }
            })
            .collect();
        on_v1 += u32::from(check(&rules).v1_writes().is_ok());
    }
    assert!(on_v1 > 300, "only {on_v1} had a v1 form");
}

#[test]
fn wrong_rules_are_named() {
    let cases = [
        (
            rule(true, "p", 1, 3, "r"),
            "/linux/resources/devices/0/type",
        ),
        (
            rule(true, "c", 1, 3, "rx"),
            "/linux/resources/devices/0/access",
        ),
        (
            rule(true, "c", -2, 3, "r"),
            "/linux/resources/devices/0/major",
        ),
        (
            rule(true, "c", 4096, 3, "r"),
            "/linux/resources/devices/0/major",
        ),
        (
            rule(true, "c", 1, i64::MAX, "r"),
            "/linux/resources/devices/0/minor",
        ),
    ];
    for (rule, pointer) in cases {
        let error = policy(&[rule]).unwrap_err();
        assert_eq!(error.pointer, pointer);
        assert!(error.hint.is_some());
    }
}

#[test]
fn many_rules_fit_and_too_many_are_refused() {
    let rules = |n: i64| -> Vec<_> { (0..n).map(|i| rule(true, "b", i % 4000, i, "r")).collect() };
    let program = policy(&rules(580)).unwrap().program();
    assert!(
        program.len() / 8 <= 4096,
        "{} instructions",
        program.len() / 8
    );
    assert!(interpret(&program, Kind::Block, 579, 579, Access::READ));
    assert!(!interpret(&program, Kind::Block, 579, 579, Access::WRITE));
    assert_eq!(
        policy(&rules(5000)).unwrap_err().pointer,
        "/linux/resources/devices"
    );
}

#[test]
fn ranges_that_cross_everywhere_are_no_flood() {
    let mut rules: Vec<_> = (0..280)
        .map(|i| rule(true, "c", i + 200, -1, "r"))
        .collect();
    rules.extend((0..280).map(|i| rule(true, "c", -1, i + 200, "w")));
    let policy = policy(&rules).unwrap();
    assert!(policy.v1_writes().is_err());
    let program = policy.program();
    verify(&program);
    assert!(program.len() / 8 <= 4096);
    let both = Access::READ.union(Access::WRITE);
    assert!(interpret(&program, Kind::Char, 210, 215, both));
}
