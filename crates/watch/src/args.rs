//! The arguments of `watch`.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::args_log::LogArgs;
use crate::args_record::RecordArgs;
use crate::thresholds::Thresholds;
use clap::Args;
use domain::values::{Latency, PollInterval};

/// Address on which metrics are served: an address with a port, or a port on the loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAddress, String> {
        if let Ok(port) = text.parse::<u16>() {
            return Ok(ListenAddress((Ipv4Addr::LOCALHOST, port).into()));
        }
        text.parse().map(ListenAddress).map_err(|_| {
            format!(
                "'{text}' is not an address with a port, such as 9187 or 127.0.0.1:9187 or [::1]:9187"
            )
        })
    }
}

/// True if these words of a command line request `watch --check`, even if they are otherwise invalid.
pub fn asks_for_check(words: impl Iterator<Item = OsString>) -> bool {
    let mut words = words.take_while(|word| word != "--");
    words.any(|word| word == "watch") && words.any(|word| word == "--check")
}

/// Arguments of `watch`. Its version is an option since plugins of Nagios have `-V`.
#[derive(Args, Debug)]
#[command(
    version,
    after_help = "Examples:
  disksmith watch
  disksmith watch md0 --interval 100ms
  disksmith watch --latency nvme1n1
  disksmith watch --json --count 60 > minute.jsonl
  disksmith watch --prometheus 9187
  disksmith watch --check -w await=20,busy=95 -c await=100
  disksmith watch --parse iostat.log
  disksmith watch --parse /var/log/sysstat/sa24
  disksmith watch --record --plain
  disksmith watch --at '2026-11-20 03:00' --for 30m
  disksmith watch --at -2h --for 2h --report two-hours.html

On a terminal it draws a screen, of which ? shows the keys; q ends it. Elsewhere it prints lines until
Ctrl-C. A finding is reported when it begins, and again when it is over."
)]
pub struct WatchArgs {
    /// Show only these devices and what they lie on, such as md0 or /dev/nvme1n1
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Interval between samples, at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub interval: PollInterval,
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
    /// Report a device as stalled when nothing completes for this long
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub stall: Latency,
    /// Serve metrics for Prometheus here, on the loopback where only a port is given, and print
    /// nothing unless --plain or --json is given too
    #[arg(long, value_name = "[ADDR:]PORT", conflicts_with = "check")]
    pub prometheus: Option<ListenAddress>,
    /// With --prometheus: TLS, passwords, headers and a limit on requests by a web configuration file, as
    /// Prometheus' exporters take it; it is read anew for each request
    #[arg(
        long,
        alias = "web.config.file",
        value_name = "FILE",
        requires = "prometheus"
    )]
    pub web_config: Option<PathBuf>,
    /// Sample for 5 intervals, or --count of them, and answer as a Nagios plugin: one line with
    /// performance data, and the status 0 (well), 1 (warning), 2 (critical) or 3 (unknown)
    #[arg(long, conflicts_with_all = ["json", "plain", "all"])]
    pub check: bool,
    /// With --check: warn outside of these ranges, as plugins have them (20, 10:, 10:20, @10:20): await in
    /// ms, busy and pressure in %, in-flight and iops as numbers; await=20, await=20ms
    #[arg(short, long, value_name = "KEY=RANGE,…", requires = "check")]
    pub warning: Option<Thresholds>,
    /// With --check: critical outside of these ranges
    #[arg(short, long, value_name = "KEY=RANGE,…", requires = "check")]
    pub critical: Option<Thresholds>,
    /// With --check: answer after so many seconds at the latest, with what was seen until then
    #[arg(short, long, value_name = "SECONDS", requires = "check", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: Option<u64>,
    /// With --check: also a line for each device
    #[arg(short, long, requires = "check", action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Reading of a log
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
        let address = |text: &str| {
            text.parse::<ListenAddress>()
                .map(|address| address.0.to_string())
        };
        assert_eq!(address("9187").unwrap(), "127.0.0.1:9187");
        assert_eq!(address("0.0.0.0:9187").unwrap(), "0.0.0.0:9187");
        assert_eq!(address("[::1]:9187").unwrap(), "[::1]:9187");
        for wrong in ["", "localhost", "1.2.3.4", "70000"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_check_is_distinguished_from_other_commands() {
        let asks = |line: &str| asks_for_check(line.split(' ').map(OsString::from));
        assert!(asks("disksmith watch --check --bogus"));
        assert!(asks(
            "disksmith --ledger x watch sda --warning busy=x --check"
        ));
        assert!(!asks("disksmith watch -- --check"));
        assert!(!asks("disksmith array check --check"));
        assert!(!asks("disksmith watch --bogus"));
    }
}
