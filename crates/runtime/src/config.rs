//! Reading config.json.

use std::path::{Path, PathBuf};

use pipkin_spec::Config;

use crate::request::CreateRequest;
use crate::{Error, Result, pointer};

/// A bundle: its directory and its configuration.
pub struct Bundle {
    /// Absolute path, links resolved.
    pub path: PathBuf,
    /// What stands in its configuration.
    pub config: Config,
}

/// Largest configuration that is read, in bytes.
const MAX: u64 = 64 << 20;

/// Reads the configuration of a request.
///
/// # Errors
/// A bundle that is not a directory; a configuration that cannot be read, with line, column
/// and JSON pointer where it is not JSON or not what the specification says.
pub fn read(request: &CreateRequest) -> Result<Bundle> {
    let given = if request.bundle.as_os_str().is_empty() {
        Path::new(".")
    } else {
        request.bundle.as_path()
    };
    let path = given.canonicalize().map_err(|error| {
        Error::io(format!("bundle {}", given.display()), &error)
            .with_hint("give the directory that holds config.json with --bundle")
    })?;
    if !path.is_dir() {
        return Err(
            Error::new(format!("bundle {} is not a directory", given.display()))
                .with_hint("give the directory that holds config.json, not a file"),
        );
    }
    let file = match &request.config_file {
        Some(file) => path.join(file),
        None => path.join("config.json"),
    };
    let text = read_file(&file)?;
    let config = parse(&file, &text)?;
    Ok(Bundle { path, config })
}

fn read_file(file: &Path) -> Result<Vec<u8>> {
    let fail =
        |error: std::io::Error| Error::io(format!("configuration {}", file.display()), &error);
    let metadata = std::fs::metadata(file).map_err(fail)?;
    if metadata.len() > MAX {
        let message = format!(
            "configuration {} is larger than {MAX} bytes",
            file.display()
        );
        return Err(Error::new(message));
    }
    std::fs::read(file).map_err(fail)
}

/// Parses a configuration. The place of a mistake is looked for only when there is one.
///
/// # Errors
/// Line, column and JSON pointer of the first mistake.
pub fn parse(file: &Path, text: &[u8]) -> Result<Config> {
    // The whole text is checked once, which is faster than string by string.
    let text = std::str::from_utf8(text).map_err(|error| {
        let before = text.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.split(|&byte| byte == b'\n').count();
        let start = before.iter().rposition(|&byte| byte == b'\n');
        let column = before.len() - start.map_or(0, |at| at + 1) + 1;
        Error {
            message: format!(
                "{}: line {line}, column {column}: not UTF-8",
                file.display()
            ),
            pointer: Some(pointer::at(before, before.len())),
            ..Error::default()
        }
    })?;
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let place = format!("{}: line {line}, column {column}", file.display());
        let words = error.to_string();
        let what = words.split(" at line ").next().unwrap_or(&words);
        // Columns are counted in bytes.
        let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
        let offset = lines.map(str::len).sum::<usize>() + column;
        Error {
            message: format!("{place}: {what}"),
            pointer: Some(pointer::at(text.as_bytes(), offset)),
            ..Error::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Error {
        parse(Path::new("config.json"), text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_mistake_has_its_place() {
        let error = fault("{\n  \"process\": {\n    \"args\": [1]\n  }\n}");
        assert_eq!(error.pointer.as_deref(), Some("/process/args/0"));
        assert!(
            error
                .message
                .starts_with("config.json: line 3, column 14: invalid type"),
            "{}",
            error.message
        );
        let error = fault("{\"mounts\": [{}, {\"options\": 7}]}");
        assert_eq!(error.pointer.as_deref(), Some("/mounts/1/options"));
        let error = fault("{\"a\": 1");
        assert!(
            error.message.contains("config.json: line 1, column 7: EOF"),
            "{}",
            error.message
        );
        let error = fault("{\n\"hooks\": {\"prestart\": [{\"path\": \"/a\"}, {\"args\": 3}]}}");
        assert_eq!(error.pointer.as_deref(), Some("/hooks/prestart/1/args"));
        assert!(error.message.contains("line 2"), "{}", error.message);
        let error = parse(Path::new("config.json"), b"{\"a\":\n \"\xff\"}").unwrap_err();
        assert_eq!(error.pointer.as_deref(), Some("/a"));
        assert!(
            error.message.contains("line 2, column 3"),
            "{}",
            error.message
        );
        let error = fault("{} {}");
        assert!(
            error.message.contains("trailing characters"),
            "{}",
            error.message
        );
    }

    #[test]
    fn nulls_and_unknown_fields_are_nothing() {
        let text = b"{\"mounts\": null, \"process\": {\"env\": null}, \"future\": {\"x\": [1]}}";
        let config = parse(Path::new("config.json"), text).unwrap();
        assert!(config.mounts.is_empty());
    }
}
