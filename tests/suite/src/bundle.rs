//! Bundles: the configurations that engines really wrote, with a busybox image.

use crate::host;
use crate::scratch::{self, Scratch};
use rustix::process::Resource;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The engines whose configurations are at hand.
pub const ENGINES: [&str; 3] = ["podman", "containerd", "docker"];

/// A bundle that is being made. Changes reach the disk with [`Bundle::write`].
pub struct Bundle {
    dir: PathBuf,
    /// The container's control group.
    pub cgroup: String,
    /// What becomes config.json.
    pub config: Value,
}

impl Bundle {
    /// A bundle after the configuration of an engine; it runs `args`.
    pub fn new(scratch: &Scratch, engine: &str, args: &[&str]) -> Self {
        let name = scratch.unique();
        let dir = scratch.dir().join(format!("bundle-{name}"));
        lay_out(&dir);
        let file = host::workspace_root().join(format!("tests/bundles/{engine}.json"));
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let text = text.replace("@BUNDLE@", &dir.to_string_lossy());
        let config = serde_json::from_str(&text).expect("an engine's configuration");
        let cgroup = format!("/{}/{name}", scratch.token());
        let mut bundle = Self {
            dir,
            cgroup,
            config,
        };
        bundle.args(args);
        let cgroup = bundle.cgroup.clone();
        bundle.set("/linux/cgroupsPath", json!(cgroup));
        bundle.fit_limits();
        bundle.write();
        bundle
    }

    /// The bundle's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The bundle's directory as a word of a command line.
    pub fn path(&self) -> &str {
        self.dir.to_str().expect("a path of letters")
    }

    /// The root file system.
    pub fn rootfs(&self) -> PathBuf {
        self.dir.join("rootfs")
    }

    /// What it runs.
    pub fn args(&mut self, args: &[&str]) -> &mut Self {
        self.set("/process/args", json!(args))
    }

    /// Runs a line of shell.
    pub fn shell(&mut self, line: &str) -> &mut Self {
        self.args(&["/bin/sh", "-c", line])
    }

    /// Puts a value at a JSON pointer, with the objects on the way to it. `-` at the
    /// end of the pointer appends to a list.
    pub fn set(&mut self, pointer: &str, value: Value) -> &mut Self {
        let mut place = &mut self.config;
        for word in pointer.split('/').skip(1) {
            place = descend(place, &word.replace("~1", "/").replace("~0", "~"));
        }
        *place = value;
        self
    }

    /// Takes a member of an object away.
    pub fn remove(&mut self, pointer: &str) -> &mut Self {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        if let Some(map) = self
            .config
            .pointer_mut(parent)
            .and_then(Value::as_object_mut)
        {
            map.remove(name);
        }
        self
    }

    /// One more mount.
    pub fn mount(
        &mut self,
        kind: &str,
        source: &str,
        destination: &str,
        options: &[&str],
    ) -> &mut Self {
        self.set(
            "/mounts/-",
            json!({ "destination": destination, "type": kind, "source": source, "options": options }),
        )
    }

    /// No mount on this destination.
    pub fn without_mount(&mut self, destination: &str) -> &mut Self {
        let mounts = self.config["mounts"].as_array_mut().expect("mounts");
        mounts.retain(|mount| mount["destination"] != destination);
        self
    }

    /// A namespace of this type, new or joined by its path.
    pub fn namespace(&mut self, kind: &str, path: Option<&str>) -> &mut Self {
        self.without_namespace(kind);
        let mut namespace = json!({ "type": kind });
        if let Some(path) = path {
            namespace["path"] = json!(path);
        }
        self.set("/linux/namespaces/-", namespace)
    }

    /// The host's namespace of this type.
    pub fn without_namespace(&mut self, kind: &str) -> &mut Self {
        let list = self.config["linux"]["namespaces"]
            .as_array_mut()
            .expect("namespaces");
        list.retain(|namespace| namespace["type"] != kind);
        self
    }

    /// A file in the bundle, outside the root file system.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("make directories");
        std::fs::write(&path, content).expect("write a file");
        path
    }

    /// An executable script in the bundle.
    pub fn script(&self, name: &str, lines: &str) -> PathBuf {
        let path = self.file(name, &format!("#!/bin/sh\n{lines}\n"));
        scratch::set_mode(&path, 0o755);
        path
    }

    /// Gives the container a user namespace, and the image and what is mounted to its root.
    pub fn with_user_namespace(&mut self) -> &mut Self {
        let mapping = |host: u32| json!([{ "containerID": 0, "hostID": host, "size": 65536 }]);
        self.namespace("user", None);
        // The range that docker asks for has groups that the namespace has not.
        self.remove("/linux/sysctl");
        self.set("/linux/uidMappings", mapping(100_000));
        self.set("/linux/gidMappings", mapping(200_000));
        chown_all(&self.rootfs(), 100_000, 200_000);
        chown_all(&self.dir().join("files"), 100_000, 200_000);
        self
    }

    /// Puts the probe into the image as /probe.
    pub fn with_probe(&mut self) -> &mut Self {
        std::fs::copy(host::probe(), self.rootfs().join("probe")).expect("copy the probe");
        self
    }

    /// Writes config.json.
    pub fn write(&mut self) -> &mut Self {
        let text = serde_json::to_string_pretty(&self.config).expect("JSON");
        std::fs::write(self.dir.join("config.json"), text).expect("write config.json");
        self
    }

    /// Without CAP_SYS_RESOURCE no limit above the present one can be had, by any
    /// runtime; what the engine asked for is lowered to what there is.
    fn fit_limits(&mut self) {
        if host::may_raise_limits() {
            return;
        }
        let Some(limits) = self.config.pointer_mut("/process/rlimits") else {
            return;
        };
        for limit in limits.as_array_mut().expect("a list of limits") {
            let resource = match limit["type"].as_str() {
                Some("RLIMIT_NOFILE") => Resource::Nofile,
                Some("RLIMIT_NPROC") => Resource::Nproc,
                other => panic!("an engine's limit that is new here: {other:?}"),
            };
            let Some(most) = rustix::process::getrlimit(resource).maximum else {
                continue;
            };
            for which in ["soft", "hard"] {
                let wanted = limit[which].as_u64().expect("a number");
                limit[which] = json!(wanted.min(most));
            }
        }
    }
}

/// The directories, busybox under all its names, and the files that engines bind.
fn lay_out(dir: &Path) {
    let root = dir.join("rootfs");
    for name in [
        "bin", "dev", "etc", "proc", "root", "run", "sys", "tmp", "var",
    ] {
        std::fs::create_dir_all(root.join(name)).expect("make the image");
    }
    std::fs::create_dir_all(dir.join("files/shm")).expect("make directories");
    std::fs::copy("/bin/busybox", root.join("bin/busybox"))
        .expect("/bin/busybox: apt-get install busybox-static");
    for name in scratch::applets() {
        symlink("busybox", root.join("bin").join(name)).expect("link an applet");
    }
    for name in ["resolv.conf", "hosts", "hostname", ".containerenv"] {
        std::fs::write(dir.join("files").join(name), "").expect("make a file");
    }
    let passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
    std::fs::write(root.join("etc/passwd"), passwd).expect("write passwd");
}

/// The member or item of this name; made when it is not there.
fn descend<'a>(place: &'a mut Value, word: &str) -> &'a mut Value {
    if place.is_null() {
        *place = if word == "-" { json!([]) } else { json!({}) };
    }
    if let Value::Array(list) = place {
        let index = if word == "-" {
            list.len()
        } else {
            word.parse().expect("an index")
        };
        if index == list.len() {
            list.push(Value::Null);
        }
        return &mut list[index];
    }
    let map = place
        .as_object_mut()
        .expect("an object or a list on the way");
    map.entry(word).or_insert(Value::Null)
}

fn chown_all(path: &Path, uid: u32, gid: u32) {
    std::os::unix::fs::lchown(path, Some(uid), Some(gid)).expect("chown");
    if path.symlink_metadata().expect("metadata").is_dir() {
        for entry in std::fs::read_dir(path).expect("read a directory").flatten() {
            chown_all(&entry.path(), uid, gid);
        }
    }
}
