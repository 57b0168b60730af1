//! Commands about containers: create, run, plan, start, state, kill, delete.

use std::ffi::OsString;

use pipkin_runtime::Result;
use pipkin_runtime::request::{
    CreateRequest, DeleteRequest, KillRequest, PlanRequest, RunRequest, Target,
};

use super::scan::{Scan, Token};
use super::{Command, help, signal};

/// No process has more descriptors than this, whatever its limits say: `fs.nr_open` is
/// at most this by default.
const MOST_DESCRIPTORS: u32 = 1 << 20;

pub fn create(scan: &mut Scan) -> Result<Command> {
    let mut request = CreateRequest::default();
    let mut id = None;
    while let Some(token) = scan.token()? {
        match token {
            Token::Option(option) if help::asked(&option) => return Ok(help::of("create")),
            Token::Option(option) => create_option(scan, &option, &mut request)?,
            Token::Value(value) => name(scan, &mut id, value)?,
        }
    }
    request.id = required(scan, id)?;
    Ok(Command::Create(request))
}

pub fn run(scan: &mut Scan) -> Result<Command> {
    let mut request = RunRequest::default();
    let mut id = None;
    while let Some(token) = scan.token()? {
        match token {
            Token::Option(option) => match option.as_str() {
                "-d" | "--detach" => request.detach = scan.switch(&option)?,
                "--keep" => request.keep = scan.switch(&option)?,
                option if help::asked(option) => return Ok(help::of("run")),
                option => create_option(scan, option, &mut request.create)?,
            },
            Token::Value(value) => name(scan, &mut id, value)?,
        }
    }
    request.create.id = required(scan, id)?;
    Ok(Command::Run(request))
}

/// As for `create`, but no container is made, so that a name is not needed.
pub fn plan(scan: &mut Scan) -> Result<Command> {
    let mut request = PlanRequest::default();
    let mut id = None;
    while let Some(token) = scan.token()? {
        match token {
            Token::Option(option) if help::asked(&option) => return Ok(help::of("plan")),
            Token::Option(option) => create_option(scan, &option, &mut request.create)?,
            Token::Value(value) => name(scan, &mut id, value)?,
        }
    }
    request.create.id = id.unwrap_or_else(|| "plan".into());
    Ok(Command::Plan(request))
}

fn create_option(scan: &mut Scan, option: &str, to: &mut CreateRequest) -> Result<()> {
    match option {
        "-b" | "--bundle" => to.bundle = scan.value(option, "a directory")?.into(),
        "-f" | "--config" => to.config_file = Some(scan.value(option, "a file")?.into()),
        "--pid-file" => to.pid_file = Some(scan.value(option, "a file")?.into()),
        "--console-socket" => to.console_socket = Some(scan.value(option, "a socket")?.into()),
        "--no-pivot" => to.no_pivot = scan.switch(option)?,
        "--no-new-keyring" => to.no_new_keyring = scan.switch(option)?,
        "--preserve-fds" => to.preserve_fds = scan.number(option, 0..=MOST_DESCRIPTORS)?,
        _ => return Err(scan.unknown(option)),
    }
    Ok(())
}

pub fn start(scan: &mut Scan) -> Result<Command> {
    Ok(only_a_name(scan, "start")?.map_or_else(|help| help, |id| Command::Start { id }))
}

pub fn state(scan: &mut Scan) -> Result<Command> {
    Ok(only_a_name(scan, "state")?.map_or_else(|help| help, |id| Command::State { id }))
}

/// The line of a command without options: the container's name, or else the help.
fn only_a_name(
    scan: &mut Scan,
    command: &'static str,
) -> Result<std::result::Result<String, Command>> {
    let mut id = None;
    while let Some(token) = scan.token()? {
        match token {
            Token::Option(option) if help::asked(&option) => return Ok(Err(help::of(command))),
            Token::Option(option) => return Err(scan.unknown(&option)),
            Token::Value(value) => name(scan, &mut id, value)?,
        }
    }
    required(scan, id).map(Ok)
}

pub fn kill(scan: &mut Scan) -> Result<Command> {
    let (mut all, mut regex) = (false, false);
    let (mut id, mut number) = (None, None);
    while let Some(token) = scan.token()? {
        match token {
            Token::Option(option) => match option.as_str() {
                "-a" | "--all" => all = scan.switch(&option)?,
                "-r" | "--regex" => regex = scan.switch(&option)?,
                option if help::asked(option) => return Ok(help::of("kill")),
                option => return Err(scan.unknown(option)),
            },
            Token::Value(value) if id.is_none() => id = Some(scan.utf8(value, "CONTAINER")?),
            Token::Value(value) if number.is_none() => number = Some(signal_of(scan, value)?),
            Token::Value(value) => return Err(surplus(scan, value)),
        }
    }
    let target = target(required(scan, id)?, regex);
    Ok(Command::Kill(KillRequest {
        target,
        signal: number.unwrap_or(signal::TERM),
        all,
    }))
}

fn signal_of(scan: &Scan, value: OsString) -> Result<i32> {
    let text = scan.utf8(value, "SIGNAL")?;
    signal::parse(&text).ok_or_else(|| {
        let right = format!(
            "a signal's name (TERM, SIGTERM, RTMIN+1) or number (0 to {})",
            signal::MAX
        );
        scan.bad_value("SIGNAL", &text, right)
    })
}

pub fn delete(scan: &mut Scan) -> Result<Command> {
    let (mut force, mut regex) = (false, false);
    let mut id = None;
    while let Some(token) = scan.token()? {
        match token {
            Token::Option(option) => match option.as_str() {
                "-f" | "--force" => force = scan.switch(&option)?,
                "-r" | "--regex" => regex = scan.switch(&option)?,
                option if help::asked(option) => return Ok(help::of("delete")),
                option => return Err(scan.unknown(option)),
            },
            Token::Value(value) => name(scan, &mut id, value)?,
        }
    }
    let target = target(required(scan, id)?, regex);
    Ok(Command::Delete(DeleteRequest { target, force }))
}

fn target(text: String, regex: bool) -> Target {
    if regex {
        Target::Regex(text)
    } else {
        Target::Id(text)
    }
}

/// Takes the container's name, once.
fn name(scan: &Scan, to: &mut Option<String>, value: OsString) -> Result<()> {
    if to.is_some() {
        return Err(surplus(scan, value));
    }
    *to = Some(scan.utf8(value, "CONTAINER")?);
    Ok(())
}

fn required(scan: &Scan, id: Option<String>) -> Result<String> {
    id.ok_or_else(|| scan.wrong("the container's name is missing".into()))
}

fn surplus(scan: &Scan, value: OsString) -> pipkin_runtime::Error {
    scan.wrong(format!(
        "\"{}\" is one argument too many",
        value.to_string_lossy()
    ))
}
