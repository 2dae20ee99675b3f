//! The arguments of `watch --parse`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use formats::iostat::{self, Columns, DateOrder};
use jiff::tz::TimeZone;

use super::Latency;

/// The order of day and month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dates {
    /// Day/month/year
    Dmy,
    /// Month/day/year
    Mdy,
}

/// What the first report of a run of iostat shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum First {
    /// The means since boot, as usual
    Boot,
    /// An interval, as with iostat -y
    Interval,
}

/// Which log is read, and what it may not tell of itself.
#[derive(Args, Debug)]
pub(crate) struct LogArgs {
    /// Read a log of iostat, text or JSON, instead of watching; '-' is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "interval", "prometheus"])]
    pub parse: Option<PathBuf>,
    /// With --parse: the columns of a log without headers, as a header has them
    #[arg(long, value_name = "HEADER", requires = "parse")]
    pub columns: Option<Columns>,
    /// With --parse: how long the intervals are, where the log does not tell
    #[arg(long, value_name = "DURATION", requires = "parse")]
    pub log_interval: Option<Latency>,
    /// With --parse: the zone of times without one, such as Europe/Berlin; this host's if not given
    #[arg(long, value_name = "ZONE", requires = "parse", value_parser = zone)]
    pub zone: Option<TimeZone>,
    /// With --parse: whether the day or the month comes first, where no date shows it
    #[arg(long, requires = "parse")]
    pub dates: Option<Dates>,
    /// With --parse: what the first report after each start of iostat shows
    #[arg(long, requires = "parse")]
    pub first: Option<First>,
}

impl LogArgs {
    /// What the reader is told of the log.
    pub(crate) fn options(&self) -> iostat::Options {
        iostat::Options {
            columns: self.columns.clone(),
            interval: self.log_interval.map(|length| length.0),
            zone: self.zone.clone().unwrap_or_else(TimeZone::system),
            dates: self.dates.map(|dates| match dates {
                Dates::Dmy => DateOrder::DayFirst,
                Dates::Mdy => DateOrder::MonthFirst,
            }),
            first: match self.first {
                None => iostat::First::Tell,
                Some(First::Boot) => iostat::First::SinceBoot,
                Some(First::Interval) => iostat::First::Interval,
            },
        }
    }
}

fn zone(text: &str) -> Result<TimeZone, String> {
    TimeZone::get(text)
        .map_err(|_| format!("'{text}' is no time zone; write it as UTC or Europe/Berlin"))
}
