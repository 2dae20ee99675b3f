//! The arguments of `watch --parse`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use formats::disk_log::{self, Columns, DateOrder};
use jiff::tz::TimeZone;

use domain::raid::Level;
use domain::values::Latency;

/// The order of day and month.
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

/// An array of a log, and what it lies on: `md0:raid10=sda,sdb,sdc,sdd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogArray {
    /// Its name, whether the log shows it or not.
    pub name: String,
    /// Its level, if it is told.
    pub level: Option<Level>,
    /// The names of its members, two or more.
    pub members: Vec<String>,
}

impl FromStr for LogArray {
    type Err = String;

    fn from_str(text: &str) -> Result<LogArray, String> {
        let wrong =
            || format!("'{text}' is not NAME[:LEVEL]=MEMBER,MEMBER,…, such as md0:raid10=sda,sdb");
        let (array, members) = text.split_once('=').ok_or_else(wrong)?;
        let (name, level) = match array.split_once(':') {
            None => (array, None),
            Some((name, word)) => (name, Some(level_of(word)?)),
        };
        let bare = |word: &str| name_in_path(word.trim()).to_owned();
        let members: Vec<String> = members.split(',').map(bare).collect();
        let mut names: Vec<&str> = members.iter().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let name = bare(name);
        let is_odd =
            names.len() < members.len() || names.iter().any(|one| one.is_empty() || *one == name);
        if name.is_empty() || members.len() < 2 || is_odd {
            return Err(wrong());
        }
        Ok(LogArray {
            name,
            level,
            members,
        })
    }
}

/// The level of md's word.
fn level_of(word: &str) -> Result<Level, String> {
    levels()
        .find(|level| level.md_word() == word)
        .ok_or_else(|| {
            let known: Vec<&str> = levels().map(Level::md_word).collect();
            format!("'{word}' is not a level; {} are", known.join(", "))
        })
}

/// The levels whose members are compared, be it by their waits alone.
fn levels() -> impl Iterator<Item = Level> {
    let all = Level::ALL.into_iter();
    all.filter(|level| level.has_chunks() || level.is_redundant())
}

/// The name of a device in a log or a recording, of a word that may be its path: nobody can look that up any
/// more.
pub fn name_in_path(word: &str) -> &str {
    let folders = ["/dev/mapper/", "/dev/md/", "/dev/"];
    let name = folders.iter().find_map(|folder| word.strip_prefix(folder));
    name.unwrap_or(word)
}

/// Log to read, and facts that it may not tell of itself.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// Read a log of iostat, sar, sadf or vmstat -d, a file of sar, or an answer of Prometheus with node_exporter's
    /// counters, instead of watching; '-' is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "interval", "prometheus"])]
    pub parse: Option<PathBuf>,
    /// With --parse: the columns of a log without headers, as a header has them
    #[arg(long, value_name = "HEADER", requires = "parse")]
    pub columns: Option<Columns>,
    /// With --parse: an array and its members, which no log tells; the level may be left out
    #[arg(
        long = "array",
        value_name = "NAME[:LEVEL]=MEMBER,…",
        requires = "parse"
    )]
    pub arrays: Vec<LogArray>,
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
    /// The arrays that are named, each after those that it lies on.
    ///
    /// # Errors
    /// When one is named twice, or some lie on each other.
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
                None => disk_log::First::Tell,
                Some(First::Boot) => disk_log::First::SinceBoot,
                Some(First::Interval) => disk_log::First::Interval,
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

    #[test]
    fn an_array_is_a_name_and_its_members() {
        let array: LogArray = "/dev/md0:raid10=sda,/dev/sdb".parse().unwrap();
        assert_eq!(
            (array.name.as_str(), array.level.map(Level::md_word)),
            ("md0", Some("raid10"))
        );
        assert_eq!(array.members, ["sda", "sdb"]);
        assert_eq!("data=sda,sdb".parse::<LogArray>().unwrap().level, None);
        for wrong in [
            "",
            "md0",
            "md0=sda",
            "md0=sda,sda",
            "md0=sda,md0",
            "=sda,sdb",
            "md0=sda,",
            "md0:9=sda,sdb",
        ] {
            assert!(wrong.parse::<LogArray>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn members_are_named_as_devices_are() {
        let array: LogArray = "/dev/md/data=/dev/mapper/a, /dev/sdb".parse().unwrap();
        assert_eq!(array.name, "data");
        assert_eq!(array.members, ["a", "sdb"]);
    }

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
