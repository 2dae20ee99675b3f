//! Sections of a command line.

use crate::command_options;
use crate::error::{FioError, JobFileLine};
use crate::lines::{OptionLine, Section};
use crate::option_row::OptionSupport;

/// Name of the command line in errors.
pub(crate) const NAME: &str = "the command line";

/// Leaves those sections of a job file that `--section` names, if it is given, and the global ones.
pub(crate) fn select(sections: &mut Vec<Section>, options: &[(&str, String)]) {
    let wanted = options.iter().filter(|(name, _)| *name == "section");
    let wanted: Vec<&str> = wanted.map(|(_, value)| value.as_str()).collect();
    if !wanted.is_empty() {
        sections.retain(|one| one.is_global() || wanted.contains(&one.name.as_str()));
    }
}

/// The sections that options of a command line make, and what is wrong with options of fio's own.
pub(crate) fn sections(options: &[(&str, String)]) -> (Vec<Section>, Vec<FioError>) {
    let place = JobFileLine {
        file: NAME.to_owned(),
        line: 0,
    };
    let section = |name: &str| Section {
        place: place.clone(),
        name: name.to_owned(),
        entries: Vec::new(),
    };
    let mut before = section("global");
    let mut jobs: Vec<Section> = Vec::new();
    let mut errors = Vec::new();
    for (name, value) in options {
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
            jobs.push(section(value));
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
