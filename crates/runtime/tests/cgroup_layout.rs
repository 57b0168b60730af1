//! Where control groups are found and where a container's goes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::path::Path;

use pipkin_plan::cgroup::Controllers;
use pipkin_runtime::cgroup::{Kind, Layout, Location};

#[test]
fn relative_places() {
    use pipkin_runtime::cgroup::Hierarchy;
    let hierarchy = |name: &str, own: &str| Hierarchy {
        name: name.to_owned(),
        controllers: Controllers::NONE,
        mount: "/m".into(),
        own: own.to_owned(),
    };
    let relative = Location::Relative("x/y".to_owned());
    for (name, own, kind, want) in [
        ("cpu", "/", Kind::V1, "/m/x/y"),
        ("cpu", "/a/b", Kind::V1, "/m/a/b/x/y"),
        ("", "/a/b", Kind::Hybrid, "/m/a/b/x/y"),
        ("", "/a/b", Kind::V2, "/m/a/x/y"),
        ("", "/", Kind::V2, "/m/x/y"),
        ("", "/../../a", Kind::V2, "/m/x/y"),
    ] {
        assert_eq!(
            hierarchy(name, own).dir(&relative, kind),
            Path::new(want),
            "{own}"
        );
    }
    let absolute = Location::Absolute("x".to_owned());
    assert_eq!(
        hierarchy("", "/a/b").dir(&absolute, Kind::V2),
        Path::new("/m/x")
    );
}

#[test]
fn layouts() {
    let layout = Layout::probe().unwrap();
    let root = Path::new("/sys/fs/cgroup");
    // Hierarchies that are not mounted are not there.
    let own = "12:misc:/\n3:cpu:/a\n5:name=nobody:/\n0::/b\n";
    let other = Layout::probe_at(root, own).unwrap();
    assert!(other.v1.iter().all(|h| h.name == "cpu"));
    let nothing = Layout::probe_at(Path::new("/proc"), own).unwrap();
    assert_eq!(nothing.kind, Kind::None);
    assert_eq!(nothing.host(), Layout::none().host());
    for hierarchy in layout.v1.iter().chain(&layout.v2) {
        assert!(hierarchy.mount.join("cgroup.procs").exists());
    }
}

#[test]
fn locations() {
    let absolute = |p: &str| Location::Absolute(p.to_owned());
    let relative = |p: &str| Location::Relative(p.to_owned());
    for (path, want) in [
        (None, relative("id")),
        (Some(""), relative("id")),
        (Some("/a/b"), absolute("a/b")),
        (Some("//a/./b/"), absolute("a/b")),
        (Some("a/b"), relative("a/b")),
        (Some("/a:b:c"), absolute("a:b:c")),
    ] {
        assert_eq!(Location::resolve(path, "id").unwrap(), want);
    }
    for path in [
        "/",
        "a/../b",
        "/..",
        "system.slice:pipkin:id",
        "::id",
        "a\nb",
    ] {
        let error = Location::resolve(Some(path), "id").unwrap_err();
        assert_eq!(error.pointer, "/linux/cgroupsPath", "{path}");
        assert!(error.hint.is_some());
    }
}
