//! `process.capabilities`: names to sets, capabilities(7).

use pipkin_spec::config::Capabilities;

use crate::Invalid;

/// Names in the order of their numbers, `linux/capability.h` up to Linux 6.18.
pub const NAMES: [&str; 41] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

/// CAP_SYS_ADMIN, which loading a filter needs.
pub const SYS_ADMIN: u64 = 1 << 21;

/// The five sets, a bit a capability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sets {
    pub bounding: u64,
    pub effective: u64,
    pub inheritable: u64,
    pub permitted: u64,
    pub ambient: u64,
}

impl Sets {
    /// The sets of a configuration; without any, all are empty.
    pub fn new(capabilities: Option<&Capabilities>) -> Result<Self, Invalid> {
        let Some(capabilities) = capabilities else {
            return Ok(Self::default());
        };
        let sets = Self {
            bounding: set("bounding", &capabilities.bounding)?,
            effective: set("effective", &capabilities.effective)?,
            inheritable: set("inheritable", &capabilities.inheritable)?,
            permitted: set("permitted", &capabilities.permitted)?,
            ambient: set("ambient", &capabilities.ambient)?,
        };
        let excess = sets.effective & !sets.permitted;
        if excess != 0 {
            let name = NAMES
                .get(excess.trailing_zeros() as usize)
                .copied()
                .unwrap_or_default();
            let message = format!("{name} is not in the permitted set");
            return Err(Invalid::new("/process/capabilities/effective", message)
                .hint("what is effective must be permitted: add it there, or take it out here"));
        }
        Ok(sets)
    }
}

fn set(field: &str, names: &[String]) -> Result<u64, Invalid> {
    let mut set = 0;
    for (index, name) in names.iter().enumerate() {
        let number = NAMES
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| {
                let pointer = format!("/process/capabilities/{field}/{index}");
                Invalid::new(pointer, format!("unknown capability {name:?}")).hint(near(name))
            })?;
        set |= 1 << number;
    }
    Ok(set)
}

/// What may have been meant.
fn near(name: &str) -> String {
    let upper = name.to_uppercase();
    let with_prefix = format!("CAP_{}", upper.trim_start_matches("CAP_"));
    match NAMES.iter().find(|known| **known == with_prefix) {
        Some(known) => format!("write {known}"),
        None => "a name of capabilities(7), such as CAP_CHOWN".to_owned(),
    }
}
