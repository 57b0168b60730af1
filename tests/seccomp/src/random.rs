//! Random profiles: the same from the same seed.

use pipkin_plan::seccomp::{ACTIONS, Arch};
use serde_json::{Value, json};

use crate::meaning::big_endian;

/// A generator of numbers: xorshift64*, of which only a good spread is asked.
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.bits() >> 33) as usize) % end
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `all`.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// What conditions a profile has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Equalities, masked or not, on several arguments.
    Equalities,
    /// Any operator, one condition a rule.
    Single,
    /// Anything.
    Any,
}

const CALLS: [&str; 24] = [
    "socket",
    "connect",
    "accept",
    "recv",
    "semop",
    "shmget",
    "msgsnd",
    "socketcall",
    "ipc",
    "personality",
    "clone",
    "clone3",
    "read",
    "write",
    "openat",
    "ioctl",
    "fcntl",
    "prctl",
    "futex",
    "set_tls",
    "cacheflush",
    "execve",
    "mmap",
    "no_such_call",
];

/// A profile, and the architecture that it is for.
pub fn profile(seed: u64, kind: Kind, natives: &[Arch], names: &[&str]) -> (Arch, Value) {
    let r = &mut Random::new(seed);
    let native = *r.pick(natives);
    let fellows: Vec<Arch> = natives
        .iter()
        .copied()
        .filter(|arch| big_endian(*arch) == big_endian(native))
        .collect();
    let listed: Vec<_> = (0..r.below(6)).map(|_| r.pick(&fellows).name()).collect();
    // A few verdicts, so that some rules agree.
    let verdicts: Vec<Value> = (0..1 + r.below(4)).map(|_| verdict(r)).collect();
    let values = values(r);
    // Now and then all rules are about the same few calls.
    let (some, bare) = match r.one_in(3) {
        true => (&CALLS[..4], 20),
        false => (&CALLS[..], 4),
    };
    let calls = Calls {
        some,
        all: names,
        bare,
    };
    let rules: Vec<Value> = (0..r.below(14))
        .map(|_| rule(r, kind, &verdicts, &values, &calls))
        .collect();
    let default = if r.one_in(4) {
        r.pick(&verdicts).clone()
    } else {
        verdict(r)
    };
    let mut profile = json!({
        "defaultAction": default["action"],
        "architectures": listed,
        "syscalls": rules,
    });
    if let Some(errno) = default.get("errnoRet") {
        profile["defaultErrnoRet"] = errno.clone();
    }
    (native, profile)
}

fn verdict(r: &mut Random) -> Value {
    // libseccomp asks the running kernel whether it may notify.
    let action = match r.below(3) {
        0 => "SCMP_ACT_ALLOW",
        1 => "SCMP_ACT_ERRNO",
        _ => *r.pick(&ACTIONS),
    };
    let takes_errno = matches!(action, "SCMP_ACT_ERRNO" | "SCMP_ACT_TRACE");
    match takes_errno && !r.one_in(4) {
        true => json!({ "action": action, "errnoRet": r.below(40) }),
        false => json!({ "action": action }),
    }
}

/// Few values, so that conditions overlap; some with something in the high half.
fn values(r: &mut Random) -> Vec<u64> {
    let mut all: Vec<u64> = (0..6).map(|_| r.below(20) as u64).collect();
    if !r.one_in(3) {
        all.extend([1 << 32, 5 << 32 | 5, 0xffff_ffff, u64::MAX, 0x7e02_0000]);
        all.push(r.bits());
    }
    all
}

/// What rules are about.
struct Calls<'a> {
    /// Mostly these.
    some: &'a [&'a str],
    all: &'a [&'a str],
    /// A rule without conditions once in so many.
    bare: usize,
}

fn rule(
    r: &mut Random,
    kind: Kind,
    verdicts: &[Value],
    values: &[u64],
    calls: &Calls<'_>,
) -> Value {
    let names: Vec<&str> = (0..1 + r.below(4))
        .map(|_| {
            let pool = if r.one_in(4) { calls.all } else { calls.some };
            *r.pick(pool)
        })
        .collect();
    let count = match kind {
        _ if r.one_in(calls.bare) => 0,
        Kind::Single => 1,
        Kind::Equalities | Kind::Any => 1 + r.below(3),
    };
    // One after another, from a random start: each argument at most once.
    let first = r.below(6);
    let operators: &[&str] = match kind {
        Kind::Equalities => &["EQ", "EQ", "MASKED_EQ"],
        _ => &["EQ", "EQ", "MASKED_EQ", "NE", "LT", "LE", "GE", "GT"],
    };
    let args: Vec<Value> = (0..count)
        .map(|i| {
            json!({
                "index": if r.one_in(3) { i } else { (first % 3 + i) % 6 },
                "op": format!("SCMP_CMP_{}", r.pick(operators)),
                "value": r.pick(values),
                "valueTwo": r.pick(values),
            })
        })
        .collect();
    let mut rule = r.pick(verdicts).clone();
    rule["names"] = json!(names);
    if count > 0 {
        rule["args"] = json!(args);
    }
    rule
}
