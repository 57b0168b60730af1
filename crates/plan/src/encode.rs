//! From a plan to the bytes that the container's first program reads.

use pipkin_op::wire::{Encode as _, HEADER, MAGIC};
use pipkin_op::{Actor, PlanOp};

use crate::{Plan, Step};

/// What is known only when the steps before the clone were performed.
#[derive(Debug, Clone, Copy)]
pub struct Fds<'a> {
    /// The container's end of the socket to the runtime.
    pub socket: i32,
    /// The descriptor of each slot, -1 where there is none.
    pub slots: &'a [i32],
}

/// Steps of the runtime that follow each other, after the clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// How many.
    pub steps: usize,
    /// Whether they wait until the container's process has come to them.
    pub waits: bool,
    /// Whether the container's process waits until they are done.
    pub holds: bool,
}

/// The runtime's turn that `steps` begin with.
#[must_use]
pub fn turn(steps: &[Step]) -> Turn {
    let own = steps.iter().take_while(|step| step.actor == Actor::Runtime);
    let mut turn = Turn {
        steps: 0,
        waits: false,
        holds: false,
    };
    for step in own {
        turn.steps += 1;
        turn.waits |= step.op.waits_for_container();
        turn.holds |= step.op.holds_container();
    }
    // A container that waits for `start` must not outlive a runtime that was killed before it
    // has written the state: nobody would know of it.
    let next = steps.get(turn.steps).map(|step| &step.op);
    turn.holds |= matches!(next, Some(PlanOp::AwaitStart { .. }));
    turn
}

/// Encodes the steps that come after the clone: those of the container, and a hand-off
/// where steps of the runtime stand. `fault` is the number of a step that fails before it
/// is performed, 0 for none.
#[must_use]
pub fn encode(plan: &Plan, fds: Fds<'_>, fault: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 << 10);
    MAGIC.encode(&mut out);
    0u32.encode(&mut out);
    fds.socket.encode(&mut out);
    u32::from(plan.slots).encode(&mut out);
    fault.encode(&mut out);
    debug_assert_eq!(out.len(), HEADER);
    for slot in 0..usize::from(plan.slots) {
        fds.slots.get(slot).copied().unwrap_or(-1).encode(&mut out);
    }
    let mut number = 1u32;
    let mut steps = plan.steps.as_slice();
    let mut is_cloned = false;
    let mut notify = false;
    while let Some(step) = steps.first() {
        let mut count = 1;
        if !is_cloned {
            is_cloned = matches!(step.op, PlanOp::Clone { .. });
        } else if step.actor == Actor::Container {
            number.encode(&mut out);
            step.op.encode(&mut out);
            notify = true;
        } else {
            let group = turn(steps);
            let handoff = PlanOp::Handoff {
                notify: notify && group.waits,
                wait: group.holds,
            };
            if group.waits || group.holds {
                number.encode(&mut out);
                handoff.encode(&mut out);
                notify = false;
            }
            count = group.steps;
        }
        number = number.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        steps = steps.get(count..).unwrap_or_default();
    }
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX).to_le_bytes();
    if let Some(place) = out.get_mut(4..8) {
        place.copy_from_slice(&length);
    }
    out
}
