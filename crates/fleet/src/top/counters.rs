//! Counters of a host's kernel, and rates between two readings.

use std::collections::{BTreeMap, BTreeSet};

use linux::diskstats::DiskStats;
use linux::network::Traffic;
use linux::pulse::load;

use crate::host_rates::{DiskSample, HostRates};

/// Reading of a host's counters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counters {
    /// Time since its boot, in seconds; the kernel reports hundredths.
    uptime_s: f64,
    load: Option<[f64; 3]>,
    traffic: Traffic,
    disks: BTreeMap<String, DiskCounters>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct DiskCounters {
    stats: DiskStats,
    /// Uptime at the last moment when it was idle or a request had completed, in seconds.
    idle_since_s: f64,
}

impl Counters {
    /// Parses lines of files, each preceded by the path of its file and a colon. `None` if the uptime is missing.
    pub(super) fn parse(lines: &[String]) -> Option<Counters> {
        let (mut uptime_s, mut load_means, mut network) = (None, None, Vec::new());
        let (mut hardware, mut disks) = (BTreeSet::new(), BTreeMap::new());
        for (path, text) in lines.iter().filter_map(|line| line.split_once(':')) {
            match path {
                "/proc/uptime" => uptime_s = text.split_whitespace().next()?.parse().ok(),
                "/proc/loadavg" => load_means = load(text.as_bytes()),
                "/proc/net/dev" => network.push(text),
                _ => {
                    if let Some(name) = text_between(path, "/sys/class/net/", "/device/uevent") {
                        hardware.insert(name);
                    } else if let Some(name) = text_between(path, "/sys/class/block/", "/stat")
                        && let Some(stats) = DiskStats::parse(text.as_bytes())
                    {
                        // The kernel writes a slash within a name as an exclamation mark there.
                        disks.insert(name.replace('!', "/"), stats);
                    }
                }
            }
        }
        let uptime_s = uptime_s?;
        let disk = |stats| DiskCounters {
            stats,
            idle_since_s: uptime_s,
        };
        Some(Counters {
            uptime_s,
            load: load_means,
            traffic: Traffic::of(network, |name| hardware.contains(name)),
            disks: disks
                .into_iter()
                .map(|(name, stats)| (name, disk(stats)))
                .collect(),
        })
    }
}

fn text_between<'a>(path: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    path.strip_prefix(before)?.strip_suffix(behind)
}

/// Computes the rates between the readings of a host.
#[derive(Default)]
pub(super) struct Sampler {
    last: Option<Counters>,
}

impl Sampler {
    /// The rates since the last reading; `None` for the first one, and if the uptime did not advance, as after a boot.
    pub(super) fn rates(&mut self, mut now: Counters) -> Option<HostRates> {
        let rates = self
            .last
            .as_ref()
            .and_then(|before| rates(before, &mut now));
        self.last = Some(now);
        rates
    }
}

fn rates(before: &Counters, now: &mut Counters) -> Option<HostRates> {
    let seconds = now.uptime_s - before.uptime_s;
    if seconds <= 0.0 {
        return None;
    }
    // An interface that is removed takes its count with it.
    let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
    let mut disks = Vec::new();
    for (name, disk) in &mut now.disks {
        if let Some(before) = before.disks.get(name) {
            disks.extend(disk.sample(name, before, seconds));
        }
    }
    Some(HostRates {
        seconds,
        received_per_s: rate(before.traffic.received, now.traffic.received),
        sent_per_s: rate(before.traffic.sent, now.traffic.sent),
        load: now.load,
        disks,
    })
}

impl DiskCounters {
    /// Rates of a disk since an earlier reading; `None` if its counters were reset.
    fn sample(&mut self, name: &str, before: &DiskCounters, seconds: f64) -> Option<DiskSample> {
        let counts = self.stats.since(&before.stats)?;
        let now_s = self.idle_since_s;
        if counts.reads + counts.writes == 0 && self.stats.in_flight > 0 {
            self.idle_since_s = before.idle_since_s;
        }
        let stuck_ns = (now_s - self.idle_since_s) * 1e9;
        let latency_ns = self.stats.mean_latency_ns(&before.stats);
        Some(DiskSample {
            name: name.to_owned(),
            reads_per_s: counts.reads as f64 / seconds,
            writes_per_s: counts.writes as f64 / seconds,
            read_bytes_per_s: counts.read_bytes as f64 / seconds,
            write_bytes_per_s: counts.write_bytes as f64 / seconds,
            latency_ns: latency_ns.or_else(|| (self.stats.in_flight > 0).then_some(stuck_ns)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading of a host with an interface and a disk.
    fn reading(uptime: &str, [received, sent]: [u64; 2], disk: &str) -> Counters {
        let text = format!(
            "/proc/uptime:{uptime} 100.00\n\
             /proc/loadavg:1.00 2.00 3.00 1/2 3\n\
             /proc/net/dev:Inter-|   Receive                    |  Transmit\n\
             /proc/net/dev:    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n\
             /proc/net/dev:  eth0:{received} 0 0 0 0 0 0 0 {sent} 0 0 0 0 0 0 0\n\
             /proc/net/dev:   br0: 7 0 0 0 0 0 0 0 7 0 0 0 0 0 0 0\n\
             /sys/class/net/eth0/device/uevent:DRIVER=ena\n\
             /sys/class/net/eth0/device/uevent:PCI_SLOT_NAME=0000:00:05.0\n\
             /sys/class/block/cciss!c0d0/stat:{disk}\n"
        );
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        Counters::parse(&lines).unwrap()
    }

    #[test]
    fn rates_and_latencies_are_those_of_the_time_between() {
        let mut sampler = Sampler::default();
        // Reads, merged, sectors, ms; writes, merged, sectors, ms; in flight, busy, weighted.
        let first = reading("50.00", [1000, 10], "100 0 800 50 10 0 80 5 0 55 55");
        assert_eq!(sampler.rates(first.clone()), None);
        let second = reading(
            "52.00",
            [6000, 1010],
            "300 0 2400 450 110 0 880 205 0 155 655",
        );
        let rates = sampler.rates(second).unwrap();
        assert_eq!((rates.seconds, rates.load), (2.0, Some([1.0, 2.0, 3.0])));
        assert_eq!((rates.received_per_s, rates.sent_per_s), (2500.0, 500.0));
        let expected = DiskSample {
            name: "cciss/c0d0".to_owned(),
            reads_per_s: 100.0,
            writes_per_s: 50.0,
            read_bytes_per_s: 409_600.0,
            write_bytes_per_s: 204_800.0,
            // 600 ms over 300 requests.
            latency_ns: Some(2e6),
        };
        assert_eq!(rates.disks, [expected]);
        // A rebooted host has no rate yet.
        assert_eq!(sampler.rates(first), None);
    }

    #[test]
    fn a_disk_that_is_stuck_has_the_time_since_when() {
        let mut sampler = Sampler::default();
        let mut latency = |uptime, in_flight| {
            let disk = format!("1 0 8 5 1 0 8 5 {in_flight} 5 5");
            let rates = sampler.rates(reading(uptime, [0, 0], &disk))?;
            rates.disks[0].latency_ns
        };
        assert_eq!(latency("50.00", 0), None);
        assert_eq!(latency("51.00", 4), Some(1e9));
        assert_eq!(latency("53.00", 4), Some(3e9));
        // An idle disk has no latency.
        assert_eq!(latency("54.00", 0), None);
    }

    #[test]
    fn a_disk_that_goes_away_is_left_out_and_a_host_without_uptime_is_none() {
        let mut sampler = Sampler::default();
        sampler.rates(reading("50.00", [0, 0], "1 0 8 5 1 0 8 5 0 5 5"));
        let rates = sampler.rates(reading("51.00", [0, 0], "")).unwrap();
        assert_eq!(rates.disks, []);
        let lines = ["/proc/loadavg:1.00 2.00 3.00 1/2 3".to_owned()];
        assert_eq!(Counters::parse(&lines), None);
    }
}
