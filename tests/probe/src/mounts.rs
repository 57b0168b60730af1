//! The mount table.

use crate::text;
use serde_json::{Map, Value, json};

/// Every mount under its mount point; a second one on the same point gets `#2`.
pub fn table() -> Value {
    let text = match text::read("/proc/self/mountinfo") {
        Ok(text) => text,
        Err(error) => return json!({ "error": text::errno(&error) }),
    };
    let mut table = Map::new();
    for line in text.lines() {
        let Some((point, mount)) = parse(line) else {
            table.insert(format!("unreadable {line}"), Value::Null);
            continue;
        };
        let mut key = point.clone();
        let mut count = 1;
        while table.contains_key(&key) {
            count += 1;
            key = format!("{point}#{count}");
        }
        table.insert(key, mount);
    }
    Value::Object(table)
}

/// One line: `id parent major:minor root point options [tags...] - type source super`.
fn parse(line: &str) -> Option<(String, Value)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let root = left.next()?;
    let point = left.next()?;
    let options = left.next()?;
    let mut right = right.split(' ');
    let fstype = right.next()?;
    let source = right.next()?;
    let superblock = right.next().unwrap_or_default();
    let mount = json!({
        "root": root,
        "type": fstype,
        "source": source,
        "options": options.split(',').collect::<Vec<_>>(),
        "super": superblock.split(',').collect::<Vec<_>>(),
        "propagation": propagation(left),
    });
    Some((point.to_owned(), mount))
}

/// The tags without the numbers of peer groups, which differ at each run.
fn propagation<'a>(tags: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut kinds: Vec<&str> = tags
        .map(|tag| match tag.split(':').next().unwrap_or_default() {
            "master" => "slave",
            other => other,
        })
        .filter(|kind| *kind != "propagate_from")
        .collect();
    if kinds.is_empty() {
        kinds.push("private");
    }
    kinds
}
