//! What the program says when something is wrong, and where.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::PathBuf;
use std::process::{Command, Output};

fn pipkin(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pipkin"))
        .args(arguments)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A path for a file that is removed with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pipkin-{name}-{}", std::process::id())))
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_mistake_is_a_sentence_with_a_hint() {
    let output = pipkin(&["create", "--foo", "web"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "pipkin: create: unknown option --foo\n  hint: see pipkin create --help\n"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn without_a_log_file_json_goes_to_standard_error() {
    let output = pipkin(&["--log-format=json", "exec", "web"]);
    let record: serde_json::Value = serde_json::from_str(&stderr(&output)).unwrap();
    assert_eq!(record["level"], "error");
    assert_eq!(record["msg"], "exec is not implemented yet");
    assert!(record["time"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn with_a_log_file_the_sentence_is_said_as_well() {
    let log = Scratch::new("log");
    for form in ["text", "json"] {
        let path = log.0.to_str().unwrap();
        let output = pipkin(&["--log", path, "--log-format", form, "exec", "web"]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stderr(&output), "pipkin: exec is not implemented yet\n");
    }
    let text = log.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "records are added, not written over");
    assert!(lines[0].starts_with("time=\""));
    assert!(lines[0].ends_with(" level=error msg=\"exec is not implemented yet\""));
    assert!(lines[1].starts_with('{'));
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error() {
    let output = pipkin(&["--log", "/nonexistent/log", "features"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "pipkin: --log /nonexistent/log: No such file or directory\n"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn debug_records_tell_begin_and_end() {
    let log = Scratch::new("debug");
    let path = log.0.to_str().unwrap();
    assert!(
        pipkin(&["--debug", "--log", path, "features"])
            .status
            .success()
    );
    let text = log.text();
    assert!(text.contains("level=debug msg=\"features: begins\""));
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn output_that_nobody_takes_is_an_error() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pipkin"))
        .arg("features")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "pipkin: features: writing to standard output: No space left on device\n"
    );
}

#[test]
fn a_file_does_not_take_the_place_of_a_closed_standard_output() {
    let scratch = Scratch::new("closed");
    let line = format!(
        "exec {} --log {} --log-level debug features <&- >&- 2>&-",
        env!("CARGO_BIN_EXE_pipkin"),
        scratch.0.display()
    );
    let status = Command::new("sh").args(["-c", &line]).status().unwrap();
    assert!(status.success());
    let log = scratch.text();
    assert!(log.contains("features: begins"), "{log}");
    assert!(!log.contains("ociVersionMin"), "{log}");
}
