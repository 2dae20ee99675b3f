//! Sections made from the options of a command line.

use crate::command_options;
use crate::error::{FioError, JobFileLine};
use crate::lines::{OptionLine, Section};
use crate::option_row::OptionSupport;

/// Name of the command line in errors.
pub(crate) const NAME: &str = "the command line";

fn place() -> JobFileLine {
    JobFileLine {
        file: NAME.to_owned(),
        line: 0,
    }
}

/// Keeps the global sections of a job file and those that `--section` names, if it is given. Returns the error to
/// report if no job remains; `None` if the file has no job anyway, or the option is not given.
pub(crate) fn select(sections: &mut Vec<Section>, options: &[(&str, String)]) -> Option<FioError> {
    let wanted = options.iter().filter(|(name, _)| *name == "section");
    let wanted: Vec<&str> = wanted.map(|(_, value)| value.as_str()).collect();
    if wanted.is_empty() {
        return None;
    }
    let jobs = sections.iter().filter(|one| !one.is_global());
    let jobs: Vec<String> = jobs.map(|one| one.name.clone()).collect();
    sections.retain(|one| one.is_global() || wanted.contains(&one.name.as_str()));
    (!jobs.is_empty()).then(|| {
        let jobs = jobs.join(", ");
        let text = format!("the job file has no such section; it has these: {jobs}");
        place().error_in("section", text)
    })
}

/// Sections that the options of a command line make, with a job file or without, and the errors in the options of
/// fio's command line itself.
pub(crate) fn sections(
    options: &[(&str, String)],
    beside_file: bool,
) -> (Vec<Section>, Vec<FioError>) {
    let place = place();
    let section = |name: &str| Section {
        place: place.clone(),
        name: name.to_owned(),
        entries: Vec::new(),
    };
    let mut before = section("global");
    let mut jobs: Vec<Section> = Vec::new();
    let mut errors = Vec::new();
    let mut selected: Vec<&str> = Vec::new();
    for (name, value) in options {
        if *name == "section" {
            match beside_file {
                true => selected.push(value.as_str()),
                false => {
                    let why = "it selects sections of a job file, and there is none";
                    errors.push(place.error_in(name, why));
                }
            }
        }
        if let Some(row) = command_options::find(name) {
            match row.kind {
                OptionSupport::Stops(off, why) if !off.contains(&value.as_str()) => {
                    errors.push(place.error_in(name, why));
                }
                _ => {}
            }
            continue;
        }
        if *name == "name" {
            let job = section(value);
            let is_left_out = !selected.is_empty() && !selected.contains(&value.as_str());
            if is_left_out && !job.is_global() {
                let why = format!(
                    "fio would not run this job, {value}, as a --section before it names others; put --section behind it"
                );
                errors.push(place.error_in(name, why));
            }
            jobs.push(job);
        }
        jobs.last_mut()
            .unwrap_or(&mut before)
            .entries
            .push(OptionLine {
                place: place.clone(),
                name: (*name).to_owned(),
                value: Some(value.clone()),
            });
    }
    jobs.insert(0, before);
    (jobs, errors)
}
