//! Samples of the host's network, load and disks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linux::Root;
use linux::block::Devices;
use linux::diskstats::{Counter, DiskStats};
use linux::network::Traffic;
use linux::pulse::{KeptFile, load};

use crate::agent::facts::is_disk;
use crate::protocol::{DiskSample, HostRates};

/// Interval at which the list of disks is read again.
const DISKS_INTERVAL: Duration = Duration::from_secs(10);

/// Looks at the host again and again.
pub(super) struct Sampler {
    every: Duration,
    last: Instant,
    traffic: Traffic,
    disks: BTreeMap<String, Disk>,
    looked: Instant,
}

/// The load over 1, 5 and 15 minutes; `None` where the kernel does not report it.
fn load_now(root: &Root) -> Option<[f64; 3]> {
    let mut file = KeptFile::open(&root.proc.join("loadavg")).ok()?;
    load(file.read().ok()?)
}

/// A disk whose counters are open.
struct Disk {
    counter: Counter,
    before: DiskStats,
    /// Moment of the last completed request.
    idle_since: Instant,
}

impl Sampler {
    /// Begins now: the first sample is due after `every`.
    pub(super) fn start(root: &Root, every: Duration) -> Sampler {
        let mut sampler = Sampler {
            every: every.max(Duration::from_millis(100)),
            last: Instant::now(),
            traffic: Traffic::read(root).unwrap_or_default(),
            disks: BTreeMap::new(),
            looked: Instant::now(),
        };
        sampler.open_new_disks(root);
        sampler
    }

    /// The sample of the time since the last one, where it is time for it.
    pub(super) fn due(&mut self, root: &Root) -> Option<HostRates> {
        let elapsed = self.last.elapsed();
        if elapsed < self.every {
            return None;
        }
        self.last = Instant::now();
        let seconds = elapsed.as_secs_f64();
        let traffic = Traffic::read(root).unwrap_or(self.traffic);
        let before = std::mem::replace(&mut self.traffic, traffic);
        // An interface that went away takes its count along.
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        let mut disks = Vec::new();
        self.disks.retain(|name, disk| match disk.counter.read() {
            Ok(now) => {
                disks.extend(disk.sample(name, &now, seconds));
                true
            }
            Err(_) => false,
        });
        if self.looked.elapsed() > DISKS_INTERVAL {
            self.looked = Instant::now();
            self.open_new_disks(root);
        }
        Some(HostRates {
            seconds,
            received_per_s: rate(before.received, traffic.received),
            sent_per_s: rate(before.sent, traffic.sent),
            load: load_now(root),
            disks,
        })
    }

    /// Opens the counters of disks that are not open yet.
    fn open_new_disks(&mut self, root: &Root) {
        let devices = Devices::read(root).unwrap_or_default();
        for device in devices.iter().filter(|device| is_disk(device)) {
            if self.disks.contains_key(&device.name) {
                continue;
            }
            let opened = Counter::open(root, device)
                .and_then(|counter| counter.read().map(|before| (counter, before)));
            if let Ok((counter, before)) = opened {
                let disk = Disk {
                    counter,
                    before,
                    idle_since: Instant::now(),
                };
                self.disks.insert(device.name.clone(), disk);
            }
        }
    }
}

impl Disk {
    /// Rates of a disk since the last sample; none where its counters began again.
    fn sample(&mut self, name: &str, now: &DiskStats, seconds: f64) -> Option<DiskSample> {
        let before = std::mem::replace(&mut self.before, *now);
        let counts = now.since(&before)?;
        let requests = counts.reads + counts.writes;
        if requests > 0 || now.in_flight == 0 {
            self.idle_since = Instant::now();
        }
        let latency_ns = now.mean_latency_ns(&before).or_else(|| {
            let stuck = self.idle_since.elapsed().as_nanos() as f64;
            (now.in_flight > 0).then_some(stuck)
        });
        Some(DiskSample {
            name: name.to_owned(),
            reads_per_s: counts.reads as f64 / seconds,
            writes_per_s: counts.writes as f64 / seconds,
            read_bytes_per_s: counts.read_bytes as f64 / seconds,
            write_bytes_per_s: counts.write_bytes as f64 / seconds,
            latency_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A captured tree with one disk and one interface.
    fn tree(folder: &std::path::Path, stat: &str, net: &str) -> Root {
        let root = Root::under(folder);
        let disk = root.sys.join("class/block/sda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(root.proc.join("net")).unwrap();
        fs::write(disk.join("dev"), "8:0\n").unwrap();
        fs::write(disk.join("size"), "2048\n").unwrap();
        fs::write(disk.join("stat"), stat).unwrap();
        fs::write(root.proc.join("net/dev"), net).unwrap();
        fs::write(root.proc.join("loadavg"), "1.00 2.00 3.00 1/2 3\n").unwrap();
        root
    }

    fn net(received: u64, sent: u64) -> String {
        format!("  eth0: {received} 0 0 0 0 0 0 0 {sent} 0 0 0 0 0 0 0\n")
    }

    #[test]
    fn rates_and_latencies_are_those_of_the_time_between() {
        let folder = tempfile::tempdir().unwrap();
        // Reads, merged, sectors, ms; writes, merged, sectors, ms; in flight, busy, weighted.
        let root = tree(
            folder.path(),
            "100 0 800 50 10 0 80 5 0 55 55",
            &net(1000, 10),
        );
        let mut early = Sampler::start(&root, Duration::from_secs(3600));
        assert_eq!(early.due(&root), None);
        let mut sampler = Sampler::start(&root, Duration::from_millis(100));
        tree(
            folder.path(),
            "300 0 2400 450 110 0 880 205 0 155 655",
            &net(6000, 1010),
        );
        std::thread::sleep(Duration::from_millis(120));
        let sample = sampler.due(&root).unwrap();
        let near = |value: f64, count: f64| (value * sample.seconds - count).abs() < 1e-6;
        assert!(near(sample.received_per_s, 5000.0) && near(sample.sent_per_s, 1000.0));
        let disk = &sample.disks[0];
        assert!(
            near(disk.reads_per_s, 200.0) && near(disk.writes_per_s, 100.0),
            "{disk:?}"
        );
        assert!(near(disk.read_bytes_per_s, 819_200.0), "{disk:?}");
        // 600 ms over 300 requests.
        assert_eq!(disk.latency_ns, Some(2e6));
        assert_eq!(sample.load, Some([1.0, 2.0, 3.0]));
    }

    #[test]
    fn a_disk_that_is_stuck_has_the_time_since_when() {
        let folder = tempfile::tempdir().unwrap();
        let root = tree(folder.path(), "1 0 8 5 1 0 8 5 0 5 5", &net(0, 0));
        let mut sampler = Sampler::start(&root, Duration::from_millis(100));
        tree(folder.path(), "1 0 8 5 1 0 8 5 4 5 5", &net(0, 0));
        std::thread::sleep(Duration::from_millis(110));
        let first = sampler.due(&root).unwrap().disks[0].latency_ns.unwrap();
        assert!(first >= 110e6, "{first}");
        std::thread::sleep(Duration::from_millis(110));
        let second = sampler.due(&root).unwrap().disks[0].latency_ns.unwrap();
        assert!(second >= 220e6, "{second}");
    }

    #[test]
    fn a_disk_at_rest_has_no_latency_and_one_that_goes_away_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = tree(folder.path(), "1 0 8 5 1 0 8 5 0 5 5", &net(0, 0));
        let mut sampler = Sampler::start(&root, Duration::from_millis(100));
        std::thread::sleep(Duration::from_millis(110));
        assert_eq!(sampler.due(&root).unwrap().disks[0].latency_ns, None);
        fs::write(root.sys.join("class/block/sda/stat"), "").unwrap();
        std::thread::sleep(Duration::from_millis(110));
        assert_eq!(sampler.due(&root).unwrap().disks, []);
    }
}
