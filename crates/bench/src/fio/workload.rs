//! The workload of a clone of a job.

use fiojob::{Distribution, IoEngine, Job, RateProcess, SyncCall, ZoneBytes, ZoneMode, ZonePart};
use record::{
    Bytes, JobOptions, Nanos, Pattern, RandomDistribution, SequentialRuns, Stride, ThinkTime,
    Workload, WriteZones, ZoneShare,
};

use super::blocks::{Blocks, one_sided_rate, rates, read_fraction};
use super::rules;

/// Time limit of a job without a runtime: longer than any run.
const NEVER: Nanos = Nanos::from_secs(365 * 24 * 3600);

/// The workload of a clone that begins at `offset`, ends after the given bytes and requests, and alternates between
/// the given number of files.
pub(super) fn workload(
    job: &Job,
    blocks: &Blocks,
    offset: Bytes,
    (bytes, ops): (Option<Bytes>, Option<u64>),
    files: usize,
    (clone, span): (usize, Bytes),
) -> Workload {
    let (read_sizes, write_sizes) = match blocks.differ() {
        true => (blocks.read.clone(), blocks.write.clone()),
        false => (Vec::new(), Vec::new()),
    };
    // Trims are not followed by syncs, as in fio (`should_fsync`).
    let writes_data = job.pattern.writes && !job.pattern.trims;
    let longest = match job.runtime_us {
        0 => NEVER,
        us => Nanos(us * 1000),
    };
    let mut workload = Workload {
        pattern: match job.pattern.random {
            true => Pattern::Random,
            false => Pattern::Sequential,
        },
        read_fraction: read_fraction(job),
        block: Bytes(blocks.mean),
        threads: 1,
        depth: match job.engine {
            // As in fio, whose trims are synchronous calls.
            _ if job.pattern.trims => 1,
            IoEngine::Queued => job.iodepth,
            IoEngine::Blocking => 1,
        },
        rate_per_s: rate(job),
        span: None,
        sync_every: if writes_data {
            job.sync().map_or(0, |(_, every)| every)
        } else {
            0
        },
        sync_at_end: job.syncs_at_end() && writes_data,
        longest,
        shortest: Nanos(0),
        precision: 0.0,
        ops,
        details: Some(Box::new(JobOptions {
            read_sizes,
            write_sizes,
            offset,
            files: files as u32,
            spread: spread(job, blocks.differ()),
            zones: zones(job, Bytes(span.0 / files.max(1) as u64)),
            stride: stride(job),
            sequential_runs: sequential_runs(job),
            write_zones: write_zones(job),
            read_align: job.align.read.map(Bytes),
            write_align: job.align.write.map(Bytes),
            think: think(job),
            one_sided_rate: one_sided_rate(job),
            even_rate: job.cadence == RateProcess::Linear,
            // end_fsync is fsync(2) in fio; with fdatasync= the cheaper call is used for both.
            full_sync: job.sync().is_none_or(|(call, _)| call == SyncCall::Full),
            trims: job.pattern.trims,
            trims_first: job.pattern.trims_first,
            bytes,
            ramp: Nanos(job.ramp_us * 1000),
            options: options(job, offset),
            ..JobOptions::default()
        })),
    };
    if let Some(details) = &mut workload.details {
        rules::put(job, clone, blocks, span, details);
    }
    workload
}

/// Pauses of a job. As in fio, a duration of I/O before each pause (`thinktime_iotime`) replaces the default of one
/// request, and is combined with a given number of requests.
fn think(job: &Job) -> Option<ThinkTime> {
    let by_time_only = job.think_io_us > 0 && !job.given.contains_key("thinktime_blocks");
    (job.think_us > 0).then(|| ThinkTime {
        time: Nanos(job.think_us * 1000),
        every: if by_time_only { 0 } else { job.think_every },
        io_time: Nanos(job.think_io_us * 1000),
        counts_issued: job.think_counts_issued,
        stops_rate: job.think_stops_rate,
    })
}

/// fio options equivalent to the phase that is reported: for all clones where they are summed, otherwise for a single
/// clone, which begins at `offset`.
fn options(job: &Job, offset: Bytes) -> Vec<(String, String)> {
    let mut given = job.given.clone();
    if !job.group_reporting && job.numjobs > 1 {
        given.remove("numjobs");
        if given.remove("offset_increment").is_some() {
            given.insert("offset", offset.0.to_string());
        }
    }
    given
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Distribution of random offsets. As in fio, the map of drawn blocks is only kept with blocks of one size and without
/// blockalign. A job that ages an SSD reaches each block, whatever the option for the map says.
fn spread(job: &Job, sizes_differ: bool) -> RandomDistribution {
    let aligned = job.align.read.or(job.align.write).is_some();
    match &job.distribution {
        _ if !job.pattern.random => RandomDistribution::Uniform,
        Distribution::Uniform if job.rules.ages => RandomDistribution::Once,
        Distribution::Zipf(theta) => RandomDistribution::Zipf(*theta),
        Distribution::Pareto(h) => RandomDistribution::Pareto(*h),
        Distribution::Normal(percent) => RandomDistribution::Normal(percent / 100.0),
        Distribution::Zoned(_) | Distribution::ZonedBytes(_) => RandomDistribution::Uniform,
        Distribution::Uniform if job.with_replacement || sizes_differ || aligned => {
            RandomDistribution::Uniform
        }
        Distribution::Uniform => RandomDistribution::Once,
    }
}

/// Requests a second, if all requests are limited.
fn rate(job: &Job) -> Option<f64> {
    if one_sided_rate(job).is_some() {
        return None;
    }
    let rates = rates(job);
    let reads = if job.pattern.reads { rates.read } else { 0.0 };
    let writes = if job.pattern.writes { rates.write } else { 0.0 };
    (reads + writes > 0.0).then_some(reads + writes)
}

/// Zones of a random job in files of which it uses `span` each.
fn zones(job: &Job, span: Bytes) -> Vec<ZoneShare> {
    let share = |access_percent: f64, size: f64| ZoneShare {
        access: access_percent / 100.0,
        size,
    };
    match &job.distribution {
        _ if !job.pattern.random => Vec::new(),
        Distribution::Zoned(zones) => {
            let share = |zone: &ZonePart| share(zone.access_percent, zone.size_percent / 100.0);
            zones.iter().map(share).collect()
        }
        Distribution::ZonedBytes(zones) => {
            let of_span = |bytes: u64| bytes as f64 / span.0 as f64;
            let share = |zone: &ZoneBytes| share(zone.access_percent, of_span(zone.bytes));
            let mut shares: Vec<ZoneShare> = zones.iter().map(share).collect();
            let left = span
                .0
                .saturating_sub(zones.iter().map(|zone| zone.bytes).sum());
            if left > 0 {
                shares.push(ZoneShare {
                    access: 0.0,
                    size: of_span(left),
                });
            }
            shares
        }
        _ => Vec::new(),
    }
}

/// Gaps between the positions of a sequential job.
pub(super) fn stride(job: &Job) -> Option<Stride> {
    let zones = job.zones;
    let strided = |size: u64, range: u64| Stride::Zones {
        size: Bytes(size),
        range: Bytes(range),
        skip: Bytes(zones.skip),
    };
    match zones.mode {
        ZoneMode::Strided if zones.range > 0 => Some(strided(zones.size, zones.range)),
        ZoneMode::Strided => Some(strided(zones.size, zones.size)),
        ZoneMode::Zoned if job.pattern.random => None,
        ZoneMode::Zoned if job.pattern.reads => Some(strided(zones.size, zones.size)),
        ZoneMode::Zoned => Some(strided(zones.filled(), zones.size)),
        ZoneMode::None => (job.step != 0).then_some(Stride::Add(job.step)),
    }
}

/// Sequential runs of a random job, by direction; a direction without requests has no runs.
fn sequential_runs(job: &Job) -> Option<SequentialRuns> {
    let drawn = |occurs: bool, percent: u64| if occurs { percent as f64 / 100.0 } else { 1.0 };
    (job.pattern.random && !job.draws_all()).then(|| SequentialRuns {
        every: job.every,
        repeats: job.repeats_places,
        reads: drawn(job.pattern.reads, job.random_percent.read),
        writes: drawn(job.pattern.writes, job.random_percent.write),
    })
}

/// Zones of a job that writes at random, on a target that has none.
fn write_zones(job: &Job) -> Option<WriteZones> {
    let zones = job.zones;
    let appends = zones.mode == ZoneMode::Zoned && job.pattern.random && job.pattern.writes;
    let limits = [zones.open, zones.open_by_clone].into_iter();
    let open = limits.filter(|limit| *limit > 0).min();
    appends.then(|| WriteZones {
        range: Bytes(zones.size),
        size: Bytes(zones.filled()),
        open: open.map(|open| open as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::tests::jobs;

    /// The workload of a job on a file of so many bytes.
    fn of(lines: &str) -> Workload {
        let job = jobs(&format!("[j]\nsize=8m\nbs=64k\n{lines}\n")).remove(0);
        let (limit, span) = ((None, None), (0, Bytes::mib(8)));
        workload(&job, &Blocks::of(&job), Bytes(0), limit, 1, span)
    }

    fn details(lines: &str) -> JobOptions {
        *of(lines).details.unwrap()
    }

    #[test]
    fn what_lies_behind_zones_of_bytes_is_drawn_never() {
        let zoned = details("rw=randread\nrandom_distribution=zoned_abs:75/1m:25/3m").zones;
        let shares: Vec<_> = zoned.iter().map(|zone| (zone.access, zone.size)).collect();
        assert_eq!(shares, [(0.75, 0.125), (0.25, 0.375), (0.0, 0.5)]);
        let all = details("rw=randread\nrandom_distribution=zoned_abs:75/1m:25/7m").zones;
        assert_eq!(all.len(), 2);
        assert!(
            details("rw=read\nrandom_distribution=zoned_abs:100/1m")
                .zones
                .is_empty()
        );
    }

    #[test]
    fn blocks_that_are_trimmed_and_written_are_in_work_up_to_the_depth() {
        let trimmed = of("rw=randtrimwrite\nioengine=libaio\niodepth=8\nfsync=4");
        assert!(trimmed.trims_first() && trimmed.discards() && !trimmed.trims());
        assert_eq!((trimmed.depth, trimmed.sync_every), (8, 4));
        assert!(trimmed.writes() && !trimmed.reads());
    }

    #[test]
    fn a_target_without_zones_is_written_zone_by_zone_and_read_as_it_is() {
        let zoned = |lines: &str| details(&format!("zonemode=zbd\nzonesize=1m\n{lines}")).stride;
        let zones = |size: u64, skip: u64| {
            Some(Stride::Zones {
                size: Bytes(size),
                range: Bytes::MIB,
                skip: Bytes(skip),
            })
        };
        assert_eq!(zoned("rw=write"), zones(1 << 20, 0));
        assert_eq!(zoned("rw=write\nzonecapacity=768k"), zones(768 << 10, 0));
        assert_eq!(
            zoned("rw=read\nread_beyond_wp=1\nzoneskip=2m"),
            zones(1 << 20, 2 << 20)
        );
        assert_eq!(zoned("rw=randread\nread_beyond_wp=1"), None);
    }

    #[test]
    fn random_writes_are_appended_to_the_zones_of_a_target_without_any() {
        let of = |lines: &str| details(&format!("zonemode=zbd\nzonesize=1m\n{lines}"));
        let appended =
            of("rw=randwrite\nzonecapacity=768k\nmax_open_zones=8\njob_max_open_zones=2");
        let zones = WriteZones {
            range: Bytes::MIB,
            size: Bytes(768 << 10),
            open: Some(2),
        };
        assert_eq!((appended.write_zones, appended.stride), (Some(zones), None));
        assert_eq!(of("rw=randwrite").write_zones.unwrap().open, None);
        assert_eq!(of("rw=write\nmax_open_zones=8").write_zones, None);
        assert_eq!(details("rw=randwrite\nmax_open_zones=8").write_zones, None);
    }

    #[test]
    fn random_places_may_lie_in_one_zone_after_another() {
        let strided =
            details("rw=randread\nzonemode=strided\nzonesize=1m\nzonerange=2m\nzoneskip=4m");
        let zones = Stride::Zones {
            size: Bytes::MIB,
            range: Bytes::mib(2),
            skip: Bytes::mib(4),
        };
        assert_eq!(
            (strided.stride, strided.spread),
            (Some(zones), RandomDistribution::Once)
        );
    }

    #[test]
    fn a_random_job_may_continue_its_requests() {
        let runs = |lines: &str| details(lines).sequential_runs;
        let every = SequentialRuns {
            every: 8,
            repeats: false,
            reads: 1.0,
            writes: 0.3,
        };
        assert_eq!(runs("rw=randrw:8\npercentage_random=,30"), Some(every));
        let of_reads = runs("rw=randread\npercentage_random=40").unwrap();
        assert_eq!((of_reads.reads, of_reads.writes), (0.4, 1.0));
        assert_eq!(runs("rw=randrw"), None);
        assert_eq!(runs("rw=read:8k\npercentage_random=30"), None);
    }

    #[test]
    fn an_ssd_is_aged_by_writing_each_block_once_in_each_pass() {
        let aged = details("rw=randwrite\nblockalign=64k\nnorandommap\nsprandom=1");
        assert_eq!(aged.spread, RandomDistribution::Once);
        let plain = details("rw=randwrite\nblockalign=64k\nnorandommap");
        assert_eq!(plain.spread, RandomDistribution::Uniform);
    }

    #[test]
    fn a_job_thinks_by_a_number_of_requests_or_a_time_with_all_of_its_depth() {
        let of = |lines: &str| {
            let workload = of(&format!("rw=read\nioengine=libaio\niodepth=16\n{lines}"));
            let think = workload.details.unwrap().think.unwrap();
            (
                workload.depth,
                think.every,
                think.io_time,
                think.counts_issued,
            )
        };
        let none = Nanos(0);
        assert_eq!(of("thinktime=100"), (16, 1, none, false));
        let issued = "thinktime=100\nthinktime_blocks=8\nthinktime_blocks_type=issue";
        assert_eq!(of(issued), (16, 8, none, true));
        // Without a unit this one is in seconds, as in fio.
        let by_time = "thinktime=1s\nthinktime_iotime=9";
        assert_eq!(of(by_time), (16, 0, Nanos::from_secs(9), false));
        assert!(!details(by_time).think.unwrap().stops_rate);
        let stopped = format!("{by_time}\nrate_iops=9\nrate_ignore_thinktime=1");
        assert!(
            details(&format!("rw=read\n{stopped}"))
                .think
                .unwrap()
                .stops_rate
        );
        let by_both = format!("{by_time}\nthinktime_blocks=4");
        assert_eq!(of(&by_both), (16, 4, Nanos::from_secs(9), false));
    }

    #[test]
    fn a_rate_may_be_of_one_direction() {
        let rates = |lines: &str| {
            let workload = of(&format!("rwmixread=30\n{lines}"));
            let limit = workload.details.as_ref().unwrap().one_sided_rate;
            let limit = limit.map(|limit| (limit.writes, limit.per_s));
            (workload.rate_per_s, limit, workload.read_fraction)
        };
        assert_eq!(
            rates("rw=randrw\nrate=,1m"),
            (None, Some((true, 16.0)), 0.3)
        );
        assert_eq!(
            rates("rw=randrw\nrate_iops=50,0"),
            (None, Some((false, 50.0)), 0.3)
        );
        assert_eq!(
            rates("rw=randrw\nrate_iops=60,20"),
            (Some(80.0), None, 0.75)
        );
        assert_eq!(rates("rw=randwrite\nrate=,1m"), (Some(16.0), None, 0.0));
        assert_eq!(rates("rw=randread\nrate=,1m"), (None, None, 1.0));
    }

    #[test]
    fn errors_that_do_not_end_a_job_are_those_of_its_requests() {
        let errors = details("rw=rw\ncontinue_on_error=read\nignore_error=,ENOSPC").non_fatal;
        let errors = errors.unwrap();
        assert_eq!((errors.reads, errors.writes), (vec![5], vec![28]));
        assert_eq!(details("rw=rw").non_fatal, None);
    }
}
