//! The command line: one struct for each command, one file for each kind of command.
//!
//! Options are accepted before and after the container's name, as `--opt=value` and as
//! `--opt value`; what is not known is an error, never skipped.

mod container;
mod global;
mod help;
mod scan;
mod signal;
mod tools;

#[cfg(test)]
mod tests;

use std::ffi::OsString;

use pipkin_runtime::Error;
use pipkin_runtime::log::Log;
use pipkin_runtime::request::{
    CreateRequest, DeleteRequest, KillRequest, PlanRequest, RunRequest, TryRequest,
};

pub use global::GlobalArgs;
pub use tools::{ListArgs, ListFormat, SpecArgs};

/// A whole command line.
#[derive(Debug)]
pub struct Line {
    /// What stands before the command.
    pub global: GlobalArgs,
    /// The command with its options.
    pub command: Command,
}

/// A command with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Create(CreateRequest),
    Start {
        id: String,
    },
    Run(RunRequest),
    State {
        id: String,
    },
    Kill(KillRequest),
    Delete(DeleteRequest),
    List(ListArgs),
    Spec(SpecArgs),
    Features,
    Plan(PlanRequest),
    Try(TryRequest),
    /// Print this text.
    Print(String),
}

impl Command {
    /// What is being done, for messages: `create web`.
    pub fn subject(&self) -> String {
        use pipkin_runtime::request::Target;
        let target = |verb: &str, target: &Target| match target {
            Target::Id(id) => format!("{verb} {id}"),
            Target::Regex(regex) => format!("{verb} --regex {regex}"),
        };
        match self {
            Self::Create(request) => format!("create {}", request.id),
            Self::Start { id } => format!("start {id}"),
            Self::Run(request) => format!("run {}", request.create.id),
            Self::State { id } => format!("state {id}"),
            Self::Kill(request) => target("kill", &request.target),
            Self::Delete(request) => target("delete", &request.target),
            Self::List(_) => "list".into(),
            Self::Spec(_) => "spec".into(),
            Self::Features => "features".into(),
            Self::Plan(_) => "plan".into(),
            Self::Try(_) => "try".into(),
            Self::Print(_) => "help".into(),
        }
    }
}

/// A command line that is wrong, and where to say so: the options that came before the
/// mistake tell the log's place and form.
#[derive(Debug)]
pub struct Failure {
    pub log: Log,
    pub error: Error,
}

/// Reads a command line; the first argument is the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Line, Failure> {
    let mut scan = scan::Scan::new(arguments);
    let mut global = GlobalArgs::default();
    match global::parse(&mut scan, &mut global) {
        Ok(command) => Ok(Line { global, command }),
        Err(error) => Err(Failure {
            log: global.open_log().unwrap_or_default(),
            error,
        }),
    }
}
