//! One call of the library for each command, and what it prints.

mod features;
mod list;
mod names;
mod spec;

use std::time::Instant;

use pipkin_runtime::log::{Level, Log};
use pipkin_runtime::request::Global;
use pipkin_runtime::{Result, lifecycle};

use crate::args::{Command, Line};
use crate::output::print;

/// Does what the line says; the result is the exit status. The log is for the caller to
/// report an error.
pub fn execute(line: Line) -> (Log, Result<u8>) {
    let log = match line.global.open_log() {
        Ok(log) => log,
        Err(error) => return (Log::default(), Err(error)),
    };
    let global = line.global.resolve(log);
    let subject = line.command.subject();
    // What nobody reads costs nothing, not even a look at the clock.
    let begin = (global.log.level >= Level::Debug).then(Instant::now);
    if begin.is_some() {
        let text = format!("{subject}: begins");
        global.log.record(Level::Debug, &text);
    }
    let result = perform(&global, line.command).map_err(|error| error.about(&subject));
    if let Some(begin) = begin {
        let text = format!("{subject}: ends after {:?}", begin.elapsed());
        global.log.record(Level::Debug, &text);
    }
    (global.log, result)
}

fn perform(global: &Global, command: Command) -> Result<u8> {
    match command {
        Command::Create(request) => lifecycle::create(global, &request)?,
        Command::Start { id } => lifecycle::start(global, &id)?,
        Command::Run(request) => return lifecycle::run(global, &request),
        Command::State { id } => print(&list::json(&lifecycle::state(global, &id)?)?)?,
        Command::Kill(request) => lifecycle::kill(global, &request)?,
        Command::Delete(request) => lifecycle::delete(global, &request)?,
        Command::List(args) => print(&list::format(&args, &lifecycle::list(global)?)?)?,
        Command::Spec(args) => spec::write(&args)?,
        Command::Features => print(&list::json(&features::describe(&names::Names::OURS))?)?,
        Command::Plan(request) => print(&lifecycle::plan(global, &request)?)?,
        Command::Try(request) => return lifecycle::attempt(global, &request),
        Command::Print(text) => print(&text)?,
    }
    Ok(0)
}
