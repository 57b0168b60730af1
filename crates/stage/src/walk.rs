//! The walk over the plan: one step after another, with a message where the actor changes.

use pipkin_op::wire::{Decode as _, MAGIC, Reader};
use pipkin_op::{Detail, Message, MessageKind, Slot, StageOp};
use pipkin_sys::{Errno, Fd, Result, process, program, socket};

use crate::Failure;
use crate::exec::Executable;

/// What the steps leave for later ones.
pub struct Walk {
    /// Descriptors, by slot; -1 where there is none.
    slots: &'static mut [i32],
    /// Where a failure is told: the runtime, later whoever called `start`.
    pub report: Fd,
    /// Whether the null device and the empty directory of the masks are attached.
    pub masks_attached: (bool, bool),
    /// Whether the working directory was entered.
    pub in_directory: bool,
    /// What is going to be executed.
    pub executable: Executable,
}

impl Walk {
    /// The descriptor in a slot.
    pub fn fd(&self, slot: Slot) -> Result<Fd> {
        match self.slots.get(usize::from(slot.0)) {
            Some(&file) if file >= 0 => Ok(file),
            _ => Err(Errno::EBADF),
        }
    }

    /// Puts a descriptor into a slot.
    pub fn set(&mut self, slot: Slot, file: Fd) -> Result<()> {
        *self
            .slots
            .get_mut(usize::from(slot.0))
            .ok_or(Errno::EBADF)? = file;
        Ok(())
    }

    /// Closes what all slots hold but these two, and the socket to the runtime.
    pub fn close_all_but(&mut self, one: Slot, other: Slot) {
        for (slot, file) in (0u16..).zip(self.slots.iter_mut()) {
            if *file >= 0 && slot != one.0 && slot != other.0 {
                pipkin_sys::fs::close(*file);
                *file = -1;
            }
        }
        pipkin_sys::fs::close(self.report);
        self.report = -1;
    }

    fn tell(&self, message: Message) -> Result<()> {
        socket::send(self.report, &message.encode()).map(drop)
    }

    /// Waits until the runtime has done the steps that stand here.
    fn handoff(&self, step: u32, notify: bool) -> Result<()> {
        if notify {
            let kind = MessageKind::Reached;
            self.tell(Message::new(kind, step))?;
        }
        let mut buffer = [0; Message::LENGTH];
        let length = socket::receive(self.report, &mut buffer)?;
        match buffer.get(..length).and_then(Message::decode) {
            Some(Message {
                kind: MessageKind::Go,
                ..
            }) => Ok(()),
            // The runtime is gone: nobody is left to be told.
            None if length == 0 => process::exit(1),
            _ => Err(Errno::EPROTO),
        }
    }
}

/// Performs an encoded plan. It ends in the container's process or in an exit.
pub fn run(plan: &'static [u8]) -> ! {
    // Not to be looked into by what shares a pid namespace or a user with this process.
    let _ = process::set_dumpable(false);
    let mut reader = Reader::new(plan);
    let Some((mut walk, fault)) = header(&mut reader) else {
        process::exit(70)
    };
    while !reader.is_empty() {
        let Some((step, op)) = u32::decode(&mut reader).zip(StageOp::decode(&mut reader)) else {
            fail(&walk, 0, Failure::new(Errno::EINVAL, Detail::Malformed));
        };
        if let Err(failure) = step_or_fault(&mut walk, step, op, fault) {
            fail(&walk, step, failure);
        }
    }
    process::exit(0)
}

fn step_or_fault(
    walk: &mut Walk,
    step: u32,
    op: StageOp<'static>,
    fault: u32,
) -> core::result::Result<(), Failure> {
    match op {
        StageOp::Handoff { notify } => Ok(walk.handoff(step, notify)?),
        _ if step == fault => Err(Failure::new(Errno::EIO, Detail::Injected)),
        op => walk.perform(op),
    }
}

/// Reads what stands before the steps.
fn header(reader: &mut Reader<'static>) -> Option<(Walk, u32)> {
    if u32::decode(reader)? != MAGIC {
        return None;
    }
    let _length = u32::decode(reader)?;
    let report = i32::decode(reader)?;
    let count = usize::try_from(u32::decode(reader)?).ok()?;
    let fault = u32::decode(reader)?;
    let slots = program::numbers(count.min(pipkin_op::MAX_SLOTS)).ok()?;
    for slot in slots.iter_mut() {
        *slot = i32::decode(reader)?;
    }
    let walk = Walk {
        slots,
        report,
        masks_attached: (false, false),
        in_directory: false,
        executable: Executable::new(),
    };
    Some((walk, fault))
}

fn fail(walk: &Walk, step: u32, failure: Failure) -> ! {
    let Failure {
        value,
        detail,
        name,
    } = failure;
    let _ = walk.tell(Message {
        value,
        detail,
        name,
        ..Message::new(MessageKind::Failed, step)
    });
    process::exit(1)
}
