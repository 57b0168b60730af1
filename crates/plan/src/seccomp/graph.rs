//! A filter as a graph of tests that ends in verdicts. Equal parts are one part, so
//! what two architectures or two rules have in common is there once.
//!
//! A node is made after those it leads to; a graph can thus have no cycle, and the
//! order of making, reversed, is an order in which every jump is forward.

/// A node's place in its `Graph`.
pub(super) type Id = u32;

/// What a test does with a word of `seccomp_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    /// word & mask == k
    Equal {
        /// All ones for the whole word.
        mask: u32,
    },
    /// word > k
    Above,
    /// word >= k
    AtLeast,
    /// word & k != 0
    Any,
}

/// A comparison of a word with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Test {
    /// Which 32-bit word of `seccomp_data`, 0 to 15.
    pub(super) word: u8,
    pub(super) compare: Compare,
    pub(super) k: u32,
}

/// A step of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// The end: `SECCOMP_RET_…` with its data.
    Return(u32),
    /// Go on at `yes` or at `no`.
    Branch { test: Test, yes: Id, no: Id },
}

impl Test {
    /// The number of the call, `seccomp_data.nr`.
    pub(super) const NUMBER: u8 = 0;
    /// The architecture, `seccomp_data.arch`.
    pub(super) const ARCH: u8 = 1;
    /// The first word of the first argument.
    pub(super) const ARGUMENTS: u8 = 4;

    pub(super) fn equal(word: u8, k: u32) -> Self {
        let compare = Compare::Equal { mask: u32::MAX };
        Self { word, compare, k }
    }

    pub(super) fn above(word: u8, k: u32) -> Self {
        let compare = Compare::Above;
        Self { word, compare, k }
    }

    pub(super) fn at_least(word: u8, k: u32) -> Self {
        let compare = Compare::AtLeast;
        Self { word, compare, k }
    }

    /// The outcome where the constant alone decides it.
    fn constant(self) -> Option<bool> {
        match self.compare {
            Compare::Equal { mask } if self.k & !mask != 0 => Some(false),
            Compare::Equal { mask: 0 } => Some(true),
            Compare::Above if self.k == u32::MAX => Some(false),
            Compare::AtLeast if self.k == 0 => Some(true),
            Compare::Any if self.k == 0 => Some(false),
            _ => None,
        }
    }

    fn hash(self) -> u32 {
        let (kind, mask) = match self.compare {
            Compare::Equal { mask } => (0, mask),
            Compare::Above => (1, 0),
            Compare::AtLeast => (2, 0),
            Compare::Any => (3, 0),
        };
        mix(mix(u32::from(self.word) << 2 | kind, mask), self.k)
    }
}

/// The nodes, each different from every other.
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// Open addressing with linear probing: a node's id plus one, or zero; at most half
    /// full; a power of two long. The standard map's hasher wants random bytes, a system call at start.
    table: Vec<Id>,
}

impl Graph {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::with_capacity(256),
            table: vec![0; 512],
        }
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node that returns `verdict`.
    pub(super) fn verdict(&mut self, verdict: u32) -> Id {
        self.intern(Node::Return(verdict))
    }

    /// A node for `test`, unless its outcome is certain or makes no difference.
    pub(super) fn branch(&mut self, test: Test, yes: Id, no: Id) -> Id {
        match test.constant() {
            Some(true) => yes,
            Some(false) => no,
            None if yes == no => yes,
            None => self.branch_normal(test, yes, no),
        }
    }

    /// A masked comparison with zero or with the mask's one bit is a test of bits, which
    /// leaves the word itself in the accumulator for the next test.
    fn branch_normal(&mut self, test: Test, yes: Id, no: Id) -> Id {
        let Test { word, k, .. } = test;
        match test.compare {
            Compare::Equal { mask } if mask != u32::MAX && k == 0 => {
                let test = Test {
                    word,
                    compare: Compare::Any,
                    k: mask,
                };
                self.intern(Node::Branch {
                    test,
                    yes: no,
                    no: yes,
                })
            }
            Compare::Equal { mask } if mask.is_power_of_two() => {
                let test = Test {
                    word,
                    compare: Compare::Any,
                    k: mask,
                };
                self.intern(Node::Branch { test, yes, no })
            }
            _ => self.intern(Node::Branch { test, yes, no }),
        }
    }

    /// Where a walk that knows `facts` really ends up when it is sent to `to`: tests whose
    /// outcome is known are passed.
    pub(super) fn follow(&self, mut to: Id, facts: &Facts<'_>) -> Id {
        while let Some(Node::Branch { test, yes, no }) = self.nodes.get(to as usize) {
            match facts.outcome(*test) {
                Some(true) => to = *yes,
                Some(false) => to = *no,
                None => break,
            }
        }
        to
    }

    fn intern(&mut self, node: Node) -> Id {
        if self.nodes.len() * 2 >= self.table.len() {
            self.grow();
        }
        let slots = self.table.len();
        let mut slot = slot(node, slots);
        loop {
            match self.table.get_mut(slot) {
                Some(0) | None => break,
                Some(id) if self.nodes.get(*id as usize - 1) == Some(&node) => return *id - 1,
                Some(_) => slot = (slot + 1) & (slots - 1),
            }
        }
        self.nodes.push(node);
        if let Some(free) = self.table.get_mut(slot) {
            *free = self.nodes.len() as Id;
        }
        self.nodes.len() as Id - 1
    }

    fn grow(&mut self) {
        let slots = self.table.len() * 2;
        let mut table = vec![0; slots];
        for (i, node) in (1..).zip(&self.nodes) {
            let mut slot = slot(*node, slots);
            while table.get(slot).is_some_and(|id| *id != 0) {
                slot = (slot + 1) & (slots - 1);
            }
            if let Some(free) = table.get_mut(slot) {
                *free = i;
            }
        }
        self.table = table;
    }
}

fn mix(hash: u32, value: u32) -> u32 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b1)
}

fn slot(node: Node, slots: usize) -> usize {
    let hash = match node {
        Node::Return(verdict) => mix(1, verdict),
        Node::Branch { test, yes, no } => mix(mix(test.hash(), yes), no),
    };
    // The high bits of a product are its best.
    (hash ^ hash >> 15) as usize & (slots - 1)
}

/// What a walk through the graph has learnt of the words: the outcomes of tests, the last
/// one first. A walk has few, so that looking them all through is less than to keep a
/// summary of each word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    last: Option<(Test, bool)>,
    before: Option<&'a Facts<'a>>,
}

impl Facts<'_> {
    pub(super) const NONE: Self = Self {
        last: None,
        before: None,
    };

    /// The same and that `test` came out as `outcome`.
    #[must_use]
    pub(super) fn with(&self, test: Test, outcome: bool) -> Facts<'_> {
        Facts {
            last: Some((test, outcome)),
            before: Some(self),
        }
    }

    /// Of a word: least, most, and the last masked comparison or inequality: mask, constant,
    /// equal.
    fn of(&self, word: u8) -> (u32, u32, Option<(u32, u32, bool)>) {
        let (mut least, mut most, mut masked) = (0, u32::MAX, None);
        let mut facts = Some(self);
        while let Some(Facts { last, before }) = facts {
            facts = *before;
            let Some((test, outcome)) = *last else {
                continue;
            };
            if test.word != word {
                continue;
            }
            let k = test.k;
            match (test.compare, outcome) {
                (Compare::Equal { mask: u32::MAX }, true) => {
                    (least, most) = (least.max(k), most.min(k));
                }
                (Compare::Equal { mask }, _) => masked = masked.or(Some((mask, k, outcome))),
                (Compare::Above, true) => least = least.max(k.saturating_add(1)),
                (Compare::Above, false) => most = most.min(k),
                (Compare::AtLeast, true) => least = least.max(k),
                (Compare::AtLeast, false) => most = most.min(k.saturating_sub(1)),
                (Compare::Any, any) => masked = masked.or(Some((k, 0, !any))),
            }
        }
        (least, most, masked)
    }

    /// The outcome of `test`, if what is known decides it.
    pub(super) fn outcome(&self, test: Test) -> Option<bool> {
        let (least, most, masked) = self.of(test.word);
        let known = |mask: u32, k: u32| match masked {
            _ if least == most => Some(least & mask == k),
            Some((m, value, equal)) if m == mask => match (value == k, equal) {
                (true, equal) => Some(equal),
                (false, true) => Some(false),
                (false, false) => None,
            },
            _ => None,
        };
        let k = test.k;
        match test.compare {
            Compare::Equal { mask: u32::MAX } if k < least || most < k => Some(false),
            Compare::Equal { mask } => known(mask, k),
            Compare::Above if least > k => Some(true),
            Compare::Above if most <= k => Some(false),
            Compare::AtLeast if least >= k => Some(true),
            Compare::AtLeast if most < k => Some(false),
            Compare::Any => known(k, 0).map(|zero| !zero),
            _ => None,
        }
    }
}
