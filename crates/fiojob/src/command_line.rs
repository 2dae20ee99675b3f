//! Sections of a command line.

use crate::command_options;
use crate::error::{FioError, JobFileLine};
use crate::lines::{OptionLine, Section};
use crate::option_row::OptionSupport;

/// The sections that options of a command line make, and what is wrong with options of fio's own.
pub(crate) fn sections(name: &str, options: &[(&str, String)]) -> (Vec<Section>, Vec<FioError>) {
    let place = JobFileLine {
        file: name.to_owned(),
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
