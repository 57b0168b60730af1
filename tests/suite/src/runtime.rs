//! The runtimes under one interface.

use crate::command::Run;
use crate::host;
use crate::scratch::Scratch;
use std::path::PathBuf;

/// What of the control groups a runtime gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// What the machine has.
    Host,
    /// Version 1 alone: the unified hierarchy beside it is taken away. Debian's crun
    /// refuses such a mixture, so what is compared with crun is seen this way.
    NoUnified,
    /// The unified hierarchy alone, at /sys/fs/cgroup.
    OnlyUnified,
}

/// Which runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The one under test.
    Pipkin,
    /// Debian's runc.
    Runc,
    /// Debian's crun.
    Crun,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pipkin => "pipkin",
            Self::Runc => "runc",
            Self::Crun => "crun",
        })
    }
}

/// A runtime, ready to be called.
#[derive(Debug, Clone)]
pub struct Runtime {
    /// Which one.
    pub kind: Kind,
    /// The program.
    pub path: PathBuf,
    /// What it gets to see.
    pub view: View,
}

impl Runtime {
    /// The runtime under test on the machine as it is.
    pub fn pipkin() -> Self {
        Self {
            kind: Kind::Pipkin,
            path: host::pipkin(),
            view: View::Host,
        }
    }

    /// Debian's runc.
    pub fn runc() -> Self {
        Self {
            kind: Kind::Runc,
            path: host::find("runc"),
            view: View::Host,
        }
    }

    /// Debian's crun, which needs a version of the control groups for itself.
    pub fn crun() -> Self {
        Self {
            kind: Kind::Crun,
            path: host::find("crun"),
            view: View::NoUnified,
        }
    }

    /// The same runtime with another view.
    pub fn seeing(mut self, view: View) -> Self {
        self.view = view;
        self
    }

    /// `RUNTIME --root … WORDS`: the global options of a test and then the words.
    pub fn command(&self, scratch: &Scratch, words: &[&str]) -> Run {
        let mut line: Vec<String> = self.wrapper();
        line.push(self.path.to_string_lossy().into_owned());
        line.push("--root".to_owned());
        line.push(scratch.state_root().to_string_lossy().into_owned());
        line.extend(words.iter().map(|word| (*word).to_owned()));
        Run::new(scratch, &line)
    }

    /// The command that arranges the view; it becomes the runtime, with the same pid.
    pub fn wrapper(&self) -> Vec<String> {
        let arrange = match self.view {
            View::Host => return Vec::new(),
            View::NoUnified => match host::unified_besides_v1() {
                Some(point) => format!("umount {}", point.display()),
                None => return Vec::new(),
            },
            View::OnlyUnified => {
                "umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup".to_owned()
            }
        };
        in_private_mounts(&arrange)
    }
}

/// The beginning of a command line that runs `arrange` in a mount namespace of its
/// own and then becomes the command that follows.
pub fn in_private_mounts(arrange: &str) -> Vec<String> {
    private_mounts(&format!("{arrange} && exec \"$@\""))
}

/// The beginning of a command line that runs a shell script in a mount namespace of its own;
/// what follows are the script's arguments.
pub fn private_mounts(script: &str) -> Vec<String> {
    [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        script,
        "sh",
    ]
    .map(str::to_owned)
    .to_vec()
}
