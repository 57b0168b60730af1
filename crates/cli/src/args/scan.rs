//! The arguments one after the other, with our words for what is wrong with them.

use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;

use lexopt::Arg;
use pipkin_runtime::{Error, Result};

/// A command line that is being read.
pub struct Scan {
    parser: lexopt::Parser,
    /// The command's name, once it was read.
    command: Option<&'static str>,
}

/// The next argument, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// An option as it was written: `-b` or `--bundle`.
    Option(String),
    /// An argument that is not an option.
    Value(OsString),
}

impl Scan {
    pub fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            parser: lexopt::Parser::from_iter(arguments),
            command: None,
        }
    }

    /// From here on, mistakes are those of this command's line.
    pub fn enter(&mut self, command: &'static str) {
        self.command = Some(command);
    }

    /// The next argument.
    pub fn token(&mut self) -> Result<Option<Token>> {
        let token = match self.parser.next() {
            Ok(None) => return Ok(None),
            Ok(Some(Arg::Short(letter))) => Token::Option(format!("-{letter}")),
            Ok(Some(Arg::Long(name))) => Token::Option(format!("--{name}")),
            Ok(Some(Arg::Value(value))) => Token::Value(value),
            Err(error) => return Err(self.translate(error)),
        };
        Ok(Some(token))
    }

    /// The value of the option that was just read, which must have one.
    pub fn value(&mut self, option: &str, what: &str) -> Result<OsString> {
        let value = self.parser.value();
        value.map_err(|_| self.wrong(format!("{option} needs a value: {what}")))
    }

    /// The same, as text.
    pub fn text(&mut self, option: &str, what: &str) -> Result<String> {
        let value = self.value(option, what)?;
        self.utf8(value, option)
    }

    /// The same, as a number.
    pub fn number(&mut self, option: &str, range: RangeInclusive<u32>) -> Result<u32> {
        let what = format!("a number from {} to {}", range.start(), range.end());
        let text = self.text(option, &what)?;
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| self.bad_value(option, &text, &what))
    }

    /// Whether an option that is a switch is on: alone it is, `--option=false` turns it
    /// off. What follows a letter in a cluster is the next letter, not a value.
    pub fn switch(&mut self, option: &str) -> Result<bool> {
        if !option.starts_with("--") {
            return Ok(true);
        }
        match self.parser.optional_value() {
            None => Ok(true),
            Some(value) => match value.to_str() {
                Some("true") => Ok(true),
                Some("false") => Ok(false),
                _ => Err(self.bad_value(option, &value.to_string_lossy(), "true or false")),
            },
        }
    }

    /// A value that follows the option that was just read with `=`, or as the next
    /// argument if it is one of these words.
    pub fn optional_word(&mut self, words: &[&str]) -> Option<OsString> {
        if let Some(value) = self.parser.optional_value() {
            return Some(value);
        }
        let mut rest = self.parser.try_raw_args()?;
        rest.next_if(|next| next.to_str().is_some_and(|next| words.contains(&next)))
    }

    /// All arguments that are left, options or not.
    pub fn rest(&mut self) -> Result<Vec<OsString>> {
        match self.parser.raw_args() {
            Ok(rest) => Ok(rest.collect()),
            Err(error) => Err(self.translate(error)),
        }
    }

    pub fn utf8(&self, value: OsString, what: &str) -> Result<String> {
        value.into_string().map_err(|value| {
            self.wrong(format!(
                "{what}: \"{}\" is not UTF-8",
                value.to_string_lossy()
            ))
        })
    }

    /// The error for an option that the command does not have.
    pub fn unknown(&self, option: &str) -> Error {
        self.wrong(format!("unknown option {option}"))
    }

    /// The error for a value that an option cannot have.
    pub fn bad_value(&self, option: &str, value: &str, right: impl Display) -> Error {
        self.wrong(format!("{option}: \"{value}\" is not {right}"))
    }

    /// An error in the command's line.
    pub fn wrong(&self, message: String) -> Error {
        let (message, hint) = match self.command {
            None => (message, "pipkin --help".into()),
            Some(command) => (
                format!("{command}: {message}"),
                format!("pipkin {command} --help"),
            ),
        };
        Error::new(message).with_hint(format!("see {hint}"))
    }

    fn translate(&self, error: lexopt::Error) -> Error {
        match error {
            lexopt::Error::UnexpectedValue { option, value } => self.wrong(format!(
                "{option} takes no value, but there is \"{}\"",
                value.to_string_lossy()
            )),
            error => self.wrong(error.to_string()),
        }
    }
}
