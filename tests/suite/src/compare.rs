//! The rule of the comparison: at each leaf pipkin equals runc or crun, or the
//! difference stands in [`crate::differences`] with its reason.

use crate::differences::{self, Difference};
use crate::observe;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One leaf where pipkin equals no oracle.
#[derive(Debug, Clone)]
pub struct Deviation {
    /// The case.
    pub case: String,
    /// The JSON pointer of the leaf.
    pub path: String,
    /// What pipkin has there and what the oracles have.
    pub values: String,
}

/// The leaves where `ours` equals none of the oracles.
pub fn deviations(case: &str, ours: &Value, oracles: &[(&str, &Value)]) -> Vec<Deviation> {
    assert!(!oracles.is_empty(), "{case}: nothing to compare with");
    let ours = observe::leaves(ours);
    let oracles: Vec<_> = oracles
        .iter()
        .map(|(name, value)| (*name, observe::leaves(value)))
        .collect();
    let mut paths: BTreeSet<&String> = ours.keys().collect();
    for (_, leaves) in &oracles {
        paths.extend(leaves.keys());
    }
    let mut found = Vec::new();
    for path in paths {
        let own = ours.get(path);
        if oracles.iter().any(|(_, leaves)| leaves.get(path) == own) {
            continue;
        }
        let mut values = format!("pipkin {}", show(own));
        for (name, leaves) in &oracles {
            values.push_str(&format!(", {name} {}", show(leaves.get(path))));
        }
        found.push(Deviation {
            case: case.to_owned(),
            path: path.clone(),
            values,
        });
    }
    found
}

fn show(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// Collects deviations over all cases and settles them against the list.
#[derive(Default)]
pub struct Ledger {
    unlisted: Vec<Deviation>,
    used: BTreeSet<usize>,
}

impl Ledger {
    /// Adds what a case found.
    pub fn add(&mut self, deviations: Vec<Deviation>) {
        for deviation in deviations {
            let listed = differences::ALL
                .iter()
                .enumerate()
                .filter(|(_, listed)| applies(listed, &deviation))
                .map(|(index, _)| index)
                .collect::<Vec<_>>();
            if listed.is_empty() {
                self.unlisted.push(deviation);
            }
            self.used.extend(listed);
        }
    }

    /// What the list does not explain, one line for each place and value.
    pub fn unlisted(&self) -> Vec<String> {
        let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for one in &self.unlisted {
            groups
                .entry((&one.path, &one.values))
                .or_default()
                .push(&one.case);
        }
        groups
            .into_iter()
            .map(|((path, values), cases)| {
                let others = cases.len().saturating_sub(3);
                let some = cases.into_iter().take(3).collect::<Vec<_>>().join(", ");
                let more = if others > 0 {
                    format!(" and {others} more")
                } else {
                    String::new()
                };
                format!("{path}: {values} [{some}{more}]")
            })
            .collect()
    }

    /// The entries of the list that explained nothing.
    pub fn stale(&self) -> Vec<String> {
        differences::ALL
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.used.contains(index))
            .map(|(_, one)| format!("{} {}: {}", one.case, one.path, one.reason))
            .collect()
    }
}

fn applies(listed: &Difference, deviation: &Deviation) -> bool {
    matches(listed.case, &deviation.case) && matches(listed.path, &deviation.path)
}

/// `*` in a pattern stands for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len())
                .filter(|index| tail.is_char_boundary(*index))
                .any(|index| matches(rest, &tail[index..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_leaf_may_equal_either_oracle() {
        let ours = json!({ "a": 1, "b": { "c": [1, 2] } });
        let runc = json!({ "a": 1, "b": { "c": [2] } });
        let crun = json!({ "a": 2, "b": { "c": [1, 2] } });
        assert!(deviations("x", &ours, &[("runc", &runc), ("crun", &crun)]).is_empty());
    }

    #[test]
    fn a_leaf_that_equals_neither_is_found_also_when_missing() {
        let ours = json!({ "a": 3 });
        let runc = json!({ "a": 1, "b/c": [] });
        let crun = json!({ "a": 2, "b/c": ["x"] });
        let found = deviations("x", &ours, &[("runc", &runc), ("crun", &crun)]);
        let paths: Vec<_> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/b~1c"]);
    }

    #[test]
    fn stars_stand_for_any_text() {
        assert!(matches("/a/*/c", "/a/b/b/c"));
        assert!(matches("*", ""));
        assert!(!matches("/a/*/c", "/a/b/d"));
        assert!(!matches("/a", "/a/b"));
    }
}
