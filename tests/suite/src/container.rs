//! A container by its name, between commands.

use crate::bundle::Bundle;
use crate::command::{Finished, Run};
use crate::runtime::Runtime;
use crate::scratch::Scratch;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// A container of one test.
pub struct Container<'a> {
    scratch: &'a Scratch,
    runtime: &'a Runtime,
    /// Its id.
    pub id: String,
}

impl<'a> Container<'a> {
    /// A name for a container; nothing is done yet.
    pub fn named(scratch: &'a Scratch, runtime: &'a Runtime) -> Self {
        Self {
            scratch,
            runtime,
            id: scratch.unique(),
        }
    }

    /// Creates a container.
    pub fn create(scratch: &'a Scratch, runtime: &'a Runtime, bundle: &Bundle) -> Self {
        let container = Self::named(scratch, runtime);
        container
            .command(&["create", "--bundle", bundle.path()])
            .ok();
        container
    }

    /// Creates and starts a container.
    pub fn started(scratch: &'a Scratch, runtime: &'a Runtime, bundle: &Bundle) -> Self {
        let container = Self::create(scratch, runtime, bundle);
        container.command(&["start"]).ok();
        container
    }

    /// `RUNTIME WORDS ID`.
    pub fn command(&self, words: &[&str]) -> Run {
        self.runtime.command(self.scratch, words).arg(&self.id)
    }

    /// `RUNTIME kill ID SIGNAL`.
    pub fn kill(&self, signal: &str) -> Finished {
        self.command(&["kill"]).arg(signal).finish()
    }

    /// The state document.
    pub fn state(&self) -> Value {
        self.command(&["state"]).ok().json()
    }

    /// The process id of the container's first process.
    pub fn pid(&self) -> i32 {
        let pid = self.state()["pid"].as_i64().expect("a pid");
        i32::try_from(pid).expect("a pid")
    }

    /// Waits until the status is this one.
    #[track_caller]
    pub fn wait_for(&self, status: &str) {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let state = self.state();
            if state["status"] == status {
                self.scratch.reap();
                return;
            }
            assert!(
                Instant::now() < end,
                "{} does not become {status}: {state}",
                self.id
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it, waits for its end and deletes it.
    pub fn end(&self) {
        self.kill("KILL").ok();
        self.wait_for("stopped");
        self.command(&["delete"]).ok();
    }
}

/// Waits until a file has this text in it.
#[track_caller]
pub fn wait_for_text(path: &Path, text: &str) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let content = std::fs::read_to_string(path).unwrap_or_default();
        if content.contains(text) {
            return;
        }
        assert!(
            Instant::now() < end,
            "{} has no {text:?}: {content:?}",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
