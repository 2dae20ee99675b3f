//! Errors of `--volumes`, and the valid values.

use super::Profile;

/// Maximum number of volumes of one group, since a machine has no more slots for disks.
pub(super) const MAX_VOLUMES: u32 = 256;

/// All keys, in the order of the documentation.
pub const KEYS: [&str; 29] = [
    "iops",
    "throughput",
    "burst",
    "credits",
    "throughput-burst",
    "throughput-credits",
    "merge",
    "latency",
    "latency-min",
    "jitter",
    "cold",
    "cold-block",
    "cold-latency",
    "cold-rate",
    "slow",
    "slow-factor",
    "slow-every",
    "stall",
    "stall-every",
    "error",
    "error-rate",
    "error-on",
    "error-after",
    "corrupt",
    "corrupt-places",
    "corrupt-after",
    "volatile",
    "serial",
    "seed",
];

/// Reason why a `--volumes` value is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The size after the last colon is missing.
    #[error("'{0}' has no size; write WHAT:SIZE, such as gp3:16GiB or 8xiops=400:1GiB")]
    NoSize(String),
    /// The size is not valid for a volume.
    #[error(
        "'{0}' is not the size of a volume; write a multiple of 4 KiB, such as 512MiB or 16GiB"
    )]
    Size(String),
    /// The number of volumes is invalid.
    #[error("'{0}' volumes cannot be made; write a number from 1 to {MAX_VOLUMES} before the x")]
    Count(String),
    /// A word that is not a profile, or a profile that is not the first word.
    #[error(
        "'{0}' is neither a profile at the beginning ({profiles}) nor a key=value pair",
        profiles = Profile::names()
    )]
    Word(String),
    /// IOPS or throughput that the provider does not sell for the size.
    #[error("{0}; without a profile, as in iops=6000:1GiB, a volume takes any")]
    NotSold(String),
    /// The key is unknown.
    #[error("there is no key '{0}'; the keys are {keys}", keys = KEYS.join(", "))]
    Key(String),
    /// A key that may be given only once.
    #[error("{0} is given twice; it may be given once")]
    Twice(String),
    /// A value that is not valid for the key.
    #[error("{key}={value} is not understood; {key} takes {takes}")]
    Value {
        /// Key of the volume's description.
        key: String,
        /// The value given.
        value: String,
        /// Correct values.
        takes: String,
    },
    /// A quantity without its unit, which could be read as bytes or as seconds.
    #[error("{key}={value} lacks a unit: {bare} has none; write {key}={example}")]
    Unit {
        /// Key of the volume's description.
        key: String,
        /// The value given.
        value: String,
        /// The bare number.
        bare: String,
        /// The same quantity with the unit that was probably meant.
        example: String,
    },
    /// Values that are not compatible.
    #[error("{0}")]
    Together(String),
}
