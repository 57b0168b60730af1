//! An allocator for a program that runs for a few milliseconds: memory is taken in a row. Of
//! what is given back, it remembers the piece that was taken last and one more, the largest: a
//! configuration's text, once read, is where the plan is made, so that no page has to be
//! touched for the first time, which costs about a microsecond each.
//!
//! A general allocator asks the kernel for memory dozens of times in such a program (120
//! mmap and munmap calls in a start) and keeps books that nobody reads.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::raw;

/// What is taken from the program's own memory before the kernel is asked: pages that are not
/// touched cost nothing.
const FIRST: usize = 1 << 20;

/// What the kernel is asked for at a time.
const CHUNK: usize = 1 << 20;

/// The allocator. What it keeps about itself is in front, so that its first pieces share a page
/// with that and with the program's other variables.
#[derive(Debug)]
#[repr(C)]
pub struct Arena {
    /// The thread that takes memory in a row, which needs no lock; 0 before the first piece.
    /// Any other has a mapping for each piece: the program has no threads of its own.
    owner: AtomicUsize,
    room: UnsafeCell<Room>,
    first: UnsafeCell<First>,
}

#[derive(Debug)]
#[repr(align(16))]
struct First(#[allow(dead_code, reason = "used by address")] [u8; FIRST]);

#[derive(Debug)]
struct Room {
    /// Never used; empty before the first use.
    fresh: Free,
    /// What is left of the largest piece that was given back.
    spare: Free,
}

/// Addresses: what is free begins at `next` and ends before `end`.
#[derive(Debug)]
struct Free {
    next: usize,
    end: usize,
}

// SAFETY: `room` is only used by the thread that is `owner`; `first` only through the addresses
// that `room` gives out, each once.
unsafe impl Sync for Arena {}

impl Arena {
    /// An allocator that has given nothing yet.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "a static needs a const function"
    )]
    pub const fn new() -> Self {
        Self {
            owner: AtomicUsize::new(0),
            room: UnsafeCell::new(Room {
                fresh: Free { next: 0, end: 0 },
                spare: Free { next: 0, end: 0 },
            }),
            first: UnsafeCell::new(First([0; FIRST])),
        }
    }

    /// Uses the room, if this thread may.
    #[inline]
    fn with<T>(&self, use_room: impl FnOnce(&mut Room) -> T) -> Option<T> {
        let thread = raw::thread();
        if self.owner.load(Ordering::Relaxed) != thread && !self.begin(thread) {
            return None;
        }
        // SAFETY: this thread is the only one that comes here, and `use_room` does not.
        Some(use_room(unsafe { &mut *self.room.get() }))
    }

    /// Makes the first thread that asks the owner; whether it is this one.
    #[cold]
    fn begin(&self, thread: usize) -> bool {
        let owner = &self.owner;
        let won = owner.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
        if won.is_err() {
            return false;
        }
        let next = self.first.get() as usize;
        let end = next + FIRST;
        // SAFETY: this thread is the owner from now on, and no other ever is.
        unsafe { (*self.room.get()).fresh = Free { next, end } };
        true
    }

    fn take(&self, size: usize, align: usize) -> *mut u8 {
        let piece = self.with(|room| room.take(size, align));
        piece.unwrap_or_else(|| alone(size, align)) as *mut u8
    }
}

/// The address of a piece with a mapping of its own, 0 where there is none.
#[cold]
fn alone(size: usize, align: usize) -> usize {
    let bytes = size.checked_add(align);
    let start = bytes.and_then(|bytes| crate::program::map(bytes).ok());
    start.map_or(0, |start| start.next_multiple_of(align))
}

impl Free {
    /// The address of `size` bytes of it, if it has as many.
    fn take(&mut self, size: usize, align: usize) -> Option<usize> {
        let start = self.next.checked_next_multiple_of(align)?;
        let end = start.checked_add(size).filter(|end| *end <= self.end)?;
        self.next = end;
        Some(start)
    }

    /// Whether the piece that ends at `end` was taken last from here and could be made to end
    /// at `new`.
    fn resize(&mut self, end: usize, new: usize) -> bool {
        let can = end == self.next && new <= self.end;
        if can {
            self.next = new;
        }
        can
    }
}

impl Room {
    /// The address of `size` free bytes, 0 where there are none.
    fn take(&mut self, size: usize, align: usize) -> usize {
        let Self { fresh, spare } = self;
        let taken = spare.take(size, align).or_else(|| fresh.take(size, align));
        taken.unwrap_or_else(|| self.take_more(size, align))
    }

    #[cold]
    fn take_more(&mut self, size: usize, align: usize) -> usize {
        let Some(bytes) = size.checked_add(align) else {
            return 0;
        };
        let Ok(chunk) = crate::program::map(bytes.max(CHUNK)) else {
            return 0;
        };
        // What is left of the chunk before is given up.
        let start = chunk.next_multiple_of(align);
        self.fresh.next = start + size;
        self.fresh.end = chunk + bytes.max(CHUNK);
        start
    }

    fn give_back(&mut self, start: usize, size: usize) {
        let end = start + size;
        let Self { fresh, spare } = self;
        if spare.resize(end, start) || fresh.resize(end, start) {
            return;
        }
        if size > spare.end - spare.next {
            *spare = Free { next: start, end };
        }
    }

    /// Whether the piece is as large as `new` from now on, where it is.
    fn resize(&mut self, start: usize, size: usize, new: usize) -> bool {
        let Some(new_end) = start.checked_add(new) else {
            return false;
        };
        let end = start + size;
        self.spare.resize(end, new_end) || self.fresh.resize(end, new_end) || new <= size
    }
}

// SAFETY: `take` gives each address once, aligned, with enough bytes behind it that belong to
// `first` or to a mapping; an address is given again only after it was given back.
unsafe impl GlobalAlloc for Arena {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size(), layout.align())
    }

    #[inline(never)]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let _ = self.with(|room| room.give_back(pointer as usize, layout.size()));
    }

    #[inline(never)]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let start = pointer as usize;
        let fits = self.with(|room| room.resize(start, layout.size(), size));
        if fits.unwrap_or(size <= layout.size()) {
            return pointer;
        }
        let new = self.take(size, layout.align());
        if !new.is_null() {
            // SAFETY: both are valid for the smaller of the two sizes, and apart.
            unsafe { core::ptr::copy_nonoverlapping(pointer, new, layout.size().min(size)) };
            let _ = self.with(|room| room.give_back(start, layout.size()));
        }
        new
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn pieces_are_aligned_and_apart() {
        static ARENA: Arena = Arena::new();
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        for step in 1..3000usize {
            let (size, align) = (step * 7 % 1500 + 1, 1 << (step % 8));
            // SAFETY: the layout is not empty.
            let start = unsafe { ARENA.alloc(layout(size, align)) } as usize;
            assert!(start != 0 && start.is_multiple_of(align));
            pieces.push((start, size));
        }
        pieces.sort_unstable();
        for pair in pieces.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0);
        }
    }

    #[test]
    fn a_piece_that_grows_keeps_its_content() {
        static ARENA: Arena = Arena::new();
        // SAFETY: each call follows GlobalAlloc's rules.
        unsafe {
            let mut piece = ARENA.alloc(layout(8, 8));
            piece.cast::<u64>().write(0x1234_5678_9abc_def0);
            let mut size = 8;
            for _ in 0..20 {
                let last = ARENA.alloc(layout(3, 1));
                piece = ARENA.realloc(piece, layout(size, 8), size * 2);
                size *= 2;
                assert_ne!(last, piece);
                assert_eq!(piece.cast::<u64>().read(), 0x1234_5678_9abc_def0);
            }
        }
    }

    #[test]
    fn the_last_piece_is_used_again() {
        static ARENA: Arena = Arena::new();
        // SAFETY: each call follows GlobalAlloc's rules.
        unsafe {
            let first = ARENA.alloc(layout(104, 8));
            ARENA.dealloc(first, layout(104, 8));
            assert_eq!(first, ARENA.alloc(layout(50, 8)));
        }
    }

    #[test]
    fn the_largest_piece_that_was_given_back_is_used_again() {
        static ARENA: Arena = Arena::new();
        // SAFETY: each call follows GlobalAlloc's rules.
        unsafe {
            let small = ARENA.alloc(layout(104, 8));
            let large = ARENA.alloc(layout(20_000, 8));
            let last = ARENA.alloc(layout(8, 8));
            ARENA.dealloc(large, layout(20_000, 8));
            ARENA.dealloc(small, layout(104, 8));
            // The small one lay before it, so that both are one piece.
            assert_eq!(ARENA.alloc(layout(15_000, 8)), small);
            let rest = ARENA.alloc(layout(5000, 8));
            assert_eq!(rest as usize, small as usize + 15_000);
            // No more fits in there.
            assert!(ARENA.alloc(layout(200, 8)) > last);
            assert_eq!(ARENA.realloc(rest, layout(5000, 8), 5040), rest);
            assert!(ARENA.realloc(rest, layout(5040, 8), 6000) > last);
        }
    }

    #[test]
    fn pieces_that_come_and_go_are_apart() {
        static ARENA: Arena = Arena::new();
        let mut pieces: Vec<(usize, usize, u8)> = Vec::new();
        let mut random = 12345u64;
        for step in 0..20_000usize {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let (dice, place) = ((random >> 33) as usize, (random >> 45) as usize);
            let check = |start: usize, size: usize, mark: u8| {
                for at in 0..size {
                    // SAFETY: the piece is still in use.
                    assert_eq!(unsafe { *((start + at) as *const u8) }, mark, "{step}");
                }
            };
            if pieces.is_empty() || dice.is_multiple_of(2) {
                let size = dice % 700 + 1;
                // SAFETY: the layout is not empty; what is written was given.
                unsafe {
                    let start = ARENA.alloc(layout(size, 8));
                    start.write_bytes(step as u8, size);
                    pieces.push((start as usize, size, step as u8));
                }
            } else {
                let (start, size, mark) = pieces.swap_remove(place % pieces.len());
                check(start, size, mark);
                if dice.is_multiple_of(3) {
                    let new = place % 900 + 1;
                    // SAFETY: the piece is in use, and has this layout.
                    let start = unsafe { ARENA.realloc(start as *mut u8, layout(size, 8), new) };
                    check(start as usize, size.min(new), mark);
                    // SAFETY: what is written was given.
                    unsafe { start.write_bytes(mark, new) };
                    pieces.push((start as usize, new, mark));
                } else {
                    // SAFETY: the piece is in use, and has this layout.
                    unsafe { ARENA.dealloc(start as *mut u8, layout(size, 8)) };
                }
            }
        }
        for (start, size, mark) in pieces {
            for at in 0..size {
                // SAFETY: the piece is still in use.
                assert_eq!(unsafe { *((start + at) as *const u8) }, mark);
            }
        }
    }

    #[test]
    fn every_thread_gets_memory() {
        static ARENA: Arena = Arena::new();
        let fill = |byte: u8| {
            let mut pieces = Vec::new();
            for size in 1..200 {
                // SAFETY: each call follows GlobalAlloc's rules.
                unsafe {
                    let piece = ARENA.alloc(layout(size, 64));
                    piece.write_bytes(byte, size);
                    let piece = ARENA.realloc(piece, layout(size, 64), size * 3);
                    assert!((piece as usize).is_multiple_of(64));
                    piece.add(size).write_bytes(byte, size * 2);
                    pieces.push((piece as usize, size * 3));
                }
            }
            for (piece, size) in pieces {
                for at in 0..size {
                    // SAFETY: it was given and written.
                    assert_eq!(unsafe { (piece as *const u8).add(at).read() }, byte);
                }
                // SAFETY: it was given.
                unsafe { ARENA.dealloc(piece as *mut u8, layout(size, 64)) };
            }
        };
        std::thread::scope(|scope| {
            for byte in 1..5 {
                scope.spawn(move || fill(byte));
            }
        });
    }

    #[test]
    fn a_large_piece_has_a_chunk_of_its_own() {
        static ARENA: Arena = Arena::new();
        // SAFETY: the layout is not empty; what is written was given.
        unsafe {
            let piece = ARENA.alloc(layout(10 << 20, 4096));
            piece.add((10 << 20) - 1).write(1);
        }
    }
}
