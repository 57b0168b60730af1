//! Whole filters against libseccomp's and against the letter of the profile.

use std::collections::{BTreeMap, BTreeSet};

use pipkin_plan::seccomp::{Arch, Options, compile, compile_with};
use pipkin_seccomp_diff::meaning::{IPC, Meaning, Meanings, SOCKETCALL, arch_of, big_endian, wide};
use pipkin_seccomp_diff::random::{Kind, Random, profile};
use pipkin_seccomp_diff::{Data, REAL, Raw, calls, check, data, names, parse, raw, run};
use pipkin_spec::Seccomp;
use serde_json::Value;

use crate::reference::{Answer, filter};

use Arch::*;

/// Without what goes beyond libseccomp.
const PLAIN: Options = Options {
    newer_is_enosys: false,
};

/// What Debian 12's libseccomp can be asked about.
#[rustfmt::skip]
const KNOWN: [Arch; 19] = [
    X86, X86_64, X32, Arm, Aarch64, Mips, Mips64, Mips64N32, Mipsel, Mipsel64, Mipsel64N32,
    Ppc, Ppc64, Ppc64le, S390, S390x, Parisc, Parisc64, Riscv64,
];

/// What it cannot.
const UNKNOWN: [Arch; 4] = [LoongArch64, M68k, Sh, Sheb];

/// How many random profiles there are of each kind: `PIPKIN_PROFILES`, or some hundred.
fn profiles() -> u64 {
    let number = std::env::var("PIPKIN_PROFILES").ok();
    number.map_or(300, |number| number.parse().unwrap())
}

/// Calls with random arguments of a number whose arguments matter.
const TRIES: usize = 200;

/// What a comparison found.
#[derive(Default)]
struct Found {
    /// Calls tried.
    calls: usize,
    /// Several rules with different verdicts held, and libseccomp chose another.
    chosen: usize,
    /// libseccomp's verdict is not that of a rule that holds.
    astray: usize,
    /// libseccomp's filter decides without a look at the number, at one architecture: it
    /// forgets to load it if the first call that it would test is one the architecture
    /// lacks.
    blind: usize,
    /// It compares what another argument left in the accumulator: it shares a part of the
    /// program between ways that come with different words loaded.
    stale: usize,
    /// libseccomp did not come back.
    lost: usize,
    /// Rules that libseccomp refuses.
    refused: usize,
    /// Calls to which several rules with different verdicts apply.
    conflicts: usize,
}

impl Found {
    /// Whether both filters were there and said the same of every call.
    fn agrees(&self) -> bool {
        let Self {
            chosen,
            astray,
            blind,
            stale,
            lost,
            ..
        } = self;
        chosen + astray + blind + stale + lost == 0
    }

    /// Whether libseccomp's own errors were as rare as they are.
    fn mostly_agrees(&self) -> bool {
        (self.chosen + self.astray) * 1000 < self.calls
            && (self.blind + self.stale) * 50 < self.calls
    }

    fn report(&self, profiles: u64) -> String {
        let Self {
            calls,
            conflicts,
            chosen,
            astray,
            blind,
            stale,
            lost,
            refused,
        } = self;
        format!(
            "{profiles} profiles, {calls} calls; {conflicts} under rules that conflict, {chosen} \
             of them decided otherwise by libseccomp; libseccomp goes astray on {astray}, is \
             blind for the number on {blind} and compares a stale word on {stale}; it refuses \
             {refused} rules and is lost on {lost} profiles"
        )
    }
}

/// The three real profiles, on the architecture that they are for.
pub fn real() -> String {
    let mut sizes = Vec::new();
    let mut found = Found::default();
    for name in REAL {
        let profile = pipkin_seccomp_diff::real(name);
        let size = compare(X86_64, &profile, &mut found, Kind::Equalities, 10 * TRIES);
        sizes.push(format!("{name} {size:?}"));
    }
    assert!(found.agrees() && found.refused == 0, "{}", found.report(3));
    format!(
        "{}; ours, libseccomp's: {}",
        found.report(3),
        sizes.join(", ")
    )
}

/// The same as if they listed every architecture.
pub fn real_elsewhere() -> String {
    let mut found = Found::default();
    for name in REAL {
        for native in [Aarch64, S390x, Mipsel] {
            let mut profile = pipkin_seccomp_diff::real(name);
            let fellows = KNOWN
                .iter()
                .filter(|a| big_endian(**a) == big_endian(native));
            profile["architectures"] = fellows.map(|a| a.name()).collect();
            for rule in profile["syscalls"].as_array_mut().unwrap() {
                let names = rule["names"].as_array_mut().unwrap();
                names.retain(|name| known_to_libseccomp(name.as_str().unwrap()));
            }
            compare(native, &profile, &mut found, Kind::Equalities, TRIES);
        }
    }
    assert!(found.agrees(), "{}", found.report(9));
    found.report(9)
}

/// Equalities, whose conflicts libseccomp decides in a way that can be kept.
pub fn equalities() -> String {
    let found = random(Kind::Equalities, 1);
    let report = found.report(profiles());
    assert_eq!(
        (found.astray, found.chosen, found.lost),
        (0, 0, 0),
        "{report}"
    );
    assert!(found.conflicts > 1000 && found.mostly_agrees(), "{report}");
    report
}

/// One condition a rule.
pub fn single() -> String {
    let found = random(Kind::Single, 2);
    let report = found.report(profiles());
    assert_eq!((found.astray, found.lost), (0, 0), "{report}");
    assert!(found.conflicts > 1000 && found.mostly_agrees(), "{report}");
    report
}

/// Anything.
pub fn any() -> String {
    let found = random(Kind::Any, 3);
    let report = found.report(profiles());
    assert!(found.conflicts > 1000 && found.mostly_agrees(), "{report}");
    assert!(found.lost as u64 <= 1 + profiles() / 100, "{report}");
    report
}

fn random(kind: Kind, series: u64) -> Found {
    let names: Vec<&str> = names().filter(|name| known_to_libseccomp(name)).collect();
    let mut found = Found::default();
    for i in 0..profiles() {
        let (native, profile) = profile(series * 1_000_000 + i, kind, &KNOWN, &names);
        compare(native, &profile, &mut found, kind, TRIES);
    }
    found
}

/// The rest is from after libseccomp 2.5.4, see the test of the tables; but for
/// sys_debug_setcontext, which libseccomp on x86_64 confuses with switch_endian.
fn known_to_libseccomp(name: &str) -> bool {
    const NOT: [&str; 7] = [
        "uretprobe",
        "uprobe",
        "riscv_hwprobe",
        "cacheflush",
        "memfd_secret",
        "_llseek",
        "sys_debug_setcontext",
    ];
    X86_64.number(name).is_none_or(|n| !(450..512).contains(&n)) && !NOT.contains(&name)
}

/// Compares the two filters and gives their sizes.
fn compare(
    native: Arch,
    profile: &Value,
    found: &mut Found,
    kind: Kind,
    tries: usize,
) -> (usize, usize) {
    let mut profile = profile.clone();
    let theirs = loop {
        match filter(native, &profile) {
            Answer::Program(program) => break Some(program),
            Answer::Lost => break None,
            // A runtime that uses libseccomp refuses the whole; what is left is compared.
            Answer::Refused { rule, name } => {
                // Ours need not refuse what differs in the first argument alone, which
                // socketcall(2) and ipc(2) cannot show, or in high halves alone, which 32
                // bits cannot, nor what is said of a call that no architecture has.
                let parsed = parse(&profile);
                let listed = listed(native, &parsed);
                assert!(
                    kind == Kind::Any
                        || compile_with(&parsed, native, PLAIN).is_err()
                        || multiplex(&name)
                        || !listed.iter().all(|arch| wide(*arch))
                        || listed.iter().all(|arch| arch.number(&name).is_none()),
                    "libseccomp refuses rule {rule} for {name}: {profile}"
                );
                let rule = &mut profile["syscalls"][rule]["names"];
                rule.as_array_mut().unwrap().retain(|other| *other != name);
                found.refused += 1;
            }
        }
    };
    let parsed = parse(&profile);
    let ours = match compile_with(&parsed, native, PLAIN) {
        Ok(filter) => raw(&filter),
        Err(fault) => panic!("{fault}: {profile}"),
    };
    check(&ours).unwrap_or_else(|fault| panic!("{fault}: {profile}"));
    found.lost += usize::from(theirs.is_none());
    assert!(
        theirs.is_some() || kind == Kind::Any,
        "libseccomp is lost: {profile}"
    );
    let context = Comparison {
        native,
        profile: &parsed,
        ours: &ours,
        theirs: theirs.as_deref(),
        stale: theirs.as_deref().map(mark_stale).unwrap_or_default(),
    };
    context.run(found, kind, tries);
    (ours.len(), theirs.map_or(0, |program| program.len()))
}

struct Comparison<'a> {
    native: Arch,
    profile: &'a Seccomp,
    ours: &'a [Raw],
    theirs: Option<&'a [Raw]>,
    /// As `theirs`, returning `MARK` where it compares what may be a stale word.
    stale: Vec<Raw>,
}

impl Comparison<'_> {
    fn run(&self, found: &mut Found, kind: Kind, tries: usize) {
        let random = &mut Random::new(42);
        let values = calls::values(self.profile);
        let listed = listed(self.native, self.profile);
        let meanings: BTreeMap<Arch, Meanings> = listed
            .iter()
            .map(|arch| (*arch, Meanings::new(self.profile, *arch)))
            .collect();
        for audit in calls::audits() {
            let alien = listed.iter().all(|arch| arch.audit() != audit);
            let numbers = match alien {
                true => vec![0, 1, 59, 0x4000_003b, u32::MAX],
                false => calls::numbers(audit),
            };
            for number in numbers {
                let meaning =
                    arch_of(&listed, audit, number).map(|arch| meanings[&arch].of(number));
                let mut near = || {
                    let mut args = calls::arguments(&values, random);
                    if let Ok(meaning) = meaning {
                        meaning.approach(&mut args, random);
                    }
                    args
                };
                self.one(found, kind, (audit, number, near()), meaning);
                if !meaning.is_ok_and(Meaning::depends) {
                    continue;
                }
                for _ in 0..tries {
                    self.one(found, kind, (audit, number, near()), meaning);
                }
                // Each edge of each condition for each argument, whatever the others are.
                for value in values.iter().copied() {
                    for argument in 0..6 {
                        let mut args = near();
                        args[argument] = value;
                        self.one(found, kind, (audit, number, args), meaning);
                    }
                }
            }
        }
    }

    fn one(
        &self,
        found: &mut Found,
        kind: Kind,
        (audit, number, args): (u32, u32, [u64; 6]),
        meaning: Result<&Meaning, u32>,
    ) {
        let data = data(number, audit, args, big_endian(self.native));
        let (ours, _) = run(self.ours, &data);
        let letter = match meaning {
            Ok(meaning) => meaning.verdicts(&args),
            Err(verdict) => vec![verdict],
        };
        let call = || {
            format!(
                "{number:#x} of {audit:#x} with {args:#x?} in {:#?}",
                self.profile
            )
        };
        assert!(
            letter.contains(&ours),
            "{ours:#x}, not {letter:#x?}: {}",
            call()
        );
        found.calls += 1;
        found.conflicts += usize::from(letter.len() > 1);
        let Some(theirs) = self.theirs else { return };
        let (theirs, _) = run(theirs, &data);
        if theirs == ours {
            return;
        }
        if !reads_number(self.theirs.unwrap_or_default(), &data) {
            found.blind += 1;
            return;
        }
        if run(&self.stale, &data).0 == MARK {
            found.stale += 1;
            return;
        }
        // Only where libseccomp is not reliable at all.
        let orders = meaning.is_ok_and(Meaning::orders);
        assert!(
            orders && kind != Kind::Equalities,
            "{ours:#x}, not {theirs:#x}: {}",
            call()
        );
        match letter.contains(&theirs) {
            true => found.chosen += 1,
            false => found.astray += 1,
        }
    }
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;

/// No verdict.
const MARK: u32 = 0xbeef;

/// Whether `program` loads the number of the call before it decides.
fn reads_number(program: &[Raw], data: &Data) -> bool {
    let marked: Vec<Raw> = program
        .iter()
        .map(|insn| match *insn {
            (LOAD, _, _, 0) => (RETURN, 0, 0, MARK),
            other => other,
        })
        .collect();
    run(&marked, data).0 == MARK
}

/// Marks the instructions that use the accumulator and are reached with different words
/// or masks in it.
fn mark_stale(program: &[Raw]) -> Vec<Raw> {
    /// Offset of the word, mask.
    type Loaded = (u32, u32);
    let mut reached: Vec<BTreeSet<Loaded>> = vec![BTreeSet::new(); program.len()];
    // What is in it at the start is not used.
    reached[0].insert((u32::MAX, 0));
    for (at, (code, jt, jf, k)) in program.iter().copied().enumerate() {
        let here = std::mem::take(&mut reached[at]);
        let next = at + 1;
        let to = match code {
            RETURN => vec![],
            JUMP => vec![next + k as usize],
            LOAD | AND => vec![next],
            _ => vec![next + usize::from(jt), next + usize::from(jf)],
        };
        for (word, mask) in here.iter().copied() {
            let loaded = match code {
                LOAD => (k, u32::MAX),
                AND => (word, mask & k),
                _ => (word, mask),
            };
            to.iter().for_each(|to| _ = reached[*to].insert(loaded));
        }
        reached[at] = here;
    }
    let mark = |(insn, reached): (&Raw, BTreeSet<Loaded>)| match insn.0 {
        LOAD | JUMP | RETURN => *insn,
        _ if reached.len() > 1 => (RETURN, 0, 0, MARK),
        _ => *insn,
    };
    program.iter().zip(reached).map(mark).collect()
}

/// Whether a name has to do with socketcall(2) or ipc(2).
fn multiplex(name: &str) -> bool {
    let reached = SOCKETCALL.contains(&name) || IPC.iter().any(|(call, _)| *call == name);
    reached || ["socketcall", "ipc"].contains(&name)
}

/// The architectures of a filter.
fn listed(native: Arch, profile: &Seccomp) -> Vec<Arch> {
    let named = profile
        .architectures
        .iter()
        .map(|name| Arch::find(name).unwrap());
    std::iter::once(native).chain(named).collect()
}

/// Architectures that libseccomp 2.5.4 lacks, by the letter alone.
pub fn unknown_to_libseccomp() -> String {
    let names: Vec<&str> = names().collect();
    let mut found = Found::default();
    for i in 0..profiles() {
        let (native, profile) = profile(4_000_000 + i, Kind::Any, &UNKNOWN, &names);
        let parsed = parse(&profile);
        // Two random rules may contradict each other.
        let Ok(filter) = compile_with(&parsed, native, PLAIN) else {
            continue;
        };
        let ours = raw(&filter);
        check(&ours).unwrap();
        Comparison {
            native,
            profile: &parsed,
            ours: &ours,
            theirs: None,
            stale: Vec::new(),
        }
        .run(&mut found, Kind::Any, TRIES);
    }
    found.report(profiles())
}

/// What `newer_is_enosys` changes, and that it changes nothing else.
pub fn newer() -> String {
    const ENOSYS: u32 = 0x0005_0026;
    let mut changed = 0;
    for name in REAL {
        let profile = parse(&pipkin_seccomp_diff::real(name));
        let plain = raw(&compile_with(&profile, X86_64, PLAIN).unwrap());
        let newer = raw(&compile(&profile, X86_64).unwrap());
        check(&newer).unwrap();
        let all = profile.syscalls.iter().flat_map(|rule| &rule.names);
        let mut last = BTreeMap::new();
        for arch in listed(X86_64, &profile) {
            last.insert(
                arch,
                all.clone()
                    .filter_map(|name| arch.number(name))
                    .max()
                    .unwrap(),
            );
        }
        for audit in calls::audits() {
            for number in calls::numbers(audit) {
                let data = data(number, audit, [0; 6], false);
                let (plain, newer) = (run(&plain, &data).0, run(&newer, &data).0);
                let arch = arch_of(&listed(X86_64, &profile), audit, number);
                let expected = match arch {
                    Ok(arch) if number > last[&arch] => ENOSYS,
                    _ => plain,
                };
                assert_eq!(newer, expected, "{number:#x} of {audit:#x} in {name}");
                changed += usize::from(newer != plain);
            }
        }
    }
    format!("{changed} verdicts changed")
}
