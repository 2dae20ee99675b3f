//! `bench TARGET --fio JOB.fio`: the jobs of a job file of fio as phases of a run.
//!
//! `fiojob` reads the file. `plan` makes streams of its jobs, with the workloads of `workload` and the limits of
//! `limit`, followed by the streams of `compared`. `checks` compares them with the target. `names` decides which files
//! they use, and `files` opens and lays these out, if the limit of open files allows. `together` runs the streams
//! between two walls at the same time, and `sum` adds up those that are reported as one.

mod blocks;
mod checks;
mod compared;
mod ends;
mod files;
mod limit;
mod names;
mod outcome;
mod plan;
mod rules;
mod steady;
mod stream;
mod sum;
#[cfg(test)]
mod tests;
mod together;
mod workload;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::thread::available_parallelism;

use engine::Engine;
use fiojob::{FioError, Job, JobFileErrors, MachineFacts};
use formats::text::Utf8;
use linux::{Root, extents, machine, remedy};
use record::TargetKind;

use self::files::OpenedTarget;
use self::plan::FioPlan;
use self::stream::Stream;
use super::measure::MeasuredPhases;
use super::progress::Progress;
use super::session::{FinishedRun, Session};
use super::{contents, descriptors, sample, target};
use crate::args::BenchArgs;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// A job file that was read, and its target, opened.
pub(crate) struct FioJobs {
    plan: FioPlan,
    opened: OpenedTarget,
}

impl FioJobs {
    /// Opens the target of `args` for `jobs`. Nothing is written yet.
    ///
    /// # Errors
    /// When the jobs do not fit the target, or would write where only reading is allowed.
    pub(crate) fn make(
        args: &BenchArgs,
        jobs: &[Job],
        context: &Context,
        engine: &dyn Engine,
    ) -> Result<FioJobs, Failure> {
        let (path, _) = args.target_and_phases().map_err(Failure::refused)?;
        let jobs = &on_host(jobs, &context.root).map_err(refused)?[..];
        let names = names::of(jobs, &path).map_err(refused)?;
        let (plan, opened) = if path.is_dir() {
            let plan = FioPlan::of(jobs, &names, None).map_err(refused)?;
            let total = plan.files.iter().map(|size| size.0).sum();
            let size = Some(record::Bytes(total));
            let prepared = target::prepare_sized(&context.root, &path, args, size, &[])?;
            (plan, OpenedTarget::new(prepared))
        } else {
            let prepared = target::prepare(&context.root, &path, args, &[])?;
            let plan = FioPlan::of(jobs, &names, Some(prepared.target.size)).map_err(refused)?;
            (plan, OpenedTarget::new(prepared))
        };
        plan.check_consent(&opened.prepared)?;
        plan.check_trims(&context.root, &opened.prepared)?;
        plan.check_zones(&context.root, &opened.prepared)?;
        descriptors::allow(open_at_once(&plan), "files or clones").refused()?;
        plan.check_alignment(&opened.prepared).refused()?;
        for stream in plan.walls.iter().flatten() {
            engine.check(&stream.workload, stream.interface).refused()?;
        }
        Ok(FioJobs { plan, opened })
    }

    /// True if each run makes the same requests as the one before.
    pub(crate) fn repeats(&self) -> bool {
        self.plan.repeats
    }
}

/// The jobs with the processors that they run on.
fn on_host(jobs: &[Job], root: &Root) -> Result<Vec<Job>, JobFileErrors> {
    let mut errors = Vec::new();
    let mut known = Vec::new();
    for job in jobs {
        match rules::on_host(job, root) {
            Ok(job) => known.push(job),
            Err(error) => errors.push(error),
        }
    }
    JobFileErrors::or(errors, known)
}

/// The jobs that `args` request: of a job file with its includes, of fio's options, or of both; `None` if they request
/// none.
///
/// # Errors
/// All errors: lines that cannot be read, and options that are not supported.
pub(crate) fn jobs(args: &BenchArgs, context: &Context) -> Result<Option<Vec<Job>>, Failure> {
    if !args.has_jobs() {
        return Ok(None);
    }
    let facts = machine::facts(&context.root, None, None);
    let surroundings = MachineFacts {
        variable: &|name| std::env::var(name).ok(),
        include: &include,
        page_size: rustix::param::page_size() as u64,
        memory_mb: facts.memory.0 >> 20,
        processors: available_parallelism().map_or(1, |count| count.get() as u64),
    };
    let read = if let Some(file) = &args.fio {
        let text = text_of(file).map_err(|error| {
            Failure::refused(format!(
                "the job file {} cannot be read: {}",
                file.display(),
                remedy::file(&error, "without a job file: disksmith bench .")
            ))
        })?;
        let options = args.fio_options.given();
        fiojob::read_with(&file.display().to_string(), &text, options, &surroundings)
    } else if let Some(options) = args.fio_job() {
        fiojob::of_options(&options, &surroundings)
    } else {
        return Ok(None);
    };
    read.map(Some).map_err(refused)
}

/// Refuses jobs with all of their errors in one answer.
fn refused(problems: JobFileErrors) -> Failure {
    match problems.all() {
        [only] => Failure::refused(only.to_string()),
        all => {
            let problems: Vec<String> = all.iter().map(FioError::to_string).collect();
            Failure::refused_for("the jobs are not run", &problems)
        }
    }
}

/// The text of an included file. A relative name is relative to the file that includes it.
fn include(from: &str, name: &str) -> Result<String, String> {
    let beside = Path::new(from).with_file_name(name);
    let path = match beside.is_file() {
        true => beside,
        false => name.into(),
    };
    text_of(&path).map_err(|error| error.to_string())
}

/// The text of a file, unless it is longer than any job file: the name may be that of a device, or of a file without
/// an end.
fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let most = fiojob::MAX_BYTES as u64;
    let read = Utf8::new(File::open(path)?)
        .take(most + 1)
        .read_to_string(&mut text)?;
    if read as u64 > most {
        let why = format!("it has more than {} KiB, and is not a job file", most >> 10);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

impl Session<'_> {
    /// Runs a job file to its end.
    pub(crate) fn run_jobs(&mut self, ready: FioJobs) -> Result<FinishedRun, Failure> {
        let FioJobs { plan, mut opened } = ready;
        let mut progress = Progress::new(self.context.watched);
        if opened.prepared.target.kind == TargetKind::Directory {
            opened.lay_out(self, &plan, &mut progress)?;
        }
        let mut notes = std::mem::take(&mut opened.prepared.notes);
        notes.extend(plan.notes.iter().cloned());
        notes.extend(plan.walls.iter().flat_map(|wall| sum::notes(wall)));
        let largest = plan.reach().min(opened.prepared.target.size);
        let target = &mut opened.prepared.target;
        target.unwritten_fraction =
            extents::unwritten_fraction(&opened.prepared.file, largest.0).midway()?;
        if target.kind == TargetKind::Block {
            target.zero_fraction = sample::zero_fraction(&opened.prepared.file, largest);
        }
        let machine = self.machine(&opened.prepared);
        let ended = together::run(self, &plan, &opened, &mut progress);
        drop(progress);
        let MeasuredPhases { phases, failed } = ended.measured;
        notes.extend(phases.iter().flat_map(outcome::notes));
        let mut rest = ended.names[phases.len()..].to_vec();
        rest.retain(|name| !contents::is_compared(name));
        if ended.by_rule && !rest.is_empty() {
            let rest = rest.join(", ");
            notes.push(format!(
                "Not run, because a job with exit_what=all ended: {rest}."
            ));
        }
        let missing = ended.names[phases.len()..].to_vec();
        opened.prepared.target.direct &= ended.direct;
        Ok(self.recorded(
            opened.prepared.target,
            machine,
            MeasuredPhases { phases, failed },
            &missing,
            notes,
        ))
    }
}

/// Number of files open at once: those of the jobs, and the separate descriptors of the streams between two walls.
fn open_at_once(plan: &FioPlan) -> u64 {
    let of_stream =
        |stream: &Stream| stream.files.len() as u64 + descriptors::of_thread(stream.interface);
    let wall = |streams: &Vec<Stream>| streams.iter().map(of_stream).sum::<u64>();
    plan.files.len() as u64 + plan.walls.iter().map(wall).max().unwrap_or(0)
}
