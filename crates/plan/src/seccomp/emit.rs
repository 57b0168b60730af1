//! A graph as a program: instructions in an order in which every jump is forward.

use super::graph::{Compare, Graph, Id, Node, Test};

/// An instruction of classic BPF: `struct sock_filter` of linux/filter.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Insn {
    /// `BPF_…` class, mode and size or operation.
    pub code: u16,
    /// Instructions to skip if a comparison holds.
    pub jt: u8,
    /// Instructions to skip if it does not.
    pub jf: u8,
    /// Constant, offset in bytes, verdict, or instructions to skip.
    pub k: u32,
}

impl Insn {
    /// Load the 32-bit word at byte `k` of `seccomp_data`.
    pub(super) const LOAD: u16 = 0x20;
    pub(super) const AND: u16 = 0x54;
    pub(super) const JUMP: u16 = 0x05;
    pub(super) const EQUAL: u16 = 0x15;
    pub(super) const ABOVE: u16 = 0x25;
    pub(super) const AT_LEAST: u16 = 0x35;
    pub(super) const ANY: u16 = 0x45;
    pub(super) const RETURN: u16 = 0x06;

    /// As the kernel reads it on this machine.
    #[inline]
    pub fn to_bytes(self) -> [u8; 8] {
        let ([a, b], [e, f, g, h]) = (self.code.to_ne_bytes(), self.k.to_ne_bytes());
        [a, b, self.jt, self.jf, e, f, g, h]
    }

    fn new(code: u16, k: u32) -> Self {
        Self {
            code,
            jt: 0,
            jf: 0,
            k,
        }
    }
}

/// The word and the mask that were applied to the accumulator.
type Loaded = (u8, u32);

/// Where a node is entered: which of its instructions the comer can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    /// Nobody comes.
    None,
    /// The accumulator holds what is compared.
    Compare,
    /// It holds the word, to be masked.
    Mask,
    /// It holds something else.
    Load,
}

/// What a test leaves in the accumulator and needs there.
fn loaded(test: &Test) -> Loaded {
    let mask = match test.compare {
        Compare::Equal { mask } => mask,
        _ => u32::MAX,
    };
    (test.word, mask)
}

/// How `node` is entered with `has` in the accumulator.
fn entry(node: &Node, has: Loaded) -> Entry {
    let Node::Branch { test, .. } = node else {
        return Entry::Compare;
    };
    let needs = loaded(test);
    if needs == has {
        Entry::Compare
    } else if has == (needs.0, u32::MAX) {
        Entry::Mask
    } else {
        Entry::Load
    }
}

/// `BPF_MAXINSNS` of linux/bpf_common.h.
pub(super) const MOST: usize = 4096;

/// How many instructions a program would have, at least, that is too long.
pub(super) struct TooLong(pub(super) usize);

/// Lays out what can be reached from `root`, which must be the last node made.
pub(super) fn emit(graph: &Graph, root: Id) -> Result<Vec<Insn>, TooLong> {
    let nodes = graph.nodes();
    let (needed, reached) = entries(nodes, root);
    if reached > MOST {
        return Err(TooLong(reached));
    }
    let mut program = Backward {
        nodes,
        code: Vec::with_capacity(nodes.len() + nodes.len() / 8 + 16),
        stand_ins: Vec::new(),
        places: vec![Places::default(); nodes.len()],
    };
    for ((id, node), needed) in (0..).zip(nodes).zip(needed) {
        match node {
            _ if needed == Entry::None => {}
            Node::Branch { test, yes, no } => program.branch(id, test, [*yes, *no], needed),
            // Only where there is nothing else: verdicts are laid out where a branch
            // needs one.
            Node::Return(verdict) if id == root => {
                program.push(Insn::new(Insn::RETURN, *verdict));
            }
            Node::Return(_) => {}
        }
    }
    program.code.reverse();
    match program.code.len() {
        size if size > MOST => Err(TooLong(size)),
        _ => Ok(program.code),
    }
}

/// For each node, the longest way in that is used; and how many can be reached.
fn entries(nodes: &[Node], root: Id) -> (Vec<Entry>, usize) {
    let mut needed = vec![Entry::None; nodes.len()];
    if let Some(slot) = needed.get_mut(root as usize) {
        *slot = Entry::Load;
    }
    let mut reached = 0;
    for (id, node) in nodes.iter().enumerate().rev() {
        if needed.get(id).is_none_or(|needed| *needed == Entry::None) {
            continue;
        }
        reached += 1;
        let Node::Branch { test, yes, no } = node else {
            continue;
        };
        let has = loaded(test);
        for to in [*yes as usize, *no as usize] {
            if let (Some(target), Some(slot)) = (nodes.get(to), needed.get_mut(to)) {
                *slot = (*slot).max(entry(target, has));
            }
        }
    }
    (needed, reached)
}

/// A place in the program, counted from its end. There are at most three instructions and two
/// jumps for each of `MOST` nodes.
type Place = u16;

const _: () = assert!(MOST * 5 < Place::MAX as usize);

/// Where the ways into a node are. Of a verdict, where it was last laid out, if it was.
#[derive(Debug, Clone, Copy)]
struct Places {
    compare: Place,
    mask: Place,
    load: Place,
}

impl Places {
    const NOWHERE: Place = Place::MAX;
}

impl Default for Places {
    fn default() -> Self {
        Self {
            compare: Self::NOWHERE,
            mask: Self::NOWHERE,
            load: Self::NOWHERE,
        }
    }
}

/// How far a conditional jump reaches.
const REACH: Place = u8::MAX as Place;

/// A program written from its end to its start: a jump's target is there before it.
struct Backward<'a> {
    nodes: &'a [Node],
    code: Vec<Insn>,
    /// The last jump that stands for a place further on: that place, its own.
    stand_ins: Vec<(Place, Place)>,
    /// By node.
    places: Vec<Places>,
}

impl Backward<'_> {
    fn push(&mut self, insn: Insn) -> Place {
        let place = self.next();
        self.code.push(insn);
        place
    }

    fn next(&self) -> Place {
        self.code.len() as Place
    }

    fn branch(&mut self, id: Id, test: &Test, [yes, no]: [Id; 2], needed: Entry) {
        let has = loaded(test);
        let yes = self.within_reach(yes, has);
        let no = self.within_reach(no, has);
        let next = self.next();
        // Both are within reach.
        let skip = |to: Place| next.wrapping_sub(to).wrapping_sub(1) as u8;
        let code = match test.compare {
            Compare::Equal { .. } => Insn::EQUAL,
            Compare::Above => Insn::ABOVE,
            Compare::AtLeast => Insn::AT_LEAST,
            Compare::Any => Insn::ANY,
        };
        let compare = self.push(Insn {
            code,
            jt: skip(yes),
            jf: skip(no),
            k: test.k,
        });
        let (word, mask_k) = has;
        let mut mask = compare;
        if needed >= Entry::Mask && mask_k != u32::MAX {
            mask = self.push(Insn::new(Insn::AND, mask_k));
        }
        let mut load = mask;
        if needed >= Entry::Load {
            load = self.push(Insn::new(Insn::LOAD, u32::from(word) * 4));
        }
        if let Some(places) = self.places.get_mut(id as usize) {
            *places = Places {
                compare,
                mask,
                load,
            };
        }
    }

    /// A place that does what the node does for who has `has` in the accumulator, near enough
    /// for a jump from the next instruction or the one after it (a stand-in for another way
    /// may come between).
    fn within_reach(&mut self, id: Id, has: Loaded) -> Place {
        let next = self.next();
        let near = |place: Place| place < next && next - place <= REACH;
        let (Some(node), Some(places)) = (
            self.nodes.get(id as usize),
            self.places.get_mut(id as usize),
        ) else {
            // Every node has its places.
            return 0;
        };
        if let Node::Return(verdict) = node {
            if near(places.compare) {
                return places.compare;
            }
            // No longer than a jump to it.
            places.compare = next;
            return self.push(Insn::new(Insn::RETURN, *verdict));
        }
        let place = match entry(node, has) {
            Entry::Load => places.load,
            Entry::Mask => places.mask,
            _ => places.compare,
        };
        if near(place) {
            return place;
        }
        match self.stand_ins.iter_mut().find(|(to, _)| *to == place) {
            Some((_, stand_in)) if near(*stand_in) => return *stand_in,
            Some((_, stand_in)) => *stand_in = next,
            None => self.stand_ins.push((place, next)),
        }
        let skip = next.wrapping_sub(place).wrapping_sub(1);
        self.push(Insn::new(Insn::JUMP, u32::from(skip)))
    }
}
