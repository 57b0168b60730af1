//! Who the process is and what it may do.

use crate::{raw, text};
use serde_json::{Map, Value, json};

/// The capabilities in the order of their numbers.
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

fn status() -> String {
    text::read("/proc/self/status").unwrap_or_default()
}

fn fields(names: &[&str]) -> Value {
    let status = status();
    let pairs = names
        .iter()
        .map(|name| ((*name).to_owned(), json!(text::field(&status, name))));
    Value::Object(pairs.collect())
}

/// The current directory as the kernel names it, and whether it is inside the root.
pub fn cwd() -> Value {
    match std::fs::read_link("/proc/self/cwd") {
        Ok(path) => json!(path.to_string_lossy()),
        Err(error) => json!({ "error": text::errno(&error) }),
    }
}

/// Real, effective, saved and file-system ids, and the other groups.
pub fn ids() -> Value {
    fields(&["Uid", "Gid", "Groups", "Umask"])
}

/// The five sets by name.
pub fn capabilities() -> Value {
    let status = status();
    let mut sets = Map::new();
    for (key, name) in [
        ("CapInh", "inheritable"),
        ("CapPrm", "permitted"),
        ("CapEff", "effective"),
        ("CapBnd", "bounding"),
        ("CapAmb", "ambient"),
    ] {
        let bits = text::field(&status, key).and_then(|hex| u64::from_str_radix(&hex, 16).ok());
        sets.insert(
            name.to_owned(),
            bits.map_or(Value::Null, |bits| json!(capability_names(bits))),
        );
    }
    Value::Object(sets)
}

fn capability_names(bits: u64) -> Vec<String> {
    (0..64_usize)
        .filter(|number| bits >> number & 1 == 1)
        .map(|number| {
            CAPABILITIES
                .get(number)
                .map_or_else(|| number.to_string(), |name| (*name).to_owned())
        })
        .collect()
}

/// What hardens the process: seccomp, no_new_privs, securebits, dumpable, speculation.
pub fn protection() -> Value {
    let mut map = fields(&[
        "NoNewPrivs",
        "Seccomp",
        "Seccomp_filters",
        "Speculation_Store_Bypass",
        "SpeculationIndirectBranch",
        "THP_enabled",
    ]);
    let securebits = rustix::thread::capabilities_secure_bits().map(|bits| bits.bits());
    let dumpable = rustix::process::dumpable_behavior().map(|value| format!("{value:?}"));
    let death = rustix::process::parent_process_death_signal()
        .map(|signal| signal.map_or(0, |signal| signal.as_raw()));
    let subreaper = rustix::process::child_subreaper().map(|value| value.is_some());
    for (name, value) in [
        (
            "securebits",
            securebits.map_or_else(failed, |bits| json!(bits)),
        ),
        (
            "dumpable",
            dumpable.map_or_else(failed, |value| json!(value)),
        ),
        ("pdeathsig", death.map_or_else(failed, |value| json!(value))),
        (
            "subreaper",
            subreaper.map_or_else(failed, |value| json!(value)),
        ),
        ("lsm_current", text::value("/proc/self/attr/current")),
        ("lsm_exec", text::value("/proc/self/attr/exec")),
    ] {
        text::put(&mut map, name, value);
    }
    map
}

fn failed(errno: rustix::io::Errno) -> Value {
    json!({ "error": text::errno_name(errno) })
}

/// All limits as `soft hard` under the kernel's names.
pub fn rlimits() -> Value {
    let mut limits = Map::new();
    for line in text::read("/proc/self/limits")
        .unwrap_or_default()
        .lines()
        .skip(1)
    {
        // The name is a column of 26 characters and has blanks of its own.
        let (name, rest) = line.split_at_checked(26).unwrap_or((line, ""));
        let values: Vec<&str> = rest.split_whitespace().take(2).collect();
        limits.insert(name.trim().to_owned(), json!(values.join(" ")));
    }
    Value::Object(limits)
}

/// The masks of pending, blocked, ignored and caught signals.
pub fn signals() -> Value {
    fields(&["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"])
}

/// Priorities, policies and the processors and nodes that are allowed.
pub fn scheduling() -> Value {
    let stat = text::read("/proc/self/stat").unwrap_or_default();
    // The second field is a name in parentheses that may hold blanks.
    let rest: Vec<&str> = stat
        .rsplit_once(") ")
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .collect();
    let number = |field: usize| rest.get(field - 3).copied();
    let mut map = fields(&["Cpus_allowed_list", "Mems_allowed_list"]);
    for (name, value) in [
        ("nice", json!(number(19))),
        ("rt_priority", json!(number(40))),
        ("policy", json!(number(41))),
        (
            "ioprio",
            raw::io_priority().map_or_else(failed, |value| json!(value)),
        ),
        ("timerslack", text::value("/proc/self/timerslack_ns")),
    ] {
        text::put(&mut map, name, value);
    }
    map
}

/// Numbers and settings of the process itself.
pub fn process() -> Value {
    let stat = text::read("/proc/self/stat").unwrap_or_default();
    let rest: Vec<&str> = stat
        .rsplit_once(") ")
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .collect();
    let number = |field: usize| rest.get(field - 3).copied();
    json!({
        "pid": std::process::id(),
        "ppid": number(4),
        "pgrp": number(5),
        "session": number(6),
        "tty": number(7),
        "threads": number(20),
        "comm": text::value("/proc/self/comm"),
        "oom_score_adj": text::value("/proc/self/oom_score_adj"),
        "personality": text::value("/proc/self/personality"),
        "coredump_filter": text::value("/proc/self/coredump_filter"),
        "loginuid": text::value("/proc/self/loginuid"),
        "exe": std::fs::read_link("/proc/self/exe").map_or(Value::Null, |path| json!(path.to_string_lossy())),
        "root": std::fs::read_link("/proc/self/root").map_or(Value::Null, |path| json!(path.to_string_lossy())),
        "visible_pids": visible_processes(),
    })
}

/// How many processes /proc shows, at most 2: more differ between two runs.
fn visible_processes() -> Value {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let count = entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .bytes()
                .all(|byte| byte.is_ascii_digit())
        })
        .count();
    json!(count.min(2))
}

/// The session keyring: whether there is one and what it is called.
pub fn keyring() -> Value {
    json!({
        "id": raw::session_keyring().map_or_else(failed, |id| json!(id)),
        "description": raw::describe_session_keyring().map_or_else(failed, |text| json!(text)),
    })
}
