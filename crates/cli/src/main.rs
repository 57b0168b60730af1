//! The pipkin command.
fn main() {}
