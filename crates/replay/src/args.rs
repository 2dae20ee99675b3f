//! Options of a replay, as users give them.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use record::{OffsetMap, Pace};
use serde::{Deserialize, Serialize};

/// Options that say how a trace is replayed.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayOptions {
    /// When each I/O is issued [default: recorded]
    #[arg(long, value_enum, requires = "replay")]
    pub pace: Option<PaceName>,
    /// Shorten all recorded times by this factor, such as 2x [default: 1x]
    #[arg(long, value_name = "FACTOR", requires = "replay")]
    pub speed: Option<Speed>,
    /// Where I/Os of a larger device go [default: exact]
    #[arg(long, value_enum, requires = "replay")]
    pub map: Option<MapName>,
    /// Replay only this device of the trace
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub device: Option<String>,
    /// Leave out writes, flushes and discards; the target is not written
    #[arg(long, requires = "replay")]
    pub reads_only: bool,
    /// Issue discards too; without it they are left out and counted
    #[arg(long, requires = "replay", conflicts_with = "reads_only")]
    pub discards: bool,
    /// Share of the data written that compresses away, such as 0.5 [default: 0]
    #[arg(long, value_name = "FRACTION", value_parser = share)]
    pub compressible: Option<f64>,
}

/// Rules of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaceName {
    /// Each I/O at its recorded time, whatever became of earlier ones
    Recorded,
    /// Each I/O when those have completed that it waited for, plus its think time
    Dependencies,
    /// As fast as --depth in flight allow
    Asap,
}

impl PaceName {
    /// As it is kept.
    pub fn pace(self) -> Pace {
        match self {
            PaceName::Recorded => Pace::Recorded,
            PaceName::Dependencies => Pace::Dependencies,
            PaceName::Asap => Pace::Asap,
        }
    }
}

/// Rules of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MapName {
    /// At the recorded offsets; what lies beyond the end is left out and counted
    Exact,
    /// Modulo the size of the target
    Wrap,
    /// The parts that the trace touches, side by side
    Compact,
}

impl MapName {
    /// As it is kept.
    pub fn map(self) -> OffsetMap {
        match self {
            MapName::Exact => OffsetMap::Exact,
            MapName::Wrap => OffsetMap::Wrap,
            MapName::Compact => OffsetMap::Compact,
        }
    }
}

/// A factor of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Speed(pub f64);

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        let number = text.trim().trim_end_matches(['x', '×']);
        match number.parse() {
            Ok(factor) if (0.001..=1000.0).contains(&factor) => Ok(Speed(factor)),
            _ => Err("a speed is a factor from 0.001x to 1000x, such as 2x".to_owned()),
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    match number {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share lies from 0 to 1, such as 0.5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_shares_are_read_as_users_write_them() {
        for (text, factor) in [("2x", 2.0), ("0.5x", 0.5), ("3", 3.0)] {
            assert_eq!(text.parse(), Ok(Speed(factor)));
        }
        for text in ["", "x", "0x", "-1x", "nan", "1e9"] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
        assert_eq!((share("50%"), share("0.5")), (Ok(0.5), Ok(0.5)));
        assert!(share("2").is_err() && share("nan").is_err());
    }
}
