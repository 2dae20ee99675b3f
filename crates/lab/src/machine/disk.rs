//! Disks of a machine.

use std::path::PathBuf;

/// Source of a disk's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskContent {
    /// An NBD server.
    Socket {
        /// Path of the server's unix socket.
        path: PathBuf,
        /// The name of the export; empty for the server's own.
        export: String,
    },
    /// A file, as raw as a disk.
    File(PathBuf),
}

/// A disk of the machine: a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Source of the disk's content.
    pub source: DiskContent,
    /// Its serial number, at most 20 bytes.
    pub serial: String,
}
