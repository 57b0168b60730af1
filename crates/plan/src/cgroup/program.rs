//! eBPF programs of the type BPF_PROG_TYPE_CGROUP_DEVICE: kernel,
//! admin-guide/cgroup-v2.rst, "Device controller", and bpf/standardization/
//! instruction-set.rst.
//!
//! The kernel calls the program for each mknod(2) and open(2) of a device node with
//! `struct bpf_cgroup_dev_ctx { u32 access_type, major, minor }`, the kind in the low
//! half of access_type and the accesses in the high half, and refuses on 0.
//!
//! Only instructions of Linux 4.15 are used, where the program type began.

use super::devices::{Access, Kind, Policy, Rule};

/// Bytes of an instruction.
pub const INSTRUCTION: usize = 8;

/// linux/bpf.h, BPF_DEVCG_DEV_CHAR; the block devices' is 1.
const CHAR: i32 = 2;

// Registers.
const RESULT: u8 = 0;
const CONTEXT: u8 = 1;
const KIND: u8 = 2;
const WANTED: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

// Operation codes: class, source and operation of the instruction set.
const LOAD_WORD: u8 = 0x61;
const MOVE: u8 = 0xb4;
const MOVE_REGISTER: u8 = 0xbc;
const AND: u8 = 0x54;
const SHIFT_RIGHT: u8 = 0x74;
const JUMP_UNLESS_EQUAL: u8 = 0x55;
const JUMP_IF_COMMON: u8 = 0x45;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_GREATER: u8 = 0x25;
const JUMP: u8 = 0x05;
const SHIFT_LEFT_REGISTER: u8 = 0x6c;
const EXIT: u8 = 0x95;

struct Code(Vec<u8>);

impl Code {
    fn emit(&mut self, op: u8, target: u8, source: u8, offset: i16, value: i32) {
        let registers = match cfg!(target_endian = "little") {
            true => source << 4 | target,
            false => target << 4 | source,
        };
        self.0.extend([op, registers]);
        self.0.extend(offset.to_ne_bytes());
        self.0.extend(value.to_ne_bytes());
    }

    fn here(&self) -> usize {
        self.0.len() / INSTRUCTION
    }

    fn answer(&mut self, allow: bool) {
        self.emit(MOVE, RESULT, 0, 0, i32::from(allow));
        self.emit(EXIT, 0, 0, 0, 0);
    }

    /// A jump over what follows, taken unless the register has this value.
    fn unless_equal(&mut self, register: u8, value: i32) -> usize {
        self.emit(JUMP_UNLESS_EQUAL, register, 0, 0, value);
        self.here()
    }

    /// Lets the jump that ends before `from` lead to here.
    fn land(&mut self, from: usize) {
        // A policy has so few rules that the distance always fits.
        let distance = i16::try_from(self.here() - from).unwrap_or(i16::MAX);
        let at = (from - 1) * INSTRUCTION + 2;
        if let Some(field) = self.0.get_mut(at..at + 2) {
            field.copy_from_slice(&distance.to_ne_bytes());
        }
    }
}

/// The program of a policy. From its last rule to the first, what a rule allows is taken
/// off the accesses that are wanted, until none is left; one that a rule denies ends it.
pub(super) fn device_program(policy: &Policy) -> Vec<u8> {
    let mut code = Code(Vec::with_capacity(128 * INSTRUCTION));
    code.emit(LOAD_WORD, KIND, CONTEXT, 0, 0);
    code.emit(MOVE_REGISTER, WANTED, KIND, 0, 0);
    code.emit(SHIFT_RIGHT, WANTED, 0, 0, 16);
    code.emit(AND, KIND, 0, 0, 0xffff);
    code.emit(LOAD_WORD, MAJOR, CONTEXT, 4, 0);
    code.emit(LOAD_WORD, MINOR, CONTEXT, 8, 0);
    let others = code.unless_equal(KIND, CHAR);
    rules_of(&mut code, policy, Kind::Char);
    code.land(others);
    rules_of(&mut code, policy, Kind::Block);
    code.0
}

/// A rule that decides in any case ends the search, or that among its major number: the
/// verifier refuses code that cannot be reached. Every branch costs it about 2 us, so
/// neighbours that agree, whose order is free, are sorted to share comparisons.
fn rules_of(code: &mut Code, policy: &Policy, kind: Kind) {
    let mut rules: Vec<&Rule> = policy
        .rules
        .iter()
        .rev()
        .filter(|r| r.kind == kind)
        .collect();
    for agreeing in rules.chunk_by_mut(|a, b| a.allow == b.allow) {
        agreeing.sort_by_key(|r| (r.major.is_none(), r.major, r.minor.is_none(), r.minor));
        for same in agreeing.chunk_by(|a, b| a.major == b.major) {
            let major = same.first().and_then(|r| r.major);
            let skip = major.map(|major| code.unless_equal(MAJOR, major.cast_signed()));
            let decided = group(code, same);
            match skip {
                Some(skip) => code.land(skip),
                None if decided => return,
                None => {}
            }
        }
    }
    code.answer(policy.default_allow);
}

/// The rules of one major number. Says whether one decides in any case.
fn group(code: &mut Code, rules: &[&Rule]) -> bool {
    let small = |rule: &Rule| match rule.minor {
        Some(minor @ ..32) if rule.allow && rule.access == Access::ALL => Some(1u32 << minor),
        _ => None,
    };
    // Three comparisons or more become one look into a set of small minor numbers.
    let set = rules
        .iter()
        .filter_map(|r| small(r))
        .fold(0, |set, bit| set | bit);
    let with_set = set.count_ones() >= 3;
    if with_set {
        code.emit(JUMP_IF_GREATER, MINOR, 0, 6, 31);
        code.emit(MOVE, RESULT, 0, 0, 1);
        code.emit(SHIFT_LEFT_REGISTER, RESULT, MINOR, 0, 0);
        code.emit(AND, RESULT, 0, 0, set.cast_signed());
        code.emit(JUMP_IF_EQUAL, RESULT, 0, 2, 0);
        code.answer(true);
    }
    let others = rules.iter().filter(|r| !with_set || small(r).is_none());
    let mut decided = false;
    for other in others {
        decided = decided || rule(code, other);
    }
    decided
}

/// What follows the comparison of the major number. Says whether it decides in any case.
fn rule(code: &mut Code, rule: &Rule) -> bool {
    let skip = rule
        .minor
        .map(|minor| code.unless_equal(MINOR, minor.cast_signed()));
    let bits = i32::from(rule.access.bits());
    if rule.allow {
        if rule.access != Access::ALL {
            code.emit(AND, WANTED, 0, 0, !bits);
            code.emit(JUMP_UNLESS_EQUAL, WANTED, 0, 2, 0);
        }
    } else {
        code.emit(JUMP_IF_COMMON, WANTED, 0, 1, bits);
        code.emit(JUMP, 0, 0, 2, 0);
    }
    code.answer(rule.allow);
    if let Some(skip) = skip {
        code.land(skip);
    }
    rule.allow && rule.access == Access::ALL && rule.minor.is_none()
}
