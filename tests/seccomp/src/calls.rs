//! The calls at which two filters for a profile may differ.

use pipkin_plan::seccomp::Arch;
use pipkin_spec::Seccomp;

use crate::random::Random;

/// `AUDIT_ARCH_…` of every architecture, and values that are none.
pub fn audits() -> Vec<u32> {
    let mut all: Vec<u32> = Arch::ALL.iter().map(|arch| arch.audit()).collect();
    all.extend([0, 1, u32::MAX, 0x8000_0000, 0x4000_0000, 0xc000_003f]);
    all.sort_unstable();
    all.dedup();
    all
}

/// Numbers: all that architectures which show themselves as `audit` could have, and
/// the edges of the rest.
pub fn numbers(audit: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (0..1024).collect();
    for arch in Arch::ALL.iter().filter(|arch| arch.audit() == audit) {
        // No architecture has read(2) further from its first number than that.
        let base = arch.number("read").expect("read") & !0xf;
        all.extend(base.saturating_sub(2)..base + 1024);
    }
    all.extend(0xe_fff8..0xf_0010);
    for edge in [
        0x3fff_ffffu32,
        0x7fff_ffff,
        0x8000_0000,
        0xbfff_ffff,
        0xffff_fffe,
    ] {
        all.extend([edge - 1, edge, edge + 1]);
    }
    // libseccomp's own numbers for calls that an architecture lacks.
    all.extend([-101i32, -120, -201, -224, -10000, -10241].map(|n| n as u32));
    all.sort_unstable();
    all.dedup();
    all
}

/// Values at which conditions of the profile change their outcome.
pub fn values(profile: &Seccomp) -> Vec<u64> {
    let mut all = vec![0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX];
    all.extend(1..=24);
    for arg in profile.syscalls.iter().flat_map(|rule| &rule.args) {
        for value in [arg.value, arg.value_two, arg.value & arg.value_two] {
            all.extend([value.wrapping_sub(1), value, value.wrapping_add(1)]);
            all.extend([
                value ^ 1 << 32,
                value ^ 1 << 63,
                value | 0xffff_ffff << 32,
                !value,
            ]);
            all.push(u64::from(value as u32));
        }
        if arg.op == "SCMP_CMP_MASKED_EQ" {
            for bit in (0..64).filter(|bit| arg.value >> bit & 1 == 1) {
                all.extend([arg.value_two ^ 1 << bit, arg.value & (1 << bit)]);
            }
            all.extend([
                arg.value_two | !arg.value,
                arg.value_two & arg.value | !arg.value,
            ]);
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Arguments for a call, taken from `values`.
pub fn arguments(values: &[u64], random: &mut Random) -> [u64; 6] {
    std::array::from_fn(|_| *random.pick(values))
}
