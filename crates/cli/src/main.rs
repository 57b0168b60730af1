//! The pipkin command: arguments in, a call of the library, output and exit status.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod output;

use std::process::ExitCode;

/// A command runs for a few milliseconds and ends: nothing needs to be given back.
#[global_allocator]
static ARENA: pipkin_runtime::Arena = pipkin_runtime::Arena::new();

fn main() -> ExitCode {
    let (log, result) = match args::parse(std::env::args_os()) {
        Ok(line) => commands::execute(line),
        Err(failure) => (failure.log, Err(failure.error)),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            log.error(&error);
            ExitCode::FAILURE
        }
    }
}
