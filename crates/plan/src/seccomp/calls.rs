//! What happens to each system call of an architecture.

use super::arch::{ARM_PRIVATE, Arch, Facts};
use super::chain::{self, Layout, Link};
use super::graph::{Graph, Id};
use super::order::{Contradiction, order};
use super::rules::{Condition, Operator, Rule};
use super::search::Runs;
use super::syscalls::Name;
use super::tables::{ABSENT, IPC, LARGEST, PRIVATE, PRIVATE_COUNT};

/// What happens to one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// The default.
    Untouched,
    /// Always this verdict.
    Always(u32),
    /// What the rules of this list say, else the default.
    Depends(u32),
}

/// Ordinary numbers, then private ones.
const CELLS: usize = LARGEST + 1 + PRIVATE_COUNT;

/// The system calls of one architecture.
pub(super) struct Calls {
    arch: Arch,
    facts: &'static Facts,
    cells: Vec<Cell>,
    /// No ordinary call from this number on is touched or named.
    end: usize,
    /// Rules with conditions.
    lists: Vec<Vec<Link>>,
    /// The largest ordinary number that any rule names.
    largest: Option<u16>,
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
        Self {
            arch,
            facts: arch.facts(),
            cells: vec![Cell::Untouched; CELLS],
            end: 1,
            lists: Vec::new(),
            largest: None,
        }
    }

    pub(super) fn arch(&self) -> Arch {
        self.arch
    }

    /// Whether no rule says anything of any call.
    pub(super) fn untouched(&self) -> bool {
        self.cells.iter().all(|cell| *cell == Cell::Untouched)
    }

    /// Notes that some rule, whatever it says, names the call.
    pub(super) fn mention(&mut self, name: Name) {
        let number = name.number(self.facts.column);
        if number & PRIVATE == 0 {
            self.largest = self.largest.max(Some(number));
            self.end = self.end.max(usize::from(number) + 1);
        }
    }

    /// Applies a rule to one of its calls.
    pub(super) fn apply(&mut self, rule: &Rule<'_>, name: Name) {
        self.apply_multiplexed(rule, name.multiplexed());
        let number = name.number(self.facts.column);
        if number == ABSENT {
            return;
        }
        let wide = self.facts.wide;
        if !rule.conditions.iter().any(|c| c.constrains(wide)) {
            self.always(number, rule.verdict);
            return;
        }
        let mut conditions = rule.conditions.clone();
        conditions.retain(|c| c.constrains(wide));
        let link = Link {
            rule: rule.index,
            whole: conditions.len() == rule.conditions.len(),
            verdict: rule.verdict,
            conditions,
        };
        self.depends(number, link);
    }

    /// Applies a rule to the way through socketcall(2) or ipc(2). Their first argument
    /// says which call is meant; what the rule says of the call's own first argument
    /// cannot be asked, and of the others only as they stand. So does libseccomp.
    fn apply_multiplexed(&mut self, rule: &Rule<'_>, call: u8) {
        let Some(multiplexers) = self.facts.multiplexers else {
            return;
        };
        let number = match call {
            0 => return,
            call if call & IPC == 0 => multiplexers.socketcall,
            _ => multiplexers.ipc,
        };
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
            0 => {
                self.end = self.end.max(usize::from(number) + 1);
                usize::from(number)
            }
            _ => LARGEST + usize::from(number & !PRIVATE),
        };
        self.cells.get_mut(place)
    }

    /// A rule without conditions stands against those with; of two, the first stands.
    fn always(&mut self, number: u16, verdict: u32) {
        if let Some(cell) = self.cell(number)
            && !matches!(cell, Cell::Always(_))
        {
            *cell = Cell::Always(verdict);
        }
    }

    fn depends(&mut self, number: u16, link: Link) {
        let next = self.lists.len() as u32;
        let Some(cell) = self.cell(number) else {
            return;
        };
        match *cell {
            Cell::Always(_) => {}
            Cell::Untouched => {
                *cell = Cell::Depends(next);
                self.lists.push(vec![link]);
            }
            Cell::Depends(list) => {
                if let Some(list) = self.lists.get_mut(list as usize) {
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
        let newer = if self.largest.is_some() {
            newer
        } else {
            default
        };
        // No ordinary call has the number zero on s390, whose kernel shows a number that it
        // does not know as zero.
        let unknown_is_zero = matches!(self.arch, Arch::S390 | Arch::S390x);
        let untouched = |number: usize| {
            let after = self.largest.is_none_or(|last| number > usize::from(last));
            if after || number == 0 && unknown_is_zero {
                newer
            } else {
                default
            }
        };
        let mut last = (None, default);
        let mut id = |graph: &mut Graph, cell: Cell, untouched: Id| match cell {
            Cell::Untouched => untouched,
            Cell::Always(verdict) if last.0 == Some(verdict) => last.1,
            Cell::Always(verdict) => {
                last = (Some(verdict), graph.verdict(verdict));
                last.1
            }
            Cell::Depends(list) => self.depend(graph, list, default),
        };
        for (number, cell) in self.cells.iter().enumerate().take(self.end) {
            let id = id(graph, *cell, untouched(number));
            runs.from(base + number as u32, id);
        }
        runs.from(base + self.end as u32, newer);
        if self.arch == Arch::Arm {
            for (number, cell) in (1..).zip(self.cells.iter().skip(LARGEST + 1)) {
                let id = id(graph, *cell, default);
                runs.from(ARM_PRIVATE + number, id);
            }
            runs.from(ARM_PRIVATE + PRIVATE_COUNT as u32 + 1, default);
        }
    }

    fn depend(&self, graph: &mut Graph, list: u32, default: Id) -> Id {
        let list = self.lists.get(list as usize).map_or(&[][..], Vec::as_slice);
        chain::build(graph, self.layout(), list, default)
    }
}
