//! `linux.seccomp` read: names become numbers, and every value is checked.

use pipkin_spec::Seccomp;
use pipkin_spec::seccomp::Arg;

use crate::Invalid;

/// Actions of a rule and of the default.
pub const ACTIONS: [&str; 9] = [
    "SCMP_ACT_ALLOW",
    "SCMP_ACT_ERRNO",
    "SCMP_ACT_KILL",
    "SCMP_ACT_KILL_PROCESS",
    "SCMP_ACT_KILL_THREAD",
    "SCMP_ACT_LOG",
    "SCMP_ACT_NOTIFY",
    "SCMP_ACT_TRACE",
    "SCMP_ACT_TRAP",
];

/// Operators of a condition on an argument.
pub const OPERATORS: [&str; 7] = [
    "SCMP_CMP_EQ",
    "SCMP_CMP_GE",
    "SCMP_CMP_GT",
    "SCMP_CMP_LE",
    "SCMP_CMP_LT",
    "SCMP_CMP_MASKED_EQ",
    "SCMP_CMP_NE",
];

/// Flags of a filter.
pub const FLAGS: [&str; 4] = [
    "SECCOMP_FILTER_FLAG_LOG",
    "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
    "SECCOMP_FILTER_FLAG_TSYNC",
    "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
];

/// `SECCOMP_RET_…` of linux/seccomp.h.
pub(super) mod verdict {
    pub(crate) const KILL_PROCESS: u32 = 0x8000_0000;
    pub(crate) const KILL_THREAD: u32 = 0;
    pub(crate) const TRAP: u32 = 0x0003_0000;
    pub(crate) const ERRNO: u32 = 0x0005_0000;
    pub(crate) const NOTIFY: u32 = 0x7fc0_0000;
    pub(crate) const TRACE: u32 = 0x7ff0_0000;
    pub(crate) const LOG: u32 = 0x7ffc_0000;
    pub(crate) const ALLOW: u32 = 0x7fff_0000;
    /// All but the data.
    pub(crate) const ACTION: u32 = 0xffff_0000;
}

/// `SECCOMP_FILTER_FLAG_…` of linux/seccomp.h.
mod flag {
    pub(super) const TSYNC: u32 = 1;
    pub(super) const LOG: u32 = 1 << 1;
    pub(super) const SPEC_ALLOW: u32 = 1 << 2;
    pub(super) const NEW_LISTENER: u32 = 1 << 3;
    pub(super) const TSYNC_ESRCH: u32 = 1 << 4;
    pub(super) const WAIT_KILLABLE_RECV: u32 = 1 << 5;
}

const EPERM: u32 = 1;
/// The kernel returns no larger errno.
const MAX_ERRNO: u32 = 4095;
/// The data of a verdict has 16 bits.
const MAX_DATA: u32 = 0xffff;
/// A system call has arguments 0 to 5.
const ARGUMENTS: u32 = 6;

/// How an argument is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Masked,
}

/// A condition on one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) argument: u8,
    pub(super) operator: Operator,
    /// All ones but for `Masked`.
    pub(super) mask: u64,
    /// Under the mask.
    pub(super) value: u64,
}

impl Condition {
    /// Whether it says anything about an argument of 64 or 32 bits.
    pub(super) fn constrains(&self, wide: bool) -> bool {
        let bits = if wide { u64::MAX } else { u64::from(u32::MAX) };
        self.mask & bits != 0
    }
}

/// A rule with its names still to be looked up.
pub(super) struct Rule<'a> {
    /// Its place in `linux.seccomp.syscalls`.
    pub(super) index: usize,
    pub(super) names: &'a [String],
    /// `SECCOMP_RET_…` with its data.
    pub(super) verdict: u32,
    /// All must hold; by argument, each at most once.
    pub(super) conditions: Vec<Condition>,
}

/// Reads the rules, those with the default's verdict included.
pub(super) fn rules(seccomp: &Seccomp) -> Result<Vec<Rule<'_>>, Invalid> {
    let mut rules = Vec::with_capacity(seccomp.syscalls.len());
    for (index, rule) in seccomp.syscalls.iter().enumerate() {
        let verdict = verdict(&rule.action, rule.errno_ret).map_err(|fault| {
            let field = if fault.of_errno { "errnoRet" } else { "action" };
            fault.at(format!("/linux/seccomp/syscalls/{index}/{field}"))
        })?;
        let conditions = conditions(&rule.args, index)?;
        let mut add = |conditions| {
            rules.push(Rule {
                index,
                names: &rule.names,
                verdict,
                conditions,
            });
        };
        let repeats = conditions
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.argument == b.argument));
        if repeats {
            // libseccomp takes an argument once in a rule. crun and runc both then make
            // every condition a rule of its own, and profiles rely on that "or".
            conditions.into_iter().for_each(|c| add(vec![c]));
        } else {
            add(conditions);
        }
    }
    Ok(rules)
}

/// The default's verdict.
pub(super) fn default(seccomp: &Seccomp) -> Result<u32, Invalid> {
    verdict(&seccomp.default_action, seccomp.default_errno_ret).map_err(|fault| {
        let field = if fault.of_errno {
            "defaultErrnoRet"
        } else {
            "defaultAction"
        };
        fault.at(format!("/linux/seccomp/{field}"))
    })
}

/// The flags for seccomp(2), those that a listener needs included.
pub(super) fn flags(seccomp: &Seccomp, notify: bool) -> Result<u32, Invalid> {
    // crun's and runc's default. It spares the container a mitigation that costs up to
    // half its speed on kernels before 5.16, which made this the default themselves.
    let mut flags = if seccomp.flags.is_none() {
        flag::SPEC_ALLOW
    } else {
        0
    };
    for (i, name) in seccomp.flags.iter().flatten().enumerate() {
        flags |= match name.as_str() {
            "SECCOMP_FILTER_FLAG_LOG" => flag::LOG,
            "SECCOMP_FILTER_FLAG_SPEC_ALLOW" => flag::SPEC_ALLOW,
            "SECCOMP_FILTER_FLAG_TSYNC" => flag::TSYNC,
            "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV" => flag::WAIT_KILLABLE_RECV,
            _ => {
                let fault = Fault::unknown("flag", name, &FLAGS);
                return Err(fault.at(format!("/linux/seccomp/flags/{i}")));
            }
        };
    }
    if notify {
        flags |= flag::NEW_LISTENER;
        if flags & flag::TSYNC != 0 {
            // Without it, the kernel could not tell a descriptor from a thread's id.
            flags |= flag::TSYNC_ESRCH;
        }
    } else {
        // It is about how a notified call waits; the kernel refuses it without a listener.
        flags &= !flag::WAIT_KILLABLE_RECV;
    }
    Ok(flags)
}

/// What is wrong with a value, before it is known where that stands.
pub(super) struct Fault {
    of_errno: bool,
    message: String,
    hint: String,
}

impl Fault {
    fn new(message: String, hint: String) -> Self {
        Self {
            of_errno: false,
            message,
            hint,
        }
    }

    pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> Self {
        let message = match name {
            "" => format!("no {what}"),
            _ => format!("unknown {what} {name:?}"),
        };
        Self::new(message, format!("one of {}", known.join(", ")))
    }

    fn of_errno(message: String, hint: impl Into<String>) -> Self {
        let fault = Self::new(message, hint.into());
        Self {
            of_errno: true,
            ..fault
        }
    }

    pub(super) fn at(self, pointer: String) -> Invalid {
        Invalid::new(pointer, self.message).hint(self.hint)
    }
}

fn verdict(action: &str, errno: Option<u32>) -> Result<u32, Fault> {
    let (verdict, most) = match action {
        "SCMP_ACT_ALLOW" => (verdict::ALLOW, None),
        "SCMP_ACT_ERRNO" => (verdict::ERRNO, Some(MAX_ERRNO)),
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => (verdict::KILL_THREAD, None),
        "SCMP_ACT_KILL_PROCESS" => (verdict::KILL_PROCESS, None),
        "SCMP_ACT_LOG" => (verdict::LOG, None),
        "SCMP_ACT_NOTIFY" => (verdict::NOTIFY, None),
        "SCMP_ACT_TRACE" => (verdict::TRACE, Some(MAX_DATA)),
        "SCMP_ACT_TRAP" => (verdict::TRAP, None),
        _ => return Err(Fault::unknown("action", action, &ACTIONS)),
    };
    match (most, errno) {
        (None, None) => Ok(verdict),
        // The specification has a runtime fail here.
        (None, Some(errno)) => Err(Fault::of_errno(
            format!("errno {errno} for {action}"),
            "only SCMP_ACT_ERRNO and SCMP_ACT_TRACE take one",
        )),
        (Some(most), Some(errno)) if errno > most => Err(Fault::of_errno(
            format!("errno {errno} for {action}"),
            format!("0 to {most}"),
        )),
        (Some(_), errno) => Ok(verdict | errno.unwrap_or(EPERM)),
    }
}

/// By argument.
fn conditions(args: &[Arg], rule: usize) -> Result<Vec<Condition>, Invalid> {
    let mut conditions = Vec::with_capacity(args.len());
    for (i, arg) in args.iter().enumerate() {
        let pointer = |field| format!("/linux/seccomp/syscalls/{rule}/args/{i}/{field}");
        if arg.index >= ARGUMENTS {
            let message = format!("argument {} of a system call", arg.index);
            return Err(Invalid::new(pointer("index"), message).hint("0 to 5"));
        }
        let new = condition(arg).map_err(|fault| fault.at(pointer("op")))?;
        // In order from the start: there are six at most, in all but odd profiles.
        let at = conditions.partition_point(|c: &Condition| c.argument <= new.argument);
        conditions.insert(at, new);
    }
    Ok(conditions)
}

fn condition(arg: &Arg) -> Result<Condition, Fault> {
    let operator = match arg.op.as_str() {
        "SCMP_CMP_EQ" => Operator::Equal,
        "SCMP_CMP_GE" => Operator::GreaterOrEqual,
        "SCMP_CMP_GT" => Operator::Greater,
        "SCMP_CMP_LE" => Operator::LessOrEqual,
        "SCMP_CMP_LT" => Operator::Less,
        "SCMP_CMP_MASKED_EQ" => Operator::Masked,
        "SCMP_CMP_NE" => Operator::NotEqual,
        _ => return Err(Fault::unknown("operator", &arg.op, &OPERATORS)),
    };
    let (mask, value) = match operator {
        Operator::Masked => (arg.value, arg.value & arg.value_two),
        _ => (u64::MAX, arg.value),
    };
    // An index that does not fit was refused before.
    let argument = arg.index as u8;
    Ok(Condition {
        argument,
        operator,
        mask,
        value,
    })
}
