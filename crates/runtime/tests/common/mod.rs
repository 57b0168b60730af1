//! What the tests of control groups share.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pipkin_plan::cgroup::devices::{Access, Kind, Policy};
use pipkin_plan::cgroup::{Controller, Controllers, Host, Limits, Version, Write};
use pipkin_runtime::cgroup::{Group, Layout, Location, Request};
use rustix::process::Pid;

pub const SECOND: Duration = Duration::from_secs(1);

/// Runs a test of this program in a mount namespace of its own, where `prepare` has run.
pub fn view(prepare: &str, test: &str) {
    let program = std::env::current_exe().unwrap();
    let script = format!("{prepare} && exec \"$0\" --exact {test} --ignored --nocapture");
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .arg(program)
        .env("VIEW", prepare.split(' ').next().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A path that no other test has, in this view or another: the hierarchies are shared.
pub fn unique(name: &str) -> String {
    let view = std::env::var("VIEW").unwrap_or_else(|_| "none".to_owned());
    format!("/pipkin-test-{view}-{name}")
}

pub fn request<'a>(location: &'a Location, writes: &'a [Write]) -> Request<'a> {
    Request {
        location,
        writes,
        wanted: Controllers::NONE,
    }
}

/// Nothing of this test is left in any hierarchy.
pub fn nothing_left(name: &str) {
    let layout = Layout::probe().unwrap();
    for hierarchy in layout.v1.iter().chain(&layout.v2) {
        let path = hierarchy.mount.join(unique(name).trim_start_matches('/'));
        assert!(!path.exists(), "{} is left", path.display());
    }
}

/// A process in a group.
pub struct Inside(Child);

impl Inside {
    pub fn start(group: &Group, script: &str) -> Self {
        Self::start_in(group, &Group::default(), script)
    }

    /// Joins the one group and then the other as the runtime does it: `0` into the own
    /// files, from within.
    pub fn start_in(group: &Group, sub: &Group, script: &str) -> Self {
        let files = group
            .dirs
            .iter()
            .chain(&sub.dirs)
            .map(|d| match d.version() {
                Version::V1 => d.path.join("tasks"),
                Version::V2 => d.path.join("cgroup.procs"),
            });
        let join = "for f; do echo 0 >\"$f\" || exit 99; done; echo joined;";
        let mut child = Command::new("sh")
            .args(["-c", &format!("{join} {script}"), "sh"])
            .args(files)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 7];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut word)
            .unwrap();
        let inside = Self(child);
        // Past the exec, whose name the tests look for.
        if script.starts_with("exec ") {
            let comm = format!("/proc/{}/comm", inside.number());
            for _ in 0..1000 {
                if std::fs::read_to_string(&comm).is_ok_and(|c| c.trim() != "sh") {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        inside
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().cast_signed()).unwrap()
    }

    pub fn number(&self) -> String {
        self.0.id().to_string()
    }

    pub fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    pub fn wait(&mut self) {
        self.0.wait().unwrap();
    }

    /// Hierarchy and path, from the kernel.
    pub fn groups(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(format!("/proc/{}/cgroup", self.number())).unwrap();
        text.lines()
            .map(|l| {
                let mut parts = l.splitn(3, ':').skip(1);
                (
                    parts.next().unwrap().to_owned(),
                    parts.next().unwrap().to_owned(),
                )
            })
            .collect()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Device nodes to try.
pub struct Nodes {
    dir: PathBuf,
    nodes: Vec<(Kind, u32, u32)>,
}

/// What is tried on each node: the shell's words, and the accesses that the kernel asks.
const TRIES: [(&str, Access); 4] = [
    ("r", Access::READ),
    ("w", Access::WRITE),
    ("rw", Access::READ.union(Access::WRITE)),
    ("m", Access::MKNOD),
];

impl Nodes {
    pub fn make(nodes: &[(Kind, u32, u32)]) -> Self {
        let dir = std::env::temp_dir().join(format!("pipkin-nodes-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for node in nodes {
            let status = Command::new("mknod")
                .arg(dir.join(name(node)))
                .args(words(node))
                .status();
            assert!(status.unwrap().success());
        }
        Self {
            dir,
            nodes: nodes.to_vec(),
        }
    }

    /// One line a node and access: whether a process in the group was let, that is,
    /// whether the kernel did not say EPERM.
    pub fn try_all(&self, group: &Group) -> Vec<String> {
        let mut script = String::from("cd \"$DIR\"; exec 2>&1; ");
        for node in &self.nodes {
            let (name, words) = (name(node), words(node).join(" "));
            for (what, _) in TRIES {
                let try_it = match what {
                    "r" => format!("dd if={name} of=/dev/null count=0"),
                    "w" => format!("dd if=/dev/null of={name} count=0 conv=nocreat,notrunc"),
                    "rw" => format!("sh -c ': <>{name}'"),
                    _ => format!("mknod new {words} && rm new"),
                };
                script.push_str(&format!(
                    "case \"$({try_it} 2>&1)\" in *'not permitted'*) echo '{name} {what} no';; \
                     *) echo '{name} {what} yes';; esac; "
                ));
            }
        }
        let mut inside = {
            // The script is long: it goes by a file.
            let file = self.dir.join("script");
            std::fs::write(&file, &script).unwrap();
            let run = format!("DIR={}; . {}; ", self.dir.display(), file.display());
            Inside::start(group, &run)
        };
        let mut text = String::new();
        inside
            .0
            .stdout
            .as_mut()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        inside.wait();
        text.lines().map(str::to_owned).collect()
    }

    pub fn expect(&self, policy: &Policy) -> Vec<String> {
        let mut lines = Vec::new();
        for node in &self.nodes {
            for (what, access) in TRIES {
                let verdict = match policy.allows(node.0, node.1, node.2, access) {
                    true => "yes",
                    false => "no",
                };
                lines.push(format!("{} {what} {verdict}", name(node)));
            }
        }
        lines
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn words(node: &(Kind, u32, u32)) -> Vec<String> {
    let kind = if node.0 == Kind::Char { "c" } else { "b" };
    vec![kind.to_owned(), node.1.to_string(), node.2.to_string()]
}

fn name(node: &(Kind, u32, u32)) -> String {
    words(node).join("-")
}

type Expect = (Version, Controller, &'static str, &'static str);

/// Limits for every controller that the host has, and what its files then say.
pub fn limits(host: &Host) -> (Limits, Vec<Expect>) {
    let mut parts = Vec::new();
    let mut expect = Vec::new();
    let mut add = |controller: Controller,
                   json: &str,
                   v1: &[(&'static str, &'static str)],
                   v2: &[(&'static str, &'static str)]| {
        let Some(version) = host.side(controller) else {
            return;
        };
        let files = if version == Version::V1 { v1 } else { v2 };
        parts.push(json.to_owned());
        expect.extend(files.iter().map(|(f, v)| (version, controller, *f, *v)));
    };
    add(
        Controller::Memory,
        r#""memory": {"limit": 67108864, "swap": 134217728, "reservation": 33554432}"#,
        &[
            ("memory.limit_in_bytes", "67108864"),
            ("memory.memsw.limit_in_bytes", "134217728"),
            ("memory.soft_limit_in_bytes", "33554432"),
        ],
        &[
            ("memory.max", "67108864"),
            ("memory.swap.max", "67108864"),
            ("memory.low", "33554432"),
        ],
    );
    add(
        Controller::Cpu,
        r#""cpu": {"shares": 512, "quota": 50000, "period": 200000, "burst": 10000}"#,
        &[
            ("cpu.shares", "512"),
            ("cpu.cfs_quota_us", "50000"),
            ("cpu.cfs_period_us", "200000"),
            ("cpu.cfs_burst_us", "10000"),
        ],
        &[
            ("cpu.weight", "59"),
            ("cpu.max", "50000 200000"),
            ("cpu.max.burst", "10000"),
        ],
    );
    add(
        Controller::Pids,
        r#""pids": {"limit": 20}"#,
        &[("pids.max", "20")],
        &[("pids.max", "20")],
    );
    add(
        Controller::Hugetlb,
        r#""hugepageLimits": [{"pageSize": "2MB", "limit": 4194304}]"#,
        &[("hugetlb.2MB.limit_in_bytes", "4194304")],
        &[
            ("hugetlb.2MB.max", "4194304"),
            ("hugetlb.2MB.rsvd.max", "4194304"),
        ],
    );
    if host.v2.is_some() {
        add(
            Controller::Core,
            r#""unified": {"cgroup.max.depth": "7\n", "cgroup.max.descendants": " 9 "}"#,
            &[],
            &[("cgroup.max.depth", "7"), ("cgroup.max.descendants", "9")],
        );
    }
    let text = format!("{{{}}}", parts.join(","));
    let resources: pipkin_spec::Resources = serde_json::from_str(&text).unwrap();
    (pipkin_plan::cgroup::normalise(&resources).unwrap(), expect)
}
