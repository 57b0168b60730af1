//! Which rule decides when several with different verdicts hold.
//!
//! The specification is silent. libseccomp keeps the rules of a system call in a tree
//! of half-word comparisons with an order of its own on each level, and profiles were
//! written against the outcome, so that order is kept here: conditions on later
//! arguments first, then equality before "less" before "greater", then, for equality and
//! "greater", large values first and for "less" small ones. What this leaves open, the
//! rule that was there first decides.
//!
//! Where one rule is the beginning of another, the longer says nothing if it comes later.
//! If it comes first and has another verdict, libseccomp refuses the shorter, and so does
//! this: there is no profile to keep to, and a rule would be lost without a word.
//!
//! On profiles whose conditions are equalities, masked or not, this is exactly
//! libseccomp's choice. Where its tree gives a verdict that no rule asks for (it shares
//! parts of the tree that it later changes), it is not followed.

use std::cmp::Ordering;

use super::chain::{Layout, Link};
use super::rules::{Condition, Operator};

/// A comparison of half an argument.
#[derive(Debug, Clone, Copy)]
struct Half {
    /// Twice the argument's number, plus one for the high half.
    place: u8,
    kind: Kind,
    mask: u32,
    value: u32,
    class: Class,
    /// The outcome with which the rule goes on.
    outcome: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Equal,
    Masked,
    Above,
    AtLeast,
}

/// Of operators; the later first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Greater,
    Less,
    Equal,
}

impl Half {
    fn same(&self, other: &Self) -> bool {
        (self.place, self.kind, self.mask, self.value)
            == (other.place, other.kind, other.mask, other.value)
    }

    /// `Greater`: comes first.
    fn rank(&self, other: &Self) -> Ordering {
        let by_value = match self.class {
            Class::Less => other.value.cmp(&self.value),
            Class::Equal | Class::Greater => self.value.cmp(&other.value),
        };
        let by_place = self.place.cmp(&other.place);
        by_place.then(self.class.cmp(&other.class)).then(by_value)
    }
}

fn halves(condition: &Condition, layout: Layout, out: &mut Vec<Half>) {
    let Condition {
        argument,
        operator,
        mask,
        value,
    } = *condition;
    let (kind, class, outcome) = match operator {
        Operator::Equal => (Kind::Equal, Class::Equal, true),
        Operator::NotEqual => (Kind::Equal, Class::Equal, false),
        Operator::Masked => (Kind::Masked, Class::Equal, true),
        Operator::Greater => (Kind::Above, Class::Greater, true),
        Operator::GreaterOrEqual => (Kind::AtLeast, Class::Greater, true),
        Operator::Less => (Kind::AtLeast, Class::Less, false),
        Operator::LessOrEqual => (Kind::Above, Class::Less, false),
    };
    if layout.wide {
        let high = Half {
            place: 2 * argument + 1,
            kind,
            mask: (mask >> 32) as u32,
            value: (value >> 32) as u32,
            class,
            outcome: true,
        };
        if class == Class::Equal {
            out.push(high);
        } else {
            out.push(Half {
                kind: Kind::Above,
                outcome: false,
                ..high
            });
            out.push(Half {
                kind: Kind::Equal,
                ..high
            });
        }
    }
    out.push(Half {
        place: 2 * argument,
        kind,
        mask: mask as u32,
        value: value as u32,
        class,
        outcome,
    });
}

/// A comparison with what follows each of its outcomes.
struct Node {
    half: Half,
    /// Rules that end here, and nodes below, by outcome (false, true).
    links: [Vec<usize>; 2],
    below: [Vec<usize>; 2],
}

/// Two rules with different verdicts, of which the later has the same conditions as the
/// earlier or the first of them: places.
pub(super) struct Contradiction {
    pub(super) later: usize,
    pub(super) earlier: usize,
}

/// The places of `links` in the order in which they decide.
pub(super) fn order(links: &[Link], layout: Layout) -> (Vec<usize>, Option<Contradiction>) {
    let mut tree = Tree {
        nodes: Vec::new(),
        top: Vec::new(),
    };
    let mut halves = Vec::new();
    let mut others = Vec::new();
    let mut contradiction = None;
    for (place, link) in links.iter().enumerate() {
        halves.clear();
        for condition in &link.conditions {
            self::halves(condition, layout, &mut halves);
        }
        others.clear();
        tree.insert(&halves, place, &mut others);
        let contradicted = |other: &&usize| {
            links
                .get(**other)
                .is_some_and(|other| contradicts(link, other))
        };
        if contradiction.is_none() {
            let earlier = others.iter().find(contradicted).copied();
            contradiction = earlier.map(|earlier| Contradiction {
                later: place,
                earlier,
            });
        }
    }
    let mut order = Vec::with_capacity(links.len());
    tree.walk(&tree.top, &mut order);
    (order, contradiction)
}

/// Whether two rules that are the same as far as the shorter goes are also written so, not
/// only as the architecture can tell.
fn contradicts(later: &Link, earlier: &Link) -> bool {
    later.verdict != earlier.verdict
        && later.whole
        && earlier.whole
        && earlier.conditions.starts_with(&later.conditions)
}

struct Tree {
    nodes: Vec<Node>,
    top: Vec<usize>,
}

impl Tree {
    /// Adds the rule at `place`, unless a shorter one that was there first leaves nothing
    /// to it. `others` become the rules with the same conditions, and more.
    fn insert(&mut self, halves: &[Half], place: usize, others: &mut Vec<usize>) {
        let mut above = None;
        for half in halves {
            if self.links(above).is_some_and(|links| !links.is_empty()) {
                return;
            }
            let found = self.enter(above, half);
            above = Some((found, usize::from(half.outcome)));
        }
        if let Some(links) = self.links(above) {
            others.extend(links);
            self.walk(self.level(above), others);
        }
        let links = above.and_then(|(node, side)| self.nodes.get_mut(node)?.links.get_mut(side));
        if let Some(links) = links {
            links.push(place);
        }
    }

    /// The rules that end at this outcome of this node.
    fn links(&self, at: Option<(usize, usize)>) -> Option<&[usize]> {
        let (node, side) = at?;
        let links = self.nodes.get(node)?.links.get(side)?;
        Some(links.as_slice())
    }

    /// The node for `half` on the level below `above`, made if it is not there.
    fn enter(&mut self, above: Option<(usize, usize)>, half: &Half) -> usize {
        let level = self.level(above);
        let mut at = level.len();
        for (i, id) in level.iter().enumerate() {
            let Some(node) = self.nodes.get(*id) else {
                continue;
            };
            if node.half.same(half) {
                return *id;
            }
            if node.half.rank(half) == Ordering::Less {
                at = i;
                break;
            }
        }
        let id = self.nodes.len();
        self.nodes.push(Node {
            half: *half,
            links: [vec![], vec![]],
            below: [vec![], vec![]],
        });
        let level = match above {
            None => Some(&mut self.top),
            Some((node, side)) => self.nodes.get_mut(node).and_then(|n| n.below.get_mut(side)),
        };
        if let Some(level) = level {
            level.insert(at, id);
        }
        id
    }

    fn level(&self, above: Option<(usize, usize)>) -> &[usize] {
        match above {
            None => &self.top,
            Some((node, side)) => {
                let below = self.nodes.get(node).and_then(|n| n.below.get(side));
                below.map_or(&[], Vec::as_slice)
            }
        }
    }

    /// At most 18 levels deep: three comparisons for each of six arguments.
    fn walk(&self, level: &[usize], order: &mut Vec<usize>) {
        for node in level.iter().filter_map(|id| self.nodes.get(*id)) {
            let [no, yes] = &node.links;
            let [below_no, below_yes] = &node.below;
            order.extend(yes);
            self.walk(below_yes, order);
            order.extend(no);
            self.walk(below_no, order);
        }
    }
}
