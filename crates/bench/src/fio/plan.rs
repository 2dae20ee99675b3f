//! Streams: what each clone of each job does, as a workload on files.

use std::collections::BTreeSet;

use engine::Choice;
use fiojob::{Amount, Cadence, Distribution, FioError, IoEngine, Job, SyncCall};
use record::{Bytes, Details, Nanos, Pattern, Spread, Workload};

use super::blocks::{Blocks, read_fraction};
use super::names::Names;
use crate::target::Prepared;
use ui::exit::Failure;

/// Longer than any job without a runtime.
const NEVER: Nanos = Nanos::from_secs(365 * 24 * 3600);

/// One clone of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stream {
    /// The name of the phase that it is, where it is not summed with others.
    pub name: String,
    /// The job's name.
    pub job: String,
    /// Streams of one group are summed; `None` where it stands alone.
    pub group: Option<usize>,
    /// Its workload.
    pub workload: Workload,
    /// Bytes of each file that it uses.
    pub span: Bytes,
    /// Its files, by number.
    pub files: Vec<usize>,
    /// Interface to the kernel.
    pub choice: Choice,
    /// True if the page cache is bypassed.
    pub direct: bool,
    /// Through the page cache: whether it forgets the files first.
    pub invalidate: bool,
    /// Through the page cache: whether the kernel is told how they are read.
    pub advise: bool,
    /// `randseed=`.
    pub seed: u64,
}

/// Work of a job file on a target.
#[derive(Debug)]
pub(super) struct Plan {
    /// Streams that run at the same time, between two walls each.
    pub walls: Vec<Vec<Stream>>,
    /// Sizes that the files in a directory must have; one entry for a file or device.
    pub files: Vec<Bytes>,
    /// True if a run draws the places of the last one.
    pub repeats: bool,
    /// Notes of the jobs, as sentences.
    pub notes: Vec<String>,
}

impl Plan {
    /// The streams of `jobs`, on a file or device of `size`, or on files in a directory.
    ///
    /// # Errors
    /// When a job does not fit, or asks for what is not done there.
    pub(super) fn of(jobs: &[Job], names: &Names, size: Option<Bytes>) -> Result<Plan, FioError> {
        let mut plan = Plan {
            walls: Vec::new(),
            files: vec![Bytes(0); names.count],
            repeats: jobs.iter().all(Job::repeats),
            notes: Vec::new(),
        };
        let mut group = 0;
        for (job, files) in jobs.iter().zip(&names.of) {
            if job.stonewall || plan.walls.is_empty() {
                plan.walls.push(Vec::new());
            }
            group += usize::from(job.stonewall || job.new_group);
            if let Some(description) = &job.description {
                plan.notes.push(format!("{}: {description}", job.name));
            }
            for (clone, files) in files.iter().enumerate() {
                let stream = stream(job, clone, files, size, group)?;
                let offset = details(&stream.workload).map_or(0, |details| details.offset.0);
                for file in files {
                    let needed = Bytes((offset + stream.span.0).next_multiple_of(Bytes::MIB.0));
                    plan.files[*file] = plan.files[*file].max(needed);
                }
                if let Some(wall) = plan.walls.last_mut() {
                    check_ramp(job, &stream, wall)?;
                    wall.push(stream);
                }
            }
        }
        Ok(plan)
    }

    /// Bytes from the start of a file or device that the streams reach.
    pub(super) fn reach(&self) -> Bytes {
        let reach = |stream: &Stream| {
            let offset = details(&stream.workload).map_or(0, |details| details.offset.0);
            Bytes(offset + stream.span.0)
        };
        let streams = self.walls.iter().flatten();
        streams.map(reach).max().unwrap_or(Bytes(0))
    }

    /// Checks that the target may be written, where a job writes. Unlike a suite, a job file is not run
    /// without some of its jobs.
    ///
    /// # Errors
    /// Names the jobs that would write.
    pub(super) fn check_consent(&self, prepared: &Prepared) -> Result<(), Failure> {
        let streams = self.walls.iter().flatten();
        let writing: BTreeSet<&str> = streams
            .filter(|stream| stream.workload.writes())
            .map(|stream| stream.job.as_str())
            .collect();
        if prepared.writable || writing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = writing.into_iter().collect();
        Err(Failure::refused(format!(
            "{} would write, and an existing file or device is only read unless --destroy names \
             it; nothing was run",
            names.join(", ")
        )))
    }

    /// Checks that requests past the page cache are multiples of the device's block.
    ///
    /// # Errors
    /// Names the job and its smallest block.
    pub(super) fn check_alignment(&self, prepared: &Prepared) -> Result<(), anyhow::Error> {
        for stream in self.walls.iter().flatten().filter(|stream| stream.direct) {
            let unit = prepared.alignment.0.max(1);
            let offset = details(&stream.workload).map_or(0, |details| details.offset.0);
            let sizes = sizes(&stream.workload);
            if let Some(size) = sizes
                .into_iter()
                .chain([offset])
                .find(|size| size % unit != 0)
            {
                return Err(anyhow::anyhow!(
                    "{}: direct I/O on {} needs blocks and offsets that are multiples of {}, and \
                     {} is not",
                    stream.job,
                    prepared.target.path,
                    prepared.alignment,
                    Bytes(size)
                ));
            }
        }
        Ok(())
    }
}

/// Checks that a stream begins to count when those do that it is summed with. Otherwise windows of different
/// times would be added up.
fn check_ramp(job: &Job, stream: &Stream, wall: &[Stream]) -> Result<(), FioError> {
    let ramp = |stream: &Stream| details(&stream.workload).map_or(Nanos(0), |details| details.ramp);
    let apart = wall.iter().find(|other| {
        stream.group.is_some() && other.group == stream.group && ramp(other) != ramp(stream)
    });
    match apart {
        None => Ok(()),
        Some(other) => Err(job.error(
            "ramp_time",
            format!(
                "{} and {} are reported as one and have ramps that differ; give them one, or begin \
                 a new_group",
                other.job, stream.job
            ),
        )),
    }
}

fn details(workload: &Workload) -> Option<&Details> {
    workload.details.as_deref()
}

/// All sizes of requests.
fn sizes(workload: &Workload) -> Vec<u64> {
    let shares = details(workload).into_iter().flat_map(|details| {
        details
            .read_sizes
            .iter()
            .chain(&details.write_sizes)
            .map(|share| share.size.0)
    });
    let all: Vec<u64> = shares.collect();
    if all.is_empty() {
        vec![workload.block.0]
    } else {
        all
    }
}

fn stream(
    job: &Job,
    clone: usize,
    files: &[usize],
    size: Option<Bytes>,
    group: usize,
) -> Result<Stream, FioError> {
    let blocks = Blocks::of(job);
    let offset = offset(job, clone, size)?;
    let total = total(job, offset, size)?;
    let span = Bytes(total / files.len() as u64).round_down(Bytes(blocks.grain));
    if span.0 < blocks.largest {
        return Err(job.error(
            "size",
            format!(
                "{} for each of {} file(s) have no room for a block of {}",
                Bytes(total / files.len() as u64),
                files.len(),
                Bytes(blocks.largest)
            ),
        ));
    }
    let moved = limit(job, Bytes(total), Bytes(span.0 * files.len() as u64))?;
    let alone = job.numjobs == 1;
    Ok(Stream {
        name: match alone {
            true => job.name.clone(),
            false => format!("{}.{}", job.name, clone + 1),
        },
        job: job.name.clone(),
        group: job.group_reporting.then_some(group),
        workload: workload(job, &blocks, Bytes(offset), moved, files.len()),
        span,
        files: files.to_vec(),
        choice: match job.engine {
            IoEngine::Queued => Choice::Auto,
            IoEngine::Blocking => Choice::Sync,
        },
        direct: job.direct,
        invalidate: job.invalidate,
        advise: job.advise,
        seed: job.randseed.unwrap_or(0),
    })
}

/// Start of the clone, in bytes.
fn offset(job: &Job, clone: usize, size: Option<Bytes>) -> Result<u64, FioError> {
    let first = match (job.offset, size) {
        (Amount::Bytes(bytes), _) => bytes,
        (Amount::Percent(percent), Some(size)) => {
            share(size, percent) / Bytes::kib(4).0 * Bytes::kib(4).0
        }
        (Amount::Percent(_), None) => {
            return Err(job.error(
                "offset",
                "a percentage is of a file or device, and the target is a directory",
            ));
        }
    };
    let farther = job.offset_increment.checked_mul(clone as u64);
    farther
        .and_then(|farther| first.checked_add(farther))
        .filter(|offset| *offset < LARGEST)
        .ok_or_else(|| job.error("offset", "it is too far out"))
}

/// No file is larger (a PiB).
const LARGEST: u64 = 1 << 50;

fn share(size: Bytes, percent: u64) -> u64 {
    (u128::from(size.0) * u128::from(percent) / 100) as u64
}

/// Bytes that the job uses of all its files together.
fn total(job: &Job, offset: u64, size: Option<Bytes>) -> Result<u64, FioError> {
    let Some(target) = size else {
        return match job.size {
            Some(Amount::Bytes(bytes)) if bytes < LARGEST => Ok(bytes),
            Some(_) => Err(job.error(
                "size",
                "in a directory it is a number of bytes, since there is no file yet",
            )),
            None => Err(job.error(
                "size",
                "it is missing: in a directory it gives the size of the test files",
            )),
        };
    };
    let left = target
        .0
        .checked_sub(offset)
        .filter(|left| *left > 0)
        .ok_or_else(|| {
            job.error(
                "offset",
                format!(
                    "{} is behind the end, at {}",
                    Bytes(offset).exact(),
                    target.exact()
                ),
            )
        })?;
    match job.size {
        None => Ok(left),
        Some(Amount::Percent(percent)) => Ok(share(target, percent).min(left)),
        Some(Amount::Bytes(bytes)) if bytes <= left => Ok(bytes),
        Some(Amount::Bytes(bytes)) => Err(job.error(
            "size",
            format!(
                "{} from {} on are more than the target has, {}",
                Bytes(bytes).exact(),
                Bytes(offset).exact(),
                target.exact()
            ),
        )),
    }
}

/// Limit of the job by what it moved: in bytes, and in requests.
fn limit(
    job: &Job,
    total: Bytes,
    covered: Bytes,
) -> Result<(Option<Bytes>, Option<u64>), FioError> {
    if job.number_ios.is_some() && job.loops > 1 {
        return Err(job.error(
            "number_ios",
            "together with loops it is not done; multiply it",
        ));
    }
    if job.time_based {
        return Ok((None, job.number_ios));
    }
    let once = match job.io_size {
        None => covered.0,
        Some(Amount::Bytes(bytes)) => bytes,
        Some(Amount::Percent(percent)) => share(total, percent),
    };
    let bytes = once.checked_mul(job.loops).ok_or_else(|| {
        job.error(
            "loops",
            "so many times the size is more than can be counted",
        )
    })?;
    Ok((Some(Bytes(bytes)), job.number_ios))
}

fn workload(
    job: &Job,
    blocks: &Blocks,
    offset: Bytes,
    (bytes, ops): (Option<Bytes>, Option<u64>),
    files: usize,
) -> Workload {
    let (read_sizes, write_sizes) = match blocks.differ() {
        true => (blocks.read.clone(), blocks.write.clone()),
        false => (Vec::new(), Vec::new()),
    };
    let rate = match job.pattern.reads {
        true => job.rate_iops.read,
        false => job.rate_iops.write,
    };
    let longest = match job.runtime_us {
        0 => NEVER,
        us => Nanos(us * 1000),
    };
    Workload {
        pattern: match job.pattern.random {
            true => Pattern::Random,
            false => Pattern::Sequential,
        },
        read_fraction: read_fraction(job),
        block: Bytes(blocks.mean),
        threads: 1,
        depth: match job.engine {
            IoEngine::Queued => job.iodepth,
            IoEngine::Blocking => 1,
        },
        rate_per_s: (rate > 0).then_some(rate as f64),
        span: None,
        sync_every: if job.pattern.writes {
            job.sync().map_or(0, |(_, every)| every)
        } else {
            0
        },
        sync_at_end: job.syncs_at_end() && job.pattern.writes,
        longest,
        shortest: Nanos(0),
        precision: 0.0,
        ops,
        details: Some(Box::new(Details {
            read_sizes,
            write_sizes,
            offset,
            files: files as u32,
            spread: spread(job, blocks.differ()),
            even_rate: job.cadence == Cadence::Linear,
            // end_fsync is fsync(2) in fio; beside fdatasync= the cheaper call serves both.
            full_sync: job.sync().is_none_or(|(call, _)| call == SyncCall::Full),
            bytes,
            ramp: Nanos(job.ramp_us * 1000),
            mixed: false,
            options: options(job, offset),
            calls: None,
            small_files: None,
        })),
    }
}

/// The options with which fio would do the same as what is reported as one: all clones where they
/// are summed, and else a single one, which begins at `offset`.
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

/// fio's map of blocks that were drawn is kept for blocks of one size only.
fn spread(job: &Job, sizes_differ: bool) -> Spread {
    match job.distribution {
        _ if !job.pattern.random => Spread::Uniform,
        Distribution::Zipf(theta) => Spread::Zipf(theta),
        Distribution::Pareto(h) => Spread::Pareto(h),
        Distribution::Uniform if job.with_replacement || sizes_differ => Spread::Uniform,
        Distribution::Uniform => Spread::Once,
    }
}
