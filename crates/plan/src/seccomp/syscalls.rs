//! Names of system calls, laid out at compile time for look-up at run time: one hash
//! and one comparison a name, no set-up, about 24 KB of read-only data of which a
//! start touches the columns of its own architectures.

use super::tables::ABSENT;
use layout::{MULTIPLEXED, NAMES, NUMBERS, SLOTS, STARTS, TABLE, hash};

/// The tables as the program carries them.
mod layout {
    #![allow(
        clippy::indexing_slicing,
        reason = "evaluated at compile time: an index out of bounds is an error there"
    )]

    use super::super::tables::{ABSENT, COLUMNS, COUNT, ROWS};

    /// Slots of the hash table, at most a quarter full.
    pub(super) const SLOTS: usize = 2048;

    const LENGTH: usize = {
        let mut total = 0;
        let mut i = 0;
        while i < COUNT {
            total += ROWS[i].0.len();
            i += 1;
        }
        total
    };

    /// All names end to end: no pointers, so nothing to relocate.
    pub(super) static NAMES: [u8; LENGTH] = {
        let mut all = [0; LENGTH];
        let (mut at, mut i) = (0, 0);
        while i < COUNT {
            let name = ROWS[i].0.as_bytes();
            let mut j = 0;
            while j < name.len() {
                all[at] = name[j];
                at += 1;
                j += 1;
            }
            i += 1;
        }
        all
    };

    /// Where each name starts in `NAMES`, and where the last one ends.
    pub(super) static STARTS: [u16; COUNT + 1] = {
        assert!(LENGTH <= u16::MAX as usize);
        let mut starts = [0; COUNT + 1];
        let (mut at, mut i) = (0, 0);
        while i < COUNT {
            at += ROWS[i].0.len();
            i += 1;
            starts[i] = at as u16;
        }
        starts
    };

    /// Open addressing with linear probing: a row's index plus one, or zero.
    pub(super) static TABLE: [u16; SLOTS] = {
        assert!(COUNT * 4 <= SLOTS);
        let mut table = [0; SLOTS];
        let mut i = 0;
        while i < COUNT {
            let mut slot = hash(ROWS[i].0.as_bytes());
            while table[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            i += 1;
            table[slot] = i as u16;
        }
        table
    };

    /// The numbers, a column for each distinct table of the kernel's.
    pub(super) static NUMBERS: [[u16; COUNT]; COLUMNS] = {
        let mut numbers = [[ABSENT; COUNT]; COLUMNS];
        let mut i = 0;
        while i < COUNT {
            let mut column = 0;
            while column < COLUMNS {
                numbers[column][i] = ROWS[i].2[column];
                column += 1;
            }
            i += 1;
        }
        numbers
    };

    /// How socketcall(2) or ipc(2) reaches each call.
    pub(super) static MULTIPLEXED: [u8; COUNT] = {
        let mut calls = [0; COUNT];
        let mut i = 0;
        while i < COUNT {
            calls[i] = ROWS[i].1;
            i += 1;
        }
        calls
    };

    /// A slot for a name, by eight bytes at a time: most names are two steps.
    pub(super) const fn hash(name: &[u8]) -> usize {
        let mut hash = name.len() as u64;
        let mut rest = name;
        while let Some((eight, tail)) = rest.split_first_chunk() {
            hash = mix(hash, u64::from_le_bytes(*eight));
            rest = tail;
        }
        // The last bytes, some of them twice where there are eight.
        let last = match (name.last_chunk(), name.first_chunk(), name.last_chunk()) {
            (Some(eight), _, _) => u64::from_le_bytes(*eight),
            (_, Some(first), Some(last)) => {
                (u32::from_le_bytes(*first) as u64) << 32 | u32::from_le_bytes(*last) as u64
            }
            _ => match name {
                [] => 0,
                [a] => *a as u64,
                [a, b] => (*a as u64) << 8 | *b as u64,
                [a, b, .., c] => (*a as u64) << 16 | (*b as u64) << 8 | *c as u64,
            },
        };
        // The high bits of a product are its best.
        (mix(hash, last) >> 40) as usize % SLOTS
    }

    const fn mix(hash: u64, value: u64) -> u64 {
        (hash.rotate_left(29) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A system call's name that some architecture knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(u16);

impl Name {
    /// Looks `name` up.
    pub(super) fn find(name: &str) -> Option<Self> {
        let mut slot = hash(name.as_bytes());
        loop {
            let row = TABLE.get(slot)?.checked_sub(1)?;
            if Self(row).bytes()? == name.as_bytes() {
                return Some(Self(row));
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    fn bytes(self) -> Option<&'static [u8]> {
        let row = usize::from(self.0);
        let (start, end) = (*STARTS.get(row)?, *STARTS.get(row + 1)?);
        NAMES.get(usize::from(start)..usize::from(end))
    }

    /// The number in a column of the tables, or `ABSENT`.
    pub(super) fn number(self, column: usize) -> u16 {
        let number = NUMBERS.get(column).and_then(|c| c.get(usize::from(self.0)));
        number.copied().unwrap_or(ABSENT)
    }

    /// How socketcall(2) or ipc(2) reaches the call, as in the tables, or 0.
    pub(super) fn multiplexed(self) -> u8 {
        MULTIPLEXED
            .get(usize::from(self.0))
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by panicking"
    )]

    use super::*;
    use crate::seccomp::tables::{COLUMNS, ROWS};

    #[test]
    fn finds_every_name_and_nothing_else() {
        for (i, (name, call, numbers)) in ROWS.iter().enumerate() {
            let found = Name::find(name).unwrap();
            assert_eq!(usize::from(found.0), i);
            assert_eq!(found.multiplexed(), *call);
            for (column, number) in numbers.iter().enumerate() {
                assert_eq!(found.number(column), *number);
            }
            assert_eq!(Name::find(&format!("{name}_")), None);
            assert_ne!(Name::find(&name[1..]), Some(found));
        }
        for name in ["", "x", "nosuchcall", "\u{0}", "é"] {
            assert_eq!(Name::find(name), None);
        }
        assert_eq!(Name(u16::MAX).number(0), ABSENT);
        assert_eq!(Name(0).number(COLUMNS), ABSENT);
    }

    #[test]
    fn knows_the_calls_of_recent_kernels() {
        for (name, number) in [
            ("cachestat", 451),
            ("futex_wake", 454),
            ("statmount", 457),
            ("listmount", 458),
            ("mseal", 462),
            ("setxattrat", 463),
            ("open_tree_attr", 467),
            ("file_getattr", 468),
            ("file_setattr", 469),
        ] {
            for column in 0..COLUMNS {
                assert_eq!(Name::find(name).unwrap().number(column), number, "{name}");
            }
        }
    }
}
