//! Disks of a machine.

use std::path::PathBuf;

/// Source of a disk's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskContent {
    /// An NBD server.
    Socket {
        /// Path of the server's unix socket.
        path: PathBuf,
        /// The name of the export; empty for the default export.
        export: String,
    },
    /// A file in raw format.
    File(PathBuf),
}

/// A disk of the machine: a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Source of the disk's contents.
    pub source: DiskContent,
    /// Serial number of the disk, at most 20 bytes.
    pub serial: String,
}
