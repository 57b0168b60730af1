//! The pipkin command: arguments in, a call of the library, output and exit status.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod output;

use std::process::ExitCode;

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
