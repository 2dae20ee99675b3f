//! Names of disks.

use serde::Serialize;

/// A disk of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiskName {
    /// The host.
    pub(crate) hostname: String,
    /// The kernel's name.
    pub(crate) name: String,
}
