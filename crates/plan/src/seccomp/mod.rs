//! `linux.seccomp`: a generator of classic BPF.
//!
//! The rules are settled into one verdict for each number of each architecture, and the
//! numbers into intervals with the same verdict; a filter is a balanced search among
//! them that goes on, for the few calls whose rules look at arguments, with tests of
//! those. That makes it small, which is what loading it costs, and quick to build, so
//! nothing is cached.
//!
//! | file | |
//! | --- | --- |
//! | `rules` | the configuration's values, checked |
//! | `syscalls`, `tables`, `tables.py` | numbers of system calls |
//! | `arch` | architectures |
//! | `calls` | what happens to each call of an architecture |
//! | `order` | which of several rules decides |
//! | `chain` | tests of arguments |
//! | `search` | tests of the number |
//! | `graph` | where tests are put together and equal parts become one |
//! | `emit` | the graph as instructions |
//!
//! # Meaning
//!
//! What the specification leaves open is as crun and runc have it with libseccomp 2.5:
//!
//! - The native architecture is always among those filtered. A call of another one kills
//!   the thread. So does, where X86_64 is filtered and X32 is not, a call of the latter.
//! - A name that no architecture knows is passed over, a name that one lacks there.
//! - A rule with the default's verdict says nothing.
//! - A rule without conditions stands against those with; of two, the first stands. For
//!   other conflicts see `order`. Two rules that differ in nothing but the verdict are a
//!   fault, with conditions, and so is a rule with another verdict than an earlier one
//!   that has the same conditions and more. Where they are the same only to an
//!   architecture, or through socketcall(2) or ipc(2), they are none: the first stands.
//! - Several conditions on one argument in a rule are an "or" of all its conditions.
//! - Architectures of 32 bits, X32 and MIPS N32 compare the low halves of arguments and of
//!   the values that they are compared with.
//! - Where calls are also reached through socketcall(2) or ipc(2), a rule about the former
//!   is also one about the latter, without what it says of the first argument.

mod arch;
mod calls;
mod chain;
mod emit;
mod graph;
mod order;
mod rules;
mod search;
mod syscalls;
mod tables;

#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod tests;

use pipkin_spec::Seccomp;

use crate::Invalid;

pub use arch::{ARCHITECTURES, Arch};
pub use emit::Insn;
pub use rules::{ACTIONS, FLAGS, OPERATORS};

use arch::X32_BIT;
use calls::{Calls, Contradictory, Multiplexed};
use emit::{MOST, TooLong};
use graph::{Graph, Id, Test};
use rules::{Fault, Rule, verdict};
use search::Runs;
use syscalls::{Finder, Name};

/// A filter, ready for seccomp(2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Not empty, at most 4096 instructions.
    pub program: Vec<Insn>,
    /// `SECCOMP_FILTER_FLAG_…` of linux/seccomp.h, those of a listener included.
    pub flags: u32,
    /// A rule asks for notification: seccomp(2) returns the listener's descriptor.
    pub notify: bool,
    noop: bool,
}

impl Filter {
    /// The program as the kernel reads it, 8 bytes an instruction.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.program.len() * size_of::<Insn>());
        for insn in &self.program {
            bytes.extend_from_slice(&insn.to_bytes());
        }
        bytes
    }

    /// Whether the profile allows every call, as far as it says anything. The program would
    /// still kill calls of architectures that are not listed.
    pub fn is_noop(&self) -> bool {
        self.noop
    }
}

/// What of a filter's meaning is a matter of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Calls with a number after the last that the profile names fail with ENOSYS and not
    /// as the default has it, as under runc: a profile is silent on calls that are newer
    /// than it, and a libc that gets EPERM or is killed does not try the older call.
    /// Without effect where the default allows, logs, traces or notifies.
    pub newer_is_enosys: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            newer_is_enosys: true,
        }
    }
}

const ENOSYS: u32 = 38;

/// How many numbers a kernel has, about: NR_syscalls of Linux 6.18 is 470 on x86_64. Only the
/// cost of a filter depends on it.
const ASKED: u32 = 472;

/// Makes the filter for a kernel whose own architecture is `native`.
///
/// # Errors
///
/// A value that the specification does not have, an architecture of the other byte
/// order, two rules that contradict each other, or a program too long for the kernel.
pub fn compile(seccomp: &Seccomp, native: Arch) -> Result<Filter, Invalid> {
    compile_with(seccomp, native, Options::default())
}

/// As `compile`, with a choice.
///
/// # Errors
///
/// As `compile`.
pub fn compile_with(seccomp: &Seccomp, native: Arch, options: Options) -> Result<Filter, Invalid> {
    let default = rules::default(seccomp)?;
    let rules = rules::rules(seccomp)?;
    let mut all = architectures(seccomp, native)?;
    let found = Found::new(&rules);
    let multiplexers = found.multiplexers(default);
    for (rule, names) in found.iter() {
        for calls in &mut all {
            calls.rule(rule, names, rule.verdict != default, multiplexers);
        }
    }
    for calls in &mut all {
        calls
            .settle()
            .map_err(|fault| contradiction(&rules, &fault))?;
    }
    let program = program(&all, default, options).map_err(|TooLong(size)| {
        let message = format!("{size} instructions or more for the rules");
        let hint = format!("at most {MOST}: fewer conditions or architectures");
        Invalid::new("/linux/seccomp/syscalls", message).hint(hint)
    })?;
    let notify = default == verdict::NOTIFY || rules.iter().any(|r| r.verdict == verdict::NOTIFY);
    let flags = rules::flags(seccomp, notify)?;
    let noop = default == verdict::ALLOW && all.iter().all(Calls::untouched);
    Ok(Filter {
        program,
        flags,
        notify,
        noop,
    })
}

/// Rules and the names of theirs that some architecture knows.
struct Found<'a> {
    rules: &'a [Rule<'a>],
    names: Vec<Name>,
    /// Where each rule's names end.
    ends: Vec<usize>,
}

impl<'a> Found<'a> {
    fn new(rules: &'a [Rule<'a>]) -> Self {
        let mut names = Vec::with_capacity(rules.iter().map(|rule| rule.names.len()).sum());
        let mut ends = Vec::with_capacity(rules.len());
        let mut finder = Finder::default();
        for rule in rules {
            names.extend(rule.names.iter().filter_map(|name| finder.find(name)));
            ends.push(names.len());
        }
        Self { rules, names, ends }
    }

    fn iter(&self) -> impl Iterator<Item = (&'a Rule<'a>, &[Name])> {
        let mut start = 0;
        self.rules.iter().zip(&self.ends).map(move |(rule, end)| {
            let names = self.names.get(start..*end).unwrap_or_default();
            start = *end;
            (rule, names)
        })
    }

    /// The calls that stand for others and may come to need tests of arguments: a rule
    /// without conditions settles the verdict, whatever rules there are on what it stands
    /// for.
    fn multiplexers(&self, default: u32) -> Multiplexed {
        let mut unsettled = Multiplexed {
            socketcall: true,
            ipc: true,
        };
        for (rule, names) in self.iter() {
            if rule.conditions.is_empty() && rule.verdict != default {
                unsettled.socketcall &= !names.contains(&Name::SOCKETCALL);
                unsettled.ipc &= !names.contains(&Name::IPC);
            }
        }
        unsettled
    }
}

/// The native architecture and those listed, each once.
fn architectures(seccomp: &Seccomp, native: Arch) -> Result<Vec<Calls>, Invalid> {
    let mut all = Vec::with_capacity(1 + seccomp.architectures.len().min(ARCHITECTURES.len()));
    all.push(Calls::new(native));
    for (i, name) in seccomp.architectures.iter().enumerate() {
        let pointer = || format!("/linux/seccomp/architectures/{i}");
        let Some(arch) = Arch::find(name) else {
            return Err(Fault::unknown("architecture", name, &ARCHITECTURES).at(pointer()));
        };
        if arch.facts().big_endian != native.facts().big_endian {
            let message = format!("{name} has the other byte order than {}", native.name());
            let hint = "only architectures that the kernel can run at the same time";
            return Err(Invalid::new(pointer(), message).hint(hint));
        }
        if all.iter().all(|calls| calls.arch() != arch) {
            all.push(Calls::new(arch));
        }
    }
    Ok(all)
}

fn contradiction(rules: &[Rule<'_>], fault: &Contradictory) -> Invalid {
    let Contradictory {
        later,
        earlier,
        same,
    } = fault;
    let pointer = format!("/linux/seccomp/syscalls/{later}/action");
    let names = rules
        .iter()
        .find(|rule| rule.index == *later)
        .map(|rule| rule.names);
    let call = match names {
        Some([name]) => name,
        _ => "one of its calls",
    };
    let conditions = match same {
        true => "the same conditions",
        false => "the same conditions and more",
    };
    let message =
        format!("not what /linux/seccomp/syscalls/{earlier} does under {conditions} on {call}");
    Invalid::new(pointer, message).hint("drop one of the two rules")
}

fn program(all: &[Calls], default: u32, options: Options) -> Result<Vec<Insn>, TooLong> {
    let mut graph = Graph::new();
    let default_id = graph.verdict(default);
    let restrictive = !matches!(
        default & verdict::ACTION,
        verdict::ALLOW | verdict::LOG | verdict::TRACE | verdict::NOTIFY
    );
    let newer = match options.newer_is_enosys && restrictive {
        true => graph.verdict(verdict::ERRNO | ENOSYS),
        false => default_id,
    };
    let alien = graph.verdict(verdict::KILL_THREAD);
    let verdicts = Verdicts {
        default: default_id,
        newer,
        alien,
    };
    let mut root = alien;
    let mut runs = Runs::new();
    for calls in all.iter().rev() {
        let audit = calls.arch().audit();
        // X86_64 and X32 show themselves as one.
        if all
            .iter()
            .find(|c| c.arch().audit() == audit)
            .map(Calls::arch)
            == Some(calls.arch())
        {
            let numbers = numbers(&mut graph, &mut runs, all, audit, &verdicts);
            root = graph.branch(Test::equal(Test::ARCH, audit), numbers, root);
        }
    }
    emit::emit(&graph, root)
}

struct Verdicts {
    default: Id,
    /// For calls after the last that the profile names.
    newer: Id,
    /// For calls of an architecture that is not filtered.
    alien: Id,
}

/// What is to be done with the number of a call whose architecture is `audit`.
fn numbers(
    graph: &mut Graph,
    runs: &mut Runs,
    all: &[Calls],
    audit: u32,
    verdicts: &Verdicts,
) -> Id {
    let find = |arch: Arch| all.iter().find(|calls| calls.arch() == arch);
    runs.clear();
    let mut add = |calls: &Calls, runs: &mut Runs| {
        calls.runs(graph, runs, verdicts.default, verdicts.newer);
    };
    runs.from(0, verdicts.default);
    if audit != Arch::X32.audit() {
        let Some(calls) = all.iter().find(|calls| calls.arch().audit() == audit) else {
            return verdicts.default;
        };
        add(calls, runs);
        let base = calls.arch().facts().base;
        let asked = base..base + ASKED;
        return runs.search(graph, asked).unwrap_or(verdicts.default);
    }
    match find(Arch::X86_64) {
        Some(calls) => add(calls, runs),
        None => runs.from(0, verdicts.alien),
    }
    match find(Arch::X32) {
        Some(calls) => add(calls, runs),
        None => {
            runs.from(X32_BIT, verdicts.alien);
            // A tracer sets the number to -1 to have a call skipped.
            runs.from(u32::MAX, verdicts.default);
        }
    }
    runs.search(graph, 0..ASKED).unwrap_or(verdicts.default)
}
