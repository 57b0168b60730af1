//! Device rules: deny by default, the last rule that matches decides.

use pipkin_spec::resources::DeviceRule;

use super::Write;
use crate::Invalid;

/// What a container may do with device nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {}

/// The policy of a container's `linux.resources.devices`: deny all, then the rules in
/// order, then the devices that every container has.
///
/// # Errors
/// A rule with an unknown type or access letter, or a number out of range.
pub fn policy(_rules: &[DeviceRule]) -> Result<Policy, Invalid> {
    Ok(Policy {})
}

impl Policy {
    /// Whether everything is allowed, so that nothing needs to be written or attached.
    #[must_use]
    pub fn allows_all(&self) -> bool {
        true
    }

    /// The writes for the v1 controller in a new group.
    ///
    /// # Errors
    /// A device that is denied below an allowed wildcard, which v1 cannot express.
    pub fn v1_writes(&self) -> Result<Vec<Write>, Invalid> {
        Ok(Vec::new())
    }

    /// The v2 program: eBPF instructions in the machine's byte order.
    #[must_use]
    pub fn program(&self) -> Vec<u8> {
        Vec::new()
    }
}
