//! `features`: what this runtime can do.

use std::collections::BTreeMap;

use pipkin_spec::Features;
use pipkin_spec::features::{CgroupFeatures, Enabled, LinuxFeatures, SeccompFeatures};

use super::names::Names;

/// Oldest version of the specification that is accepted.
const OLDEST: &str = "1.0.0";

/// Fills in the document of the specification. What is not in it yet (systemd, LSMs,
/// id-mapped mounts, network devices) is said to be missing.
pub fn describe(names: &Names) -> Features {
    let version = ("org.pipkin.version", env!("CARGO_PKG_VERSION").to_owned());
    let commit = ("org.pipkin.commit", env!("PIPKIN_COMMIT").to_owned());
    let known = [version, commit]
        .into_iter()
        .filter(|(_, value)| !value.is_empty());
    Features {
        oci_version_min: OLDEST.into(),
        oci_version_max: pipkin_spec::OCI_VERSION.into(),
        hooks: names.hooks.to_vec(),
        mount_options: names.mount_options.to_vec(),
        linux: LinuxFeatures {
            namespaces: names.namespaces.to_vec(),
            capabilities: names.capabilities.to_vec(),
            cgroup: CgroupFeatures {
                v1: true,
                v2: true,
                ..CgroupFeatures::default()
            },
            seccomp: SeccompFeatures {
                enabled: true,
                actions: names.seccomp_actions.to_vec(),
                operators: names.seccomp_operators.to_vec(),
                archs: names.seccomp_archs.to_vec(),
                known_flags: names.seccomp_known_flags.to_vec(),
                supported_flags: names.seccomp_supported_flags.to_vec(),
            },
            apparmor: Enabled { enabled: false },
            selinux: Enabled { enabled: false },
            ..LinuxFeatures::default()
        },
        annotations: BTreeMap::from_iter(known),
        potentially_unsafe_config_annotations: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_names_that_engines_read() {
        let document = serde_json::to_value(describe(&Names::OURS)).unwrap();
        assert_eq!(document["ociVersionMax"], "1.3.0");
        assert_eq!(document["linux"]["cgroup"]["systemd"], false);
        assert_eq!(document["linux"]["cgroup"]["v2"], true);
        assert_eq!(document["linux"]["seccomp"]["enabled"], true);
        let options = document["mountOptions"].as_array().unwrap();
        assert!(options.iter().any(|option| option == "rbind"));
    }

    #[test]
    fn lists_have_no_name_twice() {
        let names = Names::OURS;
        for list in [
            names.mount_options,
            names.capabilities,
            names.namespaces,
            names.hooks,
        ] {
            let unique: std::collections::BTreeSet<_> = list.iter().collect();
            assert_eq!(unique.len(), list.len());
        }
    }
}
