//! What the probe sees, made comparable.

use crate::bundle::Bundle;
use crate::command::Finished;
use crate::runtime::Runtime;
use crate::scratch::Scratch;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Runs a bundle whose program is the probe, and returns what it saw, or how it failed.
pub fn observe(
    scratch: &Scratch,
    runtime: &Runtime,
    bundle: &Bundle,
) -> Result<Value, Box<Finished>> {
    let id = scratch.unique();
    let words = ["run", "--bundle", bundle.path(), &id];
    let finished = runtime.command(scratch, &words).finish();
    if !finished.status.success() {
        return Err(Box::new(finished));
    }
    let mut seen = finished.json();
    let map = seen.as_object_mut().expect("the probe prints an object");
    map.insert("after".to_owned(), image(&bundle.rootfs()));
    normalise(&mut seen, bundle, &id);
    Ok(seen)
}

/// What differs from one run to the next and means nothing is replaced.
pub fn normalise(seen: &mut Value, bundle: &Bundle, id: &str) {
    let spellings = spellings(bundle, id);
    replace_strings(seen, &spellings);
    namespaces(seen);
    if let Some(serial) = seen.pointer_mut("/keyring/id")
        && serial.is_number()
    {
        *serial = json!("some");
    }
    for number in ["pid", "ppid", "pgrp", "session"] {
        if let Some(value) = seen.pointer_mut(&format!("/process/{number}")) {
            let text = value.to_string();
            if !["0", "1", "\"0\"", "\"1\""].contains(&text.as_str()) {
                *value = json!("of the host");
            }
        }
    }
    if let Some(descriptors) = seen
        .pointer_mut("/descriptors")
        .and_then(Value::as_object_mut)
    {
        for descriptor in descriptors.values_mut() {
            let target = descriptor["target"].as_str().unwrap_or_default().to_owned();
            if let Some((kind, _)) = target.split_once(":[") {
                descriptor["target"] = json!(kind);
            } else if target.contains("/output-") {
                descriptor["target"] = json!("the harness's file");
            }
        }
    }
    other_tests(seen);
    // Signals 32 and 33 are the C library's own: it may ignore them in what it spawns.
    if let Some(mask) = seen.pointer_mut("/signals/SigIgn") {
        let bits = mask
            .as_str()
            .and_then(|text| u64::from_str_radix(text, 16).ok());
        *mask = json!(bits.map(|bits| format!("{:016x}", bits & !(3 << 31))));
    }
    // The kernel lists the rules in the order of writing, which decides nothing.
    if let Some(limits) = seen
        .pointer_mut("/cgroup/limits")
        .and_then(Value::as_object_mut)
    {
        for (path, lines) in limits {
            if path.ends_with("devices.list")
                && let Some(lines) = lines.as_array_mut()
            {
                lines.sort_by_key(Value::to_string);
            }
        }
    }
}

/// Where a container sees the whole hierarchy, it sees the groups of the tests that
/// run at the same time.
fn other_tests(seen: &mut Value) {
    for name in ["limits", "make_group"] {
        if let Some(map) = seen
            .pointer_mut(&format!("/cgroup/{name}"))
            .and_then(Value::as_object_mut)
        {
            map.retain(|path, _| !crate::scratch::has_token(path));
        }
    }
    if let Some(entries) = seen
        .pointer_mut("/cgroup/entries")
        .and_then(Value::as_array_mut)
    {
        entries.retain(|entry| !entry.as_str().is_some_and(crate::scratch::has_token));
    }
}

/// The strings to replace, the longest first. A mount's root is written relative to
/// its file system, so the bundle's path is also known by its tail.
fn spellings(bundle: &Bundle, id: &str) -> Vec<(String, &'static str)> {
    let path = bundle.path();
    let mut all = vec![(path.to_owned(), "@BUNDLE@")];
    let mut rest = path;
    while let Some((_, tail)) = rest.trim_start_matches('/').split_once('/') {
        all.push((format!("/{tail}"), "@BUNDLE@"));
        rest = tail;
    }
    all.push((bundle.cgroup.clone(), "@CGROUP@"));
    all.push((id.to_owned(), "@ID@"));
    all
}

fn replace_strings(value: &mut Value, spellings: &[(String, &'static str)]) {
    match value {
        Value::String(text) => {
            for (from, to) in spellings {
                if text.contains(from) {
                    *text = text.replace(from, to);
                }
            }
        }
        Value::Array(items) => {
            items
                .iter_mut()
                .for_each(|item| replace_strings(item, spellings));
        }
        Value::Object(map) => map
            .values_mut()
            .for_each(|item| replace_strings(item, spellings)),
        _ => {}
    }
}

/// `net:[…]` becomes "host" or "other".
fn namespaces(seen: &mut Value) {
    let Some(links) = seen
        .pointer_mut("/namespaces")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for (name, link) in links {
        let own = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap_or_default();
        if let Some(target) = link.as_str() {
            *link = json!(if own == Path::new(target) {
                "host"
            } else {
                "other"
            });
        }
    }
}

/// The image after the run, without busybox's links: which mount points were made,
/// of what kind and with which mode.
fn image(root: &Path) -> Value {
    let mut found = Map::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            if metadata.is_dir() {
                pending.push(path.clone());
            } else if directory.ends_with("bin") {
                continue;
            }
            let kind = match metadata.file_type() {
                kind if kind.is_dir() => "directory",
                kind if kind.is_symlink() => "link",
                kind if kind.is_file() => "file",
                kind if kind.is_char_device() => "character",
                kind if kind.is_block_device() => "block",
                _ => "other",
            };
            let name = path
                .strip_prefix(root)
                .expect("below the root")
                .to_string_lossy();
            let text = format!(
                "{kind} {:04o} {}:{}",
                metadata.mode() & 0o7777,
                metadata.uid(),
                metadata.gid()
            );
            found.insert(format!("/{name}"), json!(text));
        }
    }
    Value::Object(found)
}

/// The leaves of a document by their JSON pointer. A list of plain values is one leaf.
pub fn leaves(value: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    gather(value, String::new(), &mut found);
    found
}

fn gather(value: &Value, path: String, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, item) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                gather(item, format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (index, item) in items.iter().enumerate() {
                gather(item, format!("{path}/{index}"), found);
            }
        }
        leaf => {
            found.insert(path, leaf.clone());
        }
    }
}
