//! The rules of one system call that look at arguments, as tests of 32-bit words.

use super::graph::{Compare, Facts, Graph, Id, Test};
use super::rules::{Condition, Operator};

/// How an architecture lays out arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// 64-bit arguments, else only the low halves count.
    pub(super) wide: bool,
    /// The high half comes first.
    pub(super) big_endian: bool,
}

impl Layout {
    /// The words of an argument: high, low.
    fn words(self, argument: u8) -> (u8, u8) {
        let first = Test::ARGUMENTS + 2 * argument;
        match self.big_endian {
            true => (first, first + 1),
            false => (first + 1, first),
        }
    }
}

/// A rule as it applies to one system call of one architecture.
pub(super) struct Link {
    /// Its place in `linux.seccomp.syscalls`.
    pub(super) rule: usize,
    /// It has all the conditions that the configuration gives it.
    pub(super) whole: bool,
    /// `SECCOMP_RET_…` with its data.
    pub(super) verdict: u32,
    /// Not empty; by argument; each constrains an argument of the architecture.
    pub(super) conditions: Vec<Condition>,
}

/// Lays out `links`, the first that holds deciding, with `otherwise` at the end.
///
/// The size is that of all conditions together, whatever they are.
pub(super) fn build(graph: &mut Graph, layout: Layout, links: &[Link], otherwise: Id) -> Id {
    links.iter().rev().fold(otherwise, |otherwise, link| {
        let verdict = graph.verdict(link.verdict);
        self::link(
            graph,
            layout,
            &link.conditions,
            &Facts::NONE,
            verdict,
            otherwise,
        )
    })
}

/// `facts` is what is known where the first condition is reached.
fn link(
    graph: &mut Graph,
    layout: Layout,
    all: &[Condition],
    facts: &Facts<'_>,
    yes: Id,
    no: Id,
) -> Id {
    let [condition, rest @ ..] = all else {
        return yes;
    };
    let step = Step {
        layout,
        condition,
        facts,
    };
    // What is known where the condition holds, as far as one walk can say it.
    let (high, low) = step.halves();
    let next = match condition.operator {
        Operator::Equal | Operator::Masked if layout.wide => {
            let facts = facts.with(high, true);
            link(graph, layout, rest, &facts.with(low, true), yes, no)
        }
        Operator::Equal | Operator::Masked => {
            link(graph, layout, rest, &facts.with(low, true), yes, no)
        }
        _ => link(graph, layout, rest, facts, yes, no),
    };
    step.build(graph, next, no)
}

/// A condition and what is known where it is tested.
struct Step<'a> {
    layout: Layout,
    condition: &'a Condition,
    facts: &'a Facts<'a>,
}

impl Step<'_> {
    fn build(&self, graph: &mut Graph, yes: Id, no: Id) -> Id {
        match self.condition.operator {
            Operator::Equal | Operator::Masked => self.equal(graph, yes, no),
            Operator::NotEqual => self.equal(graph, no, yes),
            Operator::Greater => self.greater(graph, Test::above, yes, no),
            Operator::LessOrEqual => self.greater(graph, Test::above, no, yes),
            Operator::GreaterOrEqual => self.greater(graph, Test::at_least, yes, no),
            Operator::Less => self.greater(graph, Test::at_least, no, yes),
        }
    }

    /// Tests of the high and of the low half.
    fn halves(&self) -> (Test, Test) {
        let Condition {
            argument,
            mask,
            value,
            ..
        } = *self.condition;
        let (high, low) = self.layout.words(argument);
        let half = |word, shift: u32| Test {
            word,
            compare: Compare::Equal {
                mask: (mask >> shift) as u32,
            },
            k: (value >> shift) as u32,
        };
        (half(high, 32), half(low, 0))
    }

    fn equal(&self, graph: &mut Graph, yes: Id, no: Id) -> Id {
        let (high, low) = self.halves();
        if !self.layout.wide {
            return step(graph, self.facts, low, yes, no);
        }
        let inner = step(graph, &self.facts.with(high, true), low, yes, no);
        step(graph, self.facts, high, inner, no)
    }

    fn greater(&self, graph: &mut Graph, low: fn(u8, u32) -> Test, yes: Id, no: Id) -> Id {
        let (high, equal_low) = self.halves();
        let low = low(equal_low.word, equal_low.k);
        if !self.layout.wide {
            return step(graph, self.facts, low, yes, no);
        }
        let above = Test::above(high.word, high.k);
        let not_above = self.facts.with(above, false);
        let inner = step(graph, &not_above.with(high, true), low, yes, no);
        let equal = step(graph, &not_above, high, inner, no);
        step(graph, self.facts, above, yes, equal)
    }
}

/// A test on a walk that knows `facts`: what they decide is not tested again, neither
/// here nor where the walk goes on.
fn step(graph: &mut Graph, facts: &Facts<'_>, test: Test, yes: Id, no: Id) -> Id {
    match facts.outcome(test) {
        Some(true) => graph.follow(yes, facts),
        Some(false) => graph.follow(no, facts),
        None => {
            let yes = graph.follow(yes, &facts.with(test, true));
            let no = graph.follow(no, &facts.with(test, false));
            graph.branch(test, yes, no)
        }
    }
}
