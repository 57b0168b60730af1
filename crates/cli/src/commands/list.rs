//! `list`, and JSON as every command prints it.

use std::fmt::Write as _;

use pipkin_runtime::request::ListEntry;
use pipkin_runtime::{Error, Result};

use crate::args::{ListArgs, ListFormat};

/// Narrowest width of a column, and what is left between two.
const WIDTH: usize = 12;
const SPACE: usize = 3;

/// The list in the form that is asked for. Names alone come first: they are the same in
/// every form.
#[inline(never)]
pub fn format(args: &ListArgs, entries: &[ListEntry]) -> Result<String> {
    match args.format {
        _ if args.quiet => Ok(entries
            .iter()
            .map(|entry| format!("{}\n", entry.id))
            .collect()),
        ListFormat::Table => Ok(table(entries)),
        ListFormat::Json => serde_json::to_string(entries)
            .map(line)
            .map_err(unprintable),
    }
}

/// A document as indented JSON with its line end.
pub fn json(document: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string_pretty(document)
        .map(line)
        .map_err(unprintable)
}

fn line(mut text: String) -> String {
    text.push('\n');
    text
}

fn unprintable(error: serde_json::Error) -> Error {
    Error::new(format!("writing JSON: {error}"))
}

/// runc's columns, each as wide as its widest cell and the last one as it is.
fn table(entries: &[ListEntry]) -> String {
    let heads = ["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(heads)
        .chain(entries.iter().map(row))
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count() + SPACE)
            .fold(WIDTH, usize::max)
    };
    let mut text = String::new();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let width = if column + 1 < row.len() {
                width(column)
            } else {
                0
            };
            let _ = write!(text, "{cell:width$}");
        }
        text.push('\n');
    }
    text
}

fn row(entry: &ListEntry) -> [String; 6] {
    [
        entry.id.clone(),
        entry.pid.to_string(),
        entry.status.as_str().to_owned(),
        entry.bundle.clone(),
        entry.created.clone(),
        entry.owner.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use pipkin_spec::Status;

    use super::*;

    fn entries() -> Vec<ListEntry> {
        let entry = |id: &str, pid, status| ListEntry {
            oci_version: "1.3.0".into(),
            id: id.into(),
            pid,
            status,
            bundle: "/b".into(),
            rootfs: "/b/rootfs".into(),
            created: "2026-11-30T23:34:01.000000001Z".into(),
            owner: "root".into(),
        };
        vec![
            entry("web", 17, Status::Running),
            entry("long-enough-a-name", 0, Status::Stopped),
        ]
    }

    #[test]
    fn a_table_has_runcs_columns() {
        let args = ListArgs::default();
        assert_eq!(
            format(&args, &[]).unwrap(),
            "ID          PID         STATUS      BUNDLE      CREATED     OWNER\n"
        );
        assert_eq!(
            format(&args, &entries()).unwrap(),
            "\
ID                   PID         STATUS      BUNDLE      CREATED                          OWNER
web                  17          running     /b          2026-11-30T23:34:01.000000001Z   root
long-enough-a-name   0           stopped     /b          2026-11-30T23:34:01.000000001Z   root
"
        );
    }

    #[test]
    fn names_alone() {
        let args = ListArgs {
            quiet: true,
            format: ListFormat::Json,
        };
        assert_eq!(
            format(&args, &entries()).unwrap(),
            "web\nlong-enough-a-name\n"
        );
        assert_eq!(format(&args, &[]).unwrap(), "");
    }

    #[test]
    fn json_has_the_names_that_engines_read() {
        let args = ListArgs {
            quiet: false,
            format: ListFormat::Json,
        };
        assert_eq!(format(&args, &[]).unwrap(), "[]\n");
        let list: serde_json::Value =
            serde_json::from_str(&format(&args, &entries()).unwrap()).unwrap();
        assert_eq!(
            list[0],
            serde_json::json!({
                "ociVersion": "1.3.0", "id": "web", "pid": 17, "status": "running",
                "bundle": "/b", "rootfs": "/b/rootfs",
                "created": "2026-11-30T23:34:01.000000001Z", "owner": "root",
            })
        );
    }
}
