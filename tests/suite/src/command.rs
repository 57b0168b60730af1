//! Commands that end in time.

use crate::scratch::{self, Scratch};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a command may take unless a test says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A command to run. Its output goes to files, so that a container that keeps the
/// descriptors open cannot make the reader wait.
pub struct Run {
    command: Command,
    words: Vec<String>,
    input: Option<Vec<u8>>,
    patience: Duration,
    output: PathBuf,
}

/// A command that ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The command, for messages.
    pub line: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// A command that runs.
pub struct Running {
    child: Child,
    line: String,
    output: PathBuf,
    patience: Duration,
}

impl Run {
    /// A command of a test.
    pub fn new<S: AsRef<OsStr>>(scratch: &Scratch, words: &[S]) -> Self {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.env(scratch::TOKEN_VARIABLE, scratch.token());
        let words = words
            .iter()
            .map(|word| word.as_ref().to_string_lossy().into_owned())
            .collect();
        let output = scratch.dir().join(format!("output-{}", scratch.unique()));
        Self {
            command,
            words,
            input: None,
            patience: PATIENCE,
            output,
        }
    }

    /// One more argument.
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words
            .push(word.as_ref().to_string_lossy().into_owned());
        self.command.arg(word);
        self
    }

    /// What it reads; nothing by default.
    pub fn input(mut self, input: &str) -> Self {
        self.input = Some(input.as_bytes().to_owned());
        self
    }

    /// A variable of its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// The directory that it starts in.
    pub fn current_dir(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// How long it may take.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        let line = self.words.join(" ");
        let file = |suffix: &str| {
            let path = self.output.with_extension(suffix);
            File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        self.command.stdout(file("out")).stderr(file("err"));
        // Not /dev/null: crun gives its standard streams to the container's user, and
        // changes the owner of the machine's own /dev/null that way.
        let empty = || Stdio::from(open(&self.output.with_extension("in")));
        self.command.stdin(if self.input.is_some() {
            Stdio::piped()
        } else {
            empty()
        });
        let mut child = self
            .command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        if let (Some(input), Some(mut pipe)) = (self.input, child.stdin.take()) {
            // A command that ends without reading is judged by its status.
            let _ = pipe.write_all(&input);
        }
        Running {
            child,
            line,
            output: self.output,
            patience: self.patience,
        }
    }

    /// Runs it to its end.
    pub fn finish(self) -> Finished {
        self.start().finish()
    }

    /// Runs it; it must succeed.
    pub fn ok(self) -> Finished {
        self.finish().ok()
    }

    /// Runs it; it must fail by itself (not by a signal) with a message.
    pub fn fails(self) -> Finished {
        self.finish().fails()
    }
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        read(&self.output.with_extension("out"))
    }

    /// What it has complained about so far.
    pub fn stderr(&self) -> String {
        read(&self.output.with_extension("err"))
    }

    /// Whether it has ended.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    /// Waits for its end; ends it and fails when that takes too long.
    pub fn finish(mut self) -> Finished {
        let handle = rustix::process::pidfd_open(self.pid(), PidfdFlags::empty());
        let handle = handle.expect("pidfd_open");
        let patience = Timespec::try_from(self.patience).expect("a short time");
        let mut handles = [PollFd::new(&handle, PollFlags::IN)];
        let ready = rustix::event::poll(&mut handles, Some(&patience)).expect("poll");
        if ready == 0 {
            let children = descendants(self.child.id());
            let _ = self.child.kill();
            let _ = self.child.wait();
            panic!(
                "{}: still running after {:?}\nprocesses: {children:#?}\nstdout: {}\nstderr: {}",
                self.line,
                self.patience,
                self.stdout(),
                self.stderr()
            );
        }
        let status = self.child.wait().expect("wait");
        Finished {
            stdout: self.stdout(),
            stderr: self.stderr(),
            line: self.line,
            status,
        }
    }
}

impl Finished {
    /// It succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status.success(), "should have succeeded: {self}");
        self
    }

    /// It failed with a status and a message, and not with a panic or a signal.
    #[track_caller]
    pub fn fails(self) -> Self {
        let code = self.status.code();
        assert!(
            code.is_some_and(|code| code != 0),
            "should have failed: {self}"
        );
        assert_ne!(code, Some(101), "panicked: {self}");
        assert!(
            !self.stderr.trim().is_empty(),
            "failed without a message: {self}"
        );
        self
    }

    /// The message has all these words; letter case does not matter.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        let text = self.stderr.to_lowercase();
        for word in words {
            assert!(
                text.contains(&word.to_lowercase()),
                "should say {word:?}: {self}"
            );
        }
        self
    }

    /// The exit status is this one.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self}");
        self
    }

    /// The document that it printed.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("status {code}"),
            (_, Some(signal)) => format!("signal {signal}"),
            _ => "unknown end".to_owned(),
        };
        write!(
            f,
            "{}\n  {how}\n  stdout: {}\n  stderr: {}",
            self.line,
            self.stdout.trim_end(),
            self.stderr.trim_end()
        )
    }
}

/// An empty file, open for reading.
fn open(path: &Path) -> File {
    std::fs::write(path, "")
        .and_then(|()| File::open(path))
        .expect("an empty file")
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

fn descendants(pid: u32) -> Vec<String> {
    let mut found = vec![i32::try_from(pid).unwrap_or(0)];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        found.extend(scratch::all_processes().filter(|pid| scratch::parent(*pid) == Some(parent)));
    }
    found.into_iter().map(scratch::describe).collect()
}
