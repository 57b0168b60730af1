//! The life of a container, a function for each command.

use pipkin_spec::ContainerState;

use crate::request::{
    CreateRequest, DeleteRequest, Global, KillRequest, ListEntry, PlanRequest, RunRequest,
    TryRequest,
};
use crate::{Error, Result};

/// Makes a container; its process waits for [`start`].
///
/// # Errors
/// Not written yet.
pub fn create(_: &Global, _: &CreateRequest) -> Result<()> {
    Err(unwritten())
}

/// Lets the process of a created container execute.
///
/// # Errors
/// Not written yet.
pub fn start(_: &Global, _id: &str) -> Result<()> {
    Err(unwritten())
}

/// Makes a container, starts it and, unless detached, waits for it; returns the exit
/// status for the caller to exit with.
///
/// # Errors
/// Not written yet.
pub fn run(_: &Global, _: &RunRequest) -> Result<u8> {
    Err(unwritten())
}

/// A command in a throwaway container; returns its exit status.
///
/// # Errors
/// Not written yet.
pub fn attempt(_: &Global, _: &TryRequest) -> Result<u8> {
    Err(unwritten())
}

/// The steps of a `create` as text.
///
/// # Errors
/// Not written yet.
pub fn plan(_: &Global, _: &PlanRequest) -> Result<String> {
    Err(unwritten())
}

/// The state of a container.
///
/// # Errors
/// Not written yet.
pub fn state(_: &Global, _id: &str) -> Result<ContainerState> {
    Err(unwritten())
}

/// Sends a signal.
///
/// # Errors
/// Not written yet.
pub fn kill(_: &Global, _: &KillRequest) -> Result<()> {
    Err(unwritten())
}

/// Removes what a stopped container left.
///
/// # Errors
/// Not written yet.
pub fn delete(_: &Global, _: &DeleteRequest) -> Result<()> {
    Err(unwritten())
}

/// All containers, by name.
///
/// # Errors
/// Not written yet.
pub fn list(_: &Global) -> Result<Vec<ListEntry>> {
    Err(unwritten())
}

fn unwritten() -> Error {
    Error::new("not implemented yet")
}
