//! Whole filters against libseccomp's and against the letter of the profile.

use std::collections::BTreeMap;

use pipkin_plan::seccomp::{Arch, Options, compile, compile_with};
use pipkin_seccomp_diff::meaning::{Meaning, arch_of, big_endian};
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

/// Random profiles of each kind, unless SECCOMP_PROFILES asks for more.
const PROFILES: u64 = 160;

fn profiles() -> u64 {
    match std::env::var("SECCOMP_PROFILES") {
        Ok(number) => number.parse().expect("SECCOMP_PROFILES is a number"),
        Err(_) => PROFILES,
    }
}

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
    /// libseccomp did not come back.
    lost: usize,
    /// Rules that libseccomp refuses.
    refused: usize,
    /// Calls to which several rules with different verdicts apply.
    conflicts: usize,
}

impl Found {
    fn report(&self, profiles: u64) -> String {
        let Self {
            calls,
            conflicts,
            chosen,
            astray,
            blind,
            lost,
            refused,
        } = self;
        format!(
            "{profiles} profiles, {calls} calls; {conflicts} under rules that conflict, {chosen} \
             of them decided otherwise by libseccomp; {astray} where libseccomp goes astray and {blind} where it is blind; \
             {refused} rules that it refuses; {lost} profiles on which it is lost"
        )
    }
}

/// The three real profiles, on the architecture that they are for.
pub fn real() -> String {
    let mut sizes = Vec::new();
    let mut found = Found::default();
    for name in REAL {
        let profile = pipkin_seccomp_diff::real(name);
        let size = compare(X86_64, &profile, &mut found, Kind::Equalities, 40);
        sizes.push(format!("{name} {size:?}"));
    }
    assert_eq!(
        (
            found.astray,
            found.blind,
            found.chosen,
            found.lost,
            found.refused
        ),
        (0, 0, 0, 0, 0)
    );
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
            compare(native, &profile, &mut found, Kind::Equalities, 4);
        }
    }
    assert_eq!(
        (found.astray, found.blind, found.chosen, found.lost),
        (0, 0, 0, 0)
    );
    found.report(9)
}

/// Equalities, whose conflicts libseccomp decides in a way that can be kept.
pub fn equalities() -> String {
    let found = random(Kind::Equalities, 1);
    assert_eq!((found.chosen, found.lost), (0, 0));
    assert!(found.conflicts > 1000, "{}", found.conflicts);
    found.report(profiles())
}

/// One condition a rule.
pub fn single() -> String {
    let found = random(Kind::Single, 2);
    assert_eq!(found.lost, 0);
    found.report(profiles())
}

/// Anything.
pub fn any() -> String {
    random(Kind::Any, 3).report(profiles())
}

fn random(kind: Kind, series: u64) -> Found {
    let names: Vec<&str> = names().filter(|name| known_to_libseccomp(name)).collect();
    let mut found = Found::default();
    for i in 0..profiles() {
        let (native, profile) = profile(series * 1_000_000 + i, kind, &KNOWN, &names);
        compare(native, &profile, &mut found, kind, 4);
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
    };
    context.run(found, kind, tries);
    (ours.len(), theirs.map_or(0, |program| program.len()))
}

struct Comparison<'a> {
    native: Arch,
    profile: &'a Seccomp,
    ours: &'a [Raw],
    theirs: Option<&'a [Raw]>,
}

impl Comparison<'_> {
    fn run(&self, found: &mut Found, kind: Kind, tries: usize) {
        let random = &mut Random::new(42);
        let values = calls::values(self.profile);
        let listed = listed(self.native, self.profile);
        for audit in calls::audits() {
            let one = listed.iter().all(|arch| arch.audit() != audit);
            let numbers = if one {
                vec![0, 1, 59, 0x4000_003b, u32::MAX]
            } else {
                calls::numbers(audit)
            };
            for number in numbers {
                let meaning = arch_of(&listed, audit, number)
                    .map(|arch| Meaning::new(self.profile, arch, number));
                let depends = meaning.as_ref().is_ok_and(Meaning::depends);
                for _ in 0..if depends { 60 * tries } else { tries.min(4) } {
                    let mut args = calls::arguments(&values, random);
                    if let Ok(meaning) = &meaning {
                        meaning.approach(&mut args, random);
                    }
                    self.one(found, kind, (audit, number, args), meaning.as_ref());
                }
            }
        }
    }

    fn one(
        &self,
        found: &mut Found,
        kind: Kind,
        (audit, number, args): (u32, u32, [u64; 6]),
        meaning: Result<&Meaning, &u32>,
    ) {
        let data = data(number, audit, args, big_endian(self.native));
        let (ours, _) = run(self.ours, &data);
        let letter = match meaning {
            Ok(meaning) => meaning.verdicts(&args),
            Err(verdict) => vec![*verdict],
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
        // Only where libseccomp is not reliable at all.
        let chosen = letter.contains(&theirs);
        let tangled = meaning.is_ok_and(Meaning::is_tangled);
        assert!(
            tangled && !(chosen && kind == Kind::Equalities),
            "{ours:#x}, not {theirs:#x}: {}",
            call()
        );
        match chosen {
            true => found.chosen += 1,
            false => found.astray += 1,
        }
    }
}

/// Whether `program` loads the number of the call before it decides.
fn reads_number(program: &[Raw], data: &Data) -> bool {
    const LOAD: u16 = 0x20;
    let marked: Vec<Raw> = program
        .iter()
        .map(|insn| match *insn {
            (LOAD, _, _, 0) => (0x06, 0, 0, 0xbeef),
            other => other,
        })
        .collect();
    run(&marked, data).0 == 0xbeef
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
        }
        .run(&mut found, Kind::Any, 4);
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

/// Whatever the values are, a filter or a fault comes of it.
pub fn anything() -> String {
    let r = &mut Random::new(7);
    let (mut filters, mut faults) = (0, 0);
    for _ in 0..20_000 {
        let profile = nonsense(r);
        let native = *r.pick(&Arch::ALL);
        match compile(&profile, native) {
            Ok(filter) => {
                let program = raw(&filter);
                check(&program).unwrap_or_else(|fault| panic!("{fault}: {profile:#?}"));
                let audit = *r.pick(&calls::audits());
                run(
                    &program,
                    &data(r.bits() as u32, audit, [r.bits(); 6], big_endian(native)),
                );
                filters += 1;
            }
            Err(fault) => {
                assert!(fault.pointer.starts_with("/linux/seccomp/"), "{fault}");
                assert!(fault.hint.is_some(), "{fault}");
                faults += 1;
            }
        }
    }
    assert!(filters > 2000 && faults > 2000, "{filters}, {faults}");
    format!("{filters} filters, {faults} faults")
}

/// A profile with any value anywhere, mostly one that exists.
fn nonsense(r: &mut Random) -> Seccomp {
    use pipkin_plan::seccomp::{ACTIONS, ARCHITECTURES, FLAGS, OPERATORS};
    use pipkin_spec::seccomp::{Arg, Rule};

    let all: Vec<&str> = names().collect();
    let text = |r: &mut Random, known: &[&str]| match r.one_in(60) {
        true => r
            .pick(&["", "x", "SCMP_", "\u{0}", "ü", "SCMP_ACT_ALLOW "])
            .to_string(),
        false => r.pick(known).to_string(),
    };
    let number = |r: &mut Random| match r.below(4) {
        0 => r.bits(),
        1 => r.bits() >> 32,
        2 => u64::MAX,
        _ => r.bits() % 8,
    };
    let errno = |r: &mut Random, action: &str| {
        let takes = action.ends_with("ERRNO") || action.ends_with("TRACE");
        ((takes || r.one_in(60)) && !r.one_in(3)).then(|| match r.one_in(30) {
            true => number(r) as u32,
            false => r.below(4096) as u32,
        })
    };
    let most = if r.one_in(20) { 400 } else { 12 };
    let mut rules = Vec::new();
    for _ in 0..r.below(most) {
        // Mostly two of them, else nearly every profile would be a fault for its errno.
        let few = ["SCMP_ACT_ERRNO", "SCMP_ACT_LOG"];
        let action = if r.one_in(9) {
            text(r, &ACTIONS)
        } else {
            text(r, &few)
        };
        let mut args = Vec::new();
        for _ in 0..r.below(8) {
            let op = text(r, &OPERATORS);
            let index = if r.one_in(200) {
                number(r) as u32
            } else {
                r.below(6) as u32
            };
            args.push(Arg {
                index,
                value: number(r),
                value_two: number(r),
                op,
            });
        }
        let names = (0..r.below(4))
            .map(|_| text(r, &all[..if most > 12 { 5 } else { 508 }]))
            .collect();
        rules.push(Rule {
            names,
            errno_ret: errno(r, &action),
            action,
            args,
        });
    }
    let action = text(r, &ACTIONS);
    Seccomp {
        default_errno_ret: errno(r, &action),
        default_action: action,
        architectures: (0..r.below(2)).map(|_| text(r, &ARCHITECTURES)).collect(),
        flags: (r.below(4) > 0).then(|| (0..r.below(3)).map(|_| text(r, &FLAGS)).collect()),
        syscalls: rules,
        ..Seccomp::default()
    }
}
