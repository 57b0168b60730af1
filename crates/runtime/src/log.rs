//! Log records, in the two forms that engines read: a line of `key=value` pairs, or a
//! line of JSON with `level`, `msg` and `time`; and the sentence that a person reads.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::time::SystemTime;

use serde_json::Value;

use crate::Error;
use crate::time::rfc3339;

/// How much a record matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something was left undone.
    Warning,
    /// What happened.
    Info,
    /// How it happened.
    Debug,
}

impl Level {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// The form of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// `key=value` pairs.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// Where records go.
#[derive(Debug)]
pub struct Log {
    /// The form of a record.
    pub format: Format,
    /// Records that matter less are left out.
    pub level: Level,
    /// A file. Where there is none, records go to standard error: JSON as it is, text as
    /// the sentence alone.
    pub file: Option<File>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: Format::Text,
            level: Level::Warning,
            file: None,
        }
    }
}

impl Log {
    /// Writes a record that has no more than a sentence.
    pub fn record(&self, level: Level, message: &str) {
        self.write(level, &Error::new(message));
    }

    /// Writes a record of an error, and says it on standard error even if records go
    /// elsewhere.
    pub fn error(&self, error: &Error) {
        self.write(Level::Error, error);
        if self.file.is_some() {
            let _ = io::stderr().write_all(sentence(Level::Error, error).as_bytes());
        }
    }

    /// A log that cannot be written does not stop what is logged.
    fn write(&self, level: Level, error: &Error) {
        if level > self.level {
            return;
        }
        let _ = match (&self.file, self.format) {
            (None, Format::Text) => io::stderr().write_all(sentence(level, error).as_bytes()),
            (None, format) => io::stderr().write_all(record(format, level, error).as_bytes()),
            (Some(file), format) => (&*file).write_all(record(format, level, error).as_bytes()),
        };
    }
}

/// What a person reads, with its line end. Names in it may come from an image: what
/// could steer a terminal is escaped.
fn sentence(level: Level, error: &Error) -> String {
    let mut text = String::from("pipkin: ");
    if level != Level::Error {
        let _ = write!(text, "{}: ", level.as_str());
    }
    escape(&mut text, &error.to_string());
    if let Some(hint) = &error.hint {
        text.push_str("\n  hint: ");
        escape(&mut text, hint);
    }
    text.push('\n');
    text
}

fn escape(to: &mut String, text: &str) {
    for character in text.chars() {
        if character.is_control() {
            to.extend(character.escape_default());
        } else {
            to.push(character);
        }
    }
}

fn record(format: Format, level: Level, error: &Error) -> String {
    line(format, level, SystemTime::now(), error)
}

/// One record with its line end. A record is written by one call, so that records of
/// several processes in one file do not mix.
fn line(format: Format, level: Level, time: SystemTime, error: &Error) -> String {
    let fields = fields(level, time, error);
    let mut line = String::new();
    match format {
        Format::Json => line.push_str(&Value::Object(fields.into_iter().collect()).to_string()),
        Format::Text => {
            for (index, (key, value)) in fields.iter().enumerate() {
                let space = if index == 0 { "" } else { " " };
                let _ = match value {
                    Value::String(text) if is_word(text) => write!(line, "{space}{key}={text}"),
                    value => write!(line, "{space}{key}={value}"),
                };
            }
        }
    }
    line.push('\n');
    line
}

fn fields(level: Level, time: SystemTime, error: &Error) -> Vec<(String, Value)> {
    let mut fields = vec![
        ("time", Value::from(rfc3339(time))),
        ("level", Value::from(level.as_str())),
        ("msg", Value::from(error.to_string())),
    ];
    if let Some((step, steps)) = error.step {
        fields.extend([("step", Value::from(step)), ("steps", Value::from(steps))]);
    }
    let optional = [
        (
            "actor",
            error.actor.map(|actor| Value::from(actor.as_str())),
        ),
        ("pointer", error.pointer.as_deref().map(Value::from)),
        ("errno", error.errno.map(Value::from)),
        ("hint", error.hint.as_deref().map(Value::from)),
    ];
    fields.extend(
        optional
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// Whether a value needs no quotes in the text form.
fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/@^+".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::Actor;

    fn failed_step() -> Error {
        Error {
            message: "mount \"proc\": Operation not permitted".into(),
            subject: Some("create web".into()),
            step: Some((3, 7)),
            actor: Some(Actor::Container),
            pointer: Some("/mounts/0".into()),
            errno: Some(1),
            hint: Some("try\nthis".into()),
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn text_has_quotes_where_needed() {
        assert_eq!(
            line(Format::Text, Level::Error, at(0), &failed_step()),
            "time=\"1970-01-01T00:00:00Z\" level=error msg=\"create web: step 3 of 7 (/mounts/0), \
             in the container: mount \\\"proc\\\": Operation not permitted\" step=3 steps=7 \
             actor=container pointer=/mounts/0 errno=1 hint=\"try\\nthis\"\n"
        );
    }

    #[test]
    fn json_is_one_line_with_fields() {
        let line = line(Format::Json, Level::Error, at(0), &failed_step());
        assert_eq!(line.matches('\n').count(), 1);
        let record: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            record,
            serde_json::json!({
                "level": "error",
                "msg": "create web: step 3 of 7 (/mounts/0), in the container: \
                        mount \"proc\": Operation not permitted",
                "time": "1970-01-01T00:00:00Z",
                "step": 3, "steps": 7, "actor": "container", "pointer": "/mounts/0",
                "errno": 1, "hint": "try\nthis",
            })
        );
    }

    #[test]
    fn a_person_reads_two_lines() {
        assert_eq!(
            sentence(Level::Error, &failed_step()),
            "pipkin: create web: step 3 of 7 (/mounts/0), in the container: \
             mount \"proc\": Operation not permitted\n  hint: try\\nthis\n"
        );
        let error = Error::new("bad name \u{1b}[2J\u{9b}");
        assert_eq!(
            sentence(Level::Warning, &error),
            "pipkin: warning: bad name \\u{1b}[2J\\u{9b}\n"
        );
    }

    #[test]
    fn a_sentence_has_three_fields() {
        assert_eq!(
            line(
                Format::Text,
                Level::Warning,
                at(86_400),
                &Error::new("left behind")
            ),
            "time=\"1970-01-02T00:00:00Z\" level=warning msg=\"left behind\"\n"
        );
    }
}
