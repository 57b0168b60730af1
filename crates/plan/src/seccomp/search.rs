//! Finding a system call's number among intervals with the same verdict.

use super::graph::{Graph, Id, Test};

/// From each number to the next run's: what happens to it. Sorted, the first from 0.
#[derive(Debug, Default)]
pub(super) struct Runs(Vec<(u32, Id)>);

impl Runs {
    pub(super) fn with_capacity(runs: usize) -> Self {
        Self(Vec::with_capacity(runs))
    }

    /// All numbers from `start` on go to `id`. Starts must not descend.
    pub(super) fn from(&mut self, start: u32, id: Id) {
        while self.0.last().is_some_and(|(last, _)| *last >= start) {
            self.0.pop();
        }
        if self.0.last().is_none_or(|(_, last)| *last != id) {
            self.0.push((start, id));
        }
    }

    /// A search for the number in the graph: one comparison for each boundary of two
    /// runs, or for two where a single number stands alone in a run.
    pub(super) fn search(&self, graph: &mut Graph) -> Option<Id> {
        let mut alone = Vec::new();
        let mut spans: Vec<Span> = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_slice();
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
                    alone: (alone.len(), alone.len()),
                }),
            }
        }
        Search {
            graph,
            alone: &alone,
        }
        .among(&spans)
    }
}

/// A run with the single numbers in it that go elsewhere.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    id: Id,
    /// Their first and last-but-one place in the list of all.
    alone: (usize, usize),
}

impl Span {
    /// Comparisons it takes, roughly.
    fn weight(&self) -> usize {
        1 + self.alone.1 - self.alone.0
    }
}

/// More single numbers than this in a row are searched by halves.
const IN_A_ROW: usize = 3;

struct Search<'a> {
    graph: &'a mut Graph,
    alone: &'a [(u32, Id)],
}

impl Search<'_> {
    fn among(&mut self, spans: &[Span]) -> Option<Id> {
        let [first, rest @ ..] = spans else {
            return None;
        };
        if rest.is_empty() {
            let (from, to) = first.alone;
            return Some(self.apart(self.alone.get(from..to)?, first.id));
        }
        let half = spans.iter().map(Span::weight).sum::<usize>() / 2;
        let mut weight = first.weight();
        let mut middle = 1;
        for span in rest.iter().take(rest.len() - 1) {
            if weight + span.weight() / 2 >= half {
                break;
            }
            weight += span.weight();
            middle += 1;
        }
        let (low, high) = spans.split_at_checked(middle)?;
        let test = Test::at_least(Test::NUMBER, high.first()?.start);
        let (low, high) = (self.among(low)?, self.among(high)?);
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
