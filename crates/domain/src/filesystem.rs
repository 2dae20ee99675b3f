//! File systems that are created on targets.

use serde::{Deserialize, Serialize};

/// The supported file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fs {
    /// XFS
    Xfs,
    /// ext4
    Ext4,
}

impl Fs {
    /// All file systems.
    pub const ALL: [Fs; 2] = [Fs::Xfs, Fs::Ext4];

    /// Name of the type, for mount.
    pub fn name(self) -> &'static str {
        match self {
            Fs::Xfs => "xfs",
            Fs::Ext4 => "ext4",
        }
    }

    /// Its name in a line of help.
    pub fn help(self) -> &'static str {
        match self {
            Fs::Xfs => "XFS",
            Fs::Ext4 => "ext4",
        }
    }

    /// The program that creates it.
    pub fn tool(self) -> &'static str {
        match self {
            Fs::Xfs => "mkfs.xfs",
            Fs::Ext4 => "mkfs.ext4",
        }
    }
}
