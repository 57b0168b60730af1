//! What the specification knows and pipkin does not do yet: an error that names it, never
//! something that is accepted and ignored.

use pipkin_spec::Config;

use crate::{Host, Invalid};

/// Refuses what is not there yet.
pub fn refuse(config: &Config, host: &Host) -> Result<(), Invalid> {
    let major = config.oci_version.split('.').next().unwrap_or_default();
    if !config.oci_version.is_empty() && major != "1" {
        let message = format!("version {:?} is not supported", config.oci_version);
        return Err(Invalid::new("/ociVersion", message)
            .hint(format!("1.0.0 to {}", pipkin_spec::OCI_VERSION)));
    }
    let platforms = [
        ("/vm", config.vm.is_some()),
        ("/windows", config.windows.is_some()),
        ("/solaris", config.solaris.is_some()),
        ("/zos", config.zos.is_some()),
        ("/freebsd", config.freebsd.is_some()),
    ];
    for (pointer, present) in platforms {
        if present {
            return Err(Invalid::new(pointer, "is for another platform than Linux"));
        }
    }
    if let Some(linux) = &config.linux {
        let label = |label: &Option<String>| label.as_deref().is_some_and(|text| !text.is_empty());
        let later = [
            ("/linux/intelRdt", linux.intel_rdt.is_some()),
            ("/linux/memoryPolicy", linux.memory_policy.is_some()),
            ("/linux/netDevices", !linux.net_devices.is_empty()),
            ("/linux/mountLabel", label(&linux.mount_label)),
        ];
        for (pointer, present) in later {
            if present {
                return Err(Invalid::new(pointer, "is not supported yet"));
            }
        }
        if let Some(seccomp) = &linux.seccomp {
            for (field, value) in [
                ("listenerPath", &seccomp.listener_path),
                ("listenerMetadata", &seccomp.listener_metadata),
            ] {
                if label(value) {
                    let pointer = format!("/linux/seccomp/{field}");
                    return Err(Invalid::new(
                        pointer,
                        "seccomp listeners are not supported yet",
                    ));
                }
            }
        }
    }
    let Some(process) = &config.process else {
        return Ok(());
    };
    if process.exec_cpu_affinity.is_some() {
        return Err(Invalid::new(
            "/process/execCPUAffinity",
            "is not supported yet",
        ));
    }
    if process.command_line.is_some() {
        return Err(
            Invalid::new("/process/commandLine", "is for Windows").hint("use /process/args")
        );
    }
    if process
        .apparmor_profile
        .as_deref()
        .is_some_and(|profile| !profile.is_empty())
    {
        return Err(lsm("/process/apparmorProfile", "AppArmor", host.apparmor));
    }
    if process
        .selinux_label
        .as_deref()
        .is_some_and(|label| !label.is_empty())
    {
        return Err(lsm("/process/selinuxLabel", "SELinux", host.selinux));
    }
    Ok(())
}

fn lsm(pointer: &str, name: &str, enabled: bool) -> Invalid {
    if enabled {
        Invalid::new(pointer, format!("{name} is not supported yet"))
    } else {
        Invalid::new(pointer, format!("{name} is not enabled on this host"))
            .hint("take it out, or enable it in the kernel")
    }
}
