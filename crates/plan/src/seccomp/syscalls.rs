//! Names of system calls, laid out at compile time for look-up at run time: one comparison
//! for a name that follows the one before in the alphabet, as they do in profiles, else one
//! hash and one comparison; no set-up, about 24 KB of read-only data of which a start
//! touches the columns of its own architectures.

use super::tables::{ABSENT, COUNT};
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

    /// Where a name stands in the tables.
    pub(super) const fn row(name: &str) -> u16 {
        let mut row = 0;
        while !same(ROWS[row].0.as_bytes(), name.as_bytes()) {
            row += 1;
        }
        row as u16
    }

    const fn same(a: &[u8], b: &[u8]) -> bool {
        let mut i = 0;
        while i < a.len() && i < b.len() && a[i] == b[i] {
            i += 1;
        }
        i == a.len() && i == b.len()
    }

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
    pub(super) const SOCKETCALL: Self = Self(layout::row("socketcall"));
    pub(super) const IPC: Self = Self(layout::row("ipc"));

    /// Looks `name` up.
    pub(super) fn find(name: &str) -> Option<Self> {
        let mut slot = hash(name.as_bytes());
        loop {
            let found = Self(TABLE.get(slot)?.checked_sub(1)?);
            if found.is(name) {
                return Some(found);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    fn is(self, name: &str) -> bool {
        let row = usize::from(self.0);
        match STARTS.get(row..row + 2) {
            Some(&[start, end]) if usize::from(end - start) == name.len() => NAMES
                .get(usize::from(start)..usize::from(end))
                .is_some_and(|bytes| same(bytes, name.as_bytes())),
            _ => false,
        }
    }

    /// The number in a column of the tables, or `ABSENT`.
    pub(super) fn number(self, column: &Column) -> u16 {
        let number = column.get(usize::from(self.0));
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

/// Whether two names of the same length are one: by eight bytes at a time, where a call of
/// memcmp(3) costs more than the comparison.
fn same(a: &[u8], b: &[u8]) -> bool {
    if let (Some(a_last), Some(b_last)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        let (mut a, mut b) = (a, b);
        while let (Some((a_eight, a_rest)), Some((b_eight, b_rest))) =
            (a.split_first_chunk::<8>(), b.split_first_chunk::<8>())
        {
            if a_eight != b_eight {
                return false;
            }
            (a, b) = (a_rest, b_rest);
        }
        return a_last == b_last;
    }
    if let (Some(a_last), Some(b_last)) = (a.last_chunk::<4>(), b.last_chunk::<4>()) {
        return a_last == b_last && a.first_chunk::<4>() == b.first_chunk::<4>();
    }
    a.iter().eq(b)
}

/// The numbers of an architecture's calls.
pub(super) type Column = [u16; COUNT];

/// A column of the tables.
#[allow(
    clippy::indexing_slicing,
    reason = "the architectures' columns are in bounds by construction; tested"
)]
pub(super) fn column(column: usize) -> &'static Column {
    &NUMBERS[column]
}

/// Looks names up that are, as a rule, in the order of the alphabet.
#[derive(Default)]
pub(super) struct Finder {
    /// Where the next name is expected.
    next: u16,
}

/// How many names a profile may leave out before one is looked up by its hash.
const AHEAD: u16 = 4;

impl Finder {
    /// Looks `name` up.
    pub(super) fn find(&mut self, name: &str) -> Option<Name> {
        let near = (self.next..self.next + AHEAD).map(Name);
        let found = near
            .into_iter()
            .find(|near| near.is(name))
            .or_else(|| Name::find(name))?;
        self.next = found.0 + 1;
        Some(found)
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
            for (place, number) in numbers.iter().enumerate() {
                assert_eq!(found.number(column(place)), *number);
            }
            assert_eq!(Name::find(&format!("{name}_")), None);
            assert_ne!(Name::find(&name[1..]), Some(found));
        }
        for name in ["", "x", "nosuchcall", "\u{0}", "é"] {
            assert_eq!(Name::find(name), None);
        }
        assert_eq!(Name(u16::MAX).number(column(0)), ABSENT);
    }

    #[test]
    fn finds_names_in_any_order() {
        let mut finder = Finder::default();
        // Every distance forwards and backwards, by steps that visit each name.
        for step in [1, 2, 3, 5, 7, 101, COUNT - 1, COUNT - 3] {
            for i in 0..COUNT {
                let place = i * step % COUNT;
                let found = finder.find(ROWS[place].0).unwrap();
                assert_eq!(usize::from(found.0), place);
                assert_eq!(finder.find("nosuchcall"), None);
                assert_eq!(finder.find(""), None);
            }
        }
    }

    #[test]
    fn compares_every_byte() {
        for length in 0..40 {
            let name = vec![b'a'; length];
            assert!(same(&name, &name.clone()));
            for place in 0..length {
                let mut other = name.clone();
                other[place] = b'b';
                assert!(!same(&name, &other), "{length} {place}");
            }
        }
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
            for place in 0..COLUMNS {
                let found = Name::find(name).unwrap().number(column(place));
                assert_eq!(found, number, "{name}");
            }
        }
    }
}
