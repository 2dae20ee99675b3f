//! Streams: the work of each clone of each job, as a workload on files.

use engine::IoInterface;
use fiojob::{Amount, Distribution, FioError, IoEngine, Job, JobFileErrors, ZoneMode};
use record::{Bytes, Nanos};

use super::blocks::Blocks;
use super::limit::{UsedPart, limit, share};
use super::names::Names;
use super::stream::{Stream, details};
use super::workload::workload;
use super::{compared, rules};

/// Work of a job file on a target.
#[derive(Debug)]
pub(super) struct FioPlan {
    /// Streams, grouped by walls: those of a group run at the same time.
    pub walls: Vec<Vec<Stream>>,
    /// Sizes that the files in a directory must have; one entry for a file or device.
    pub files: Vec<Bytes>,
    /// True if a run draws the same random positions as the run before.
    pub repeats: bool,
    /// Notes of the jobs, as sentences.
    pub notes: Vec<String>,
}

impl FioPlan {
    /// The streams of `jobs`, on a file or device of `size`, or on files in a directory.
    ///
    /// # Errors
    /// When a job does not fit, or requests something that is not supported on the target.
    pub(super) fn of(
        jobs: &[Job],
        names: &Names,
        size: Option<Bytes>,
    ) -> Result<FioPlan, JobFileErrors> {
        let mut plan = FioPlan {
            walls: Vec::new(),
            files: vec![Bytes(0); names.count],
            repeats: jobs.iter().all(Job::repeats),
            notes: Vec::new(),
        };
        let mut group = 0;
        let mut errors = Vec::new();
        for (job, files) in jobs.iter().zip(&names.of) {
            let waits = plan.waits(job, jobs).unwrap_or_else(|error| {
                errors.push(error);
                false
            });
            if job.stonewall || waits || plan.walls.is_empty() {
                plan.walls.push(Vec::new());
            }
            group += usize::from(job.stonewall || job.new_group);
            if let Some(description) = &job.description {
                plan.notes.push(format!("{}: {description}", job.name));
            }
            if let Some(note) = job.engine_note {
                plan.notes.push(format!("{}: {note}.", job.name));
            }
            plan.notes.extend(rules::notes(job));
            errors.extend(plan.add(job, files, size, group).err());
        }
        plan.compare_data();
        JobFileErrors::or(errors, plan)
    }

    /// Adds the comparison of data that compresses or repeats with random data, where a job writes such data.
    fn compare_data(&mut self) {
        if let Some(compared) = compared::behind(&self.walls) {
            self.walls.extend(compared.walls);
            self.notes.push(compared.note);
        }
    }

    /// True if a job waits for a job of the last wall, and therefore begins another wall. It then also waits for the
    /// other jobs of the last wall, which a note says.
    fn waits(&mut self, job: &Job, jobs: &[Job]) -> Result<bool, FioError> {
        let Some(other) = &job.wait_for else {
            return Ok(false);
        };
        if !jobs.iter().any(|known| known.name == *other) {
            return Err(job.error("wait_for", format!("there is no job {other}")));
        }
        let Some(wall) = self.walls.last() else {
            return Ok(false);
        };
        let waits = wall.iter().any(|stream| stream.job == *other);
        if waits && let Some(beside) = wall.iter().find(|stream| stream.job != *other) {
            self.notes.push(format!(
                "{} waits for {other}, and here for {} too, which runs beside it.",
                job.name, beside.job
            ));
        }
        Ok(waits)
    }

    /// Adds the streams of a job, one for each clone, to the last wall.
    fn add(
        &mut self,
        job: &Job,
        clones: &[Vec<usize>],
        size: Option<Bytes>,
        group: usize,
    ) -> Result<(), FioError> {
        for (clone, files) in clones.iter().enumerate() {
            let stream = stream(job, clone, files, size, group)?;
            let offset = details(&stream.workload).map_or(0, |details| details.offset.0);
            for file in files {
                let needed = Bytes((offset + stream.span.0).next_multiple_of(Bytes::MIB.0));
                self.files[*file] = self.files[*file].max(needed);
            }
            if let Some(wall) = self.walls.last_mut() {
                check_sum(job, &stream, wall)?;
                wall.push(stream);
            }
        }
        Ok(())
    }

    /// Number of bytes from the start of a file or device that the streams use.
    pub(super) fn reach(&self) -> Bytes {
        let reach = |stream: &Stream| {
            let offset = details(&stream.workload).map_or(0, |details| details.offset.0);
            Bytes(offset + stream.span.0)
        };
        let streams = self.walls.iter().flatten();
        streams.map(reach).max().unwrap_or(Bytes(0))
    }
}

/// Checks that a stream has the same start, the same ramp and the same kind of writes as those that it is summed with:
/// otherwise windows of different times, or trims and writes, would be added up.
fn check_sum(job: &Job, stream: &Stream, wall: &[Stream]) -> Result<(), FioError> {
    let check = |option, differs: &dyn Fn(&Stream) -> bool, why: &str| {
        let apart = wall
            .iter()
            .find(|other| stream.group.is_some() && other.group == stream.group && differs(other));
        match apart {
            None => Ok(()),
            Some(other) => Err(job.error(
                option,
                format!(
                    "{} and {} are reported as one, {why}",
                    other.job, stream.job
                ),
            )),
        }
    };
    let ramp = |stream: &Stream| details(&stream.workload).map_or(Nanos(0), |details| details.ramp);
    let delay =
        |stream: &Stream| details(&stream.workload).map_or(Nanos(0), |details| details.delay);
    let kind = |stream: &Stream| (stream.workload.trims(), stream.workload.trims_first());
    check(
        "ramp_time",
        &|other| ramp(other) != ramp(stream),
        "and have ramps that differ; give them one, or begin a new_group",
    )?;
    check(
        "startdelay",
        &|other| delay(other) != delay(stream),
        "and begin at different times; begin a new_group",
    )?;
    check(
        "rw",
        &|other| kind(other) != kind(stream),
        "and do not trim alike; begin a new_group",
    )
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
    let total = total(job, offset, size, files.len() as u64)?;
    let span = Bytes(total / files.len() as u64)
        .round_down(Bytes(zone(job)))
        .round_down(Bytes(blocks.grain));
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
    check_zones(job, span)?;
    let part = UsedPart {
        target: size,
        offset,
        files: files.len() as u64,
        total: Bytes(total),
        span,
    };
    let moved = limit(job, &blocks, &part)?;
    let alone = job.numjobs == 1;
    Ok(Stream {
        name: match alone {
            true => job.name.clone(),
            false => format!("{}.{}", job.name, clone + 1),
        },
        job: job.name.clone(),
        group: (job.group_reporting && job.rules.counted).then_some(group),
        number: group,
        workload: workload(
            job,
            &blocks,
            Bytes(offset),
            moved,
            files.len(),
            (clone, part.covered()),
        ),
        span,
        files: files.to_vec(),
        interface: match job.engine {
            IoEngine::Queued => IoInterface::Auto,
            IoEngine::Blocking => IoInterface::Sync,
        },
        zoned: job.zones.mode == ZoneMode::Zoned,
        direct: job.direct,
        invalidate: job.invalidate,
        advise: job.advise,
        seed: job.randseed.unwrap_or(0),
        sync_io: job.rules.sync_io,
        exits: job.rules.exits_all.then_some(job.rules.exit_what),
    })
}

/// Checks that the zones of a random job are within the part of a file that it uses. fio ends such a job at the first
/// request beyond that part.
fn check_zones(job: &Job, span: Bytes) -> Result<(), FioError> {
    let Distribution::ZonedBytes(zones) = &job.distribution else {
        return Ok(());
    };
    let bytes = (zones.iter()).fold(0, |sum: u64, zone| sum.saturating_add(zone.bytes));
    match bytes <= span.0 || !job.pattern.random {
        true => Ok(()),
        false => Err(job.error(
            "random_distribution",
            format!(
                "its zones have {}, and the job uses {span} of each file",
                Bytes(bytes)
            ),
        )),
    }
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
        .filter(|offset| *offset < MAX_FILE_BYTES)
        .ok_or_else(|| job.error("offset", "it is too far out"))
}

/// Largest size of a file (a PiB).
const MAX_FILE_BYTES: u64 = 1 << 50;

/// Total size of a job, over all its files, in bytes.
fn total(job: &Job, offset: u64, size: Option<Bytes>, files: u64) -> Result<u64, FioError> {
    // All files have one size here, where fio draws one for each.
    let of_files = job
        .filesize
        .map(|(low, high)| Amount::Bytes((low + (high - low) / 2).saturating_mul(files)));
    let wanted = of_files.or(job.size);
    let Some(target) = size else {
        if job.rules.fill_device {
            return Err(job.error(
                "fill_device",
                "a file system is not filled: files are laid out before they are measured; give a \
                 size",
            ));
        }
        return match wanted {
            Some(Amount::Bytes(bytes)) if bytes < MAX_FILE_BYTES => Ok(bytes),
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
    match wanted {
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

/// Length that the span must be a multiple of: the span ends at the end of a zone.
fn zone(job: &Job) -> u64 {
    match job.zones.mode {
        ZoneMode::Zoned => job.zones.size,
        ZoneMode::None | ZoneMode::Strided => 1,
    }
}
