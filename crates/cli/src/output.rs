//! What goes to standard output.

use std::io::{self, Write};

use pipkin_runtime::{Error, Result};

/// Prints text. A reader that went away is an error like any other: whoever asked for
/// the output must not take it for complete.
pub fn print(text: &str) -> Result<()> {
    let mut to = io::stdout().lock();
    to.write_all(text.as_bytes())
        .and_then(|()| to.flush())
        .map_err(|error| Error {
            errno: error.raw_os_error(),
            ..Error::new(format!("writing to standard output: {}", describe(&error)))
        })
}

/// The kernel's own words for an error, without the number that std adds.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) if error.raw_os_error().is_some() => text.chars().take(end).collect(),
        _ => text,
    }
}
