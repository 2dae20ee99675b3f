//! The arguments of `watch --parse`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use formats::disk_log::{self, Columns, DateOrder};
use jiff::tz::TimeZone;

use crate::log_array::LogArray;
use domain::values::Latency;

/// Order of day and month in dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dates {
    /// Day/month/year
    Dmy,
    /// Month/day/year
    Mdy,
}

/// Content of the first report of a run of iostat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum First {
    /// The means since boot, as usual
    Boot,
    /// An interval, as with iostat -y
    Interval,
}

/// Log to read, and facts that it may not contain.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// Read a log of iostat, sar, sadf or vmstat -d, a file of sar, or an answer of Prometheus with node_exporter's
    /// counters, instead of watching; '-' is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "interval", "prometheus"])]
    pub parse: Option<PathBuf>,
    /// With --parse: the columns of a log without headers, as a header has them
    #[arg(long, value_name = "HEADER", requires = "parse")]
    pub columns: Option<Columns>,
    /// With --parse: an array and its members, which no log names; the level may be left out
    #[arg(
        long = "array",
        value_name = "NAME[:LEVEL]=MEMBER,…",
        requires = "parse"
    )]
    pub arrays: Vec<LogArray>,
    /// With --parse: how long the intervals are, where the log does not say
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
    /// The named arrays, each after the arrays that it lies on.
    ///
    /// # Errors
    /// When an array is named twice, or arrays contain each other.
    pub(crate) fn arrays(&self) -> Result<Vec<LogArray>, String> {
        let mut waiting: Vec<&LogArray> = self.arrays.iter().collect();
        let is_twice = |one: &&&LogArray| {
            let named = waiting.iter().filter(|other| other.name == one.name);
            named.count() > 1
        };
        if let Some(twice) = waiting.iter().find(is_twice) {
            return Err(format!(
                "--array names {} twice; name all of its members in one",
                twice.name
            ));
        }
        let mut arrays = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let names: Vec<&str> = waiting.iter().map(|one| one.name.as_str()).collect();
            let is_above = |one: &&LogArray| {
                let mut members = one.members.iter();
                members.any(|member| names.contains(&member.as_str()))
            };
            let (above, ready): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_above);
            if ready.is_empty() {
                return Err(format!(
                    "the arrays {} contain each other; name the members of each",
                    names.join(", ")
                ));
            }
            arrays.extend(ready.into_iter().cloned());
            waiting = above;
        }
        Ok(arrays)
    }

    /// The reader's options for the log.
    pub(crate) fn options(&self) -> disk_log::Options {
        disk_log::Options {
            columns: self.columns.clone(),
            interval: self.log_interval.map(|length| length.0),
            zone: self.zone.clone().unwrap_or_else(TimeZone::system),
            dates: self.dates.map(|dates| match dates {
                Dates::Dmy => DateOrder::DayFirst,
                Dates::Mdy => DateOrder::MonthFirst,
            }),
            first: match self.first {
                None => disk_log::FirstReport::Tell,
                Some(First::Boot) => disk_log::FirstReport::SinceBoot,
                Some(First::Interval) => disk_log::FirstReport::Interval,
            },
        }
    }
}

fn zone(text: &str) -> Result<TimeZone, String> {
    TimeZone::get(text)
        .map_err(|_| format!("'{text}' is not a time zone; write it as UTC or Europe/Berlin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays(named: &[&str]) -> Result<Vec<String>, String> {
        let args = LogArgs {
            parse: None,
            columns: None,
            arrays: named.iter().map(|one| one.parse().unwrap()).collect(),
            log_interval: None,
            zone: None,
            dates: None,
            first: None,
        };
        let arrays = args.arrays()?;
        Ok(arrays.into_iter().map(|array| array.name).collect())
    }

    #[test]
    fn an_array_stands_after_those_that_it_lies_on() {
        let named = ["md3=md2,sde", "md2=md0,md1", "md0=sda,sdb", "md1=sdc,sdd"];
        assert_eq!(arrays(&named).unwrap(), ["md0", "md1", "md2", "md3"]);
        assert_eq!(arrays(&["b=sda,sdb", "a=sda,sdc"]).unwrap(), ["b", "a"]);
    }

    #[test]
    fn arrays_that_cannot_be_are_refused() {
        let twice = arrays(&["md0=sda,sdb", "md0=sdc,sdd"]).unwrap_err();
        assert!(twice.contains("md0 twice"), "{twice}");
        let circle = ["md0=sda,md1", "md1=md2,sdb", "md2=md0,sdc", "md3=sdd,sde"];
        let circle = arrays(&circle).unwrap_err();
        assert!(
            circle.contains("md0, md1, md2 contain each other"),
            "{circle}"
        );
    }
}
