//! The JSON documents of the OCI runtime specification 1.3 as Rust types: the
//! configuration of a container ([`config`]), its state ([`state`]) and what the
//! runtime can do ([`features`]). Types only; what a value means is decided in
//! `pipkin-plan`.
//!
//! Names that the specification enumerates (capabilities, namespace types, mount
//! options, seccomp actions) stay strings here, so that a wrong one can be reported
//! with its place in the document and with what would have been right.

#![forbid(unsafe_code)]

pub mod config;
pub mod features;
pub mod resources;
pub mod seccomp;
pub mod state;

pub use config::Config;
pub use features::Features;
pub use resources::Resources;
pub use seccomp::Seccomp;
pub use state::{ContainerState, Status};

/// The version of the runtime specification that these types follow.
pub const OCI_VERSION: &str = "1.3.0";

/// Reads `null` as the default. Go programs write `null` for an empty list or map.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + serde::Deserialize<'de>,
{
    <Option<T> as serde::Deserialize>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A field that pipkin knows by name but does not act on: its presence is recorded,
/// its value skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Present;

impl<'de> serde::Deserialize<'de> for Present {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}
