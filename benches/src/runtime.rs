//! What is measured: runtimes by their command line, and the floor.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use pipkin_sys::{fs, measure, process};

use crate::Result;
use crate::world::{Subject, World};

/// How a runtime is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By runc's command line.
    Oci,
    /// The floor, by its own.
    Floor,
}

/// One that is measured.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub name: String,
    pub path: PathBuf,
    pub kind: Kind,
}

impl Runtime {
    pub fn new(name: &str, path: PathBuf, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            path,
            kind,
        }
    }

    /// The words after the program for a whole run of `subject`.
    pub fn run_words(&self, world: &World, subject: &Subject, id: &str) -> Vec<String> {
        match self.kind {
            Kind::Oci => self.words(world, &["run", "--bundle", subject.bundle.path(), id]),
            Kind::Floor => {
                let filter = if subject.filter { "filter" } else { "plain" };
                let limits = if subject.limits { "limits" } else { "free" };
                let mut words = vec![
                    subject.profile.to_owned(),
                    filter.to_owned(),
                    limits.to_owned(),
                    subject.bundle.cgroup.clone(),
                    subject.bundle.path().to_owned(),
                    world.cpus.clone(),
                    world.mems.clone(),
                    subject.binds.to_string(),
                ];
                for hierarchy in &subject.hierarchies {
                    words.push(format!("{}={}", hierarchy.name, hierarchy.mount.display()));
                }
                words.push("--".to_owned());
                words.extend(subject.args.iter().cloned());
                words
            }
        }
    }

    /// The words after the program for any command.
    pub fn words(&self, world: &World, words: &[&str]) -> Vec<String> {
        let root = world.state_root(&self.name);
        let mut all = vec!["--root".to_owned(), root.to_string_lossy().into_owned()];
        all.extend(words.iter().map(|word| (*word).to_owned()));
        all
    }

    /// Runs a command to its end: microseconds.
    pub fn time(&self, world: &World, words: &[String]) -> Result<f64> {
        time(world, &self.path, words)
    }

    /// The same, and microseconds of processor time of all that it waited for.
    pub fn time_and_processor(&self, world: &World, words: &[String]) -> Result<(f64, f64)> {
        let used = || measure::usage_of_children().map(|usage| usage.user + usage.system);
        let before = used()?;
        let time = self.time(world, words)?;
        Ok((time, (used()? - before) as f64))
    }
}

/// A command whose streams are the bench's files.
pub fn command(world: &World, program: &Path, words: &[String]) -> Result<Command> {
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(Stdio::from(world.input.try_clone()?))
        .stdout(Stdio::from(world.output.try_clone()?))
        .stderr(Stdio::from(world.output.try_clone()?));
    Ok(command)
}

/// How long anything may take: a runtime that waits for ever must not make the bench wait.
const PATIENCE: u32 = 60_000;

/// Runs a program to its end: microseconds. It must succeed.
pub fn time(world: &World, program: &Path, words: &[String]) -> Result<f64> {
    let mut command = command(world, program, words)?;
    let written = world.written();
    let start = Instant::now();
    let mut child = command.spawn()?;
    let pidfd = process::pidfd_open(i32::try_from(child.id())?)?;
    let has_ended = process::wait_readable(pidfd, PATIENCE);
    fs::close(pidfd);
    if !has_ended? {
        child.kill()?;
        child.wait()?;
        return Err("it did not end within a minute".into());
    }
    let status = child.wait()?;
    let elapsed = start.elapsed();
    if !status.success() {
        return Err(format!("{status}: {}", world.last_line(written)).into());
    }
    Ok(elapsed.as_nanos() as f64 / 1000.0)
}
