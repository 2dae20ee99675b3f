//! The arguments of `warm`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use jiff::civil;
use jiff::{Timestamp, ToSpan as _, Zoned};

use domain::values::{Latency, Size, Throughput};

/// What `warm` takes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith warm /dev/nvme1n1
  disksmith warm /dev/nvme1n1 --first /var/lib/mysql/ibdata1 --first '/var/lib/mysql/app/*.ibd'
  disksmith warm /dev/nvme1n1 --first /data --until-hot
  disksmith warm /dev/nvme1n1 --keep-p99 5ms --limit 100MiB/s
  disksmith warm --check /dev/nvme1n1 --ready-by 18:00
  disksmith warm --plan 200GiB --rate 50MB/s --ready-by 18:00

Exit status: 0 done; 1 done, and places could not be read, --check found cold blocks, or
--until-hot met files on volumes that are not named; 2 refused;
3 ended before all was warm: it says how to go on.")]
pub(crate) struct WarmArgs {
    /// The volumes: block devices, each read once from its own start to its end
    #[arg(required_unless_present = "plan", value_name = "DEVICE")]
    pub devices: Vec<PathBuf>,

    /// Warm the data of this file, or of all files in this folder, before anything else. The last
    /// parts of the path may hold *, ? and […]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["check", "plan"])]
    pub first: Vec<OsString>,
    /// Leave out the space that no file uses
    #[arg(long, conflicts_with_all = ["check", "plan"])]
    pub only_used: bool,
    /// End as soon as what --first names is warm
    #[arg(long, requires = "first")]
    pub until_hot: bool,
    /// Warm only the blocks that the snapshot holds: the JSON that `aws ebs list-snapshot-blocks`
    /// prints, also several pages of it one after the other. With one DEVICE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "plan"])]
    pub blocks: Option<PathBuf>,

    /// Read slower as soon as other requests to the device take longer than this in 1 of 100. Without
    /// this, warming takes what is idle: all while nobody else uses the device, and otherwise as much
    /// as leaves others at most twice as long to wait, or 5 ms
    #[arg(long, value_name = "DURATION", conflicts_with = "plan")]
    pub keep_p99: Option<Latency>,
    /// Read no more than this in a second from all devices together
    #[arg(long, value_name = "SIZE/s", conflicts_with = "plan")]
    pub limit: Option<Throughput>,
    /// What the volume fetches at once, and what is asked for at once
    #[arg(long, value_name = "SIZE", default_value = "512KiB")]
    pub block: Size,
    /// Begin anew, also where the ledger says that a part is warm already
    #[arg(long, conflicts_with_all = ["check", "plan"])]
    pub anew: bool,

    /// Only find out how much is cold: read a few hundred random places, each beside a warm one
    #[arg(long, conflicts_with = "plan")]
    pub check: bool,
    /// Only compute how long it takes to warm a volume of this size, without one
    #[arg(
        long,
        value_name = "SIZE",
        requires = "rate",
        conflicts_with = "devices"
    )]
    pub plan: Option<Size>,
    /// The rate at which cold blocks come, for --plan
    #[arg(long, value_name = "SIZE/s", requires = "plan")]
    pub rate: Option<Throughput>,
    /// Say when to begin so that all is warm at this time: 18:00, or 2026-11-22T18:00. With
    /// --check or --plan
    #[arg(long, value_name = "TIME")]
    pub ready_by: Option<ReadyBy>,

    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Do not keep in the ledger what is warm
    #[arg(long)]
    pub no_ledger: bool,
}

/// A time of the day, or of one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadyBy {
    /// The next time that the clock shows this, in the time zone of this host.
    Clock(civil::Time),
    /// That time of that day, in the time zone of this host.
    Day(civil::DateTime),
    /// That moment.
    Moment(Timestamp),
}

impl FromStr for ReadyBy {
    type Err = String;

    fn from_str(text: &str) -> Result<ReadyBy, String> {
        let digits = text.as_bytes();
        let is_clock = digits.len() <= 8 && digits.contains(&b':');
        let clock = is_clock.then(|| text.parse().ok()).flatten();
        let moment = || text.parse().ok().map(ReadyBy::Moment);
        let day = || text.parse().ok().map(ReadyBy::Day);
        clock
            .map(ReadyBy::Clock)
            .or_else(moment)
            .or_else(day)
            .ok_or_else(|| {
                format!(
                    "'{text}' is no time; write it as 18:00, or with its day as 2026-11-22T18:00"
                )
            })
    }
}

impl ReadyBy {
    /// The moment that is meant by somebody for whom it is `now`.
    ///
    /// # Errors
    /// When there is no such time on that day, or no such day.
    pub(crate) fn moment(self, now: &Zoned) -> Result<Zoned, jiff::Error> {
        match self {
            ReadyBy::Moment(moment) => Ok(moment.to_zoned(now.time_zone().clone())),
            ReadyBy::Day(day) => day.to_zoned(now.time_zone().clone()),
            ReadyBy::Clock(time) => {
                let today = now.with().time(time).build()?;
                if today > *now {
                    Ok(today)
                } else {
                    now.checked_add(1.day())?.with().time(time).build()
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Zoned {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_of_the_day_is_the_next_one() {
        let now = at("2026-11-22T17:00:00+01:00[Europe/Berlin]");
        for (text, wanted) in [
            ("18:00", "2026-11-22T18:00:00+01:00[Europe/Berlin]"),
            ("17:00", "2026-11-23T17:00:00+01:00[Europe/Berlin]"),
            ("06:30:15", "2026-11-23T06:30:15+01:00[Europe/Berlin]"),
            (
                "2026-12-24T18:00",
                "2026-12-24T18:00:00+01:00[Europe/Berlin]",
            ),
            (
                "2026-12-24 18:00",
                "2026-12-24T18:00:00+01:00[Europe/Berlin]",
            ),
            (
                "2026-11-22T20:00Z",
                "2026-11-22T21:00:00+01:00[Europe/Berlin]",
            ),
        ] {
            let ready: ReadyBy = text.parse().unwrap();
            assert_eq!(ready.moment(&now).unwrap(), at(wanted), "{text}");
        }
        for text in ["", "soon", "25:00", "18", "2026-13-01T00:00"] {
            assert!(text.parse::<ReadyBy>().is_err(), "{text}");
        }
    }
}
