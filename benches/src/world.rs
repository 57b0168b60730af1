//! Where it is measured: a mount namespace of the bench's own, in which every runtime sees the
//! same control groups; the runtimes; the bundles.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use pipkin_op::ms;
use pipkin_sys::mount::{self, MNT_DETACH};
use pipkin_sys::process::{self, clone};
use pipkin_tests::{Bundle, Scratch, host};
use serde_json::{Value, json};

use crate::runtime::{Kind, Runtime};
use crate::{Options, Result};

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
    /// Whether its control groups have limits.
    pub limits: bool,
    /// The hierarchies that it gets a group in.
    pub hierarchies: Vec<Hierarchy>,
    /// The mount namespace in which it is run, where that is not the bench's own.
    pub namespace: Option<Rc<File>>,
}

/// Everything that stays the same while it is measured.
pub struct World {
    pub quick: bool,
    pub scratch: Scratch,
    pub runtimes: Vec<Runtime>,
    /// What was asked for and is not there.
    pub missing: Vec<String>,
    pub hierarchies: Vec<Hierarchy>,
    /// Where version 2 of the control groups is alone, on a machine that has both.
    v2: Option<Rc<File>>,
    /// The bench's own mount namespace.
    home: File,
    /// How many measurements everything gets, whatever it asks for.
    most: Option<usize>,
    /// Where the bench's other programs are.
    programs: PathBuf,
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
    pub fn new(options: &Options) -> Result<Self> {
        let scratch = Scratch::new();
        let programs = match &options.programs {
            Some(programs) => programs.canonicalize()?,
            None => beside_this_program()?,
        };
        private_view()?;
        // Everywhere else, what runtimes remember is in /run, which is in memory.
        let state = scratch.dir().join("state");
        fs::create_dir(&state)?;
        in_memory(&state)?;
        let home = File::open("/proc/self/ns/mnt")?;
        let v2 = v2_alone(&home)?;
        let mut wanted = vec![
            ("pipkin".to_owned(), Some(host::pipkin()), Kind::Oci),
            (
                "floor".to_owned(),
                Some(programs.join("floor")),
                Kind::Floor,
            ),
            ("crun".to_owned(), find("crun"), Kind::Oci),
            ("runc".to_owned(), find("runc"), Kind::Oci),
        ];
        for (name, path) in &options.runtimes {
            wanted.push((name.clone(), path.canonicalize().ok(), Kind::Oci));
        }
        let mut runtimes = Vec::new();
        let mut missing = Vec::new();
        for (name, path, kind) in wanted {
            match path.filter(|path| path.is_file()) {
                Some(path) => runtimes.push(Runtime::new(&name, path, kind)),
                None => missing.push(name),
            }
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
            quick: options.quick,
            most: options.runs,
            programs,
            home,
            v2,
            runtimes,
            missing,
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
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
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
        let wanted = if self.quick { quick } else { full };
        self.most.map_or(wanted, |most| wanted.min(most))
    }

    /// Goes to the mount namespace of a subject.
    pub fn enter(&self, subject: &Subject) -> Result<()> {
        let namespace = subject.namespace.as_deref().unwrap_or(&self.home);
        Ok(process::setns(namespace.as_raw_fd(), 0)?)
    }

    /// Comes back to the bench's own mount namespace.
    pub fn leave(&self) -> Result<()> {
        Ok(process::setns(self.home.as_raw_fd(), 0)?)
    }

    /// How much has been written so far.
    pub fn written(&self) -> u64 {
        self.output.metadata().map_or(0, |metadata| metadata.len())
    }

    /// The last line of what was written since then.
    pub fn last_line(&self, since: u64) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.output_path).and_then(|mut file| {
            file.seek(SeekFrom::Start(since))?;
            file.read_to_end(&mut text)
        });
        if read.is_err() {
            return String::new();
        }
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
        fs::copy(self.program("nothing"), bundle.rootfs().join("nothing"))?;
        Ok(Subject {
            bundle,
            profile,
            filter: true,
            binds: 0,
            args: args.iter().map(|word| (*word).to_owned()).collect(),
            limits: true,
            hierarchies: self.hierarchies.clone(),
            namespace: None,
        })
    }

    /// The same where version 2 of the control groups is alone; `None` where it is anyway. It
    /// has no limits but the rules for devices: the controllers belong to version 1.
    pub fn subject_of_v2(&self, profile: &'static str, args: &[&str]) -> Result<Option<Subject>> {
        let Some(namespace) = &self.v2 else {
            return Ok(None);
        };
        // What `spec` writes depends on what it sees.
        process::setns(namespace.as_raw_fd(), 0)?;
        let subject = self.subject(profile, args);
        self.leave()?;
        let mut subject = subject?;
        let resources = subject.bundle.config.pointer("/linux/resources/devices");
        let resources = json!({ "devices": resources.cloned().unwrap_or_else(|| json!([])) });
        subject.bundle.set("/linux/resources", resources);
        subject.bundle.write();
        subject.limits = false;
        subject.hierarchies = vec![Hierarchy {
            name: String::new(),
            mount: CGROUPS.into(),
        }];
        subject.namespace = Some(Rc::clone(namespace));
        Ok(Some(subject))
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

/// What was made where version 2 is alone is not seen from the bench's own mount namespace.
impl Drop for World {
    fn drop(&mut self) {
        let Some(namespace) = &self.v2 else {
            return;
        };
        if process::setns(namespace.as_raw_fd(), 0).is_ok() {
            let mut groups = self.scratch.cgroups();
            groups.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
            for group in groups {
                let _ = fs::remove_dir(group);
            }
        }
        let _ = self.leave();
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

/// Where control groups are expected.
const CGROUPS: &str = "/sys/fs/cgroup";

fn beside_this_program() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.parent().ok_or("no directory")?.to_owned())
}

/// A program on PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/usr/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(extra)
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

/// A mount namespace that sees nothing but version 2 of the control groups; `None` where the
/// bench's own does so already, or where there is none.
fn v2_alone(home: &File) -> Result<Option<Rc<File>>> {
    if host::mount_points("cgroup").is_empty() {
        return Ok(None);
    }
    let point = std::ffi::CString::new(CGROUPS)?;
    process::unshare(clone::NEWNS)?;
    let namespace = mount::umount(&point, MNT_DETACH)
        .and_then(|()| mount::mount(Some(c"cgroup2"), &point, Some(c"cgroup2"), 0, None))
        .ok()
        .map(|()| File::open("/proc/self/ns/mnt"))
        .transpose()?;
    process::setns(home.as_raw_fd(), 0)?;
    Ok(namespace.map(Rc::new))
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
    // What others on this machine do to pipkin's directory must not be measured.
    let own = Path::new("/run/pipkin");
    if !own.exists() {
        fs::DirBuilder::new().mode(0o700).create(own)?;
    }
    in_memory(own)
}

fn in_memory(path: &Path) -> Result<()> {
    let path = std::ffi::CString::new(path.to_string_lossy().into_owned())?;
    let kind = Some(c"tmpfs");
    Ok(mount::mount(kind, &path, kind, 0, Some(c"mode=0700"))?)
}

/// The hierarchies that are mounted where they are expected.
fn hierarchies() -> Result<Vec<Hierarchy>> {
    let root = Path::new(CGROUPS);
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
