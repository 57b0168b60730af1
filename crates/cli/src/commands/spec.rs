//! `spec`: a configuration to begin with.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use pipkin_runtime::{Error, Result, caller};

use crate::args::SpecArgs;
use crate::output::describe;

const TEMPLATE: &str = include_str!("spec.json");
const ROOTLESS_TEMPLATE: &str = include_str!("spec-rootless.json");

/// What a template says where control groups are not those of version 2.
const CGROUP_NAMESPACE: &str = ",\n      { \"type\": \"cgroup\" }";

/// Writes config.json, unless there is one.
#[inline(never)]
pub fn write(args: &SpecArgs) -> Result<()> {
    let path = args.bundle.join("config.json");
    let failed = |error: io::Error| {
        let known = Error {
            errno: error.raw_os_error(),
            ..Error::default()
        };
        let path = path.display();
        if error.kind() == io::ErrorKind::AlreadyExists {
            Error {
                message: format!("{path} is there already"),
                ..known
            }
            .with_hint("remove it first, or choose another directory with --bundle")
        } else {
            Error {
                message: format!("writing {path}: {}", describe(&error)),
                ..known
            }
        }
    };
    let text = if args.rootless {
        rootless()
    } else {
        TEMPLATE.to_owned()
    };
    let text = if has_unified_cgroups() {
        text
    } else {
        text.replace(CGROUP_NAMESPACE, "")
    };
    let mut file = File::create_new(&path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// The template for a user who is not root: one user and one group are mapped.
fn rootless() -> String {
    let (uid, gid) = caller::ids();
    ROOTLESS_TEMPLATE
        .replace("\"@UID@\"", &uid.to_string())
        .replace("\"@GID@\"", &gid.to_string())
}

fn has_unified_cgroups() -> bool {
    Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A fresh directory that is removed with the value.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("pipkin-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn templates_are_configurations() {
        for text in [TEMPLATE.to_owned(), rootless()] {
            assert_eq!(text.matches(CGROUP_NAMESPACE).count(), 1);
            for text in [text.clone(), text.replace(CGROUP_NAMESPACE, "")] {
                let config: pipkin_spec::Config = serde_json::from_str(&text).unwrap();
                assert_eq!(config.oci_version, pipkin_spec::OCI_VERSION);
                assert_eq!(config.mounts.len(), 7);
            }
        }
    }

    #[test]
    fn the_callers_ids_are_mapped() {
        let config: pipkin_spec::Config = serde_json::from_str(&rootless()).unwrap();
        let linux = config.linux.unwrap();
        let hosts = (linux.uid_mappings[0].host_id, linux.gid_mappings[0].host_id);
        assert_eq!(hosts, caller::ids());
    }

    #[test]
    fn an_existing_file_is_left_alone() {
        let scratch = Scratch::new("spec");
        let args = SpecArgs {
            bundle: scratch.0.clone(),
            rootless: false,
        };
        write(&args).unwrap();
        let path = scratch.0.join("config.json");
        std::fs::write(&path, "mine").unwrap();
        let error = write(&args).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{} is there already", path.display())
        );
        assert_eq!(error.errno, Some(17));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let args = SpecArgs {
            bundle: "/nonexistent".into(),
            rootless: false,
        };
        assert_eq!(
            write(&args).unwrap_err().to_string(),
            "writing /nonexistent/config.json: No such file or directory"
        );
    }
}
