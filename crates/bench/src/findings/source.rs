//! Source of the data that was read: the disk, a hole in a file, or a cache.

use record::{Bytes, Cache, CacheKind, Finding, FindingCode, Phase, Run, Severity, TargetKind};

use super::bonnie;
use super::finding::finding;
use crate::contents::{self, FasterContents};
use ui::format::{number, percent};
use ui::units::rate;

/// Share of unwritten blocks up to which reads are not distorted by much.
const MAX_UNWRITTEN_SHARE: f64 = 0.01;
/// Shares of unwritten blocks below this are at most a rounding of extents.
const ANY_UNWRITTEN: f64 = 0.001;
/// Minimum share of the completed reads that the device must have made. A little less than all is normal: the counters
/// are read a moment after the window's end.
const MIN_DEVICE_READ_SHARE: f64 = 0.9;
/// File systems without a block device known to the kernel, with a cache that O_DIRECT does not bypass.
const UNSEEN_CACHE_FILE_SYSTEMS: [&str; 3] = ["zfs", "virtiofs", "9p"];
/// Network file systems.
const REMOTE_FILE_SYSTEMS: [&str; 6] = ["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre"];
/// Share of sampled blocks with only zeros above which most of a device was never written.
const BLANK_SHARE: f64 = 0.5;
/// A common size of caches in controllers and hypervisors.
const LIKELY_CACHE_SIZE: Bytes = Bytes::gib(1);

/// The finding that reads hit holes or unwritten extents: the file system answers them with zeros.
pub(super) fn unwritten(run: &Run) -> Option<Finding> {
    let share = run.target.unwritten_fraction?;
    let reads = run.phases.iter().any(|phase| phase.workload.reads());
    if share < ANY_UNWRITTEN || !reads {
        return None;
    }
    let severity = if share < MAX_UNWRITTEN_SHARE {
        Severity::Warn
    } else {
        Severity::Invalid
    };
    Some(finding(
        FindingCode::Unwritten,
        severity,
        None,
        format!(
            "{} of {} was never written: it is a hole or an unwritten extent, which the file \
             system answers with zeros without asking the disk. Write the file fully, then \
             measure.",
            percent(share),
            run.target.path
        ),
    ))
}

/// The finding that the target writes data that compresses or repeats faster than random data.
pub(super) fn compressed(run: &Run) -> Option<Finding> {
    let FasterContents {
        given,
        random,
        contents,
    } = contents::faster(run)?;
    let shares = [
        (contents.compressible, "compresses away"),
        (contents.repeated, "repeats"),
    ];
    let shares = shares.into_iter().filter(|(share, _)| *share > 0.0);
    let shares: Vec<String> = shares
        .map(|(share, what)| format!("{} {what}", percent(share)))
        .collect();
    Some(finding(
        FindingCode::Compressed,
        Severity::Warn,
        None,
        format!(
            "{} compresses data or stores equal blocks once: data of which {} is written at {}, random data at {}. \
             The figures hold for data like this alone; measure with the shares of your own.",
            run.target.path,
            shares.join(" and "),
            rate(given),
            rate(random),
        ),
    ))
}

/// The finding that most of a device holds zeros: blocks that were never written, or were discarded, are answered by
/// its controller without reading the medium.
pub(super) fn blank(run: &Run) -> Option<Finding> {
    let share = run
        .target
        .zero_fraction
        .filter(|share| *share > BLANK_SHARE)?;
    let reads = run.phases.iter().any(|phase| phase.workload.reads());
    reads.then(|| {
        finding(
            FindingCode::Unwritten,
            Severity::Warn,
            None,
            format!(
                "{} of the blocks sampled on {} hold only zeros. What was never written, or was \
                 discarded, many devices answer without asking their medium; write the device \
                 fully, then measure.",
                percent(share),
                run.target.path
            ),
        )
    })
}

/// The finding that the target's file system, or device, keeps its data in memory.
pub(super) fn in_memory(run: &Run) -> Option<Finding> {
    run.target.in_memory.then(|| {
        let what = match run.target.kind {
            TargetKind::Block => "a device that keeps its data",
            TargetKind::Directory | TargetKind::File => "on a file system that keeps its data",
        };
        finding(
            FindingCode::Cached,
            Severity::Invalid,
            None,
            format!(
                "{} is {what} in memory: the figures are those of memory, and no disk was measured. Measure a disk, or a \
                 directory on one; they are listed by: disksmith devices",
                run.target.path
            ),
        )
    })
}

/// The finding that the page cache could not be bypassed.
pub(super) fn buffered(run: &Run) -> Option<Finding> {
    // Bonnie++ uses the page cache by design: the module `bonnie` reports it.
    let measured = run.origin == record::Origin::Measured && run.suite != "bonnie";
    (measured && !run.target.direct && !run.target.in_memory).then(|| {
        finding(
            FindingCode::Cached,
            Severity::Invalid,
            None,
            format!(
                "Reads and writes of {} went through the page cache, because it refuses direct I/O \
                 or --buffered was given: the figures are the memory's as much as the disk's.",
                run.target.path
            ),
        )
    })
}

/// The finding that the file system has caches of its own which the kernel does not see: a program serves it, another
/// kernel does, or it accepts O_DIRECT and ignores it.
pub(super) fn served(run: &Run) -> Option<Finding> {
    let kind = &run.machine.filesystem.as_ref()?.kind;
    // Where the file system names its device, the kernel's count on that device shows cached reads.
    let hidden = run.target.disks.is_empty() && run.target.direct;
    let served = kind.starts_with("fuse") || UNSEEN_CACHE_FILE_SYSTEMS.contains(&kind.as_str());
    if hidden && REMOTE_FILE_SYSTEMS.contains(&kind.as_str()) {
        return Some(finding(
            FindingCode::Cached,
            Severity::Note,
            None,
            format!(
                "{} is on {kind}: the figures are those of the network and of another host, which may answer from its \
                 memory. Measure its disks there too: disksmith fleet run --hosts SERVER -- bench DIRECTORY",
                run.target.path
            ),
        ));
    }
    if hidden && kind == "overlay" {
        return Some(finding(
            FindingCode::Cached,
            Severity::Note,
            None,
            format!(
                "{} is on an overlay, the file system of a container: the disk below it is not known, nor what the \
                 kernel counted there. Measure a directory of a volume that is mounted into the container: disksmith \
                 bench DIRECTORY",
                run.target.path
            ),
        ));
    }
    (hidden && served).then(|| {
        finding(
            FindingCode::Cached,
            Severity::Warn,
            None,
            format!(
                "{} is on {kind}, which may answer any request from a cache of its own, and the \
                 kernel does not count its requests to the disks. Measure a directory of a disk's own file system; \
                 the disks are listed by: disksmith devices",
                run.target.path
            ),
        )
    })
}

/// The finding that a layer below the target may answer in place of the disk: direct I/O bypasses the page cache of
/// the target, but no cache below it.
pub(super) fn cached_below(run: &Run) -> Option<Finding> {
    // A target in memory has its own finding already.
    let caches = || run.target.caches.iter().filter(|_| !run.target.in_memory);
    let worst = caches().map(|cache| severity_of(&cache.kind)).max()?;
    let layers: Vec<String> = caches().map(sentence).collect();
    let text = format!("{} The figures are not the disk's alone.", layers.join(" "));
    Some(finding(FindingCode::Cached, worst, None, text))
}

/// Severity of a cache: figures from memory say nothing about a disk; a faster disk in front of a slower one may be
/// intended.
fn severity_of(kind: &CacheKind) -> Severity {
    match kind {
        CacheKind::PageCache | CacheKind::Memory => Severity::Invalid,
        CacheKind::FileSystem(_) | CacheKind::FasterDisk(_) => Severity::Warn,
    }
}

fn sentence(cache: &Cache) -> String {
    let layer = &cache.layer;
    match &cache.kind {
        CacheKind::PageCache => format!(
            "{layer} does its I/O through the page cache, so that reads may come from memory and writes end there: \
             losetup --direct-io=on {layer}."
        ),
        CacheKind::Memory => format!("{layer} keeps its data in memory."),
        CacheKind::FileSystem(name) => {
            format!(
                "{layer} is {name}, which has a cache of its own that direct I/O does not bypass."
            )
        }
        CacheKind::FasterDisk(name) => format!(
            "{layer} is a cache ({name}) before a slower disk: data in the cache is served at its \
             speed, the rest at the slower disk's."
        ),
    }
}

/// The finding that more requests completed than the device served.
pub(super) fn cached(run: &Run, phase: &Phase) -> Option<Finding> {
    // A suite that uses the page cache also counts the fsync that ends its work, so that all data read and written
    // must have reached the device by then.
    let through = run.suite == "bonnie";
    if run.target.in_memory || !(run.target.direct || through) {
        return None;
    }
    let (counts, _) = crate::figures::device_totals(phase)?;
    let sides = [
        (
            "reads",
            phase.read.as_ref(),
            counts.read_bytes,
            "was answered from",
        ),
        // The kernel counts discards separately.
        ("writes", phase.written(), counts.write_bytes, "was left in"),
    ];
    // The part of a sufficiently large file that the page cache may hold is in the figures by design.
    let held = bonnie::share_in_memory(run, phase);
    let mut severity = Severity::Warn;
    let parts: Vec<String> = sides
        .into_iter()
        .filter_map(|(what, flow, counted, how)| {
            let asked = flow.map(|flow| flow.bytes).filter(|bytes| *bytes > 0)?;
            let made = counted as f64 / asked as f64;
            (made < MIN_DEVICE_READ_SHARE).then(|| {
                let explained = what == "reads" && made >= MIN_DEVICE_READ_SHARE * (1.0 - held);
                if !explained {
                    severity = Severity::Invalid;
                }
                format!(
                    "{} of {what} on {} where {} came back: {} {how} a cache above the disk",
                    Bytes(counted),
                    run.target.disks.join(", "),
                    Bytes(asked),
                    percent(1.0 - made),
                )
            })
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let text = format!("The kernel counted {}.", parts.join(", and "));
    Some(finding(FindingCode::Cached, severity, Some(phase), text))
}

/// Bytes that a workload uses, over all its files.
fn whole_span(workload: &record::Workload) -> Option<Bytes> {
    let files = workload
        .details
        .as_ref()
        .map_or(1, |details| details.files.max(1));
    Some(Bytes(workload.span?.0.saturating_mul(u64::from(files))))
}

/// Finding that the bytes read would fit into memory, or into a cache that a device may have.
pub(super) fn small_span(run: &Run) -> Option<Finding> {
    let reading = run.phases.iter().filter(|phase| phase.workload.reads());
    let span = reading
        .filter_map(|phase| whole_span(&phase.workload))
        .max()
        .filter(|_| {
            !run.target.in_memory && run.target.caches.is_empty() && run.suite != "bonnie"
        })?;
    let memory = run.machine.memory;
    let smaller_than = if span < LIKELY_CACHE_SIZE {
        "many a cache in a controller or hypervisor".to_owned()
    } else if span < memory {
        format!("this machine's memory ({memory})")
    } else {
        return None;
    };
    let share = number(span.0 as f64 / run.target.size.0.max(1) as f64 * 100.0);
    let part = match run.target.kind {
        TargetKind::Directory => String::new(),
        _ => format!(" ({share} % of the target)"),
    };
    Some(finding(
        FindingCode::SmallSpan,
        Severity::Note,
        None,
        format!(
            "The reads spread over {span}{part}, which is less than {smaller_than}. The page \
             cache was bypassed, but a cache in the device or the host below may hold it all; \
             give a larger --size or --span to be sure."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{self, TestRun};
    use super::*;

    fn codes(run: &Run) -> Vec<(FindingCode, Severity)> {
        test_run::codes(run)
    }

    #[test]
    fn a_sparse_file_is_invalid_and_a_written_one_is_not() {
        let mut run = TestRun::steady(1000.0).run();
        run.target.unwritten_fraction = Some(0.4);
        assert_eq!(codes(&run), [(FindingCode::Unwritten, Severity::Invalid)]);
        run.target.unwritten_fraction = Some(0.005);
        assert_eq!(codes(&run), [(FindingCode::Unwritten, Severity::Warn)]);
        for fine in [None, Some(0.0), Some(0.0001)] {
            run.target.unwritten_fraction = fine;
            assert_eq!(codes(&run), [], "{fine:?}");
        }
    }

    /// A run in which data that compresses is written at the rates `given`, and random data at 1000 a second.
    fn compared(given: [f64; 6]) -> Run {
        let mut run = TestRun::steady(1000.0).run();
        let phases = (1..=6).zip(given).flat_map(|(turn, rate)| {
            [("given", rate), ("random", 1000.0)].map(|(kind, rate)| {
                let made = TestRun::steady(rate).seed(turn).writing().lasting(1);
                let mut phase = made.run().phases.remove(0);
                phase.name = format!("{kind}-data-{turn}");
                if kind == "given" {
                    phase.workload.details.get_or_insert_default().contents =
                        Some(record::Contents {
                            compressible: 0.5,
                            ..record::Contents::default()
                        });
                }
                phase
            })
        });
        run.phases.extend(phases);
        run
    }

    #[test]
    fn a_disk_that_writes_such_data_faster_compresses_also_where_one_turn_was_disturbed() {
        let warned = [(FindingCode::Compressed, Severity::Warn)];
        assert_eq!(codes(&compared([2000.0; 6])), warned);
        assert_eq!(
            codes(&compared([2000.0, 2000.0, 1002.0, 2000.0, 2000.0, 2000.0])),
            warned
        );
        for same in [
            [1000.0; 6],
            [1050.0; 6],
            [500.0; 6],
            [2000.0, 2000.0, 500.0, 2000.0, 2000.0, 2000.0],
        ] {
            assert_eq!(codes(&compared(same)), [], "{same:?}");
        }
        let mut cut = compared([2000.0; 6]);
        cut.phases.pop();
        assert_eq!(codes(&cut), []);
    }

    #[test]
    fn a_device_full_of_zeros_was_never_written() {
        let mut run = TestRun::steady(1000.0).run();
        run.target.zero_fraction = Some(0.9);
        assert_eq!(codes(&run), [(FindingCode::Unwritten, Severity::Warn)]);
        run.target.zero_fraction = Some(0.2);
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn holes_do_not_matter_to_writes() {
        let mut run = TestRun::steady(1000.0).writing().run();
        run.target.unwritten_fraction = Some(1.0);
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn memory_is_no_disk() {
        let mut run = TestRun::steady(1000.0).run();
        run.target.in_memory = true;
        assert_eq!(codes(&run), [(FindingCode::Cached, Severity::Invalid)]);
    }

    #[test]
    fn a_cache_below_is_named_with_its_layer() {
        for (kind, severity, word) in [
            (
                CacheKind::PageCache,
                Severity::Invalid,
                "losetup --direct-io=on /dev/x",
            ),
            (
                CacheKind::Memory,
                Severity::Invalid,
                "/dev/x keeps its data in memory",
            ),
            (
                CacheKind::FileSystem("zfs".to_owned()),
                Severity::Warn,
                "/dev/x is zfs",
            ),
            (
                CacheKind::FasterDisk("bcache".to_owned()),
                Severity::Warn,
                "(bcache)",
            ),
        ] {
            let mut run = TestRun::steady(1000.0).run();
            let layer = "/dev/x".to_owned();
            run.target.caches = vec![Cache { layer, kind }];
            assert_eq!(codes(&run), [(FindingCode::Cached, severity)]);
            let text = &test_run::conclude(&run).findings[0].text;
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn a_refusal_of_direct_io_makes_the_run_invalid() {
        let mut run = TestRun::steady(1000.0).run();
        run.target.direct = false;
        assert_eq!(codes(&run), [(FindingCode::Cached, Severity::Invalid)]);
    }

    #[test]
    fn what_a_program_serves_may_come_from_memory() {
        let mut run = TestRun::steady(1000.0).no_device().run();
        run.target.disks.clear();
        let mounted = |kind: &str| {
            Some(record::FilesystemFacts {
                kind: kind.to_owned(),
                mount_point: "/data".to_owned(),
                options: String::new(),
            })
        };
        run.machine.filesystem = mounted("fuse.mergerfs");
        assert_eq!(codes(&run), [(FindingCode::Cached, Severity::Warn)]);
        run.machine.filesystem = mounted("nfs4");
        assert_eq!(codes(&run), [(FindingCode::Cached, Severity::Note)]);
        run.machine.filesystem = mounted("overlay");
        assert_eq!(codes(&run), [(FindingCode::Cached, Severity::Note)]);
        run.machine.filesystem = mounted("ext4");
        assert_eq!(codes(&run), []);
        run.machine.filesystem = mounted("fuseblk");
        run.target.disks = vec!["sdb".to_owned()];
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn reads_that_the_device_did_not_make_are_cached() {
        let run = TestRun::steady(1000.0).device_share(0.5).run();
        assert_eq!(codes(&run), [(FindingCode::Cached, Severity::Invalid)]);
        let text = &test_run::conclude(&run).findings[0].text;
        assert!(text.contains("50 % was answered from a cache"), "{text}");
        let run = TestRun::steady(1000.0).writing().device_share(0.3).run();
        assert_eq!(codes(&run), [(FindingCode::Cached, Severity::Invalid)]);
        let run = TestRun::steady(1000.0).device_share(0.97).run();
        assert_eq!(codes(&run), []);
        // Nothing is claimed without the kernel's count.
        let run = TestRun::steady(1000.0).no_device().run();
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn a_small_span_is_noted() {
        let mut run = TestRun::steady(1000.0).run();
        run.machine.memory = Bytes::gib(64);
        assert_eq!(codes(&run), []);
        run.phases[0].workload.span = Some(Bytes::gib(4));
        assert_eq!(codes(&run), [(FindingCode::SmallSpan, Severity::Note)]);
        run.machine.memory = Bytes::gib(2);
        assert_eq!(codes(&run), []);
        run.phases[0].workload.span = Some(Bytes::mib(512));
        assert_eq!(codes(&run), [(FindingCode::SmallSpan, Severity::Note)]);
    }
}
