//! Reads job files of fio: text goes in, typed jobs come out, or an error that names file, line and
//! option.
//!
//! It is pure: what a job file may request from the machine (variables, included files, the number of processors) is
//! passed in as [`MachineFacts`], so that any text can be read in a test and no text makes it panic. It knows the
//! meaning of fio's options, and nothing of how disksmith runs them. The grammar is that of fio's HOWTO, and where
//! that is silent, the behaviour of fio 3.33 with `--parse-only --debug=parse`; both are compared in the tests of the
//! whole program.
//!
//! In the order in which text flows through them:
//!
//! - `lines`: comments, sections and included files;
//! - `substitute`: variables and keywords in a value;
//! - `number` and `expression`: sizes, times and arithmetic;
//! - `option_row`, `options`, `command_options`: which options there are, of jobs and of fio's command line, and
//!   what happens to each;
//! - `values`, `sizes`: values that are words or have several parts; sizes of requests;
//! - `errors`: errors with which a job goes on;
//! - `rules`, `rule_options`, `rule_values`, `check`, `zones`: options that are neither places nor sizes, their values
//!   and what fits together;
//! - `assign`: an option's value into a [`Job`];
//! - `trims`: values for trims into a job that trims.

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

/// Reads the job file `name`, whose text is `text`: its jobs in order, each with the options of the global sections
/// before it.
///
/// # Errors
/// All lines that cannot be read or done, each with the file, the line and the option.
pub fn read(
    name: &str,
    text: &str,
    surroundings: &MachineFacts<'_>,
) -> Result<Vec<Job>, JobFileErrors> {
    read_with(name, text, &[], surroundings)
}

/// Reads a job file beside `options` of a command line, as `name=value` in their order. As in fio, options before the
/// first `name` apply to all jobs, unless the file gives them, and each `name` begins a job before those of the file.
///
/// # Errors
/// As for [`read`], and all options that cannot be read or done.
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

/// The jobs that `options` make on a command line alone.
///
/// # Errors
/// All options that cannot be read or done.
pub fn of_options(
    options: &[(&str, String)],
    surroundings: &MachineFacts<'_>,
) -> Result<Vec<Job>, JobFileErrors> {
    let (sections, errors) = command_line::sections(options, false);
    let without_jobs = Some(no_job(command_line::NAME));
    with_errors(errors, jobs(sections, without_jobs, surroundings))
}

/// The jobs, unless there are errors beside theirs.
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

/// The jobs of sections. Where there are none, that is the error `without_jobs`.
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
            // An option that was not understood may be the one that is missing.
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
