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
    /// The accumulator holds what is compared.
    Compare,
    /// It holds the word, to be masked.
    Mask,
    /// It holds something else.
    Load,
}

/// The mask that a test applies in the accumulator.
fn mask(test: Test) -> u32 {
    match test.compare {
        Compare::Equal { mask } => mask,
        _ => u32::MAX,
    }
}

fn loaded(node: Node) -> Option<Loaded> {
    match node {
        Node::Return(_) => None,
        Node::Branch { test, .. } => Some((test.word, mask(test))),
    }
}

/// How `node` is entered with `has` in the accumulator.
fn entry(node: Node, has: Option<Loaded>) -> Entry {
    match (loaded(node), has) {
        (None, _) => Entry::Compare,
        (needs, has) if needs == has => Entry::Compare,
        (Some((word, _)), Some((loaded, u32::MAX))) if word == loaded => Entry::Mask,
        _ => Entry::Load,
    }
}

/// Lays out what can be reached from `root`, which must be the last node made.
pub(super) fn emit(graph: &Graph, root: Id) -> Vec<Insn> {
    let nodes = graph.nodes();
    let needed = entries(nodes, root);
    let mut program = Backward::with_capacity(nodes.len() + nodes.len() / 2);
    let mut places = vec![Places::default(); nodes.len()];
    for (id, (node, needed)) in nodes.iter().zip(needed).enumerate() {
        let Some(needed) = needed else { continue };
        let place = match *node {
            Node::Return(verdict) => Places::one(program.push(Insn::new(Insn::RETURN, verdict))),
            Node::Branch { test, yes, no } => {
                let target = |id: Id| {
                    let to = (nodes.get(id as usize)?, places.get(id as usize)?);
                    Some(to.1.at(entry(*to.0, loaded(*node))))
                };
                // Nodes are laid out after those that they lead to.
                let (Some(yes), Some(no)) = (target(yes), target(no)) else {
                    continue;
                };
                program.branch(test, yes, no, needed)
            }
        };
        if let Some(slot) = places.get_mut(id) {
            *slot = place;
        }
    }
    program.finish()
}

/// For each node, the longest way in that is used, or none if it cannot be reached.
fn entries(nodes: &[Node], root: Id) -> Vec<Option<Entry>> {
    let mut needed = vec![None; nodes.len()];
    if let Some(slot) = needed.get_mut(root as usize) {
        *slot = Some(Entry::Load);
    }
    for (id, node) in nodes.iter().enumerate().rev() {
        let Node::Branch { yes, no, .. } = *node else {
            continue;
        };
        if needed.get(id).is_none_or(Option::is_none) {
            continue;
        }
        for to in [yes as usize, no as usize] {
            if let (Some(target), Some(slot)) = (nodes.get(to), needed.get_mut(to)) {
                *slot = (*slot).max(Some(entry(*target, loaded(*node))));
            }
        }
    }
    needed
}

/// Where the ways into a node are, counted from the program's end.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    compare: usize,
    mask: usize,
    load: usize,
}

impl Places {
    fn one(place: usize) -> Self {
        Self {
            compare: place,
            mask: place,
            load: place,
        }
    }

    fn at(self, entry: Entry) -> usize {
        match entry {
            Entry::Compare => self.compare,
            Entry::Mask => self.mask,
            Entry::Load => self.load,
        }
    }
}

/// How far a conditional jump reaches.
const REACH: usize = u8::MAX as usize;

/// A program written from its end to its start: a jump's target is there before it.
struct Backward {
    code: Vec<Insn>,
    /// For each instruction, the last one that stands for it nearer to the start.
    nearest: Vec<usize>,
}

impl Backward {
    fn with_capacity(size: usize) -> Self {
        Self {
            code: Vec::with_capacity(size),
            nearest: Vec::with_capacity(size),
        }
    }

    fn push(&mut self, insn: Insn) -> usize {
        let place = self.code.len();
        self.code.push(insn);
        self.nearest.push(place);
        place
    }

    fn branch(&mut self, test: Test, yes: usize, no: usize, needed: Entry) -> Places {
        let yes = self.within_reach(yes);
        let no = self.within_reach(no);
        let skip = |to: usize| (self.code.len() - to - 1) as u8;
        let code = match test.compare {
            Compare::Equal { .. } => Insn::EQUAL,
            Compare::Above => Insn::ABOVE,
            Compare::AtLeast => Insn::AT_LEAST,
            Compare::Any => Insn::ANY,
        };
        let insn = Insn {
            code,
            jt: skip(yes),
            jf: skip(no),
            k: test.k,
        };
        let mut places = Places::one(self.push(insn));
        if needed >= Entry::Mask && mask(test) != u32::MAX {
            places.mask = self.push(Insn::new(Insn::AND, mask(test)));
            places.load = places.mask;
        }
        if needed >= Entry::Load {
            places.load = self.push(Insn::new(Insn::LOAD, u32::from(test.word) * 4));
        }
        places
    }

    /// A place that does what `to` does, near enough for a jump from the next
    /// instruction or the one after it (another stand-in may come between).
    fn within_reach(&mut self, to: usize) -> usize {
        let next = self.code.len();
        let near = |place: usize| next + 1 - place - 1 <= REACH;
        if near(to) {
            return to;
        }
        match (self.nearest.get(to), self.code.get(to)) {
            (Some(stand_in), _) if near(*stand_in) => return *stand_in,
            // A verdict is no longer than a jump to it.
            (_, Some(insn)) if insn.code == Insn::RETURN => self.push(*insn),
            _ => self.push(Insn::new(Insn::JUMP, (next - to - 1) as u32)),
        };
        if let Some(nearest) = self.nearest.get_mut(to) {
            *nearest = next;
        }
        next
    }

    fn finish(mut self) -> Vec<Insn> {
        self.code.reverse();
        self.code
    }
}
