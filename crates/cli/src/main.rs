//! The pipkin command: arguments in, a call of the library, output and exit status.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), no_main)]

mod args;
mod commands;
mod output;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use pipkin_runtime::entry::Arguments;

/// A command runs for a few milliseconds and ends: nothing needs to be given back.
#[global_allocator]
static ARENA: pipkin_runtime::Arena = pipkin_runtime::Arena::new();

#[cfg(not(test))]
pipkin_runtime::entry!(run);

#[cfg_attr(
    test,
    allow(dead_code, reason = "the tests have an entry of their own")
)]
fn run(arguments: Arguments) -> u8 {
    let arguments = arguments.map(|argument| OsStr::from_bytes(argument.to_bytes()).to_owned());
    let (log, result) = match args::parse(arguments) {
        Ok(line) => commands::execute(line),
        Err(failure) => (failure.log, Err(failure.error)),
    };
    result.unwrap_or_else(|error| {
        log.error(&error);
        1
    })
}
