//! Reading config.json.

use std::path::{Component, Path, PathBuf};

use pipkin_spec::Config;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::request::CreateRequest;
use crate::{Error, Result, pointer};

/// A bundle: its directory and its configuration.
pub struct Bundle {
    /// Absolute path.
    pub path: PathBuf,
    /// What stands in its configuration.
    pub config: Config,
}

/// Largest configuration that is read, in bytes.
const MAX: usize = 64 << 20;

/// Reads the configuration of a request.
///
/// # Errors
/// A bundle that is not a directory; a configuration that cannot be read, with line, column
/// and JSON pointer where it is not JSON or not what the specification says.
pub fn read(request: &CreateRequest) -> Result<Bundle> {
    let path = absolute(&request.bundle)?;
    let file = match &request.config_file {
        Some(file) => path.join(file),
        None => path.join("config.json"),
    };
    let text = read_file(&file).map_err(|error| match bundle_fault(&request.bundle, &path) {
        Some(error) => error,
        None => Error::io(format!("configuration {}", file.display()), &error),
    })?;
    let config = parse(&file, &text)?;
    Ok(Bundle { path, config })
}

/// The path of the bundle from the root; the current directory's where none is given. Links
/// are followed only where `..` needs it, which in a path means the parent of what a link
/// leads to.
fn absolute(given: &Path) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    if given.is_relative() {
        path =
            std::env::current_dir().map_err(|error| Error::io("the current directory", &error))?;
    }
    // Without `.`, doubled slashes and a slash at the end.
    let parts = given.components();
    path.extend(parts.filter(|part| *part != Component::CurDir));
    if path.components().any(|part| part == Component::ParentDir) {
        return path
            .canonicalize()
            .map_err(|error| no_bundle(given, &error));
    }
    Ok(path)
}

/// What is wrong with a bundle whose configuration cannot be read.
#[cold]
fn bundle_fault(given: &Path, path: &Path) -> Option<Error> {
    match std::fs::metadata(path) {
        Err(error) => Some(no_bundle(given, &error)),
        Ok(metadata) if metadata.is_dir() => None,
        Ok(_) => Some(
            Error::new(format!("bundle {} is not a directory", given.display()))
                .with_hint("give the directory that holds config.json, not a file"),
        ),
    }
}

#[cold]
fn no_bundle(given: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("bundle {}", given.display()), error)
        .with_hint("give the directory that holds config.json with --bundle")
}

/// The content of a file, of at most `MAX` bytes.
fn read_file(file: &Path) -> std::io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(file, flags, Mode::empty())?;
    let size = rustix::fs::fstat(&file)?.st_size;
    let size = usize::try_from(size).unwrap_or(0);
    if size > MAX {
        return Err(Errno::FBIG.into());
    }
    // With room for one byte more, a read that does not fill it has come to the end.
    let mut text = Vec::with_capacity(size + 1);
    loop {
        let count = rustix::io::retry_on_intr(|| {
            rustix::io::read(&file, rustix::buffer::spare_capacity(&mut text))
        })?;
        // What is no regular file, and has no size, ends where nothing more is read.
        if count == 0 || size > 0 && text.len() == size {
            return Ok(text);
        }
        if text.len() > MAX {
            return Err(Errno::FBIG.into());
        }
        text.reserve(1 << 16);
    }
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
            pointer: named(pointer::at(before, before.len())),
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
            pointer: named(pointer::at(text.as_bytes(), offset)),
            ..Error::default()
        }
    })
}

/// The whole document is not named by a pointer.
fn named(pointer: String) -> Option<String> {
    Some(pointer).filter(|pointer| !pointer.is_empty())
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
        assert_eq!(error.pointer.as_deref(), Some("/a"));
        let error = fault("{} {}");
        assert_eq!(error.pointer, None);
        assert!(
            error.message.contains("trailing characters"),
            "{}",
            error.message
        );
    }

    /// A directory that is removed with the value.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = format!("pipkin-config-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(path);
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn read_bundle(bundle: &Path) -> Result<Bundle> {
        read(&CreateRequest {
            bundle: bundle.into(),
            ..CreateRequest::default()
        })
    }

    #[test]
    fn a_bundle_that_is_none_is_told_from_one_without_a_configuration() {
        let scratch = Scratch::new("faults");
        let fault = |path: &Path| read_bundle(path).err().unwrap().message;
        let missing = scratch.0.join("missing");
        assert_eq!(
            fault(&missing),
            format!("bundle {}: No such file or directory", missing.display())
        );
        let file = scratch.0.join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            fault(&file),
            format!("bundle {} is not a directory", file.display())
        );
        assert_eq!(
            fault(&scratch.0),
            format!(
                "configuration {}/config.json: No such file or directory",
                scratch.0.display()
            )
        );
    }

    #[test]
    fn a_bundles_path_begins_at_the_root() {
        let scratch = Scratch::new("path");
        std::fs::write(scratch.0.join("config.json"), "{}").unwrap();
        let current = std::env::current_dir().unwrap();
        for (given, path) in [("", ""), (".", ""), ("./a/.//b/", "/a/b")] {
            let expected = format!("{}{path}", current.display());
            let found = absolute(Path::new(given)).unwrap();
            assert_eq!(found.as_os_str(), expected.as_str(), "{given}");
        }
        let found = absolute(Path::new("/a//b/.")).unwrap();
        assert_eq!(found.as_os_str(), "/a/b");
        let up = scratch.0.join("..").join(scratch.0.file_name().unwrap());
        assert_eq!(
            read_bundle(&up).unwrap().path,
            scratch.0.canonicalize().unwrap()
        );
        let link = scratch.0.join("link");
        std::os::unix::fs::symlink(&scratch.0, &link).unwrap();
        assert_eq!(read_bundle(&link).unwrap().path, link);
    }

    #[test]
    fn a_file_is_read_whole_whatever_it_is() {
        let scratch = Scratch::new("read");
        let file = scratch.0.join("file");
        for size in [0, 1, 4096, 100_000] {
            let text = vec![b'x'; size];
            std::fs::write(&file, &text).unwrap();
            assert_eq!(read_file(&file).unwrap(), text);
        }
        assert!(read_file(Path::new("/proc/self/maps")).unwrap().len() > 100);
        let large = std::fs::File::create(&file).unwrap();
        large.set_len(MAX as u64 + 1).unwrap();
        assert_eq!(read_file(&file).unwrap_err().raw_os_error(), Some(27));
        assert_eq!(
            read_file(Path::new("/dev/zero"))
                .unwrap_err()
                .raw_os_error(),
            Some(27)
        );
    }

    #[test]
    fn nulls_and_unknown_fields_are_nothing() {
        let text = b"{\"mounts\": null, \"process\": {\"env\": null}, \"future\": {\"x\": [1]}}";
        let config = parse(Path::new("config.json"), text).unwrap();
        assert!(config.mounts.is_empty());
    }
}
