//! Signals by name and by number, as on every architecture that pipkin runs on.

/// The signal that `kill` sends unless told otherwise.
pub const TERM: i32 = 15;
/// The last real-time signal.
pub const MAX: i32 = 64;
/// The first real-time signal that libc leaves to programs.
const RTMIN: i32 = 34;

/// By number from 1 on.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

const ALIASES: [(&str, i32); 4] = [("IOT", 6), ("CLD", 17), ("POLL", 29), ("UNUSED", 31)];

/// The number of a signal that is written as a number (0 only asks whether there is a
/// process), a name, or a name without `SIG`, in letters of either case.
pub fn parse(text: &str) -> Option<i32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text
            .parse()
            .ok()
            .filter(|number| (0..=MAX).contains(number));
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let position = NAMES.iter().position(|known| *known == name);
    let number = position.and_then(|position| i32::try_from(position + 1).ok());
    let alias = || {
        ALIASES
            .iter()
            .find(|(alias, _)| *alias == name)
            .map(|(_, number)| *number)
    };
    number.or_else(alias).or_else(|| real_time(name))
}

/// `RTMIN`, `RTMIN+n`, `RTMAX`, `RTMAX-n`.
fn real_time(name: &str) -> Option<i32> {
    let (base, sign, offset) = match (name.strip_prefix("RTMIN"), name.strip_prefix("RTMAX")) {
        (Some(offset), _) => (RTMIN, '+', offset),
        (_, Some(offset)) => (MAX, '-', offset),
        (None, None) => return None,
    };
    if offset.is_empty() {
        return Some(base);
    }
    let digits = offset
        .strip_prefix(sign)
        .filter(|digits| !digits.starts_with('+'))?;
    let offset: i32 = digits.parse().ok().filter(|offset| *offset >= 0)?;
    let number = if sign == '+' {
        base.checked_add(offset)?
    } else {
        base - offset
    };
    (RTMIN..=MAX).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for (text, number) in [
            ("TERM", 15),
            ("SIGTERM", 15),
            ("sigkill", 9),
            ("9", 9),
            ("0", 0),
            ("64", 64),
            ("SYS", 31),
            ("IOT", 6),
            ("RTMIN", 34),
            ("SIGRTMIN+1", 35),
            ("rtmin+30", 64),
            ("RTMAX", 64),
            ("SIGRTMAX-30", 34),
        ] {
            assert_eq!(parse(text), Some(number), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_signal() {
        for text in [
            "",
            "SIG",
            "65",
            "-1",
            "+9",
            "99999999999",
            "TERMINATE",
            "SIGSIGTERM",
            "RTMIN+31",
            "RTMIN-1",
            "RTMAX-31",
            "RTMAX+1",
            "RTMIN+",
            "RTMIN1",
            "RTMIN++1",
            "9 ",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
