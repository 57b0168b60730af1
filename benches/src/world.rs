//! Where it is measured: a mount namespace of the bench's own, in which every runtime sees the
//! same control groups; the runtimes; the bundles.

use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use pipkin_op::ms;
use pipkin_sys::mount::{self, MNT_DETACH};
use pipkin_sys::process::{self, clone};
use pipkin_tests::{Bundle, Scratch, host};
use serde_json::{Value, json};

use crate::Result;
use crate::runtime::{Kind, Runtime};

/// The configurations, in the order of the report.
pub const CONFIGURATIONS: [&str; 4] = ["podman", "containerd", "docker", "spec"];

/// One hierarchy of control groups.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    /// As in /proc/self/cgroup; the unified one has none.
    pub name: String,
    pub mount: PathBuf,
}

/// A bundle and what the floor has to be told of it.
pub struct Subject {
    pub bundle: Bundle,
    pub profile: &'static str,
    pub filter: bool,
    pub binds: usize,
    pub args: Vec<String>,
}

/// Everything that stays the same while it is measured.
pub struct World {
    pub quick: bool,
    pub scratch: Scratch,
    pub runtimes: Vec<Runtime>,
    pub hierarchies: Vec<Hierarchy>,
    /// What a v1 cpuset gets.
    pub cpus: String,
    pub mems: String,
    /// What everything reads: nothing.
    pub input: File,
    /// Where everything writes to.
    pub output: File,
    output_path: PathBuf,
    count: Cell<u64>,
}

impl World {
    pub fn new(quick: bool, more: &[(String, PathBuf)]) -> Result<Self> {
        let scratch = Scratch::new();
        private_view()?;
        let bench = host::workspace_root().join("bin/bench");
        let mut runtimes = vec![
            Runtime::new("pipkin", host::pipkin(), Kind::Oci),
            Runtime::new("floor", bench.join("floor"), Kind::Floor),
            Runtime::new("crun", host::find("crun"), Kind::Oci),
            Runtime::new("runc", host::find("runc"), Kind::Oci),
        ];
        for (name, path) in more {
            runtimes.push(Runtime::new(name, path.canonicalize()?, Kind::Oci));
        }
        let input_path = scratch.dir().join("input");
        fs::write(&input_path, "")?;
        let output_path = scratch.dir().join("output");
        let output = File::options()
            .create(true)
            .append(true)
            .open(&output_path)?;
        let cpuset = |file: &str| {
            fs::read_to_string(Path::new("/sys/fs/cgroup/cpuset").join(file))
                .map_or_else(|_| "0".to_owned(), |text| text.trim().to_owned())
        };
        let world = Self {
            quick,
            runtimes,
            hierarchies: hierarchies()?,
            cpus: cpuset("cpuset.cpus"),
            mems: cpuset("cpuset.mems"),
            input: File::open(input_path)?,
            output,
            output_path,
            count: Cell::new(0),
            scratch,
        };
        for runtime in &world.runtimes {
            fs::create_dir_all(world.state_root(&runtime.name))?;
        }
        Ok(world)
    }

    /// All but the floor.
    pub fn oci(&self) -> impl Iterator<Item = &Runtime> {
        self.runtimes
            .iter()
            .filter(|runtime| runtime.kind == Kind::Oci)
    }

    /// The program of the bench with this name.
    pub fn program(name: &str) -> PathBuf {
        host::workspace_root().join("bin/bench").join(name)
    }

    /// Where a runtime keeps its state.
    pub fn state_root(&self, runtime: &str) -> PathBuf {
        self.scratch.dir().join("state").join(runtime)
    }

    /// A new id.
    pub fn id(&self) -> String {
        self.count.set(self.count.get() + 1);
        format!("{}b{}", self.scratch.token(), self.count.get())
    }

    /// The number of measurements: more in a full run than in a quick one.
    pub fn runs(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// The last line of what was written.
    pub fn last_line(&self) -> String {
        let text = fs::read(&self.output_path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().last().unwrap_or_default().to_owned()
    }

    /// A bundle of this configuration that runs `args`.
    pub fn subject(&self, profile: &'static str, args: &[&str]) -> Result<Subject> {
        let engine = if profile == "spec" { "podman" } else { profile };
        let mut bundle = Bundle::new(&self.scratch, engine, args);
        if profile == "spec" {
            bundle.config = self.spec()?;
            bundle.args(args);
            bundle.set("/process/terminal", json!(false));
            // Debian's crun refuses what is newer.
            bundle.set("/ociVersion", json!("1.0.2"));
            let cgroup = bundle.cgroup.clone();
            bundle.set("/linux/cgroupsPath", json!(cgroup));
            bundle.write();
        }
        fs::copy(Self::program("nothing"), bundle.rootfs().join("nothing"))?;
        Ok(Subject {
            bundle,
            profile,
            filter: true,
            binds: 0,
            args: args.iter().map(|word| (*word).to_owned()).collect(),
        })
    }

    /// What `pipkin spec` writes.
    fn spec(&self) -> Result<Value> {
        let directory = self.scratch.dir().join(self.id());
        fs::create_dir(&directory)?;
        let status = Command::new(host::pipkin())
            .arg("spec")
            .current_dir(&directory)
            .status()?;
        if !status.success() {
            return Err(format!("pipkin spec: {status}").into());
        }
        let text = fs::read_to_string(directory.join("config.json"))?;
        Ok(serde_json::from_str(&text)?)
    }
}

impl Subject {
    /// The same without a seccomp filter.
    pub fn without_seccomp(mut self) -> Self {
        self.filter = false;
        self.bundle.remove("/linux/seccomp");
        self.bundle.write();
        self
    }

    /// The same with so many more binds.
    pub fn with_binds(mut self, count: usize) -> Result<Self> {
        let source = self.bundle.dir().join("files/shm");
        let source = source.to_string_lossy().into_owned();
        for number in 0..count {
            let target = format!("/m/{number:04}");
            let place = self.bundle.rootfs().join(target.trim_start_matches('/'));
            fs::create_dir_all(place)?;
            self.bundle
                .mount("bind", &source, &target, &["bind", "rprivate"]);
        }
        self.bundle.write();
        self.binds = count;
        Ok(self)
    }
}

/// Leaves the machine's mount namespace. Debian's crun refuses a unified hierarchy beside
/// those of v1, so nobody gets to see one.
fn private_view() -> Result<()> {
    process::unshare(clone::NEWNS)?;
    mount::mount(None, c"/", None, ms::REC | ms::PRIVATE, None)?;
    if let Some(point) = host::unified_besides_v1() {
        let point = std::ffi::CString::new(point.to_string_lossy().into_owned())?;
        mount::umount(&point, MNT_DETACH)?;
    }
    Ok(())
}

/// The hierarchies that are mounted where they are expected.
fn hierarchies() -> Result<Vec<Hierarchy>> {
    let root = Path::new("/sys/fs/cgroup");
    let points = host::cgroup_hierarchies();
    let mut found = Vec::new();
    for line in fs::read_to_string("/proc/self/cgroup")?.lines() {
        let name = line.split(':').nth(1).unwrap_or_default();
        let mount = match name {
            "" => root.to_owned(),
            _ => root.join(name.trim_start_matches("name=")),
        };
        if points.contains(&mount) {
            found.push(Hierarchy {
                name: name.to_owned(),
                mount,
            });
        }
    }
    Ok(found)
}
