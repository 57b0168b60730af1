//! The beginning of a program that has the standard library's functions, but not its start:
//! that sets up a stack and handlers for a message about an overflow, and costs a dozen system
//! calls and as many pages.
//!
//! Two things of it are kept, because the rest of the program relies on them: descriptors 0 to
//! 2 are open, so that no file that is opened later takes the place of one of them, and a
//! reader that went away is an error and not a signal. A third is added: children that have
//! ended are there to be asked, whatever the caller thinks of its own.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{Result, call, fs, process};

/// What the kernel was told to start the program with; the program's name is the first.
#[derive(Debug)]
pub struct Arguments {
    next: *const *const c_char,
}

impl Iterator for Arguments {
    type Item = &'static CStr;

    fn next(&mut self) -> Option<&'static CStr> {
        // SAFETY: `next` is within the argument vector, which ends with NULL and is not gone
        // beyond; its strings end with a NUL and stay for as long as the program.
        unsafe {
            let string = *self.next;
            if string.is_null() {
                return None;
            }
            self.next = self.next.add(1);
            Some(CStr::from_ptr(string))
        }
    }
}

/// Makes a function of [`Arguments`] to an exit status the program's first one.
#[macro_export]
macro_rules! entry {
    ($run:path) => {
        /// Called by the C library.
        ///
        /// # Safety
        /// The vectors must be those that the kernel made.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn main(
            _count: i32,
            arguments: *const *const core::ffi::c_char,
            environment: *const *const core::ffi::c_char,
        ) -> i32 {
            // SAFETY: the C library passes the two vectors that the kernel made.
            unsafe { $crate::entry::begin(arguments, environment, $run) }
        }
    };
}

/// Prepares the process and does what it is for; ends it without what the C library and the
/// standard library do at an exit: nothing of it is used, and the kernel closes what is open.
///
/// # Safety
/// Both vectors must be those that the kernel put on the stack: strings that end with a NUL, a
/// NULL at the end of each, and the auxiliary vector behind the environment.
pub unsafe fn begin(
    arguments: *const *const c_char,
    environment: *const *const c_char,
    run: impl FnOnce(Arguments) -> u8,
) -> ! {
    // SAFETY: the caller's promise.
    unsafe { remember_ids(environment) };
    let _ = set_handler(SIGPIPE, SIG_IGN);
    let _ = set_handler(SIGCHLD, SIG_DFL);
    if let Ok(true) = is_any_closed() {
        let _ = open_standard();
    }
    process::exit(i32::from(run(Arguments { next: arguments })))
}

/// The effective user in the upper half, the effective group in the lower one; [`UNKNOWN`] in a
/// program that began in another way.
static IDS: AtomicU64 = AtomicU64::new(UNKNOWN);

/// No user has this number: it is the kernel's "no change".
const UNKNOWN: u64 = u64::MAX;

/// The effective user and group that the program was started with, without a system call where
/// the kernel has told them already: getauxval(3), `AT_EUID` and `AT_EGID`.
#[must_use]
pub fn ids() -> (u32, u32) {
    match IDS.load(Ordering::Relaxed) {
        // SAFETY: no memory is passed.
        UNKNOWN => unsafe {
            let id = |result: Result<usize>| result.map_or(u32::MAX, |id| id as u32);
            (id(call!(GETEUID)), id(call!(GETEGID)))
        },
        ids => ((ids >> 32) as u32, ids as u32),
    }
}

/// # Safety
/// As for [`begin`].
unsafe fn remember_ids(environment: *const *const c_char) {
    const AT_NULL: usize = 0;
    const AT_EUID: usize = 12;
    const AT_EGID: usize = 14;
    let (mut user, mut group) = (None, None);
    // SAFETY: neither vector is read beyond its end.
    unsafe {
        let mut string = environment;
        while !(*string).is_null() {
            string = string.add(1);
        }
        let mut pair = string.add(1).cast::<[usize; 2]>();
        loop {
            match *pair {
                [AT_NULL, _] => break,
                [AT_EUID, id] => user = Some(id as u32),
                [AT_EGID, id] => group = Some(id as u32),
                _ => {}
            }
            pair = pair.add(1);
        }
    }
    if let (Some(user), Some(group)) = (user, group) {
        IDS.store(u64::from(user) << 32 | u64::from(group), Ordering::Relaxed);
    }
}

/// Ignored, a write to a pipe or socket without a reader gives `EPIPE`: signal(7).
const SIGPIPE: usize = 13;
/// Ignored, children leave nothing that can be waited for and do not tell of their end: wait(2),
/// "Notes". A caller that ignores it passes that on.
const SIGCHLD: usize = 17;
const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;

/// rt_sigaction(2) with one of the two effects that are no function.
fn set_handler(signal: usize, effect: u64) -> Result<()> {
    let action = [effect, 0, 0, 0];
    // SAFETY: a `struct sigaction` of the kernel without flags, a restorer and a mask.
    unsafe { call!(RT_SIGACTION, signal, action.as_ptr() as usize, 0, 8).map(drop) }
}

/// Whether one of the descriptors 0 to 2 is not open.
fn is_any_closed() -> Result<bool> {
    // Nothing is asked for, so that only an error, POLLNVAL, is told.
    let mut files = [0u64, 1, 2];
    let now = [0u64; 2];
    // SAFETY: `files` is three little-endian `struct pollfd`, `now` a `struct timespec`; the
    // signal mask is absent.
    unsafe {
        call!(
            PPOLL,
            files.as_mut_ptr() as usize,
            files.len(),
            now.as_ptr() as usize,
            0,
            8
        )?;
    }
    const POLLNVAL: u64 = 0x20;
    Ok(files.iter().any(|file| file >> 48 & POLLNVAL != 0))
}

/// Opens the descriptors 0 to 2 that are not: the lowest free number is taken each time.
fn open_standard() -> Result<()> {
    loop {
        let file = fs::openat(crate::AT_FDCWD, c"/dev/null", fs::oflag::RDWR, 0)?;
        if file > 2 {
            fs::close(file);
            return Ok(());
        }
        // Standard descriptors are those that are passed on.
        fs::set_cloexec(file, false)?;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::Errno;

    #[test]
    fn ids_come_from_the_auxiliary_vector_or_the_system_call() {
        // SAFETY: no memory is passed.
        let user = unsafe { call!(GETEUID) }.unwrap();
        assert_eq!(ids().0 as usize, user);
        let text = c"A=1".as_ptr() as usize;
        let ids_of_a_user = [14, 7, 12, u32::MAX as usize - 1, 0, 0, 12, 9];
        let vector: std::vec::Vec<usize> = [text, text, 0, 6, 4096]
            .into_iter()
            .chain(ids_of_a_user)
            .collect();
        // SAFETY: an environment of two strings and an auxiliary vector of three pairs.
        unsafe { remember_ids(vector.as_ptr().cast()) };
        assert_eq!(ids(), (u32::MAX - 1, 7));
        IDS.store(UNKNOWN, Ordering::Relaxed);
    }

    #[test]
    fn arguments_end_with_null() {
        let vector = [
            c"a".as_ptr(),
            c"".as_ptr(),
            core::ptr::null(),
            c"b".as_ptr(),
        ];
        let mut arguments = Arguments {
            next: vector.as_ptr(),
        };
        assert_eq!(arguments.next(), Some(c"a"));
        assert_eq!(arguments.next(), Some(c""));
        assert_eq!(arguments.next(), None);
        assert_eq!(arguments.next(), None);
    }

    #[test]
    fn standard_descriptors_are_open_here() {
        assert_eq!(is_any_closed(), Ok(false));
        assert_eq!(set_handler(SIGPIPE, SIG_IGN), Ok(()));
        assert!(matches!(open_standard(), Ok(()) | Err(Errno::ENOENT)));
    }
}
