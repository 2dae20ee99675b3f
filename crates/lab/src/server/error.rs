//! Errors of serving volumes.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use record::Bytes;

/// Reason why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No volume is given.
    #[error("no volumes are given; name at least one, such as --volumes gp3:16GiB")]
    NoVolumes,
    /// The scale is not a valid factor.
    #[error("the scale is {0}; it must be above 0, such as 0.1")]
    Scale(f64),
    /// A cap that is not a rate, or is too low.
    #[error(
        "{whose} is {cap} {unit} at a scale of {scale}; scaled, it must be at least {least}, and \
         finite"
    )]
    Cap {
        /// Owner of the rate.
        whose: String,
        /// The cap before scaling.
        cap: f64,
        /// Unit of the rate.
        unit: &'static str,
        /// Factor of the rates.
        scale: f64,
        /// Minimum of the cap after scaling.
        least: f64,
    },
    /// A maximum that is not above the sustained rate.
    #[error(
        "the instance's most is {most} {unit}, which is not above what it sustains; raise it or leave it out"
    )]
    NoBurst {
        /// Maximum rate of the instance, in `unit`.
        most: f64,
        /// Unit of the rate.
        unit: &'static str,
    },
    /// A serial number that is reserved for the machine's own disk.
    #[error("the serial number {0} is that of the machine's own disk; choose another")]
    Reserved(String),
    /// Two volumes with the same serial number.
    #[error("two volumes have the serial number {0}; give each its own")]
    SerialTwice(String),
    /// An address that other hosts could reach.
    #[error(
        "{0} is not a loopback address; the volumes have no passwords, so they are served on \
         127.0.0.1 or ::1 only"
    )]
    NotLoopback(SocketAddr),
    /// The folder for sockets and data.
    #[error("could not make a folder for the volumes in {folder}: {source}")]
    Folder {
        /// Folder in which it was to be created.
        folder: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The data of a volume could not be created.
    #[error("could not make the data of volume {serial} ({size}): {source}")]
    Data {
        /// The volume.
        serial: String,
        /// Size of the volume.
        size: Bytes,
        /// The kernel's error.
        source: io::Error,
    },
    /// The writes that a power cut loses could not be undone.
    #[error(
        "the data of volume {serial} could not be restored to the state after a power cut: {source}; \
         its content is unusable now"
    )]
    Lose {
        /// The volume.
        serial: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The log of requests.
    #[error("could not make {path} for the log of requests: {source}")]
    Requests {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A socket.
    #[error("could not listen on {address}: {source}")]
    Listen {
        /// The socket's path or address.
        address: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A thread of the server could not be started.
    #[error("could not start a thread of the volume server: {0}")]
    Thread(io::Error),
}
