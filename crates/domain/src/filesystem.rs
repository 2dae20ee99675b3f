//! File systems that are made on targets.

use serde::{Deserialize, Serialize};

/// The file systems that are made.
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
    /// Name of the type, as mount takes it.
    pub const ALL: [Fs; 2] = [Fs::Xfs, Fs::Ext4];

    /// As mount takes it.
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

    /// The program that makes it.
    pub fn tool(self) -> &'static str {
        match self {
            Fs::Xfs => "mkfs.xfs",
            Fs::Ext4 => "mkfs.ext4",
        }
    }
}
