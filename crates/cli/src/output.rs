//! What goes to standard output.

use std::io;

use pipkin_runtime::{Error, Result};

/// Prints text. A reader that went away is an error like any other: whoever asked for
/// the output must not take it for complete.
pub fn print(text: &str) -> Result<()> {
    // Not by way of the standard library's buffer, which holds back what follows the last line
    // end until an exit that this program does not have.
    pipkin_runtime::print(text).map_err(|errno| Error::errno("writing to standard output", errno))
}

/// The kernel's own words for an error, without the number that std adds.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) if error.raw_os_error().is_some() => text.chars().take(end).collect(),
        _ => text,
    }
}
