//! I/O of other programs on the disks that are measured.

use record::{Bytes, Direction, Finding, FindingCode, Flow, Phase, Run, Severity, TargetKind};
use study::foreign::{Weight, weigh};

use super::finding::finding;
use crate::figures::PhaseFigures;
use ui::format::{number, percent};

/// Larger requests may be split by the kernel, so that their number cannot be compared with the kernel's count.
const MAX_UNSPLIT_REQUEST: Bytes = Bytes::kib(64);

/// Metadata I/O of a file system in a phase, for the file that is measured: its inode and its extents. A block device
/// has none.
const FILE_SYSTEM_METADATA: IoAmount = IoAmount {
    ops: 16.0,
    bytes: 16.0 * 4096.0,
};

/// File systems that write data to another place than the one it was at before, and write their own trees too.
const COPY_ON_WRITE: [&str; 3] = ["btrfs", "bcachefs", "zfs"];

/// Requests and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct IoAmount {
    ops: f64,
    bytes: f64,
}

impl IoAmount {
    fn and(self, other: IoAmount) -> IoAmount {
        IoAmount {
            ops: self.ops + other.ops,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// I/O of other programs in one direction.
struct ForeignIo {
    word: &'static str,
    beyond: IoAmount,
    /// The larger of two shares: foreign requests of all requested, and foreign bytes of all requested.
    share: f64,
    weight: Weight,
}

/// The finding that the device did more I/O than this run requested.
pub(super) fn foreign_io(run: &Run, phase: &Phase, figures: &PhaseFigures) -> Option<Finding> {
    // The page cache reads ahead and writes back on its own.
    if !run.target.direct {
        return None;
    }
    let (counts, seconds) = crate::figures::device_totals(phase)?;
    let after = phase.surroundings.after.unwrap_or_default();
    let seconds = seconds + phase.drain_seconds;
    let rule = Rule::of(run, phase);
    let reads = IoAmount {
        ops: (counts.reads + after.reads) as f64,
        bytes: (counts.read_bytes + after.read_bytes) as f64,
    };
    let writes = IoAmount {
        ops: (counts.writes + after.writes) as f64,
        bytes: (counts.write_bytes + after.write_bytes) as f64,
    };
    let metadata = match run.target.kind {
        TargetKind::Block => IoAmount::default(),
        TargetKind::Directory | TargetKind::File => FILE_SYSTEM_METADATA,
    };
    let own_reads = issued_requests(phase.read.as_ref());
    let own_writes = issued_requests(phase.written());
    let asked = IoAmount {
        ops: own_reads.ops + own_writes.ops,
        bytes: own_reads.bytes + own_writes.bytes,
    };
    let own_writes = IoAmount {
        // A driver may count a flush as a write of no bytes.
        ops: own_writes.ops + issued_requests(phase.sync.as_ref()).ops,
        ..own_writes
    };
    let half_width = half_width(figures);
    let parts: Vec<ForeignIo> = [
        foreign(
            "read",
            reads,
            own_reads.and(metadata),
            rule.reads,
            asked,
            half_width,
        ),
        foreign(
            "write",
            writes,
            own_writes.and(metadata),
            rule.writes,
            asked,
            half_width,
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let weight = parts.iter().map(|part| part.weight).max()?;
    let share: f64 = parts.iter().map(|part| part.share).sum();
    let text = format!(
        "By the kernel's count, {} did {} beyond this run's own requests, {} of the measured I/O: another program uses it, \
         and the disk may be faster by that much. Measure again without it. To find it, press p in: disksmith watch --latency",
        run.target.disks.join(", "),
        parts
            .iter()
            .map(|part| part.text(seconds))
            .collect::<Vec<_>>()
            .join(" and "),
        percent(share),
    );
    let severity = match weight {
        Weight::Slight => Severity::Note,
        Weight::Misleading => Severity::Warn,
    };
    Some(finding(FindingCode::ForeignIo, severity, Some(phase), text))
}

impl ForeignIo {
    fn text(&self, seconds: f64) -> String {
        format!(
            "{} {}s/s ({} MiB/s)",
            number(self.beyond.ops / seconds),
            self.word,
            number(self.beyond.bytes / seconds / (1 << 20) as f64)
        )
    }
}

/// I/O of a device in a direction beyond the run's own requests, if it is large enough to affect the figures.
fn foreign(
    word: &'static str,
    device: IoAmount,
    own: IoAmount,
    counted: CountedKinds,
    asked: IoAmount,
    half_width: Option<f64>,
) -> Option<ForeignIo> {
    let beyond = IoAmount {
        ops: (device.ops - own.ops).max(0.0),
        bytes: (device.bytes - own.bytes).max(0.0),
    };
    let ops = (beyond.ops, asked.ops, counted.ops);
    let bytes = (beyond.bytes, asked.bytes, counted.bytes);
    let shares = [ops, bytes]
        .into_iter()
        .filter(|(_, _, is_known)| *is_known);
    shares
        .filter_map(|(beyond_one, asked, _)| {
            Some(ForeignIo {
                word,
                beyond,
                share: beyond_one / asked.max(1.0),
                weight: weigh(beyond_one, asked, half_width)?,
            })
        })
        .max_by(|one, other| one.share.total_cmp(&other.share))
}

/// Requests issued in a direction, including those that completed after the measured time. In an open loop they are
/// counted by the service times, since the latencies also include requests that were due and never issued.
fn issued_requests(flow: Option<&Flow>) -> IoAmount {
    let Some(flow) = flow else {
        return IoAmount::default();
    };
    let times = flow.service.as_ref().unwrap_or(&flow.latency);
    let ops = times.count().max(flow.ops) as f64;
    IoAmount {
        ops,
        bytes: flow.bytes as f64 * ops / flow.ops.max(1) as f64,
    }
}

/// Half width of the narrowest interval among those of reads and writes.
fn half_width(figures: &PhaseFigures) -> Option<f64> {
    let flows = figures.flows.iter();
    flows
        .filter(|flow| matches!(flow.direction, Direction::Read | Direction::Write))
        .filter_map(|flow| flow.iops.half_width())
        .min_by(f64::total_cmp)
}

/// Counts of one direction, requests and bytes, each true if it shows foreign I/O beside the run's own.
#[derive(Clone, Copy)]
struct CountedKinds {
    ops: bool,
    bytes: bool,
}

/// Counts that show foreign I/O in each direction, given the layers between the program and the disks.
struct Rule {
    reads: CountedKinds,
    writes: CountedKinds,
}

impl Rule {
    fn of(run: &Run, phase: &Phase) -> Rule {
        let one_disk = run.target.disks.len() == 1;
        let writing = phase.workload.writes();
        let own_way = run
            .machine
            .filesystem
            .as_ref()
            .is_some_and(|filesystem| COPY_ON_WRITE.contains(&filesystem.kind.as_str()));
        // An array writes mirrors and parity, and reads to make parity; it splits requests at its
        // chunks. A copy-on-write file system writes its trees, and reads them first.
        let transparent = one_disk && !own_way;
        let small = phase.workload.block <= MAX_UNSPLIT_REQUEST && one_disk;
        // A sync makes a file system write its journal, possibly more than the data that is synced.
        let journals = phase.sync.is_some() && run.target.kind != TargetKind::Block;
        Rule {
            reads: CountedKinds {
                ops: small && (transparent || !writing),
                bytes: transparent || !writing,
            },
            writes: CountedKinds {
                ops: small && transparent && !journals,
                bytes: transparent && !journals,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{self, TestRun};
    use super::*;

    fn codes(run: &Run) -> Vec<(FindingCode, Severity)> {
        test_run::codes(run)
    }

    #[test]
    fn what_the_device_did_beyond_our_requests_is_foreign() {
        let run = TestRun::steady(1000.0).device_share(1.3).run();
        assert_eq!(codes(&run), [(FindingCode::ForeignIo, Severity::Warn)]);
        let run = TestRun::steady(1000.0).device_share(1.0).run();
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn foreign_io_is_found_on_a_disk_of_any_speed() {
        for rate in [60.0, 500.0, 5000.0, 200_000.0] {
            for share in [1.02, 1.04, 1.67] {
                let run = TestRun::steady(rate).noise(0.01).device_share(share).run();
                let found = codes(&run);
                assert_eq!(
                    found,
                    [(FindingCode::ForeignIo, Severity::Warn)],
                    "{rate} {share}"
                );
            }
            let run = TestRun::steady(rate).noise(0.01).device_share(1.0).run();
            assert_eq!(codes(&run), [], "{rate}");
            // Within the tolerance of the interval.
            let run = TestRun::steady(rate).noise(0.5).device_share(1.01).run();
            let of_others = |(code, _): &(FindingCode, Severity)| *code == FindingCode::ForeignIo;
            assert!(!codes(&run).iter().any(of_others), "{rate}");
        }
    }

    #[test]
    fn a_little_foreign_io_beside_a_narrow_interval_is_a_note() {
        let run = TestRun::steady(10_000.0).device_share(1.008).run();
        assert_eq!(codes(&run), [(FindingCode::ForeignIo, Severity::Note)]);
    }

    #[test]
    fn what_comes_back_after_the_end_is_our_own() {
        // Of 20 in flight, 800 had completed: the device did 820, 20 of them after the end.
        let late = |foreign: u64| {
            let mut run = TestRun::steady(100.0).noise(0.01).run();
            let phase = &mut run.phases[0];
            let flow = phase.read.as_mut().unwrap();
            flow.latency.record_many(1_000_000, 20);
            let reads = 20 + foreign;
            phase.surroundings.after = Some(record::DeviceCounts {
                reads,
                read_bytes: reads * 16_384,
                ..record::DeviceCounts::default()
            });
            let found = codes(&run);
            found.contains(&(FindingCode::ForeignIo, Severity::Warn))
        };
        assert!(!late(0));
        assert!(late(20));
    }

    /// A log on a device: each commit is a write and a flush, which some drivers count as a write of no bytes.
    #[test]
    fn own_flushes_are_own_requests_on_every_driver() {
        let log = |flushes_count: bool, foreign: u64| {
            let mut run = TestRun::steady(7000.0).writing().block(Bytes::kib(4)).run();
            run.target.kind = TargetKind::Block;
            let phase = &mut run.phases[0];
            phase.sync = phase.write.clone();
            for window in &mut phase.windows {
                window.sync = window.write.clone();
                let device = window.device.as_mut().unwrap();
                device.flushes = device.writes;
                device.writes *= 1 + u64::from(flushes_count);
                device.writes += foreign;
                device.write_bytes += foreign * 16_384;
            }
            test_run::conclude(&run).findings
        };
        assert_eq!(log(true, 0), []);
        assert_eq!(log(false, 0), []);
        for flushes_count in [true, false] {
            let found = log(flushes_count, 260);
            assert_eq!(found[0].code, FindingCode::ForeignIo);
            assert!(!found[0].text.contains("7,"), "{}", found[0].text);
        }
        assert!(log(true, 260)[0].text.contains("260 writes/s"));
    }

    #[test]
    fn somebody_elses_writes_beside_our_reads_are_foreign() {
        let mut run = TestRun::steady(1000.0).run();
        for window in &mut run.phases[0].windows {
            let device = window.device.as_mut().unwrap();
            (device.writes, device.write_bytes) = (300, 300 * 4096);
        }
        assert_eq!(codes(&run), [(FindingCode::ForeignIo, Severity::Warn)]);
        // On an array that may be anything: parity, mirrors, a resync.
        run.target.disks.push("nvme2n1".to_owned());
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn split_requests_are_not_foreign() {
        let mut run = TestRun::steady(100.0).block(Bytes::MIB).run();
        for window in &mut run.phases[0].windows {
            window.device.as_mut().unwrap().reads *= 4;
        }
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn a_journal_beside_many_requests_is_a_note_at_most() {
        // Seen on a root disk: 70 small writes a second beside 45,000 reads.
        let mut run = TestRun::steady(45_000.0).run();
        for window in &mut run.phases[0].windows {
            let device = window.device.as_mut().unwrap();
            (device.writes, device.write_bytes) = (70, 5 << 20);
        }
        assert_eq!(codes(&run), [(FindingCode::ForeignIo, Severity::Note)]);
    }

    #[test]
    fn parity_and_trees_are_nobody() {
        let mut run = TestRun::steady(1000.0).writing().run();
        for window in &mut run.phases[0].windows {
            let device = window.device.as_mut().unwrap();
            (device.reads, device.read_bytes) = (2000, 2000 * 16_384);
            device.writes *= 2;
            device.write_bytes *= 2;
        }
        assert_eq!(codes(&run), [(FindingCode::ForeignIo, Severity::Warn)]);
        let mut array = run.clone();
        array.target.disks = vec!["sdb".to_owned(), "sdc".to_owned(), "sdd".to_owned()];
        assert_eq!(codes(&array), []);
        run.machine.filesystem = Some(record::FilesystemFacts {
            kind: "btrfs".to_owned(),
            mount_point: "/data".to_owned(),
            options: String::new(),
        });
        assert_eq!(codes(&run), []);
    }
}
