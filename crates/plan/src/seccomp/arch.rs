//! The architectures of the specification and how the kernel shows each to a filter.

use super::syscalls::{self, Name};
use super::tables::{self, ABSENT, PRIVATE};

/// An architecture whose system calls a filter can tell: `SCMP_ARCH_…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
#[rustfmt::skip]
pub enum Arch {
    X86, X86_64, X32, Arm, Aarch64, Mips, Mips64, Mips64N32, Mipsel, Mipsel64, Mipsel64N32,
    Ppc, Ppc64, Ppc64le, S390, S390x, Parisc, Parisc64, Riscv64, LoongArch64, M68k, Sh, Sheb,
}

/// What the generator needs to know of an architecture.
pub(super) struct Facts {
    name: &'static str,
    /// `AUDIT_ARCH_…` of linux/audit.h, as in `seccomp_data.arch`.
    pub(super) audit: u32,
    /// Arguments are compared with all 64 bits. X32 and N32 do without the high half, as
    /// libseccomp has it.
    pub(super) wide: bool,
    /// The high half of an argument comes first in `seccomp_data.args`.
    pub(super) big_endian: bool,
    /// Added to a number of the column.
    pub(super) base: u32,
    /// The column in the tables.
    pub(super) column: usize,
    /// Its socketcall(2) and ipc(2), where they stand for other calls too.
    pub(super) multiplexers: Option<Multiplexers>,
}

/// Numbers of the calls that stand for others, as they are in the column.
#[derive(Clone, Copy)]
pub(super) struct Multiplexers {
    pub(super) socketcall: u16,
    pub(super) ipc: u16,
}

/// In the number of every call of X32.
pub(super) const X32_BIT: u32 = 0x4000_0000;
/// The first private number of ARM, less one.
pub(super) const ARM_PRIVATE: u32 = 0x000f_0000;

/// `__AUDIT_ARCH_LE`.
const LE: u32 = 0x4000_0000;
/// `__AUDIT_ARCH_64BIT`.
const BITS64: u32 = 0x8000_0000;
/// `__AUDIT_ARCH_CONVENTION_MIPS64_N32`.
const N32: u32 = 0x2000_0000;

/// The same everywhere.
const MUX: Option<Multiplexers> = Some(Multiplexers {
    socketcall: 102,
    ipc: 117,
});

const fn facts(
    name: &'static str,
    audit: u32,
    wide: bool,
    base: u32,
    column: usize,
    multiplexers: Option<Multiplexers>,
) -> Facts {
    Facts {
        name,
        audit,
        wide,
        big_endian: audit & LE == 0,
        base,
        column,
        multiplexers,
    }
}

/// In the order of `Arch`. Numbers of machines are from linux/elf-em.h.
#[rustfmt::skip]
static FACTS: [Facts; COUNT] = [
    facts("SCMP_ARCH_X86", 3 | LE, false, 0, tables::X86, MUX),
    facts("SCMP_ARCH_X86_64", 62 | BITS64 | LE, true, 0, tables::X86_64, None),
    facts("SCMP_ARCH_X32", 62 | BITS64 | LE, false, X32_BIT, tables::X32, None),
    facts("SCMP_ARCH_ARM", 40 | LE, false, 0, tables::ARM, None),
    facts("SCMP_ARCH_AARCH64", 183 | BITS64 | LE, true, 0, tables::AARCH64, None),
    facts("SCMP_ARCH_MIPS", 8, false, 4000, tables::MIPS, MUX),
    facts("SCMP_ARCH_MIPS64", 8 | BITS64, true, 5000, tables::MIPS64, None),
    facts("SCMP_ARCH_MIPS64N32", 8 | BITS64 | N32, false, 6000, tables::MIPS64N32, None),
    facts("SCMP_ARCH_MIPSEL", 8 | LE, false, 4000, tables::MIPS, MUX),
    facts("SCMP_ARCH_MIPSEL64", 8 | BITS64 | LE, true, 5000, tables::MIPS64, None),
    facts("SCMP_ARCH_MIPSEL64N32", 8 | BITS64 | LE | N32, false, 6000, tables::MIPS64N32, None),
    facts("SCMP_ARCH_PPC", 20, false, 0, tables::PPC, MUX),
    facts("SCMP_ARCH_PPC64", 21 | BITS64, true, 0, tables::PPC64, MUX),
    facts("SCMP_ARCH_PPC64LE", 21 | BITS64 | LE, true, 0, tables::PPC64, MUX),
    facts("SCMP_ARCH_S390", 22, false, 0, tables::S390, MUX),
    facts("SCMP_ARCH_S390X", 22 | BITS64, true, 0, tables::S390X, MUX),
    facts("SCMP_ARCH_PARISC", 15, false, 0, tables::PARISC, None),
    facts("SCMP_ARCH_PARISC64", 15 | BITS64, true, 0, tables::PARISC64, None),
    facts("SCMP_ARCH_RISCV64", 243 | BITS64 | LE, true, 0, tables::RISCV64, None),
    facts("SCMP_ARCH_LOONGARCH64", 258 | BITS64 | LE, true, 0, tables::LOONGARCH64, None),
    facts("SCMP_ARCH_M68K", 4, false, 0, tables::M68K, MUX),
    facts("SCMP_ARCH_SH", 42 | LE, false, 0, tables::SH, MUX),
    facts("SCMP_ARCH_SHEB", 42, false, 0, tables::SH, MUX),
];

const COUNT: usize = 23;

impl Arch {
    /// Every architecture, in the order of `ARCHITECTURES`.
    #[rustfmt::skip]
    pub const ALL: [Self; COUNT] = {
        use Arch::*;
        [
            X86, X86_64, X32, Arm, Aarch64, Mips, Mips64, Mips64N32, Mipsel, Mipsel64,
            Mipsel64N32, Ppc, Ppc64, Ppc64le, S390, S390x, Parisc, Parisc64, Riscv64,
            LoongArch64, M68k, Sh, Sheb,
        ]
    };

    /// The architecture that this program was built for.
    pub const NATIVE: Self = match Self::of_target() {
        Some(arch) => arch,
        #[allow(clippy::panic, reason = "evaluated at compile time")]
        None => panic!("the specification has no name for this architecture"),
    };

    const fn of_target() -> Option<Self> {
        let big = cfg!(target_endian = "big");
        let narrow = cfg!(target_pointer_width = "32");
        Some(if cfg!(target_arch = "x86") {
            Self::X86
        } else if cfg!(target_arch = "x86_64") {
            if narrow { Self::X32 } else { Self::X86_64 }
        } else if cfg!(target_arch = "arm") {
            Self::Arm
        } else if cfg!(target_arch = "aarch64") {
            Self::Aarch64
        } else if cfg!(any(target_arch = "mips", target_arch = "mips32r6")) {
            if big { Self::Mips } else { Self::Mipsel }
        } else if cfg!(any(target_arch = "mips64", target_arch = "mips64r6")) {
            match (big, narrow) {
                (true, true) => Self::Mips64N32,
                (true, false) => Self::Mips64,
                (false, true) => Self::Mipsel64N32,
                (false, false) => Self::Mipsel64,
            }
        } else if cfg!(target_arch = "powerpc") {
            Self::Ppc
        } else if cfg!(target_arch = "powerpc64") {
            if big { Self::Ppc64 } else { Self::Ppc64le }
        } else if cfg!(target_arch = "s390x") {
            Self::S390x
        } else if cfg!(target_arch = "riscv64") {
            Self::Riscv64
        } else if cfg!(target_arch = "loongarch64") {
            Self::LoongArch64
        } else if cfg!(target_arch = "m68k") {
            Self::M68k
        } else {
            return None;
        })
    }

    /// The architecture of a name such as `SCMP_ARCH_X86_64`.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.name() == name)
    }

    /// Its name in a configuration, `SCMP_ARCH_…`.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// What `seccomp_data.arch` holds for its calls: `AUDIT_ARCH_…` of linux/audit.h.
    pub fn audit(self) -> u32 {
        self.facts().audit
    }

    /// The number of a system call, as in `seccomp_data.nr`. None if the architecture
    /// lacks it or reaches it through socketcall(2) or ipc(2) alone.
    pub fn number(self, call: &str) -> Option<u32> {
        let facts = self.facts();
        match Name::find(call)?.number(syscalls::column(facts.column)) {
            ABSENT => None,
            number => Some(facts.number(number)),
        }
    }

    pub(super) fn facts(self) -> &'static Facts {
        // The enumeration has as many variants as the array has rows.
        #[allow(clippy::indexing_slicing, reason = "in bounds by construction; tested")]
        &FACTS[self as usize]
    }
}

impl Facts {
    /// `seccomp_data.nr` for a number of the column.
    pub(super) fn number(&self, column: u16) -> u32 {
        match column & PRIVATE {
            0 => self.base + u32::from(column),
            _ => ARM_PRIVATE + u32::from(column & !PRIVATE),
        }
    }
}

/// Names of the architectures that `linux.seccomp.architectures` may list.
#[allow(
    clippy::indexing_slicing,
    reason = "evaluated at compile time: an index out of bounds is an error there"
)]
pub const ARCHITECTURES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut i = 0;
    while i < COUNT {
        names[i] = FACTS[i].name;
        i += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn rows_and_variants_agree() {
        for (i, arch) in Arch::ALL.into_iter().enumerate() {
            assert_eq!(arch as usize, i);
            assert_eq!(Arch::find(arch.name()), Some(arch));
            let short = arch.name().trim_start_matches("SCMP_ARCH_");
            assert_eq!(format!("{arch:?}").to_uppercase(), short);
            assert_eq!(ARCHITECTURES[i], arch.name());
        }
        assert_eq!(Arch::find("SCMP_ARCH_NATIVE"), None);
        assert_eq!(Arch::find("x86_64"), None);
    }

    #[test]
    fn numbers_have_their_base() {
        assert_eq!(Arch::X86_64.number("read"), Some(0));
        assert_eq!(Arch::X32.number("read"), Some(0x4000_0000));
        assert_eq!(Arch::X32.number("execve"), Some(0x4000_0208));
        assert_eq!(Arch::Mips.number("read"), Some(4003));
        assert_eq!(Arch::Mipsel64.number("read"), Some(5000));
        assert_eq!(Arch::Mipsel64N32.number("read"), Some(6000));
        assert_eq!(Arch::Arm.number("set_tls"), Some(0xf0005));
        assert_eq!(Arch::X86.number("accept"), None);
        assert_eq!(Arch::X86.number("nosuch"), None);
        assert_eq!(Arch::Riscv64.number("riscv_hwprobe"), Some(258));
        assert_eq!(Arch::X86_64.number("uprobe"), Some(336));
    }

    #[test]
    fn multiplexers_are_where_the_tables_have_them() {
        for arch in Arch::ALL {
            if let Some(mux) = arch.facts().multiplexers {
                let base = arch.facts().base;
                assert_eq!(
                    arch.number("socketcall"),
                    Some(base + u32::from(mux.socketcall))
                );
                assert_eq!(arch.number("ipc"), Some(base + u32::from(mux.ipc)));
            }
        }
    }
}
