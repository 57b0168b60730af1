//! Tests of the generator by running what it makes. That libseccomp's filters say the
//! same is for `tests/seccomp` to show.

mod anything;
mod faults;
mod limits;
mod operators;
mod verdicts;

use pipkin_spec::Seccomp;
use pipkin_spec::seccomp::{Arg, Rule};

use super::interpreter::{self, Raw};
use super::{ACTIONS, ARCHITECTURES, Arch, FLAGS, Filter, OPERATORS, Options};

const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL_THREAD: u32 = 0;
const ENOSYS: u32 = ERRNO | 38;
const EPERM: u32 = ERRNO | 1;

/// A profile with the default `ERRNO` and rules.
fn profile(rules: Vec<Rule>) -> Seccomp {
    Seccomp {
        default_action: "SCMP_ACT_ERRNO".into(),
        syscalls: rules,
        ..Seccomp::default()
    }
}

fn rule(names: &[&str], action: &str, args: Vec<Arg>) -> Rule {
    Rule {
        names: names.iter().copied().map(String::from).collect(),
        action: format!("SCMP_ACT_{action}"),
        args,
        ..Rule::default()
    }
}

fn allow(name: &str, args: Vec<Arg>) -> Rule {
    rule(&[name], "ALLOW", args)
}

/// `value_two` is for `MASKED_EQ`.
fn arg(index: u32, op: &str, value: u64, value_two: u64) -> Arg {
    Arg {
        index,
        value,
        value_two,
        op: format!("SCMP_CMP_{op}"),
    }
}

/// A filter that the kernel would take, for a machine of `native`.
struct Program {
    filter: Filter,
    raw: Vec<Raw>,
    big_endian: bool,
}

impl Program {
    fn new(profile: &Seccomp, native: Arch) -> Self {
        Self::of(super::compile(profile, native).unwrap(), native)
    }

    fn without_enosys(profile: &Seccomp, native: Arch) -> Self {
        let options = Options {
            newer_is_enosys: false,
        };
        Self::of(
            super::compile_with(profile, native, options).unwrap(),
            native,
        )
    }

    fn of(filter: Filter, native: Arch) -> Self {
        let raw: Vec<Raw> = filter
            .program
            .iter()
            .map(|insn| (insn.code, insn.jt, insn.jf, insn.k))
            .collect();
        interpreter::check(&raw).unwrap();
        Self {
            filter,
            raw,
            big_endian: native.facts().big_endian,
        }
    }

    /// The verdict on a call of `arch` by name.
    fn call(&self, arch: Arch, name: &str, args: [u64; 6]) -> u32 {
        self.number(arch, arch.number(name).unwrap(), args)
    }

    fn number(&self, arch: Arch, number: u32, args: [u64; 6]) -> u32 {
        self.ask(number, arch.audit(), args)
    }

    fn ask(&self, number: u32, audit: u32, args: [u64; 6]) -> u32 {
        let data = interpreter::data(number, audit, args, self.big_endian);
        interpreter::run(&self.raw, &data).0
    }
}

/// `value` as one argument, and noise as the others.
fn with(index: u32, value: u64) -> [u64; 6] {
    let mut args = [0x5a5a_5a5a_a5a5_a5a5; 6];
    args[index as usize] = value;
    args
}
