//! Reads job files of fio: text goes in; typed jobs come out, or an error with file, line and option.
//!
//! It has no side effects: everything that a job file may request from the machine (variables, included files, the
//! number of processors) is passed in as [`MachineFacts`], so that tests can read any text, and no text causes a
//! panic. It knows the meaning of fio's options, but not how disksmith runs them. The grammar is that of fio's HOWTO
//! and, for what that does not specify, the behaviour of fio 3.33 with `--parse-only --debug=parse`; the tests of the
//! whole program compare both.
//!
//! In the order of processing:
//!
//! - `lines`: comments, sections and included files;
//! - `substitute`: variables and keywords in a value;
//! - `number` and `expression`: sizes, times and arithmetic;
//! - `option_row`, `options`, `command_options`: the options of jobs and of fio's command line, and the treatment of
//!   each;
//! - `values`, `sizes`: values that are words or have several parts; sizes of requests;
//! - `errors`: non-fatal errors of a job;
//! - `rules`, `rule_options`, `rule_values`, `check`, `zones`: options that concern neither positions nor sizes, their
//!   values, and their compatibility;
//! - `assign`: assigns an option's value to a [`Job`];
//! - `trims`: assigns the values for trims to a job that trims.

mod assign;
mod check;
mod command_line;
mod command_options;
mod error;
mod errors;
mod expression;
mod job;
mod lines;
mod number;
mod option_row;
mod options;
mod pair;
mod rule_options;
mod rule_values;
mod rules;
mod sizes;
mod substitute;
#[cfg(test)]
mod tests;
mod trims;
mod values;
mod zones;

pub use assign::filenames;
pub use command_options::COMMAND_OPTIONS;
pub use error::{FioError, JobFileErrors, JobFileLine};
pub use errors::NonFatal;
pub use job::{
    Distribution, IoEngine, IoPattern, Job, RateProcess, SizeSplit, SyncCall, ZoneBytes, ZoneMode,
    ZonePart, Zones,
};
pub use lines::{MAX_BYTES, MachineFacts};
pub use option_row::{OptionRow, OptionSupport};
pub use options::OPTIONS;
pub use pair::{Amount, PerDirection};
pub use rule_values::numbers;
pub use rules::{
    ExitWhat, NumaMode, NumaPolicy, Priority, PrioritySplit, Rules, SteadyStateFigure,
    SteadyStateRule, SyncIo, VerifyMethod,
};

/// Reads the job file `name` with the text `text`. Returns its jobs in order, each with the options of the global
/// sections before it.
///
/// # Errors
/// All invalid and unsupported lines, each with the file, the line and the option.
pub fn read(
    name: &str,
    text: &str,
    surroundings: &MachineFacts<'_>,
) -> Result<Vec<Job>, JobFileErrors> {
    read_with(name, text, &[], surroundings)
}

/// Reads a job file together with `options` of a command line, as `name=value` in their order. As in fio, options
/// before the first `name` apply to all jobs, unless the file gives them, and each `name` begins a job before those of
/// the file.
///
/// # Errors
/// As for [`read`], and all invalid and unsupported options.
pub fn read_with(
    name: &str,
    text: &str,
    options: &[(&str, String)],
    surroundings: &MachineFacts<'_>,
) -> Result<Vec<Job>, JobFileErrors> {
    let (mut sections, mut errors) = command_line::sections(options, true);
    let without_jobs = match lines::sections(name, text, surroundings) {
        Ok(mut of_file) => {
            let none_selected = command_line::select(&mut of_file, options);
            sections.extend(of_file);
            Some(none_selected.unwrap_or_else(|| no_job(name)))
        }
        Err(error) => {
            errors.push(error);
            None
        }
    };
    with_errors(errors, jobs(sections, without_jobs, surroundings))
}

/// The jobs that `options` of a command line make without a job file.
///
/// # Errors
/// All invalid and unsupported options.
pub fn of_options(
    options: &[(&str, String)],
    surroundings: &MachineFacts<'_>,
) -> Result<Vec<Job>, JobFileErrors> {
    let (sections, errors) = command_line::sections(options, false);
    let without_jobs = Some(no_job(command_line::NAME));
    with_errors(errors, jobs(sections, without_jobs, surroundings))
}

/// The jobs; an error if there are `errors` besides their own.
fn with_errors(
    errors: Vec<FioError>,
    jobs: Result<Vec<Job>, JobFileErrors>,
) -> Result<Vec<Job>, JobFileErrors> {
    match (jobs, JobFileErrors::or(errors, ())) {
        (jobs, Ok(())) => jobs,
        (Ok(_), Err(problems)) => Err(problems),
        (Err(of_jobs), Err(problems)) => Err(problems.and(of_jobs)),
    }
}

/// The error of a file without jobs.
fn no_job(name: &str) -> FioError {
    let place = JobFileLine {
        file: name.to_owned(),
        line: 1,
    };
    place.error("there is no job in it; a job begins with [its name]")
}

/// The jobs of sections. If there are none, that is the error `without_jobs`.
fn jobs(
    sections: Vec<lines::Section>,
    without_jobs: Option<FioError>,
    surroundings: &MachineFacts<'_>,
) -> Result<Vec<Job>, JobFileErrors> {
    let mut global = Job::default();
    let mut jobs = Vec::new();
    let mut errors = Vec::new();
    for section in sections {
        let mut job = Job {
            name: section.name.clone(),
            place: section.place.clone(),
            ..global.clone()
        };
        let before = errors.len();
        assign::section(&mut job, &section, surroundings, &mut errors);
        if section.is_global() {
            global = job;
        } else {
            // A missing option may be among those that were not understood.
            if errors.len() == before {
                let checked = trims::put(&mut job)
                    .map(|()| sizes::by_order(&mut job))
                    .and_then(|()| assign::counted_zones(&mut job))
                    .and_then(|()| job.check())
                    .and_then(|()| check::rules(&job));
                errors.extend(checked.err());
            }
            jobs.push(job);
        }
    }
    if jobs.is_empty() {
        errors.extend(without_jobs);
    }
    JobFileErrors::or(errors, jobs)
}
