//! Somebody else's I/O on the disks that are measured.

use record::{Bytes, Code, DeviceCounts, Finding, Flow, Phase, Run, Severity};

use super::finding;
use ui::words::number;

/// The device's excess over what we asked for, in either direction, must be this share of all that
/// we asked for …
const EXCESS: f64 = 0.10;
/// … and at least this many bytes a second …
const EXCESS_BYTES_PER_S: f64 = (1 << 20) as f64;
/// … or this many requests a second.
const EXCESS_OPS_PER_S: f64 = 50.0;
/// Larger requests than this may be split by the kernel, so their number says nothing.
const NEVER_SPLIT: Bytes = Bytes::kib(64);

/// File systems that write elsewhere than they are asked to, and their own trees with it.
const COPY_ON_WRITE: [&str; 3] = ["btrfs", "bcachefs", "zfs"];

/// Requests and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amount {
    ops: f64,
    bytes: f64,
}

/// The device did more than this run asked for.
pub(super) fn foreign_io(run: &Run, phase: &Phase) -> Option<Finding> {
    let (counts, seconds) = crate::views::device_totals(phase)?;
    let asked = Amount {
        ops: [&phase.read, &phase.write]
            .map(|flow| ops(flow) as f64)
            .iter()
            .sum(),
        bytes: [&phase.read, &phase.write]
            .map(|flow| bytes(flow) as f64)
            .iter()
            .sum(),
    };
    let rule = Rule::of(run, phase);
    let excess = |device: Amount, ours: &Option<Flow>, counted: Counted| {
        let beyond = Amount {
            ops: (device.ops - ops(ours) as f64).max(0.0),
            bytes: (device.bytes - bytes(ours) as f64).max(0.0),
        };
        let matters = (counted.bytes
            && beyond.bytes > EXCESS_BYTES_PER_S * seconds
            && beyond.bytes > EXCESS * asked.bytes)
            || (counted.ops
                && beyond.ops > EXCESS_OPS_PER_S * seconds
                && beyond.ops > EXCESS * asked.ops);
        matters.then_some(beyond)
    };
    let (reads, writes) = amounts(&counts);
    let parts: Vec<String> = [
        ("read", excess(reads, &phase.read, rule.reads)),
        ("write", excess(writes, &phase.write, rule.writes)),
    ]
    .into_iter()
    .filter_map(|(what, beyond)| {
        let beyond = beyond?;
        Some(format!(
            "{} {what}s/s ({} MiB/s)",
            number(beyond.ops / seconds),
            number(beyond.bytes / seconds / (1 << 20) as f64)
        ))
    })
    .collect();
    if parts.is_empty() {
        return None;
    }
    let text = format!(
        "By the kernel's count, {} did {} that this run did not ask for: something else uses it, \
         and the figures are what was left.",
        run.target.disks.join(", "),
        parts.join(" and "),
    );
    Some(finding(Code::ForeignIo, Severity::Warn, Some(phase), text))
}

fn ops(flow: &Option<Flow>) -> u64 {
    flow.as_ref().map_or(0, |flow| flow.ops)
}

fn bytes(flow: &Option<Flow>) -> u64 {
    flow.as_ref().map_or(0, |flow| flow.bytes)
}

/// What a device read and wrote.
fn amounts(counts: &DeviceCounts) -> (Amount, Amount) {
    let amount = |ops: u64, bytes: u64| Amount {
        ops: ops as f64,
        bytes: bytes as f64,
    };
    (
        amount(counts.reads, counts.read_bytes),
        amount(counts.writes, counts.write_bytes),
    )
}

/// Which counts of a direction can tell somebody else's I/O from our own.
#[derive(Clone, Copy)]
struct Counted {
    ops: bool,
    bytes: bool,
}

/// What can be told of each direction, given what lies between us and the disks.
struct Rule {
    reads: Counted,
    writes: Counted,
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
        let small = phase.workload.block <= NEVER_SPLIT && one_disk;
        Rule {
            reads: Counted {
                ops: small && (transparent || !writing),
                bytes: transparent || !writing,
            },
            writes: Counted {
                // A sync makes the file system write its journal, in requests of its own.
                ops: small && transparent && phase.sync.is_none(),
                bytes: transparent,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{self, Made};
    use super::*;

    fn codes(run: &Run) -> Vec<(Code, Severity)> {
        made::codes(run)
    }

    #[test]
    fn what_the_device_did_beyond_our_requests_is_foreign() {
        let run = Made::steady(1000.0).device_share(1.3).run();
        assert_eq!(codes(&run), [(Code::ForeignIo, Severity::Warn)]);
        let run = Made::steady(1000.0).device_share(1.04).run();
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn somebody_elses_writes_beside_our_reads_are_foreign() {
        let mut run = Made::steady(1000.0).run();
        for window in &mut run.phases[0].windows {
            let device = window.device.as_mut().unwrap();
            (device.writes, device.write_bytes) = (300, 300 * 4096);
        }
        assert_eq!(codes(&run), [(Code::ForeignIo, Severity::Warn)]);
        // On an array that may be anything: parity, mirrors, a resync.
        run.target.disks.push("nvme2n1".to_owned());
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn split_requests_are_not_foreign() {
        let mut run = Made::steady(100.0).block(Bytes::MIB).run();
        for window in &mut run.phases[0].windows {
            window.device.as_mut().unwrap().reads *= 4;
        }
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn a_journal_beside_many_requests_is_nobody() {
        // Seen on a root disk: 70 small writes a second beside 45,000 reads.
        let mut run = Made::steady(45_000.0).run();
        for window in &mut run.phases[0].windows {
            let device = window.device.as_mut().unwrap();
            (device.writes, device.write_bytes) = (70, 5 << 20);
        }
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn parity_and_trees_are_nobody() {
        let mut run = Made::steady(1000.0).writing().run();
        for window in &mut run.phases[0].windows {
            let device = window.device.as_mut().unwrap();
            (device.reads, device.read_bytes) = (2000, 2000 * 16_384);
            device.writes *= 2;
            device.write_bytes *= 2;
        }
        assert_eq!(codes(&run), [(Code::ForeignIo, Severity::Warn)]);
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
