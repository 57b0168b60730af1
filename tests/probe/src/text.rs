//! Small readers of the kernel's text files.

use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// At most this much of any file is read: what is looked at may be endless.
const LIMIT: u64 = 1 << 20;

/// The content of a file, at most [`LIMIT`] bytes of it.
pub fn read(path: impl AsRef<Path>) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(LIMIT)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The kernel's name of an error.
pub fn errno(error: &std::io::Error) -> String {
    match rustix::io::Errno::from_io_error(error) {
        Some(errno) => errno_name(errno),
        None => error.to_string(),
    }
}

/// The kernel's name of an error number; the number itself for a rare one.
pub fn errno_name(errno: rustix::io::Errno) -> String {
    use rustix::io::Errno as E;
    let known = [
        (E::PERM, "EPERM"),
        (E::NOENT, "ENOENT"),
        (E::SRCH, "ESRCH"),
        (E::IO, "EIO"),
        (E::NXIO, "ENXIO"),
        (E::BADF, "EBADF"),
        (E::ACCESS, "EACCES"),
        (E::BUSY, "EBUSY"),
        (E::EXIST, "EEXIST"),
        (E::NODEV, "ENODEV"),
        (E::NOTDIR, "ENOTDIR"),
        (E::ISDIR, "EISDIR"),
        (E::INVAL, "EINVAL"),
        (E::NOTTY, "ENOTTY"),
        (E::TXTBSY, "ETXTBSY"),
        (E::NOSPC, "ENOSPC"),
        (E::ROFS, "EROFS"),
        (E::LOOP, "ELOOP"),
        (E::NOSYS, "ENOSYS"),
        (E::OPNOTSUPP, "EOPNOTSUPP"),
        (E::USERS, "EUSERS"),
        (E::NETUNREACH, "ENETUNREACH"),
        (E::ADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (E::NOKEY, "ENOKEY"),
        (E::OVERFLOW, "EOVERFLOW"),
    ];
    known.iter().find(|(value, _)| *value == errno).map_or_else(
        || format!("errno {}", errno.raw_os_error()),
        |(_, name)| (*name).to_owned(),
    )
}

/// "ok", or the name of the error.
pub fn outcome<T, E: Into<std::io::Error>>(result: Result<T, E>) -> Value {
    match result {
        Ok(_) => json!("ok"),
        Err(error) => json!(errno(&error.into())),
    }
}

/// The trimmed content of a file, or `{"error": errno}`.
pub fn value(path: impl AsRef<Path>) -> Value {
    match read(path) {
        Ok(text) => json!(text.trim_end()),
        Err(error) => json!({ "error": errno(&error) }),
    }
}

/// The lines of a file, white space in each reduced to one blank, or `{"error": errno}`.
pub fn lines(path: impl AsRef<Path>) -> Value {
    match read(path) {
        Ok(text) => text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
            .into(),
        Err(error) => json!({ "error": errno(&error) }),
    }
}

/// The strings of a file that separates them with NUL.
pub fn nul_separated(path: &str) -> Vec<String> {
    let text = read(path).unwrap_or_default();
    let mut strings: Vec<String> = text.split('\0').map(str::to_owned).collect();
    if strings.last().is_some_and(String::is_empty) {
        strings.pop();
    }
    strings
}

/// The value of `key:` in a file such as /proc/self/status.
pub fn field(text: &str, key: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Adds an entry to a JSON object.
pub fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}
