//! What happens to each system call of an architecture.

use super::arch::{ARM_PRIVATE, Arch, Facts, Multiplexers};
use super::chain::{self, Layout, Link};
use super::graph::{Graph, Id};
use super::order::{Contradiction, order};
use super::rules::{Condition, Operator, Rule};
use super::search::Runs;
use super::syscalls::{self, Column, Name};
use super::tables::{ABSENT, IPC, LARGEST, PRIVATE, PRIVATE_COUNT};

/// What happens to one system call. Two bytes, so that the calls of an architecture are
/// within a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell(u16);

/// The same, read.
enum Fate {
    /// The default.
    Untouched,
    /// Always the verdict at this place among the architecture's.
    Always(usize),
    /// What the rules of the list at this place say, else the default.
    Depends(usize),
}

impl Cell {
    const UNTOUCHED: Self = Self(0);
    const LIST: u16 = 0x8000;

    // Places are below the number of cells.
    fn always(place: usize) -> Self {
        Self(place as u16 + 1)
    }

    fn depends(place: usize) -> Self {
        Self(place as u16 | Self::LIST)
    }

    fn fate(self) -> Fate {
        match self.0 {
            0 => Fate::Untouched,
            list if list & Self::LIST != 0 => Fate::Depends(usize::from(list & !Self::LIST)),
            verdict => Fate::Always(usize::from(verdict) - 1),
        }
    }
}

/// A set of the calls that stand for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Multiplexed {
    pub(super) socketcall: bool,
    pub(super) ipc: bool,
}

impl Multiplexed {
    const NONE: Self = Self {
        socketcall: false,
        ipc: false,
    };

    /// Whether one of them reaches a call, as the tables have it.
    fn has(self, call: u8) -> bool {
        match call {
            0 => false,
            call if call & IPC == 0 => self.socketcall,
            _ => self.ipc,
        }
    }
}

/// Ordinary numbers, then private ones.
const CELLS: usize = LARGEST + 1 + PRIVATE_COUNT;

const _: () = assert!(CELLS < Cell::LIST as usize);

/// The system calls of one architecture.
pub(super) struct Calls {
    arch: Arch,
    facts: &'static Facts,
    numbers: &'static Column,
    cells: Vec<Cell>,
    /// No ordinary call from this number on is touched or named.
    end: usize,
    /// No rule names an ordinary call from this number on.
    newer: usize,
    /// Each once.
    verdicts: Vec<u32>,
    /// Rules with conditions.
    lists: Vec<Vec<Link>>,
}

/// Two rules of the configuration with different verdicts, of which the later has no
/// condition that the earlier has not: places in `linux.seccomp.syscalls`.
pub(super) struct Contradictory {
    pub(super) later: usize,
    pub(super) earlier: usize,
    /// They have the same conditions.
    pub(super) same: bool,
}

impl Calls {
    pub(super) fn new(arch: Arch) -> Self {
        let facts = arch.facts();
        Self {
            arch,
            facts,
            numbers: syscalls::column(facts.column),
            cells: vec![Cell::UNTOUCHED; CELLS],
            end: 1,
            newer: 0,
            verdicts: Vec::new(),
            lists: Vec::new(),
        }
    }

    pub(super) fn arch(&self) -> Arch {
        self.arch
    }

    /// Whether no rule says anything of any call.
    pub(super) fn untouched(&self) -> bool {
        self.cells.iter().all(|cell| *cell == Cell::UNTOUCHED)
    }

    /// Notes that a rule has these names, and applies it unless it says what the default
    /// does. `multiplexers` are those whose verdict is not settled by a rule without
    /// conditions.
    pub(super) fn rule(
        &mut self,
        rule: &Rule<'_>,
        names: &[Name],
        applies: bool,
        multiplexers: Multiplexed,
    ) {
        let numbers = self.numbers;
        let numbers = || names.iter().map(|name| name.number(numbers));
        let ordinary = numbers().filter(|number| number & PRIVATE == 0);
        let after = ordinary.max().map_or(0, |largest| usize::from(largest) + 1);
        self.newer = self.newer.max(after);
        self.end = self.end.max(self.newer);
        if !applies {
            return;
        }
        if multiplexers != Multiplexed::NONE
            && let Some(which) = self.facts.multiplexers
        {
            for call in names.iter().map(|name| name.multiplexed()) {
                if multiplexers.has(call) {
                    self.apply_multiplexed(rule, call, which);
                }
            }
        }
        let wide = self.facts.wide;
        let present = numbers().filter(|number| *number != ABSENT);
        if !rule.conditions.iter().any(|c| c.constrains(wide)) {
            self.always(present, rule.verdict);
            return;
        }
        for number in present {
            let constrain = rule.conditions.iter().filter(|c| c.constrains(wide));
            let conditions: Vec<_> = constrain.copied().collect();
            let link = Link {
                rule: rule.index,
                whole: conditions.len() == rule.conditions.len(),
                verdict: rule.verdict,
                conditions,
            };
            self.depends(number, link);
        }
    }

    /// Applies a rule to the way through socketcall(2) or ipc(2). Their first argument
    /// says which call is meant; what the rule says of the call's own first argument
    /// cannot be asked, and of the others only as they stand. So does libseccomp.
    fn apply_multiplexed(&mut self, rule: &Rule<'_>, call: u8, multiplexers: Multiplexers) {
        let number = match call & IPC {
            0 => multiplexers.socketcall,
            _ => multiplexers.ipc,
        };
        self.end = self.end.max(usize::from(number) + 1);
        let which = Condition {
            argument: 0,
            operator: Operator::Equal,
            mask: u64::MAX,
            value: u64::from(call & !IPC),
        };
        let wide = self.facts.wide;
        let others = rule
            .conditions
            .iter()
            .filter(|c| c.argument != 0 && c.constrains(wide));
        let link = Link {
            rule: rule.index,
            whole: false,
            verdict: rule.verdict,
            conditions: std::iter::once(which).chain(others.copied()).collect(),
        };
        self.depends(number, link);
    }

    fn cell(&mut self, number: u16) -> Option<&mut Cell> {
        let place = match number & PRIVATE {
            0 => usize::from(number),
            _ => LARGEST + usize::from(number & !PRIVATE),
        };
        self.cells.get_mut(place)
    }

    /// A rule without conditions stands against those with; of two, the first stands.
    fn always(&mut self, numbers: impl Iterator<Item = u16>, verdict: u32) {
        let known = self.verdicts.iter().position(|known| *known == verdict);
        let fate = Cell::always(known.unwrap_or(self.verdicts.len()));
        let mut used = false;
        for number in numbers {
            if let Some(cell) = self.cell(number)
                && !matches!(cell.fate(), Fate::Always(_))
            {
                *cell = fate;
                used = true;
            }
        }
        // Only then, so that there are no more verdicts than cells.
        if used && known.is_none() {
            self.verdicts.push(verdict);
        }
    }

    fn depends(&mut self, number: u16, link: Link) {
        let next = self.lists.len();
        let Some(cell) = self.cell(number) else {
            return;
        };
        match cell.fate() {
            Fate::Always(_) => {}
            Fate::Untouched => {
                *cell = Cell::depends(next);
                self.lists.push(vec![link]);
            }
            Fate::Depends(list) => {
                if let Some(list) = self.lists.get_mut(list) {
                    list.push(link);
                }
            }
        }
    }

    /// Brings every list into the order in which its rules decide.
    pub(super) fn settle(&mut self) -> Result<(), Contradictory> {
        let layout = self.layout();
        for list in &mut self.lists {
            let mut links = list.iter().map(|link| link.verdict);
            let first = links.next();
            if links.all(|verdict| Some(verdict) == first) {
                continue;
            }
            let (order, contradiction) = order(list, layout);
            if let Some(Contradiction { later, earlier }) = contradiction
                && let (Some(later), Some(earlier)) = (list.get(later), list.get(earlier))
            {
                return Err(Contradictory {
                    later: later.rule,
                    earlier: earlier.rule,
                    same: later.conditions.len() == earlier.conditions.len(),
                });
            }
            let mut sorted: Vec<_> = std::mem::take(list).into_iter().map(Some).collect();
            *list = order
                .iter()
                .filter_map(|at| sorted.get_mut(*at)?.take())
                .collect();
        }
        Ok(())
    }

    fn layout(&self) -> Layout {
        Layout {
            wide: self.facts.wide,
            big_endian: self.facts.big_endian,
        }
    }

    /// Adds the architecture's numbers, in order, to `runs`: calls that nobody names go
    /// to `default`, those after the last that somebody names to `newer`.
    pub(super) fn runs(&self, graph: &mut Graph, runs: &mut Runs, default: Id, newer: Id) {
        let base = self.facts.base;
        // A profile that names no call of the architecture knows none that is newer.
        let (last, newer) = match self.newer {
            0 => (self.end, default),
            after => (after, newer),
        };
        // No ordinary call has the number zero on s390, whose kernel shows a number that it
        // does not know as zero.
        let zero = match self.arch {
            Arch::S390 | Arch::S390x => newer,
            _ => default,
        };
        let verdicts: Vec<Id> = self.verdicts.iter().map(|v| graph.verdict(*v)).collect();
        let mut id = |cell: Cell, untouched: Id| match cell.fate() {
            Fate::Untouched => untouched,
            Fate::Always(place) => verdicts.get(place).copied().unwrap_or(untouched),
            Fate::Depends(place) => {
                let list = self.lists.get(place).map_or(&[][..], Vec::as_slice);
                chain::build(graph, self.layout(), list, default)
            }
        };
        let mut add = |first: usize, end: usize, start: u32, untouched: Id| {
            let cells = self.cells.get(first..end).unwrap_or_default();
            let mut before = None;
            for (number, cell) in (start..).zip(cells) {
                if before != Some(*cell) {
                    before = Some(*cell);
                    runs.from(number, id(*cell, untouched));
                }
            }
        };
        add(0, 1, base, zero);
        add(1, last, base + 1, default);
        add(last, self.end, base + last as u32, newer);
        runs.from(base + self.end as u32, newer);
        if self.arch == Arch::Arm {
            for (number, cell) in (1..).zip(self.cells.iter().skip(LARGEST + 1)) {
                runs.from(ARM_PRIVATE + number, id(*cell, default));
            }
            runs.from(ARM_PRIVATE + PRIVATE_COUNT as u32 + 1, default);
        }
    }
}
