//! The walk over the plan: one step after another, with a message where the actor changes.

use pipkin_op::wire::{Decode as _, MAGIC, Reader};
use pipkin_op::{Detail, Message, MessageKind, Slot, StageOp};
use pipkin_sys::{Errno, Fd, Result, fs, mount, process, program, socket};

use crate::Failure;
use crate::exec::Executable;

/// What the steps leave for later ones.
pub struct Walk {
    /// Descriptors, by slot; -1 where there is none.
    slots: &'static mut [i32],
    /// The first descriptor that is not the container's.
    pub first: u32,
    /// Where a failure is told: the runtime, later whoever called `start`.
    pub report: Fd,
    /// What hides a file.
    pub null: Cover,
    /// What hides a directory.
    pub empty: Cover,
    /// The directory that is the working directory, -1 where that is not known.
    inside: Fd,
    /// Hierarchies that have no group of the container's, a bit each: see
    /// [`StageOp::CgroupEnter`].
    pub without_group: u32,
    /// Real and effective user and group of this process, as long as they are the same.
    pub ids: Option<(u32, u32)>,
    /// Whether a mount was put behind a link of the image: what the plan has made may be hidden
    /// below it, and is then looked up like everything else.
    pub astray: bool,
    /// Whether the working directory was entered.
    pub in_directory: bool,
    /// What is going to be executed.
    pub executable: Executable,
}

/// A mount that serves for several places: it is attached to the first, and copies of it to
/// the others (CVE-2025-31133: one device and one empty file system serve all).
pub struct Cover {
    /// What is attached next, -1 where it has to be made.
    spare: Fd,
    used: bool,
}

impl Cover {
    /// Nothing was attached yet.
    const fn new() -> Self {
        Self {
            spare: -1,
            used: false,
        }
    }

    /// A detached mount like `original`, which is one itself as long as nothing was attached.
    pub fn take(&mut self, original: Fd) -> Result<Fd> {
        if !self.used {
            return Ok(original);
        }
        if self.spare < 0 {
            self.spare = mount::open_tree(original, c"", false, false)?;
        }
        Ok(self.spare)
    }

    /// What [`Cover::take`] gave was attached.
    pub const fn attached(&mut self) {
        self.used = true;
        self.spare = -1;
    }
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

    /// Makes a directory the working directory.
    pub fn enter(&mut self, directory: Fd) -> Result<()> {
        if self.inside != directory {
            fs::fchdir(directory)?;
            self.inside = directory;
        }
        Ok(())
    }

    /// The working directory is no longer what [`Walk::enter`] made it, or the descriptor that
    /// it is known by is given back.
    pub const fn leave(&mut self) {
        self.inside = -1;
    }

    /// Closes every descriptor from `first` on but those of these slots (a little-endian u16
    /// each) and the socket to the runtime. `proc` is the slot of the host's /proc, if there is
    /// one.
    pub fn close_rest(&mut self, first: u32, keep: &[u8], proc: Option<Slot>) -> Result<()> {
        let proc = proc.and_then(|slot| self.fd(slot).ok());
        let kept = |slot: u16| {
            keep.chunks_exact(2)
                .any(|pair| pair == slot.to_le_bytes().as_slice())
        };
        for (slot, file) in (0u16..).zip(self.slots.iter_mut()) {
            if !kept(slot) {
                *file = -1;
            }
        }
        self.null = Cover::new();
        self.empty = Cover::new();
        self.first = first;
        self.close_unused(proc)
    }

    /// Closes what earlier steps have left open: every descriptor that nothing here names.
    fn close_unused(&mut self, proc: Option<Fd>) -> Result<()> {
        self.leave();
        match self.close_ranges() {
            Err(Errno::ENOSYS | Errno::EPERM) => {
                let own = [self.report, self.null.spare, self.empty.spare];
                let is_kept = |file| own.contains(&file) || self.slots.contains(&file);
                fs::close_each(self.first, proc, is_kept);
                Ok(())
            }
            other => other,
        }
    }

    /// Closes what lies between the descriptors that stay.
    fn close_ranges(&self) -> Result<()> {
        let mut from = self.first;
        loop {
            let own = [self.report, self.null.spare, self.empty.spare];
            // The next descriptor that stays.
            let next = self
                .slots
                .iter()
                .chain(&own)
                .filter_map(|&file| u32::try_from(file).ok())
                .filter(|&file| file >= from)
                .min();
            let Some(next) = next else {
                return fs::close_range(from, u32::MAX);
            };
            if next > from {
                fs::close_range(from, next - 1)?;
            }
            from = next + 1;
        }
    }

    /// Performs a step; where the process may open no more, what earlier steps have left open
    /// is closed, and it is tried once more: steps that open do so before they change anything.
    fn perform_with_room(&mut self, op: StageOp<'static>) -> core::result::Result<(), Failure> {
        match self.perform(op.clone()) {
            Err(failure) if failure.value == Errno::EMFILE.number() => {
                self.close_unused(None)?;
                self.perform(op)
            }
            other => other,
        }
    }

    /// Closes the socket to the runtime.
    pub fn hang_up(&mut self) {
        fs::close(self.report);
        self.report = -1;
    }

    fn tell(&self, message: Message) -> Result<()> {
        socket::send(self.report, &message.encode()).map(drop)
    }

    /// Tells the runtime that its steps have come, and waits until it has done them.
    fn handoff(&mut self, step: u32, notify: bool, wait: bool) -> Result<()> {
        if notify {
            let kind = MessageKind::Reached;
            self.tell(Message::new(kind, step))?;
        }
        if !wait {
            return Ok(());
        }
        let mut buffer = [0; Message::LENGTH];
        let length = socket::receive(self.report, &mut buffer)?;
        match buffer.get(..length).and_then(Message::decode) {
            Some(Message {
                kind: MessageKind::Go,
                value,
                ..
            }) => {
                self.without_group |= u32::from_le_bytes(value.to_le_bytes());
                Ok(())
            }
            // The runtime is gone: nobody is left to be told.
            None if length == 0 => process::exit(1),
            _ => Err(Errno::EPROTO),
        }
    }
}

/// Performs an encoded plan. It ends in the container's process or in an exit. `ids` are the
/// process's real and effective user and group, where both are the same.
pub fn run(plan: &'static [u8], ids: Option<(u32, u32)>) -> ! {
    // Not to be looked into by what shares a pid namespace or a user with this process.
    let _ = process::set_dumpable(false);
    let mut reader = Reader::new(plan);
    let Some((mut walk, fault)) = header(&mut reader) else {
        process::exit(70)
    };
    walk.ids = ids;
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
        StageOp::Handoff { notify, wait } => Ok(walk.handoff(step, notify, wait)?),
        _ if step == fault => Err(Failure::new(Errno::EIO, Detail::Injected)),
        op => walk.perform_with_room(op),
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
        first: 3,
        report,
        null: Cover::new(),
        empty: Cover::new(),
        inside: -1,
        without_group: 0,
        ids: None,
        astray: false,
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
