//! `linux.seccomp`: runtime-spec, config-linux.md, "Seccomp".

use serde::Deserialize;

use crate::nullable;

/// A system call filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Seccomp {
    /// Action for a call that no rule matches, `SCMP_ACT_…`.
    pub default_action: String,
    /// errno of a default `SCMP_ACT_ERRNO` or `SCMP_ACT_TRACE`.
    pub default_errno_ret: Option<u32>,
    /// `SCMP_ARCH_…`; the native architecture is always included.
    #[serde(deserialize_with = "nullable")]
    pub architectures: Vec<String>,
    /// `SECCOMP_FILTER_FLAG_…`; an empty list is not the same as none.
    pub flags: Option<Vec<String>>,
    /// Socket that receives the notification descriptor.
    pub listener_path: Option<String>,
    /// Passed to the listener with the descriptor.
    pub listener_metadata: Option<String>,
    /// Rules.
    #[serde(deserialize_with = "nullable")]
    pub syscalls: Vec<Rule>,
}

/// One rule of a filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// Names of system calls; one that the architecture lacks is skipped.
    #[serde(deserialize_with = "nullable")]
    pub names: Vec<String>,
    /// `SCMP_ACT_…`.
    pub action: String,
    /// errno of an `SCMP_ACT_ERRNO` or `SCMP_ACT_TRACE`.
    pub errno_ret: Option<u32>,
    /// All must hold.
    #[serde(deserialize_with = "nullable")]
    pub args: Vec<Arg>,
}

/// A condition on one argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Arg {
    /// 0 to 5.
    pub index: u32,
    /// Compared with; the mask of `SCMP_CMP_MASKED_EQ`.
    pub value: u64,
    /// Compared with, for `SCMP_CMP_MASKED_EQ`.
    pub value_two: u64,
    /// `SCMP_CMP_…`.
    pub op: String,
}
