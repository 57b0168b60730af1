//! A directory, a token and the promise that nothing of a test outlives it.

use crate::host;
use rustix::process::{Pid, Signal, WaitOptions};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

/// The name of the variable that marks every process that a test starts.
pub const TOKEN_VARIABLE: &str = "PIPKIN_TEST_TOKEN";

/// What one test owns. Dropping it ends its processes and removes all that it made.
pub struct Scratch {
    directory: PathBuf,
    token: String,
    count: Cell<u32>,
}

impl Scratch {
    /// A new directory and token. Also makes this process the one that orphans come
    /// to, so that containers whose runtime has exited can be found and reaped.
    pub fn new() -> Self {
        static SUBREAPER: Once = Once::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        SUBREAPER.call_once(|| {
            assert!(
                rustix::process::geteuid().is_root(),
                "these tests need root"
            );
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
                .expect("become the reaper of orphans");
        });
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The closing letter keeps one token from being the beginning of another.
        let token = format!("pk{}x{number}z", std::process::id());
        let directory = std::env::temp_dir().join(format!("pipkin-{token}"));
        std::fs::create_dir_all(&directory).expect("make the scratch directory");
        let directory = directory.canonicalize().expect("a directory that exists");
        // Containers with their own user namespace must be able to pass through.
        set_mode(&directory, 0o755);
        Self {
            directory,
            token,
            count: Cell::new(0),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.directory
    }

    /// The token: part of every name that this test gives.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A name that no other has, with the token in it.
    pub fn unique(&self) -> String {
        self.count.set(self.count.get() + 1);
        format!("{}-{}", self.token, self.count.get())
    }

    /// Where the runtimes of this test keep their state.
    pub fn state_root(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// The living processes of this test, other than those in `known`: `(pid, what it is)`.
    pub fn processes(&self) -> Vec<(i32, String)> {
        all_processes()
            .filter(|pid| self.owns(*pid))
            .map(|pid| (pid, describe(pid)))
            .collect()
    }

    fn owns(&self, pid: i32) -> bool {
        if u32::try_from(pid) == Ok(std::process::id()) {
            return false;
        }
        ["cgroup", "cmdline", "environ"].iter().any(|file| {
            let content = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&content).contains(&self.token)
        })
    }

    /// Takes the exit status of those of this test's containers that have ended and
    /// whose runtime is gone.
    pub fn reap(&self) {
        for (pid, _) in self.processes() {
            if state_letter(pid) == Some('Z') && parent(pid) == Some(own_pid()) {
                let _ = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
            }
        }
    }

    /// The control groups of this test, in every hierarchy.
    pub fn cgroups(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for top in host::cgroup_hierarchies() {
            collect(&top, &self.token, &mut found);
        }
        found.sort();
        found.dedup();
        found
    }

    /// Ends every process of this test and waits until it is gone.
    pub fn end_processes(&self) {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let living = self.processes();
            if living.is_empty() || Instant::now() > end {
                return;
            }
            for (pid, _) in &living {
                if let Some(pid) = Pid::from_raw(*pid) {
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
            }
            self.thaw();
            self.reap();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A frozen process does not die.
    fn thaw(&self) {
        for group in self.cgroups() {
            let _ = std::fs::write(group.join("freezer.state"), "THAWED");
            let _ = std::fs::write(group.join("cgroup.freeze"), "0");
        }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.end_processes();
        let mut groups = self.cgroups();
        groups.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        for group in groups {
            let _ = std::fs::remove_dir(group);
        }
        for line in host::mountinfo().lines().rev() {
            if let Some(point) = line.split(' ').nth(4)
                && point.contains(&self.token)
            {
                let _ = rustix::mount::unmount(point, rustix::mount::UnmountFlags::DETACH);
            }
        }
        if std::thread::panicking() && std::env::var_os("PIPKIN_TEST_KEEP").is_some() {
            eprintln!("kept {}", self.directory.display());
            return;
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Whether there is some test's token in a name: `pk`, digits, `x`, digits, `z`.
pub fn has_token(name: &str) -> bool {
    name.split("pk").skip(1).any(|rest| {
        let rest = rest.trim_start_matches(|one: char| one.is_ascii_digit());
        let rest = rest.strip_prefix('x').unwrap_or_default();
        rest.trim_start_matches(|one: char| one.is_ascii_digit())
            .starts_with('z')
    })
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The numbers of all processes.
pub fn all_processes() -> impl Iterator<Item = i32> {
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn stat_fields(pid: i32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

/// The state of a process as ps shows it; `None` when it is gone.
pub fn state_letter(pid: i32) -> Option<char> {
    stat_fields(pid)?.first()?.chars().next()
}

/// The parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    stat_fields(pid)?.get(1)?.parse().ok()
}

/// What a process is, for a message.
pub fn describe(pid: i32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let state = state_letter(pid).unwrap_or('?');
    format!("{pid} [{state}] {} ({})", words.trim(), name.trim())
}

fn collect(directory: &Path, token: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let path = entry.path();
            collect(&path, token, found);
            if path.to_string_lossy().contains(token) {
                found.push(path);
            }
        }
    }
}

/// Sets the mode of a file.
pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .unwrap_or_else(|error| panic!("chmod {}: {error}", path.display()));
}

/// The names of busybox's programs.
pub fn applets() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let output = std::process::Command::new("/bin/busybox")
            .arg("--list")
            .output();
        let output = output.expect("/bin/busybox: apt-get install busybox-static");
        let text = String::from_utf8(output.stdout).expect("names");
        text.lines()
            .filter(|name| *name != "busybox")
            .map(str::to_owned)
            .collect()
    })
}
