//! What is there before and after: processes, control groups, mounts, state.

use crate::host;
use crate::scratch::Scratch;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// All that a container's life could leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    processes: BTreeSet<i32>,
    cgroups: BTreeSet<PathBuf>,
    mounts: BTreeSet<String>,
    state: BTreeSet<PathBuf>,
}

impl Snapshot {
    /// How it is now, for one test.
    pub fn take(scratch: &Scratch) -> Self {
        Self {
            processes: scratch
                .processes()
                .into_iter()
                .map(|(pid, _)| pid)
                .collect(),
            cgroups: scratch
                .cgroups()
                .into_iter()
                .filter(|path| !shared(scratch, path))
                .collect(),
            mounts: host::mountinfo().lines().map(without_numbers).collect(),
            state: files(&scratch.state_root()),
        }
    }

    /// It must be as it was. Processes get a moment to end; nothing else changes by
    /// itself, so nothing else gets one.
    #[track_caller]
    pub fn assert_unchanged(&self, scratch: &Scratch, after: &str) {
        let mut now = Self::take(scratch);
        let end = Instant::now() + Duration::from_secs(1);
        while now.processes != self.processes && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
            now.processes = scratch
                .processes()
                .into_iter()
                .map(|(pid, _)| pid)
                .collect();
        }
        let mut left = Vec::new();
        for pid in now.processes.difference(&self.processes) {
            left.push(format!("process {}", crate::scratch::describe(*pid)));
        }
        for path in now.cgroups.symmetric_difference(&self.cgroups) {
            left.push(format!("control group {}", path.display()));
        }
        for line in now.mounts.symmetric_difference(&self.mounts) {
            left.push(format!("mount {line}"));
        }
        for path in now.state.symmetric_difference(&self.state) {
            left.push(format!("state {}", path.display()));
        }
        assert!(
            left.is_empty(),
            "{after}: left behind:\n  {}",
            left.join("\n  ")
        );
    }
}

/// The group above the containers' own, as an engine's (`/podman`): not the runtime's
/// to remove.
fn shared(scratch: &Scratch, group: &Path) -> bool {
    group
        .file_name()
        .is_some_and(|name| name == scratch.token())
}

/// A line of mountinfo without the mount's and the parent's number.
fn without_numbers(line: &str) -> String {
    line.splitn(3, ' ').nth(2).unwrap_or(line).to_owned()
}

fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files(&path));
        }
        found.insert(path);
    }
    found
}
