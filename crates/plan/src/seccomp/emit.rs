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

/// `BPF_MAXINSNS` of linux/bpf_common.h.
pub(super) const MOST: usize = 4096;

/// How many instructions a program would have, at least, that is too long.
pub(super) struct TooLong(pub(super) usize);

/// Lays out what can be reached from `root`, which must be the last node made.
pub(super) fn emit(graph: &Graph, root: Id) -> Result<Vec<Insn>, TooLong> {
    let nodes = graph.nodes();
    let needed = entries(nodes, root);
    let reached = needed.iter().flatten().count();
    if reached > MOST {
        return Err(TooLong(reached));
    }
    let mut program = Backward {
        code: Vec::with_capacity(nodes.len() + nodes.len() / 2),
        stand_ins: Vec::new(),
        places: vec![Places::default(); nodes.len()],
    };
    for ((id, node), needed) in (0..).zip(nodes).zip(needed) {
        match (*node, needed) {
            (Node::Branch { test, yes, no }, Some(needed)) => {
                let way = |to: Id| {
                    let to = (to, *nodes.get(to as usize)?);
                    Some((to, entry(to.1, loaded(*node))))
                };
                if let (Some(yes), Some(no)) = (way(yes), way(no)) {
                    program.branch(id, test, [yes, no], needed);
                }
            }
            // Only where there is nothing else: verdicts are laid out where a branch
            // needs one.
            (Node::Return(verdict), Some(_)) if id == root => {
                program.push(Insn::new(Insn::RETURN, verdict));
            }
            _ => {}
        }
    }
    program.code.reverse();
    match program.code.len() {
        size if size > MOST => Err(TooLong(size)),
        _ => Ok(program.code),
    }
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

/// How far a conditional jump reaches.
const REACH: usize = u8::MAX as usize;

/// A program written from its end to its start: a jump's target is there before it.
struct Backward {
    code: Vec<Insn>,
    /// The last instruction that does what another one further on does: target, place.
    stand_ins: Vec<(Target, usize)>,
    /// By node; those of verdicts are not used.
    places: Vec<Places>,
}

/// A node and the way into it.
type Way = ((Id, Node), Entry);

/// What a jump leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Verdict(u32),
    Place(usize),
}

impl Backward {
    fn push(&mut self, insn: Insn) -> usize {
        self.code.push(insn);
        self.code.len() - 1
    }

    fn branch(&mut self, id: Id, test: Test, [yes, no]: [Way; 2], needed: Entry) {
        let yes = self.within_reach(yes);
        let no = self.within_reach(no);
        let skip = |to: usize| (self.code.len() - to - 1) as u8;
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
        let mut mask = compare;
        if needed >= Entry::Mask && self::mask(test) != u32::MAX {
            mask = self.push(Insn::new(Insn::AND, self::mask(test)));
        }
        let mut load = mask;
        if needed >= Entry::Load {
            load = self.push(Insn::new(Insn::LOAD, u32::from(test.word) * 4));
        }
        if let Some(places) = self.places.get_mut(id as usize) {
            *places = Places {
                compare,
                mask,
                load,
            };
        }
    }

    /// A place that does what the way does, near enough for a jump from the next
    /// instruction or the one after it (a stand-in for another way may come between).
    fn within_reach(&mut self, ((id, node), entry): Way) -> usize {
        let target = match (node, self.places.get(id as usize)) {
            (Node::Return(verdict), _) => Target::Verdict(verdict),
            (_, Some(places)) => Target::Place(match entry {
                Entry::Compare => places.compare,
                Entry::Mask => places.mask,
                Entry::Load => places.load,
            }),
            // Every node has its places.
            (_, None) => Target::Place(0),
        };
        let next = self.code.len();
        let near = |place: usize| next - place <= REACH;
        if let Target::Place(place) = target
            && near(place)
        {
            return place;
        }
        let known = self.stand_ins.iter_mut().find(|(to, _)| *to == target);
        match known {
            Some((_, place)) if near(*place) => return *place,
            Some((_, place)) => *place = next,
            None => self.stand_ins.push((target, next)),
        }
        self.push(match target {
            // No longer than a jump to it.
            Target::Verdict(verdict) => Insn::new(Insn::RETURN, verdict),
            Target::Place(place) => Insn::new(Insn::JUMP, (next - place - 1) as u32),
        })
    }
}
