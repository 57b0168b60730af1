//! Where the programs are, and what this machine is like.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn workspace_root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .nth(2)
        .expect("tests/suite is two levels down")
        .to_owned()
}

/// The program under test, behind the filter that hides newer calls from it where
/// [`hides_newer_calls`].
pub fn pipkin() -> PathBuf {
    if !hides_newer_calls() {
        return program();
    }
    let test = std::env::current_exe().expect("a program");
    // Cargo leaves programs one level above the tests.
    let directory = test.parent().and_then(Path::parent);
    directory.expect("a directory").join("older")
}

/// Whether this is the test program `older`, which has tests of others among its own.
pub fn hides_newer_calls() -> bool {
    let test = std::env::current_exe().expect("a program");
    let name = test.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("older")
}

/// The program under test itself.
pub fn program() -> PathBuf {
    built("PIPKIN", "bin/pipkin")
}

/// The probe.
pub fn probe() -> PathBuf {
    built("PIPKIN_PROBE", "bin/probe")
}

fn built(variable: &str, default: &str) -> PathBuf {
    let path = match std::env::var_os(variable) {
        Some(path) => PathBuf::from(path),
        None => workspace_root().join(default),
    };
    assert!(
        path.is_file(),
        "{} is not there: run `make build`, or set {variable} to the program",
        path.display()
    );
    path.canonicalize().expect("a path that exists")
}

/// A program on PATH.
pub fn find(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(extra)
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("{name} is not on PATH: apt-get install {name}"))
}

/// The mount points of a file system type in this mount namespace.
pub fn mount_points(kind: &str) -> Vec<PathBuf> {
    mountinfo()
        .lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let point = left.split(' ').nth(4)?;
            (right.split(' ').next()? == kind).then(|| PathBuf::from(point))
        })
        .collect()
}

/// /proc/self/mountinfo.
pub fn mountinfo() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").expect("mountinfo")
}

/// Every mounted hierarchy of control groups, of both versions.
pub fn cgroup_hierarchies() -> Vec<PathBuf> {
    let mut all = mount_points("cgroup");
    all.extend(mount_points("cgroup2"));
    all
}

/// Where cgroup2 is mounted besides version 1, if it is.
pub fn unified_besides_v1() -> Option<PathBuf> {
    if mount_points("cgroup").is_empty() {
        return None;
    }
    mount_points("cgroup2").into_iter().next()
}

/// Whether this process has CAP_SYS_RESOURCE (number 24).
pub fn may_raise_limits() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let bits = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .expect("CapEff");
    u64::from_str_radix(bits.trim(), 16).expect("hexadecimal") >> 24 & 1 == 1
}
