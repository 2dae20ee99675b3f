//! Levels and layouts of software RAID (md(4)).

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The RAID levels that are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Stripes over all members, no copy
    #[value(name = "0", alias = "raid0")]
    Zero,
    /// The same on all members
    #[value(name = "1", alias = "raid1")]
    One,
    /// Stripes with one parity
    #[value(name = "5", alias = "raid5")]
    Five,
    /// Stripes with two parities
    #[value(name = "6", alias = "raid6")]
    Six,
    /// Stripes with two copies
    #[value(name = "10", alias = "raid10")]
    Ten,
    /// One member behind the other
    Linear,
}

/// Layout of the copies of RAID 10 (md(4), section RAID10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Two copies side by side
    #[default]
    N2,
    /// The second copy in the second half of the next member
    F2,
}

impl Level {
    /// As mdadm takes it.
    pub fn word(self) -> &'static str {
        match self {
            Level::Zero => "0",
            Level::One => "1",
            Level::Five => "5",
            Level::Six => "6",
            Level::Ten => "10",
            Level::Linear => "linear",
        }
    }

    /// As people call it.
    pub fn title(self) -> String {
        match self {
            Level::Linear => "a linear array".to_owned(),
            _ => format!("RAID {}", self.word()),
        }
    }

    /// With fewer members it is another level, or none. md runs RAID 10 on two, as a RAID 1 that
    /// can be laid out far.
    pub fn least_members(self) -> usize {
        match self {
            Level::Zero | Level::One | Level::Ten | Level::Linear => 2,
            Level::Five => 3,
            Level::Six => 4,
        }
    }

    /// True if data is cut into chunks.
    pub fn has_chunks(self) -> bool {
        !matches!(self, Level::One | Level::Linear)
    }

    /// True if a member can be lost.
    pub fn is_redundant(self) -> bool {
        !matches!(self, Level::Zero | Level::Linear)
    }

    /// True if it writes parity.
    pub fn has_parity(self) -> bool {
        matches!(self, Level::Five | Level::Six)
    }
}

impl Layout {
    /// As mdadm takes it.
    pub fn word(self) -> &'static str {
        match self {
            Layout::N2 => "n2",
            Layout::F2 => "f2",
        }
    }
}
