//! Work of a phase, as far as it is known, to decide whether another phase did the same.

use record::{
    JobOptions, OneSidedRate, Pattern, Phase, RandomDistribution, SequentialRuns, SizeShare,
    SmallFiles, Stride, ThinkTime, WorkSummary, WriteZones, ZoneShare,
};

use ui::format::engine;

/// Work of a phase. An unknown value is `None`, and counts as equal to any other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Work {
    pattern: Option<Pattern>,
    read_fraction: Option<f64>,
    /// `None` also with several sizes, which are in `sizes`.
    block: Option<u64>,
    in_flight: Option<u64>,
    span: Option<u64>,
    sync_every: Option<u32>,
    sync_at_end: Option<bool>,
    rate_per_s: Option<f64>,
    direct: Option<bool>,
    threads: Option<u32>,
    engine: Option<&'static str>,
    asked: Option<WorkloadRequest>,
}

/// Extended options.
#[derive(Clone, Debug, PartialEq)]
struct WorkloadRequest {
    /// Sizes of reads, and of writes; empty where all have one size.
    sizes: [Vec<SizeShare>; 2],
    offset: u64,
    files: u32,
    /// Distribution of positions, where some are drawn more often than others.
    skew: Option<RandomDistribution>,
    /// True if every block is drawn before any is drawn again.
    once: Option<bool>,
    /// True if requests are due at equal gaps; `None` where there is no rate.
    even_rate: Option<bool>,
    /// True if syncs are fsync(2); `None` where there are none.
    full_sync: Option<bool>,
    /// Sizes and directories of small files, where files themselves are the work.
    small_files: Option<SmallFiles>,
    /// True if writes are discards.
    trims: bool,
    /// True if each write follows a discard.
    trims_first: bool,
    /// Details that only a phase measured by this program has.
    course: Option<Box<WorkPattern>>,
}

/// Pauses, the rate of one direction, and the order of the positions.
#[derive(Clone, Debug, PartialEq)]
struct WorkPattern {
    think: Option<ThinkTime>,
    one_sided_rate: Option<OneSidedRate>,
    stride: Option<Stride>,
    zones: Vec<ZoneShare>,
    write_zones: Option<WriteZones>,
    sequential_runs: Option<SequentialRuns>,
}

impl WorkPattern {
    fn of(details: &JobOptions) -> WorkPattern {
        WorkPattern {
            think: details.think,
            one_sided_rate: details.one_sided_rate,
            stride: details.stride,
            zones: details.zones.clone(),
            write_zones: details.write_zones,
            sequential_runs: details.sequential_runs,
        }
    }
}

impl Work {
    /// The work of a phase that was measured here. `direct` is true if the page cache was bypassed.
    pub(super) fn measured(phase: &Phase, direct: bool) -> Work {
        let w = &phase.workload;
        let plain = JobOptions::default();
        let details = w.details.as_deref().unwrap_or(&plain);
        let random = w.pattern == Pattern::Random;
        let asked = WorkloadRequest {
            once: random.then_some(details.spread == RandomDistribution::Once),
            course: Some(Box::new(WorkPattern::of(details))),
            ..WorkloadRequest::of(details, random)
        }
        .with(w.rate_per_s, Some(w.sync_every), Some(w.sync_at_end));
        let of_bytes = w.calls().is_some() && w.block.0 <= 1;
        Work {
            // Bonnie++ reports neither the kind of its file tests, nor that some of its tests transfer single bytes,
            // nor how many: those transferred a part of its file, whose size is reported instead.
            pattern: Some(w.pattern).filter(|_| !w.is_metadata_work()),
            read_fraction: Some(w.read_fraction).filter(|_| !w.is_metadata_work()),
            block: Some(w.block.0).filter(|_| asked.is_of_one_size() && !of_bytes),
            in_flight: Some(w.in_flight()),
            span: w
                .span
                .filter(|_| !of_bytes)
                .map(|span| span.0.saturating_mul(u64::from(details.files.max(1)))),
            sync_every: Some(w.sync_every),
            sync_at_end: Some(w.sync_at_end),
            // No rate means a closed loop, which is known here.
            rate_per_s: Some(w.rate_per_s.unwrap_or(0.0)),
            direct: Some(direct),
            threads: Some(w.threads),
            engine: Some(engine(phase.engine.kind)),
            asked: Some(asked).filter(|_| !details.mixed),
        }
    }

    /// The work of another tool's phase. Between two tools, threads of depth one and one thread of depth ten are the
    /// same work. Interfaces to the kernel, and whether a block may be drawn again before all were drawn, differ by
    /// tool: they stay unknown.
    pub(super) fn imported(w: &WorkSummary) -> Work {
        let in_flight = w.threads.zip(w.depth);
        let random = w.pattern != Some(Pattern::Sequential);
        let asked = w.details.as_deref();
        let asked = asked.map(|details| {
            WorkloadRequest::of(details, random).with(w.rate_per_s, w.sync_every, w.sync_at_end)
        });
        Work {
            pattern: w.pattern,
            read_fraction: w.read_fraction,
            block: w.block.map(|block| block.0),
            in_flight: in_flight.map(|(threads, depth)| u64::from(threads) * u64::from(depth)),
            span: w.span.map(|span| span.0),
            sync_every: w.sync_every,
            sync_at_end: w.sync_at_end,
            rate_per_s: w.rate_per_s,
            direct: w.direct,
            asked,
            ..Work::default()
        }
    }

    /// True if any value that is known for both differs.
    pub(super) fn differs(&self, other: &Work) -> bool {
        let rates = self.rate_per_s.zip(other.rate_per_s);
        let asked = self.asked.as_ref().zip(other.asked.as_ref());
        far_apart(self.read_fraction, other.read_fraction)
            // Rates in a job file are whole numbers for each process.
            || rates.is_some_and(|(a, b)| (a - b).abs() > 0.005 * a.max(b))
            || differ(self.pattern, other.pattern)
            || differ(self.block, other.block)
            || differ(self.in_flight, other.in_flight)
            || differ(self.span, other.span)
            || differ(self.sync_every, other.sync_every)
            || differ(self.sync_at_end, other.sync_at_end)
            || differ(self.direct, other.direct)
            || differ(self.threads, other.threads)
            || differ(self.engine, other.engine)
            || asked.is_some_and(|(a, b)| a.differs(b))
    }

    /// True if two phases with different names do the same work: enough values are known for both, and no known value
    /// differs. The span may differ, since tools have files of their own sizes; a remark says so.
    pub(super) fn is_like(&self, other: &Work) -> bool {
        let sized = |work: &Work| {
            let asked = work.asked.as_ref();
            work.block.is_some() || asked.is_some_and(|asked| !asked.is_of_one_size())
        };
        let known =
            |work: &Work| work.pattern.is_some() && work.read_fraction.is_some() && sized(work);
        let mut spanless = self.clone();
        spanless.span = None;
        known(self) && known(other) && !spanless.differs(other)
    }
}

impl WorkloadRequest {
    fn of(details: &JobOptions, random: bool) -> WorkloadRequest {
        let sorted = |shares: &[SizeShare]| {
            let mut shares = shares.to_vec();
            shares.sort_by_key(|share| share.size);
            shares
        };
        let even = matches!(
            details.spread,
            RandomDistribution::Uniform | RandomDistribution::Once
        );
        WorkloadRequest {
            sizes: [sorted(&details.read_sizes), sorted(&details.write_sizes)],
            offset: details.offset.0,
            files: details.files.max(1),
            skew: Some(details.spread).filter(|_| random && !even),
            once: None,
            even_rate: Some(details.even_rate),
            full_sync: Some(details.full_sync),
            small_files: details.small_files,
            trims: details.trims,
            trims_first: details.trims_first,
            course: None,
        }
    }

    /// Leaves out the options that have no meaning without a rate, or without syncs.
    fn with(
        self,
        rate: Option<f64>,
        sync_every: Option<u32>,
        sync_at_end: Option<bool>,
    ) -> WorkloadRequest {
        let paced = rate.is_some_and(|rate| rate > 0.0);
        let syncs = sync_every.is_some_and(|every| every > 0) || sync_at_end == Some(true);
        WorkloadRequest {
            even_rate: self.even_rate.filter(|_| paced),
            full_sync: self.full_sync.filter(|_| syncs),
            ..self
        }
    }

    fn is_of_one_size(&self) -> bool {
        self.sizes.iter().all(Vec::is_empty)
    }

    fn differs(&self, other: &WorkloadRequest) -> bool {
        let sizes = self.sizes.iter().zip(&other.sizes);
        sizes.into_iter().any(|(a, b)| sizes_differ(a, b))
            || self.offset != other.offset
            || self.files != other.files
            || self.trims != other.trims
            || self.trims_first != other.trims_first
            || self.skew != other.skew
            || differ(self.course.as_ref(), other.course.as_ref())
            || differ(self.small_files, other.small_files)
            || differ(self.once, other.once)
            || differ(self.even_rate, other.even_rate)
            || differ(self.full_sync, other.full_sync)
    }
}

fn differ<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
    a.zip(b).is_some_and(|(a, b)| a != b)
}

/// True if two shares differ by more than their rounding.
fn far_apart(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() > 0.005)
}

fn sizes_differ(a: &[SizeShare], b: &[SizeShare]) -> bool {
    let same = |(a, b): (&SizeShare, &SizeShare)| {
        a.size == b.size && !far_apart(Some(a.share), Some(b.share))
    };
    a.len() != b.len() || !a.iter().zip(b).all(same)
}
