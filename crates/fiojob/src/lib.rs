//! Reads job files of fio: text goes in, typed jobs come out, or an error that names file, line and
//! option.
//!
//! It is pure: what a job file may ask of the machine (variables, included files, the number of
//! processors) is handed in as [`Surroundings`], so that any text can be read in a test and no text
//! makes it panic. It knows what fio means by an option, and nothing of how disksmith runs it. The
//! grammar is that of fio's HOWTO, and where that is silent, what fio 3.33 does with
//! `--parse-only --debug=parse`; both are compared in the tests of the whole program.
//!
//! In the order in which text flows through them:
//!
//! - `lines`: comments, sections and included files;
//! - `substitute`: variables and keywords in a value;
//! - `number` and `expression`: sizes, times and arithmetic;
//! - `options`: which options there are, and what happens to each;
//! - `assign`: an option's value into a [`Job`].

mod assign;
mod error;
mod expression;
mod job;
mod lines;
mod number;
mod options;
mod substitute;
#[cfg(test)]
mod tests;

pub use error::{FioError, Place};
pub use job::{Amount, Cadence, Distribution, IoEngine, Job, Pair, Pattern, Share, SyncCall};
pub use lines::{MOST_BYTES, Surroundings};
pub use options::{Kind, OPTIONS, OptionRow};

/// Reads the job file `name`, whose text is `text`: its jobs in order, each with all that the
/// global sections before it say.
///
/// # Errors
/// The first line that cannot be read or done, with the file, the line and the option.
pub fn read(name: &str, text: &str, surroundings: &Surroundings<'_>) -> Result<Vec<Job>, FioError> {
    let sections = lines::sections(name, text, surroundings)?;
    let mut global = Job::default();
    let mut jobs = Vec::new();
    for section in sections {
        let mut job = Job {
            name: section.name.clone(),
            place: section.place.clone(),
            ..global.clone()
        };
        assign::section(&mut job, &section, surroundings)?;
        if section.is_global() {
            global = job;
        } else {
            job.check()?;
            jobs.push(job);
        }
    }
    if jobs.is_empty() {
        let place = Place {
            file: name.to_owned(),
            line: 1,
        };
        return Err(place.error("there is no job in it; a job begins with [its name]"));
    }
    Ok(jobs)
}
