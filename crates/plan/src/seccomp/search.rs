//! Finding a system call's number among intervals with the same verdict.

use std::ops::Range;

use super::graph::{Graph, Id, Test};

/// From each number to the next run's: what happens to it. Sorted, the first from 0.
#[derive(Debug)]
pub(super) struct Runs {
    runs: Vec<(u32, Id)>,
    /// For `search`: kept, so that the next one takes no other memory.
    alone: Vec<(u32, Id)>,
    spans: Vec<Span>,
}

impl Runs {
    /// Of no numbers, with room for those of real profiles.
    pub(super) fn new() -> Self {
        Self {
            runs: Vec::with_capacity(144),
            alone: Vec::with_capacity(48),
            spans: Vec::with_capacity(80),
        }
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }

    /// All numbers from `start` on go to `id`. Starts must not descend.
    pub(super) fn from(&mut self, start: u32, id: Id) {
        while self.runs.last().is_some_and(|(last, _)| *last >= start) {
            self.runs.pop();
        }
        if self.runs.last().is_none_or(|(_, last)| *last != id) {
            self.runs.push((start, id));
        }
    }

    /// A search for the number in the graph: one comparison for each boundary of two
    /// runs, or for two where a single number stands alone in a run.
    ///
    /// Before a filter is used, the kernel interprets it for each number that it has, to
    /// learn which calls are always allowed; that is a third of what loading costs. So the
    /// search is balanced for the numbers `asked`, each as likely as any other. A container
    /// makes the calls that are allowed without a look at arguments without the filter.
    pub(super) fn search(&mut self, graph: &mut Graph, asked: Range<u32>) -> Option<Id> {
        let Self { runs, alone, spans } = self;
        alone.clear();
        spans.clear();
        let mut rest = runs.as_slice();
        while let [(start, id), tail @ ..] = rest {
            rest = tail;
            match (spans.last_mut(), tail) {
                (Some(span), [(next, after), ..])
                    if span.id == *after && start.wrapping_add(1) == *next =>
                {
                    alone.push((*start, *id));
                    span.alone.1 += 1;
                    // The run after it belongs to the same span.
                    rest = tail.get(1..).unwrap_or_default();
                }
                _ => spans.push(Span {
                    start: *start,
                    id: *id,
                    alone: (alone.len() as u32, alone.len() as u32),
                    weight: 0,
                }),
            }
        }
        let mut end = u32::MAX;
        for span in spans.iter_mut().rev() {
            span.weigh(end, &asked);
            end = span.start;
        }
        let mut total = 0;
        for span in spans.iter_mut() {
            total += span.weight;
            span.weight = total;
        }
        Search { graph, alone }.among(spans, 0)
    }
}

/// A run with the single numbers in it that go elsewhere.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    id: Id,
    /// Their first and last-but-one place in the list of all.
    alone: (u32, u32),
    /// How often it is sought, and then that of those before it and its own together.
    weight: u32,
}

/// What a number that is asked for weighs beside a comparison that must be somewhere.
const ASKED: u32 = 16;

impl Span {
    fn weigh(&mut self, end: u32, asked: &Range<u32>) {
        let numbers = end
            .min(asked.end)
            .saturating_sub(self.start.max(asked.start));
        let comparisons = 1 + self.alone.1 - self.alone.0;
        self.weight = numbers * ASKED + comparisons;
    }
}

/// More single numbers than this in a row are searched by halves.
const IN_A_ROW: usize = 3;

struct Search<'a> {
    graph: &'a mut Graph,
    alone: &'a [(u32, Id)],
}

impl Search<'_> {
    /// `before` is the weight of all spans before these.
    fn among(&mut self, spans: &[Span], before: u32) -> Option<Id> {
        let [_, .., last] = spans else {
            let only = spans.first()?;
            let (from, to) = only.alone;
            let alone = self.alone.get(from as usize..to as usize)?;
            return Some(self.apart(alone, only.id));
        };
        // Where the weights on both sides are nearest to each other.
        let half = before + (last.weight - before) / 2;
        let reach = spans.partition_point(|span| span.weight < half);
        let off = |middle: usize| {
            let weight = middle.checked_sub(1).and_then(|i| spans.get(i));
            weight.map_or(u32::MAX, |span| span.weight.abs_diff(half))
        };
        let middle = match off(reach) < off(reach + 1) {
            true => reach,
            false => reach + 1,
        };
        let middle = middle.clamp(1, spans.len() - 1);
        let (low, high) = spans.split_at_checked(middle)?;
        let at = low.last()?.weight;
        let test = Test::at_least(Test::NUMBER, high.first()?.start);
        let (low, high) = (self.among(low, before)?, self.among(high, at)?);
        Some(self.graph.branch(test, high, low))
    }

    fn apart(&mut self, alone: &[(u32, Id)], otherwise: Id) -> Id {
        if alone.len() > IN_A_ROW
            && let (low, high @ [(start, _), ..]) = alone.split_at(alone.len() / 2)
        {
            let test = Test::at_least(Test::NUMBER, *start);
            let (low, high) = (self.apart(low, otherwise), self.apart(high, otherwise));
            return self.graph.branch(test, high, low);
        }
        alone.iter().rev().fold(otherwise, |no, (number, yes)| {
            self.graph
                .branch(Test::equal(Test::NUMBER, *number), *yes, no)
        })
    }
}
