//! From a plan to the bytes that the container's first program reads.

use pipkin_op::wire::{Encode as _, HEADER, MAGIC};
use pipkin_op::{Actor, PlanOp};

use crate::Plan;

/// What is known only when the steps before the clone were performed.
#[derive(Debug, Clone, Copy)]
pub struct Fds<'a> {
    /// The container's end of the socket to the runtime.
    pub socket: i32,
    /// The descriptor of each slot, -1 where there is none.
    pub slots: &'a [i32],
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
    let mut steps = (1u32..).zip(&plan.steps);
    let mut notify = false;
    let mut handing_off = false;
    steps
        .by_ref()
        .find(|(_, step)| matches!(step.op, PlanOp::Clone { .. }));
    for (number, step) in steps {
        if step.actor == Actor::Container {
            number.encode(&mut out);
            step.op.encode(&mut out);
            notify = true;
            handing_off = false;
        } else if !handing_off {
            number.encode(&mut out);
            PlanOp::Handoff { notify }.encode(&mut out);
            handing_off = true;
        }
    }
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX).to_le_bytes();
    if let Some(place) = out.get_mut(4..8) {
        place.copy_from_slice(&length);
    }
    out
}
