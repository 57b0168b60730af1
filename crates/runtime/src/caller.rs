//! Who runs this program.

use std::path::PathBuf;

use crate::request::Rootless;

/// Effective user and group.
#[must_use]
pub fn ids() -> (u32, u32) {
    pipkin_sys::entry::ids()
}

/// Where the state of containers is kept unless the caller says otherwise: below /run
/// for root, else below the user's run-time directory.
#[must_use]
pub fn state_root(rootless: Rootless) -> PathBuf {
    let (user, _) = ids();
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    match (user, own) {
        (0, Some(own)) if rootless == Rootless::True => PathBuf::from(own).join("pipkin"),
        (0, _) => PathBuf::from("/run/pipkin"),
        (_, Some(own)) => PathBuf::from(own).join("pipkin"),
        (user, None) => PathBuf::from(format!("/run/user/{user}/pipkin")),
    }
}

/// The name of a user id in the host's passwd; its number where it has none.
#[must_use]
pub fn name(uid: u32) -> String {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let number = uid.to_string();
    let found = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    found.unwrap_or(number)
}
