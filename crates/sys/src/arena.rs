//! An allocator for a program that runs for a few milliseconds: memory is taken in a row and
//! not given back, except the piece that was taken last.
//!
//! A general allocator asks the kernel for memory dozens of times in such a program (120
//! mmap and munmap calls in a start) and keeps books that nobody reads.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// What is taken from the program's own memory before the kernel is asked: pages that are not
/// touched cost nothing.
const FIRST: usize = 1 << 20;

/// What the kernel is asked for at a time.
const CHUNK: usize = 1 << 20;

/// The allocator.
#[derive(Debug)]
pub struct Arena {
    locked: AtomicBool,
    room: UnsafeCell<Room>,
    first: UnsafeCell<First>,
}

#[derive(Debug)]
#[repr(align(4096))]
struct First(#[allow(dead_code, reason = "used by address")] [u8; FIRST]);

/// Addresses: what is free begins at `next` and ends before `end`. Both are 0 before the first
/// use.
#[derive(Debug)]
struct Room {
    next: usize,
    end: usize,
}

// SAFETY: `room` is only used by who holds `locked`; `first` only through the addresses that
// `room` gives out, each once.
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
            locked: AtomicBool::new(false),
            room: UnsafeCell::new(Room { next: 0, end: 0 }),
            first: UnsafeCell::new(First([0; FIRST])),
        }
    }

    #[inline(never)]
    fn with<T>(&self, use_room: impl FnOnce(&mut Room) -> T) -> T {
        while self.locked.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: the lock is held, and given back only below.
        let room = unsafe { &mut *self.room.get() };
        if room.end == 0 {
            room.next = self.first.get() as usize;
            room.end = room.next + FIRST;
        }
        let result = use_room(room);
        self.locked.store(false, Ordering::Release);
        result
    }
}

impl Room {
    /// The address of `size` free bytes, 0 where there are none.
    fn take(&mut self, size: usize, align: usize) -> usize {
        let start = self.next.next_multiple_of(align);
        match start.checked_add(size) {
            Some(end) if end <= self.end => {
                self.next = end;
                start
            }
            _ => self.take_more(size, align),
        }
    }

    fn take_more(&mut self, size: usize, align: usize) -> usize {
        let Some(bytes) = size.checked_add(align) else {
            return 0;
        };
        let Ok(chunk) = crate::program::map(bytes.max(CHUNK)) else {
            return 0;
        };
        // What is left of the chunk before is given up.
        let start = chunk.next_multiple_of(align);
        self.next = start + size;
        self.end = chunk + bytes.max(CHUNK);
        start
    }
}

// SAFETY: `take` gives each address once, aligned, with enough bytes behind it that belong to
// `first` or to a mapping; what was taken last is given again only after it was given back.
unsafe impl GlobalAlloc for Arena {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|room| room.take(layout.size(), layout.align())) as *mut u8
    }

    #[inline(never)]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.with(|room| {
            if pointer as usize + layout.size() == room.next {
                room.next = pointer as usize;
            }
        });
    }

    #[inline(never)]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let start = pointer as usize;
        let grown = self.with(|room| {
            let end = start.checked_add(size).filter(|end| *end <= room.end);
            match end {
                Some(end) if start + layout.size() == room.next => {
                    room.next = end;
                    true
                }
                _ => size <= layout.size(),
            }
        });
        if grown {
            return pointer;
        }
        let new = self.with(|room| room.take(size, layout.align())) as *mut u8;
        if !new.is_null() {
            // SAFETY: both are valid for the smaller of the two sizes, and apart.
            unsafe { core::ptr::copy_nonoverlapping(pointer, new, layout.size().min(size)) };
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
            let first = ARENA.alloc(layout(100, 8));
            ARENA.dealloc(first, layout(100, 8));
            assert_eq!(first, ARENA.alloc(layout(50, 8)));
        }
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
