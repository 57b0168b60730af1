//! Whatever a profile says, it becomes a filter that the kernel takes, or is refused with
//! a place in the configuration.

use super::*;

/// xorshift64*: the same profiles each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end
    }

    /// Once in `n`.
    fn rarely(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `all`, or rarely something that it is not.
    fn text(&mut self, all: &[&str]) -> String {
        const WRONG: [&str; 5] = ["", "SCMP_", "\u{0}", "SCMP_ACT_ALLOWED", "żółw"];
        let all = if self.rarely(60) { &WRONG } else { all };
        all[self.below(all.len())].into()
    }

    fn value(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(4) as u64,
            1 => 1 << self.below(64),
            2 => u64::MAX << self.below(64),
            _ => self.next(),
        }
    }

    fn errno(&mut self) -> Option<u32> {
        self.rarely(6).then(|| match self.rarely(30) {
            true => self.next() as u32,
            false => self.below(200) as u32,
        })
    }

    fn action(&mut self) -> (String, Option<u32>) {
        let action = self.text(&ACTIONS);
        let takes = ["SCMP_ACT_ERRNO", "SCMP_ACT_TRACE"].contains(&action.as_str());
        let errno = if takes || self.rarely(60) {
            self.errno()
        } else {
            None
        };
        (action, errno)
    }

    fn rule(&mut self) -> Rule {
        const CALLS: [&str; 16] = [
            "read",
            "write",
            "ioctl",
            "socket",
            "bind",
            "accept4",
            "semop",
            "shmget",
            "socketcall",
            "ipc",
            "clone",
            "set_tls",
            "breakpoint",
            "mseal",
            "execve",
            "nosuchcall",
        ];
        let (action, errno_ret) = self.action();
        let args = match self.below(3) {
            0 => 0,
            _ => self.below(9),
        };
        Rule {
            names: (0..self.below(5)).map(|_| self.text(&CALLS)).collect(),
            action,
            errno_ret,
            args: (0..args)
                .map(|_| Arg {
                    index: if self.rarely(200) {
                        6
                    } else {
                        self.below(6) as u32
                    },
                    value: self.value(),
                    value_two: self.value(),
                    op: self.text(&OPERATORS),
                })
                .collect(),
        }
    }

    fn profile(&mut self, native: Arch) -> Seccomp {
        let (default_action, default_errno_ret) = self.action();
        let fellows: Vec<_> = Arch::ALL
            .into_iter()
            .filter(|a| a.facts().big_endian == native.facts().big_endian)
            .map(Arch::name)
            .collect();
        let architectures = match self.rarely(20) {
            true => vec![self.text(&ARCHITECTURES)],
            false => (0..self.below(6)).map(|_| self.text(&fellows)).collect(),
        };
        let rules = match self.rarely(50) {
            true => self.below(300),
            false => self.below(12),
        };
        Seccomp {
            default_action,
            default_errno_ret,
            architectures,
            flags: (self.below(4) > 0)
                .then(|| (0..self.below(3)).map(|_| self.text(&FLAGS)).collect()),
            syscalls: (0..rules).map(|_| self.rule()).collect(),
            ..Seccomp::default()
        }
    }
}

#[test]
fn nothing_panics_and_every_filter_is_good() {
    let mut random = Random(0x5eed);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..4000 {
        let native = Arch::ALL[random.below(Arch::ALL.len())];
        let profile = random.profile(native);
        match super::super::compile(&profile, native) {
            Ok(filter) => {
                let program = Program::of(filter, native);
                // It ends for every call, on no more than its own length.
                for _ in 0..50 {
                    let audit = Arch::ALL[random.below(Arch::ALL.len())].audit();
                    let number = match random.below(3) {
                        0 => random.next() as u32,
                        _ => random.below(600) as u32,
                    };
                    program.ask(number, audit, [0; 6].map(|_| random.value()));
                }
                good += 1;
            }
            Err(fault) => {
                assert!(fault.pointer.starts_with("/linux/seccomp/"), "{fault}");
                assert!(!fault.message.is_empty() && fault.hint.is_some(), "{fault}");
                bad += 1;
            }
        }
    }
    assert!(good > 500 && bad > 500, "{good} good, {bad} bad");
}

#[test]
fn the_same_profile_makes_the_same_filter() {
    let mut random = Random(7);
    for _ in 0..200 {
        let profile = random.profile(Arch::X86_64);
        let [one, two] = [(); 2].map(|()| super::super::compile(&profile, Arch::X86_64));
        assert_eq!(one, two);
    }
}
