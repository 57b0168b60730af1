//! Commands about no container in particular: list, spec, features, try, help.

use std::path::PathBuf;

use pipkin_runtime::Result;
use pipkin_runtime::request::TryRequest;

use super::scan::{Scan, Token};
use super::{Command, help};

/// `list`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListArgs {
    /// Names only.
    pub quiet: bool,
    pub format: ListFormat,
}

/// The form of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListFormat {
    #[default]
    Table,
    Json,
}

/// `spec`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecArgs {
    /// Directory to write config.json to; the current one when empty.
    pub bundle: PathBuf,
    /// A configuration for a user who is not root.
    pub rootless: bool,
}

pub fn list(scan: &mut Scan) -> Result<Command> {
    let mut args = ListArgs::default();
    while let Some(option) = option(scan)? {
        match option.as_str() {
            "-q" | "--quiet" => args.quiet = scan.switch(&option)?,
            "-f" | "--format" => {
                args.format = match scan.text(&option, "table or json")?.as_str() {
                    "table" => ListFormat::Table,
                    "json" => ListFormat::Json,
                    other => return Err(scan.bad_value(&option, other, "table or json")),
                }
            }
            option if help::asked(option) => return Ok(help::of("list")),
            option => return Err(scan.unknown(option)),
        }
    }
    Ok(Command::List(args))
}

pub fn spec(scan: &mut Scan) -> Result<Command> {
    let mut args = SpecArgs::default();
    while let Some(option) = option(scan)? {
        match option.as_str() {
            "-b" | "--bundle" => args.bundle = scan.value(&option, "a directory")?.into(),
            "--rootless" => args.rootless = scan.switch(&option)?,
            option if help::asked(option) => return Ok(help::of("spec")),
            option => return Err(scan.unknown(option)),
        }
    }
    Ok(Command::Spec(args))
}

pub fn features(scan: &mut Scan) -> Result<Command> {
    match option(scan)? {
        None => Ok(Command::Features),
        Some(option) if help::asked(&option) => Ok(help::of("features")),
        Some(option) => Err(scan.unknown(&option)),
    }
}

/// Options end where the command begins.
pub fn attempt(scan: &mut Scan) -> Result<Command> {
    let mut request = TryRequest::default();
    while let Some(token) = scan.token()? {
        match token {
            Token::Option(option) => match option.as_str() {
                "--net" => request.net = scan.switch(&option)?,
                option if help::asked(option) => return Ok(help::of("try")),
                option => return Err(scan.unknown(option)),
            },
            Token::Value(program) => {
                request.command = vec![program];
                request.command.extend(scan.rest()?);
            }
        }
    }
    Ok(Command::Try(request))
}

/// `help`, `help COMMAND`.
pub fn help(scan: &mut Scan) -> Result<Command> {
    match scan.token()? {
        None => Ok(Command::Print(help::GLOBAL.into())),
        Some(Token::Option(option)) if help::asked(&option) => Ok(help::of("help")),
        Some(Token::Option(option)) => Err(scan.unknown(&option)),
        Some(Token::Value(name)) => {
            let name = name.to_string_lossy();
            if help::COMMANDS.iter().any(|known| *known == name) {
                Ok(help::of(&name))
            } else {
                Err(scan.wrong(format!("unknown command \"{name}\"")))
            }
        }
    }
}

/// The next option of a command that takes nothing else.
fn option(scan: &mut Scan) -> Result<Option<String>> {
    match scan.token()? {
        None => Ok(None),
        Some(Token::Option(option)) => Ok(Some(option)),
        Some(Token::Value(value)) => Err(scan.wrong(format!(
            "\"{}\": no argument is expected here",
            value.to_string_lossy()
        ))),
    }
}
