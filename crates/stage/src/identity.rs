//! Namespaces that are joined, and what the process may do.

use core::ffi::CStr;

use pipkin_sys::process;
use pipkin_sys::{Errno, Result};

use crate::Failure;

/// User and group 0 of the user namespace, with all its capabilities.
pub fn become_root() -> Result<()> {
    process::setgid(0)?;
    process::setuid(0)?;
    // What kept the capabilities over execve(2) has done so.
    process::clear_ambient()
}

/// A new session keyring; who has the user id may search it, as session-keyring(7) keyrings
/// that pam_keyinit makes allow. A kernel without keys has nothing to protect.
pub fn join_keyring(name: &CStr) -> Result<()> {
    /// What the kernel gives a new session keyring (`join_session_keyring`): everything to its
    /// possessor, view, read and link to its owner; and search.
    const PERMISSIONS: u32 = 0x3f1b_0000;
    let key = match process::join_session_keyring(name) {
        Err(Errno::ENOSYS) => return Ok(()),
        // The quota of keys (root_maxkeys) is not the container's fault.
        other => other?,
    };
    process::set_key_permissions(key, PERMISSIONS)
}

/// Drops every capability from the bounding set but those to keep, up to the last that the
/// kernel has.
pub fn bounding_set(keep: u64) -> Result<()> {
    for capability in (0..64).filter(|capability| keep & 1 << capability == 0) {
        match process::drop_bounding(capability) {
            Err(Errno::EINVAL) => break,
            other => other?,
        }
    }
    Ok(())
}

/// Changes all user and group ids and keeps the permitted capabilities over it.
pub fn change_user(uid: u32, gid: u32) -> Result<()> {
    process::keep_capabilities(true)?;
    process::setgid(gid)?;
    process::setuid(uid)?;
    process::keep_capabilities(false)
}

/// PR_CAP_AMBIENT_RAISE of each; one that is not permitted and inheritable is left out, as
/// the other runtimes do.
pub fn raise_ambient(set: u64) -> core::result::Result<(), Failure> {
    for capability in (0..64).filter(|capability| set & 1 << capability != 0) {
        match process::raise_ambient(capability) {
            Err(Errno::EPERM) => {}
            other => other?,
        }
    }
    Ok(())
}
