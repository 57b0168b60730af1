//! What a profile says of one call, rule by rule: slow, and written without a look at
//! how the generator does it.

use std::collections::HashMap;

use pipkin_plan::seccomp::Arch;
use pipkin_spec::Seccomp;
use pipkin_spec::seccomp::{Arg, Rule};

use crate::random::Random;

use Arch::*;

/// `SECCOMP_RET_KILL_THREAD`.
pub const KILL_THREAD: u32 = 0;

/// Calls of socketcall(2), in order, the first of them 1.
#[rustfmt::skip]
pub const SOCKETCALL: [&str; 20] = [
    "socket", "bind", "connect", "listen", "accept", "getsockname", "getpeername", "socketpair",
    "send", "recv", "sendto", "recvfrom", "shutdown", "setsockopt", "getsockopt", "sendmsg",
    "recvmsg", "accept4", "recvmmsg", "sendmmsg",
];

/// Calls of ipc(2).
#[rustfmt::skip]
pub const IPC: [(&str, u64); 12] = [
    ("semop", 1), ("semget", 2), ("semctl", 3), ("semtimedop", 4), ("msgsnd", 11),
    ("msgrcv", 12), ("msgget", 13), ("msgctl", 14), ("shmat", 21), ("shmdt", 22),
    ("shmget", 23), ("shmctl", 24),
];

/// The number that an action has in libseccomp and in the kernel.
pub fn verdict(action: &str, errno: Option<u32>) -> u32 {
    let data = errno.unwrap_or(1);
    match action {
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => KILL_THREAD,
        "SCMP_ACT_KILL_PROCESS" => 0x8000_0000,
        "SCMP_ACT_TRAP" => 0x0003_0000,
        "SCMP_ACT_ERRNO" => 0x0005_0000 | data,
        "SCMP_ACT_NOTIFY" => 0x7fc0_0000,
        "SCMP_ACT_TRACE" => 0x7ff0_0000 | data,
        "SCMP_ACT_LOG" => 0x7ffc_0000,
        "SCMP_ACT_ALLOW" => 0x7fff_0000,
        other => panic!("{other}"),
    }
}

/// Whether arguments count with their high halves.
pub fn wide(arch: Arch) -> bool {
    match arch {
        X86_64 | Aarch64 | Mips64 | Mipsel64 | Ppc64 | Ppc64le | S390x | Parisc64 | Riscv64
        | LoongArch64 => true,
        X86 | X32 | Arm | Mips | Mips64N32 | Mipsel | Mipsel64N32 | Ppc | S390 | Parisc | M68k
        | Sh | Sheb => false,
    }
}

/// Whether a kernel of this architecture stores the high half first.
pub fn big_endian(arch: Arch) -> bool {
    match arch {
        Mips | Mips64 | Mips64N32 | Ppc | Ppc64 | S390 | S390x | Parisc | Parisc64 | M68k
        | Sheb => true,
        X86 | X86_64 | X32 | Arm | Aarch64 | Mipsel | Mipsel64 | Mipsel64N32 | Ppc64le
        | Riscv64 | LoongArch64 | Sh => false,
    }
}

/// Whether socketcall(2) and ipc(2) stand for other calls.
pub fn multiplexes(arch: Arch) -> bool {
    matches!(
        arch,
        X86 | Mips | Mipsel | Ppc | Ppc64 | Ppc64le | S390 | S390x | M68k | Sh | Sheb
    )
}

/// A rule on one call of one architecture, ready to be asked.
struct Ready {
    verdict: u32,
    /// All must hold.
    conditions: Vec<Arg>,
}

/// What a profile says of the calls of one number.
pub struct Meaning {
    arch: Arch,
    default: u32,
    rules: Vec<Ready>,
}

/// What a profile says of the calls of an architecture.
pub struct Meanings {
    named: HashMap<u32, Meaning>,
    other: Meaning,
}

impl Meanings {
    /// Goes through the rules in the order in which they stand.
    pub fn new(profile: &Seccomp, arch: Arch) -> Self {
        let default = verdict(&profile.default_action, profile.default_errno_ret);
        let meaning = || Meaning {
            arch,
            default,
            rules: Vec::new(),
        };
        let mut named: HashMap<u32, Meaning> = HashMap::new();
        let mut add = |number, verdict, conditions: &[Arg]| {
            let conditions = conditions.iter().filter(|c| !empty(arch, c));
            let rule = Ready {
                verdict,
                conditions: conditions.cloned().collect(),
            };
            let meaning = named.entry(number).or_insert_with(meaning);
            meaning.rules.push(rule);
        };
        for rule in &profile.syscalls {
            let verdict = verdict(&rule.action, rule.errno_ret);
            if verdict == default {
                continue;
            }
            for name in &rule.names {
                for conditions in alternatives(rule) {
                    if let Some(number) = arch.number(name) {
                        add(number, verdict, &conditions);
                    }
                    if let Some((number, call)) = multiplexed(arch, name) {
                        let mut conditions = conditions;
                        conditions.retain(|c| c.index != 0);
                        conditions.push(equal(0, call));
                        add(number, verdict, &conditions);
                    }
                }
            }
        }
        for Meaning { rules, .. } in named.values_mut() {
            if let Some(place) = rules.iter().position(|r| r.conditions.is_empty()) {
                *rules = vec![rules.swap_remove(place)];
            }
        }
        let other = meaning();
        Self { named, other }
    }

    /// What is said of a number.
    pub fn of(&self, number: u32) -> &Meaning {
        self.named.get(&number).unwrap_or(&self.other)
    }
}

impl Meaning {
    /// Verdicts of the rules that hold, or the default's: one, unless rules conflict.
    pub fn verdicts(&self, args: &[u64; 6]) -> Vec<u32> {
        let holds = |c: &Arg| holds(self.arch, c, args[c.index as usize]);
        let mut all: Vec<u32> = Vec::new();
        for rule in &self.rules {
            if rule.conditions.iter().all(holds) && !all.contains(&rule.verdict) {
                all.push(rule.verdict);
            }
        }
        if all.is_empty() {
            all.push(self.default);
        }
        all
    }

    /// Brings arguments near to those for which some of the rules hold.
    pub fn approach(&self, args: &mut [u64; 6], random: &mut Random) {
        for _ in 0..random.below(3) {
            if self.rules.is_empty() {
                return;
            }
            for c in &random.pick(&self.rules).conditions {
                let arg = &mut args[c.index as usize];
                let inside = match c.op.as_str() {
                    "SCMP_CMP_MASKED_EQ" => (c.value & c.value_two) | (random.bits() & !c.value),
                    "SCMP_CMP_LT" => c.value.wrapping_sub(1),
                    "SCMP_CMP_GT" | "SCMP_CMP_NE" => c.value.wrapping_add(1),
                    _ => c.value,
                };
                *arg = match random.below(12) {
                    0 => inside.wrapping_add(1),
                    1 => inside.wrapping_sub(1),
                    2 => inside ^ (1 << random.below(64)),
                    _ => inside,
                };
            }
        }
    }

    /// Whether it depends on arguments.
    pub fn depends(&self) -> bool {
        self.rules.iter().any(|r| !r.conditions.is_empty())
    }

    /// Whether more than equalities, masked or not, are asked.
    pub fn orders(&self) -> bool {
        let equality = |c: &Arg| matches!(c.op.as_str(), "SCMP_CMP_EQ" | "SCMP_CMP_MASKED_EQ");
        self.rules
            .iter()
            .any(|r| !r.conditions.iter().all(equality))
    }
}

/// The conditions of a rule; several on one argument make each a rule of its own.
fn alternatives(rule: &Rule) -> Vec<Vec<Arg>> {
    let repeats = |c: &Arg| rule.args.iter().filter(|o| o.index == c.index).count() > 1;
    match rule.args.iter().any(repeats) {
        true => rule.args.iter().map(|c| vec![c.clone()]).collect(),
        false => vec![rule.args.clone()],
    }
}

/// The multiplexer that reaches a call, and its first argument then.
fn multiplexed(arch: Arch, name: &str) -> Option<(u32, u64)> {
    if !multiplexes(arch) {
        return None;
    }
    if let Some(place) = SOCKETCALL.iter().position(|n| *n == name) {
        return Some((arch.number("socketcall")?, place as u64 + 1));
    }
    let (_, call) = IPC.iter().find(|(n, _)| *n == name)?;
    Some((arch.number("ipc")?, *call))
}

fn equal(index: u32, value: u64) -> Arg {
    Arg {
        index,
        value,
        value_two: 0,
        op: "SCMP_CMP_EQ".into(),
    }
}

fn cut(arch: Arch, value: u64) -> u64 {
    if wide(arch) {
        value
    } else {
        u64::from(value as u32)
    }
}

/// A masked comparison of no bits.
fn empty(arch: Arch, c: &Arg) -> bool {
    c.op == "SCMP_CMP_MASKED_EQ" && cut(arch, c.value) == 0
}

fn holds(arch: Arch, c: &Arg, arg: u64) -> bool {
    let (arg, value, two) = (cut(arch, arg), cut(arch, c.value), cut(arch, c.value_two));
    match c.op.as_str() {
        "SCMP_CMP_NE" => arg != value,
        "SCMP_CMP_LT" => arg < value,
        "SCMP_CMP_LE" => arg <= value,
        "SCMP_CMP_EQ" => arg == value,
        "SCMP_CMP_GE" => arg >= value,
        "SCMP_CMP_GT" => arg > value,
        "SCMP_CMP_MASKED_EQ" => arg & value == two & value,
        other => panic!("{other}"),
    }
}

/// The architecture for whose calls a filter for `listed` takes a call, or the verdict
/// that it has if it is none of them.
pub fn arch_of(listed: &[Arch], audit: u32, number: u32) -> Result<Arch, u32> {
    const X32_BIT: u32 = 0x4000_0000;
    let has = |arch: Arch| listed.contains(&arch);
    if audit != X86_64.audit() {
        let arch = listed.iter().find(|arch| arch.audit() == audit);
        return arch.copied().ok_or(KILL_THREAD);
    }
    match (has(X86_64), has(X32), number >= X32_BIT) {
        (true, _, false) => Ok(X86_64),
        (_, true, true) => Ok(X32),
        // The number with which a tracer has a call skipped.
        (true, false, true) if number == u32::MAX => Ok(X86_64),
        _ => Err(KILL_THREAD),
    }
}
