//! Options of a replay as command-line arguments.

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use record::{OffsetMap, Pace};

use crate::options::ReplayOptions;

/// The arguments for [`ReplayOptions`].
#[derive(Args)]
struct ReplayOptionArgs {
    /// When each I/O is issued [default: recorded]
    #[arg(long, value_enum, requires = "replay")]
    pace: Option<PaceName>,
    /// Shorten all recorded times by this factor, such as 2x [default: 1x]
    #[arg(long, value_name = "FACTOR", value_parser = speed, requires = "replay")]
    speed: Option<f64>,
    /// Where I/Os of a larger device go [default: exact]
    #[arg(long, value_enum, requires = "replay")]
    map: Option<MapName>,
    /// Replay only this device of the trace
    #[arg(long, value_name = "NAME", requires = "replay")]
    device: Option<String>,
    /// Leave out writes, flushes and discards; the target is not written
    #[arg(long, requires = "replay")]
    reads_only: bool,
    /// Issue discards too; without it they are left out and counted
    #[arg(long, requires = "replay", conflicts_with = "reads_only")]
    discards: bool,
    /// Share of the data written that compresses away, such as 0.5 [default: 0]
    #[arg(long, value_name = "FRACTION", value_parser = share)]
    compressible: Option<f64>,
}

impl From<ReplayOptionArgs> for ReplayOptions {
    fn from(args: ReplayOptionArgs) -> ReplayOptions {
        ReplayOptions {
            pace: args.pace.map(Pace::from),
            speed: args.speed,
            map: args.map.map(OffsetMap::from),
            device: args.device,
            reads_only: args.reads_only,
            discards: args.discards,
            compressible: args.compressible,
        }
    }
}

impl Args for ReplayOptions {
    fn augment_args(command: Command) -> Command {
        ReplayOptionArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ReplayOptionArgs::augment_args_for_update(command)
    }
}

impl FromArgMatches for ReplayOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ReplayOptions, clap::Error> {
        ReplayOptionArgs::from_arg_matches(matches).map(ReplayOptions::from)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ReplayOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Values of `--pace`.
#[derive(Clone, Copy, ValueEnum)]
enum PaceName {
    /// Each I/O at its recorded time, whatever became of earlier ones
    Recorded,
    /// Each I/O when those have completed that it waited for, plus its think time
    Dependencies,
    /// As fast as --depth in flight allow
    Asap,
}

impl From<PaceName> for Pace {
    fn from(name: PaceName) -> Pace {
        match name {
            PaceName::Recorded => Pace::Recorded,
            PaceName::Dependencies => Pace::Dependencies,
            PaceName::Asap => Pace::Asap,
        }
    }
}

/// Values of `--map`.
#[derive(Clone, Copy, ValueEnum)]
enum MapName {
    /// At the recorded offsets; what lies beyond the end is left out and counted
    Exact,
    /// Modulo the size of the target
    Wrap,
    /// The parts that the trace touches, side by side
    Compact,
}

impl From<MapName> for OffsetMap {
    fn from(name: MapName) -> OffsetMap {
        match name {
            MapName::Exact => OffsetMap::Exact,
            MapName::Wrap => OffsetMap::Wrap,
            MapName::Compact => OffsetMap::Compact,
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches(['x', '×']);
    match number.parse() {
        Ok(factor) if (0.001..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("a speed is a factor from 0.001x to 1000x, such as 2x".to_owned()),
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
            assert_eq!(speed(text), Ok(factor));
        }
        for text in ["", "x", "0x", "-1x", "nan", "1e9"] {
            assert!(speed(text).is_err(), "{text}");
        }
        assert_eq!((share("50%"), share("0.5")), (Ok(0.5), Ok(0.5)));
        assert!(share("2").is_err() && share("nan").is_err());
    }
}
