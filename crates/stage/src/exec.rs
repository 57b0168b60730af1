//! The container's process: which file, with which HOME, and its execution.

use core::ffi::CStr;

use pipkin_op::wire::unpack;
use pipkin_op::{Detail, Message, MessageKind, Name, Slot};
use pipkin_sys::fs::{self, mode, oflag};
use pipkin_sys::process::{self, Arg};
use pipkin_sys::{AT_FDCWD, Errno, Result, program, socket};

use crate::Failure;
use crate::inside::Place;
use crate::walk::Walk;

const PATH_MAX: usize = 4096;

/// How much of the image's passwd is read: a larger one is the image's attempt to keep the
/// runtime busy (CVE-2026-135844).
const PASSWD_MAX: usize = 1 << 20;

/// What is going to be executed.
pub struct Executable {
    path: [u8; PATH_MAX],
    /// `HOME=` and the directory.
    home: [u8; 256],
    has_home: bool,
}

impl Executable {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self {
            path: [0; PATH_MAX],
            home: [0; 256],
            has_home: false,
        }
    }

    /// Looks for `name`: as it is if it has a slash, else in each directory of `search`.
    pub fn find(
        &mut self,
        name: &CStr,
        search: Option<&CStr>,
        last: bool,
    ) -> core::result::Result<(), Failure> {
        let bytes = name.to_bytes();
        if bytes.contains(&b'/') {
            self.set(&[bytes])?;
            let path = self.path()?;
            return if last { exists(path) } else { check(path) };
        }
        if !bytes.is_empty() {
            for directory in search
                .unwrap_or_default()
                .to_bytes()
                .split(|&byte| byte == b':')
            {
                let directory = if directory.is_empty() {
                    b".".as_slice()
                } else {
                    directory
                };
                if self.set(&[directory, b"/", bytes]).is_ok() && check(self.path()?).is_ok() {
                    return Ok(());
                }
            }
        }
        Err(Failure::new(Errno::ENOENT, Detail::NotInPath))
    }

    fn set(&mut self, parts: &[&[u8]]) -> Result<()> {
        join(parts, &mut self.path)
    }

    fn path(&self) -> Result<&CStr> {
        CStr::from_bytes_until_nul(&self.path).map_err(|_| Errno::ENAMETOOLONG)
    }

    /// Takes HOME from the image's passwd, `/` where it has no line for the user.
    #[inline(never)]
    pub fn find_home(&mut self, uid: u32) -> Result<()> {
        self.has_home = true;
        join(&[b"HOME=/"], &mut self.home)?;
        let flags = oflag::RDONLY | oflag::NONBLOCK | oflag::NOCTTY;
        let Ok(file) = fs::openat(AT_FDCWD, c"/etc/passwd", flags, 0).map(Place::new) else {
            return Ok(());
        };
        if !fs::stat_fd(file.fd())?.is(mode::REGULAR) {
            return Ok(());
        }
        let mut line = Line::new();
        let mut buffer = [0u8; 2048];
        let mut total = 0;
        while total < PASSWD_MAX {
            let length = fs::read(file.fd(), &mut buffer)?;
            total += length;
            for &byte in buffer.get(..length).unwrap_or_default() {
                if byte == b'\n' {
                    if let Some(home) = line.home(uid) {
                        return join(&[b"HOME=", home], &mut self.home);
                    }
                    line = Line::new();
                } else {
                    line.push(byte);
                }
            }
            if length == 0 {
                if let Some(home) = line.home(uid) {
                    return join(&[b"HOME=", home], &mut self.home);
                }
                break;
            }
        }
        Ok(())
    }
}

/// One line of passwd(5); what is longer than it may be is cut off.
struct Line {
    bytes: [u8; 1024],
    length: usize,
}

impl Line {
    const fn new() -> Self {
        Self {
            bytes: [0; 1024],
            length: 0,
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// The home directory, if this is the line of `uid` and names an absolute one.
    fn home(&self, uid: u32) -> Option<&[u8]> {
        let mut fields = self.bytes.get(..self.length)?.split(|&byte| byte == b':');
        let id = fields.nth(2)?;
        let number: u32 = core::str::from_utf8(id).ok()?.parse().ok()?;
        let home = fields.nth(2)?;
        (number == uid && home.first() == Some(&b'/')).then_some(home)
    }
}

/// Puts parts together, with a NUL behind.
fn join(parts: &[&[u8]], buffer: &mut [u8]) -> Result<()> {
    let mut rest = buffer;
    for part in parts {
        let (place, after) = rest
            .split_at_mut_checked(part.len())
            .ok_or(Errno::ENAMETOOLONG)?;
        place.copy_from_slice(part);
        rest = after;
    }
    *rest.first_mut().ok_or(Errno::ENAMETOOLONG)? = 0;
    Ok(())
}

/// Whether a file may be executed.
fn check(path: &CStr) -> core::result::Result<(), Failure> {
    exists(path)?;
    fs::may_execute(AT_FDCWD, path).map_err(|error| Failure::new(error, Detail::NotExecutable))
}

/// Whether there is a file that is no directory.
fn exists(path: &CStr) -> core::result::Result<(), Failure> {
    let stat = match fs::stat_path(AT_FDCWD, path) {
        Err(error @ (Errno::ENOENT | Errno::ENOTDIR)) => {
            return Err(Failure::new(error, Detail::NoExecutable));
        }
        other => other?,
    };
    if stat.is(mode::DIRECTORY) {
        return Err(Failure::new(Errno::EISDIR, Detail::NotExecutable));
    }
    Ok(())
}

/// execve(2); it returns only an error.
#[inline(never)]
pub fn exec(walk: &Walk, args: &'static [u8], env: &'static [u8], ignored: u64) -> Failure {
    match try_exec(walk, args, env, ignored) {
        Ok(never) => match never {},
        Err(failure) => failure,
    }
}

fn try_exec(
    walk: &Walk,
    args: &'static [u8],
    env: &'static [u8],
    ignored: u64,
) -> core::result::Result<core::convert::Infallible, Failure> {
    let home = walk.executable.has_home.then_some(&walk.executable.home);
    let home = home.and_then(|home| CStr::from_bytes_until_nul(home).ok());
    let args = vector(args, None)?;
    let env = vector(env, home)?;
    let path = walk.executable.path()?;
    process::reset_signals(ignored)?;
    let error = process::execve(path, args, env);
    let detail = match check(path) {
        // The file is there and may be executed: what is missing is what it names.
        Ok(()) if error == Errno::ENOENT => Detail::NoInterpreter,
        Ok(()) => Detail::None,
        Err(failure) => failure.detail,
    };
    let mut failure = Failure::new(error, detail);
    if detail == Detail::NoInterpreter {
        failure.name = interpreter(path).unwrap_or(Name::EMPTY);
    }
    Err(failure)
}

/// What a file names as its interpreter: the first word after `#!`, or the dynamic loader
/// of an ELF file (elf(5), `PT_INTERP`).
#[inline(never)]
fn interpreter(path: &CStr) -> Option<Name> {
    const PT_INTERP: u32 = 3;
    let flags = oflag::RDONLY | oflag::NONBLOCK;
    let file = Place::new(fs::openat(AT_FDCWD, path, flags, 0).ok()?);
    let mut buffer = [0u8; 4096];
    let length = fs::read(file.fd(), &mut buffer).ok()?;
    let head = buffer.get(..length)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
        return line
            .split(is_space)
            .find(|word| !word.is_empty())
            .map(Name::new);
    }
    let number = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let (first, count) = (usize::try_from(number(32)?).ok()?, number(56)? & 0xffff);
    let mut headers = head
        .get(first..)?
        .chunks_exact(56)
        .take(usize::try_from(count).ok()?);
    let header = headers.find(|header| header.starts_with(&PT_INTERP.to_le_bytes()))?;
    let offset = u64::from_le_bytes(header.get(8..16)?.try_into().ok()?);
    let name = head.get(usize::try_from(offset).ok()?..)?;
    name.split(|&byte| byte == 0).next().map(Name::new)
}

/// An argument vector of a packed list and one more string.
pub fn vector<'a>(packed: &'a [u8], last: Option<&'a CStr>) -> Result<&'a [Arg<'a>]> {
    let count = unpack(packed).count() + usize::from(last.is_some());
    let places = program::vector(count + 1)?;
    for (place, string) in places.iter_mut().zip(unpack(packed).chain(last)) {
        *place = Arg::new(string);
    }
    Ok(places)
}

impl Walk {
    /// Waits until `start` connects and says so; from then on it is the one to be told of a
    /// failure, and sees the connection close when the process is executed.
    pub fn await_start(&mut self, listener: Slot) -> Result<()> {
        self.hang_up();
        let listener = self.fd(listener)?;
        loop {
            let connection = socket::accept(listener)?;
            let mut buffer = [0; Message::LENGTH];
            let length = socket::receive(connection, &mut buffer).unwrap_or(0);
            let message = buffer.get(..length).and_then(Message::decode);
            if let Some(Message {
                kind: MessageKind::Start,
                ..
            }) = message
            {
                self.report = connection;
                return Ok(());
            }
            fs::close(connection);
        }
    }
}
