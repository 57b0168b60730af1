//! Namespaces and what lives in them: names, network, sysctls, id maps.

use crate::text;
use serde_json::{Map, Value, json};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// The kernel's name of each namespace, `net:[4026531840]`. Who compares two runs
/// replaces the numbers.
pub fn links() -> Value {
    let names = [
        "cgroup",
        "ipc",
        "mnt",
        "net",
        "pid",
        "pid_for_children",
        "time",
        "time_for_children",
        "user",
        "uts",
    ];
    let mut links = Map::new();
    for name in names {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}"));
        let value = match link {
            Ok(target) => json!(target.to_string_lossy()),
            Err(error) => json!({ "error": text::errno(&error) }),
        };
        links.insert(name.to_owned(), value);
    }
    Value::Object(links)
}

/// The maps of the user namespace and whether setgroups is allowed in it.
pub fn id_maps() -> Value {
    json!({
        "uid": text::lines("/proc/self/uid_map"),
        "gid": text::lines("/proc/self/gid_map"),
        "setgroups": text::value("/proc/self/setgroups"),
    })
}

/// Host name and domain name.
pub fn host_names() -> Value {
    let name = rustix::system::uname();
    json!({
        "hostname": name.nodename().to_string_lossy(),
        "domainname": name.domainname().to_string_lossy(),
    })
}

/// The interfaces and whether the loopback one carries traffic.
pub fn network() -> Value {
    let interfaces: Vec<String> = text::read("/proc/net/dev")
        .unwrap_or_default()
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(|name| name.trim().to_owned())
        .collect();
    json!({
        "interfaces": interfaces,
        "lo_flags": text::value("/sys/class/net/lo/flags"),
        "lo_connect": text::outcome(loopback()),
    })
}

fn loopback() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    TcpStream::connect_timeout(&listener.local_addr()?, Duration::from_secs(2))?;
    Ok(())
}

/// The kernel parameters that engines set or that a container must not see changed.
pub fn sysctls() -> Value {
    let names = [
        "net/ipv4/ping_group_range",
        "net/ipv4/ip_unprivileged_port_start",
        "net/ipv4/ip_forward",
        "kernel/hostname",
        "kernel/domainname",
        "kernel/shmmax",
        "kernel/msgmax",
        "kernel/sem",
        "fs/mqueue/msg_max",
        "kernel/core_pattern",
        "kernel/panic",
        "vm/overcommit_memory",
    ];
    let mut values = Map::new();
    for name in names {
        values.insert(name.replace('/', "."), joined(&format!("/proc/sys/{name}")));
    }
    Value::Object(values)
}

fn joined(path: &str) -> Value {
    match text::value(path) {
        Value::String(text) => json!(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        other => other,
    }
}
