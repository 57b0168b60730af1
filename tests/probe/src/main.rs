//! A program for the inside of a container: it looks at everything that a runtime
//! sets up and prints what it sees as one JSON document.
//!
//! It must be built statically, because the container's image has no libraries. It
//! has no `main` of the standard library's kind: that would ignore SIGPIPE, open
//! missing standard streams and install handlers before anything could be looked at.
//!
//! ```text
//! probe [OPTIONS-AS-JSON]        {"paths": ["/more/paths", ...], "skip_trials": false}
//! probe attack-exe SECONDS       try to get a writable handle of other programs
//! probe fds                      only the open descriptors
//! probe race DIR NAME SECONDS    exchange DIR/NAME and DIR/NAME.evil all the time
//! ```

#![no_main]

mod attack;
mod cgroup;
mod devices;
mod identity;
mod mounts;
mod namespaces;
mod paths;
mod raw;
mod text;
mod trials;

use serde_json::{Value, json};
use std::io::Write;

/// The C library's entry: called directly, so that nothing of ours ran before it.
///
/// The name is what the C start-up code calls.
#[unsafe(no_mangle)]
pub extern "C" fn main(_argc: i32, _argv: *const *const u8) -> i32 {
    let args = text::nul_separated("/proc/self/cmdline");
    let mut words = args.iter().map(String::as_str).skip(1);
    let document = match words.next() {
        Some("attack-exe") => attack::executables(seconds(words.next())),
        Some("race") => match (words.next(), words.next()) {
            (Some(dir), Some(name)) => attack::exchange(dir, name, seconds(words.next())),
            _ => return usage(),
        },
        Some("fds") => devices::descriptors(),
        Some(options) => match serde_json::from_str(options) {
            Ok(options) => everything(&args, &options),
            Err(_) => return usage(),
        },
        None => everything(&args, &json!({})),
    };
    let mut line = document.to_string();
    line.push('\n');
    match std::io::stdout().write_all(line.as_bytes()) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn usage() -> i32 {
    let _ = std::io::stderr()
        .write_all(b"usage: probe [JSON] | attack-exe S | fds | race DIR NAME S\n");
    2
}

fn seconds(word: Option<&str>) -> u64 {
    word.and_then(|word| word.parse().ok()).unwrap_or(2)
}

/// All sections. The descriptors come first, while nothing of ours is open, and the
/// trials last, because they change things.
fn everything(args: &[String], options: &Value) -> Value {
    let descriptors = devices::descriptors();
    let mut document = json!({
        "args": args,
        "descriptors": descriptors,
        "env": text::nul_separated("/proc/self/environ"),
        "cwd": identity::cwd(),
        "mounts": mounts::table(),
        "namespaces": namespaces::links(),
        "idmaps": namespaces::id_maps(),
        "timens_offsets": text::lines("/proc/self/timens_offsets"),
        "host": namespaces::host_names(),
        "network": namespaces::network(),
        "sysctls": namespaces::sysctls(),
        "ids": identity::ids(),
        "capabilities": identity::capabilities(),
        "protection": identity::protection(),
        "rlimits": identity::rlimits(),
        "signals": identity::signals(),
        "scheduling": identity::scheduling(),
        "process": identity::process(),
        "keyring": identity::keyring(),
        "cgroup": cgroup::view(),
        "dev": devices::tree("/dev"),
        "paths": paths::look(options.get("paths")),
    });
    if options.get("skip_trials") != Some(&Value::Bool(true))
        && let Some(map) = document.as_object_mut()
    {
        map.insert("trials".to_owned(), trials::all());
    }
    document
}
