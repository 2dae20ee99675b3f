//! The arguments of `watch`.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use clap::Args;
use record::Nanos;

use crate::args_log::LogArgs;
use crate::args_record::RecordArgs;
use domain::values::{Every, Latency, Percent};

/// Bounds of `watch --check`, such as `await=20ms,busy=95%`. What is beyond one of them is a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The mean time of a request.
    pub wait: Option<Nanos>,
    /// Percent of the time in which anything was in flight.
    pub busy: Option<f64>,
    /// Requests in flight on average.
    pub in_flight: Option<f64>,
    /// Percent of the time in which a program waited for a disk (PSI).
    pub pressure: Option<f64>,
}

/// Address of metrics: an address with a port, or a port on the loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Ok(port) = text.parse::<u16>() {
            return Ok(Address((Ipv4Addr::LOCALHOST, port).into()));
        }
        text.parse().map(Address).map_err(|_| {
            format!(
                "'{text}' is not an address with a port, such as 9187 or 127.0.0.1:9187 or [::1]:9187"
            )
        })
    }
}

/// A bound in percent.
fn percent(value: &str) -> Result<f64, String> {
    value.parse().map(|Percent(share)| share * 100.0)
}

impl FromStr for Limits {
    type Err = String;

    fn from_str(text: &str) -> Result<Limits, String> {
        let mut limits = Limits::default();
        for pair in text.split(',') {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("'{pair}' is not KEY=VALUE, such as await=20ms"))?;
            let number = || -> Result<f64, String> {
                let number: f64 = value
                    .parse()
                    .map_err(|_| format!("'{value}' is no number"))?;
                if number.is_finite() && number >= 0.0 {
                    Ok(number)
                } else {
                    Err(format!("'{value}' is no bound"))
                }
            };
            match key {
                "await" => {
                    let wait: Nanos = value
                        .parse()
                        .map_err(|error: record::ParseUnitError| error.to_string())?;
                    limits.wait = Some(wait);
                }
                "busy" => limits.busy = Some(percent(value)?),
                "in-flight" => limits.in_flight = Some(number()?),
                "pressure" => limits.pressure = Some(percent(value)?),
                _ => {
                    return Err(format!(
                        "'{key}' has no bound; await, busy, in-flight and pressure have"
                    ));
                }
            }
        }
        Ok(limits)
    }
}

/// True if these words of a command line ask for `watch --check`, also where they are wrong.
pub fn asks_for_check(words: impl Iterator<Item = OsString>) -> bool {
    let mut words = words.take_while(|word| word != "--");
    words.any(|word| word == "watch") && words.any(|word| word == "--check")
}

/// Arguments of `watch`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith watch
  disksmith watch md0 --interval 100ms
  disksmith watch --latency nvme1n1
  disksmith watch --json --count 60 > minute.jsonl
  disksmith watch --prometheus 9187
  disksmith watch --check --warning await=20ms --critical await=100ms
  disksmith watch --parse iostat.log
  disksmith watch --record --plain
  disksmith watch --at '2026-11-20 03:00' --for 30m
  disksmith watch --at -2h --for 2h --report two-hours.html

On a terminal it draws a screen, of which ? shows the keys; q ends it. Elsewhere it prints lines until
Ctrl-C. What was found is said when it begins, and again when it is over.")]
pub struct WatchArgs {
    /// Show only these devices and what they lie on, such as md0 or /dev/nvme1n1
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Look so often: 100ms at the least
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub interval: Every,
    /// End after so many intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print lines also on a terminal, and draw no screen
    #[arg(long)]
    pub plain: bool,
    /// Print one JSON document a line
    #[arg(long, conflicts_with = "plain")]
    pub json: bool,
    /// Also show partitions, and devices that do nothing
    #[arg(long)]
    pub all: bool,
    /// Also time every request by the kernel's events, for percentiles, a heat map and the I/O of processes; needs
    /// root, and its cost is shown
    #[arg(long, conflicts_with_all = ["check", "parse", "at"])]
    pub latency: bool,
    /// Call a device stalled when nothing completes for so long
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub stall: Latency,
    /// Serve metrics for Prometheus here, on the loopback where only a port is given, and print
    /// nothing unless --plain or --json is given too
    #[arg(long, value_name = "[ADDR:]PORT", conflicts_with = "check")]
    pub prometheus: Option<Address>,
    /// Look for a while (5 intervals, or --count), and answer as a Nagios plugin: one line with
    /// performance data, and the status 0 (well), 1 (warning), 2 (critical) or 3 (unknown)
    #[arg(long, conflicts_with_all = ["json", "plain", "all"])]
    pub check: bool,
    /// With --check: warn beyond these: await=20ms, busy=95%, pressure=50%, in-flight=64
    #[arg(long, value_name = "KEY=VALUE,…", requires = "check")]
    pub warning: Option<Limits>,
    /// With --check: critical beyond these
    #[arg(long, value_name = "KEY=VALUE,…", requires = "check")]
    pub critical: Option<Limits>,
    /// An old log
    #[command(flatten)]
    pub log: LogArgs,
    /// Recording and replay
    #[command(flatten)]
    pub record: RecordArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_the_loopback() {
        let address = |text: &str| text.parse::<Address>().map(|address| address.0.to_string());
        assert_eq!(address("9187").unwrap(), "127.0.0.1:9187");
        assert_eq!(address("0.0.0.0:9187").unwrap(), "0.0.0.0:9187");
        assert_eq!(address("[::1]:9187").unwrap(), "[::1]:9187");
        for wrong in ["", "localhost", "1.2.3.4", "70000"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_check_is_told_from_other_commands() {
        let asks = |line: &str| asks_for_check(line.split(' ').map(OsString::from));
        assert!(asks("disksmith watch --check --bogus"));
        assert!(asks(
            "disksmith --ledger x watch sda --warning busy=x --check"
        ));
        assert!(!asks("disksmith watch -- --check"));
        assert!(!asks("disksmith array check --check"));
        assert!(!asks("disksmith watch --bogus"));
    }

    #[test]
    fn bounds_are_pairs_of_known_keys() {
        let limits: Limits = "await=20ms,busy=95%".parse().unwrap();
        assert_eq!(limits.wait, Some(Nanos(20_000_000)));
        assert_eq!(limits.busy, Some(95.0));
        assert_eq!(limits.pressure, None);
        for wrong in [
            "",
            "await",
            "await=x",
            "busy=-1%",
            "busy=NaN",
            "busy=95",
            "pressure=0.5",
            "svctm=1",
        ] {
            assert!(wrong.parse::<Limits>().is_err(), "{wrong}");
        }
    }
}
