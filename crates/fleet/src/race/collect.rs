//! `fleet race --collect FOLDER`: a race whose rounds were measured separately, with `disksmith bench --json` on each
//! host. Each round is a folder in it, with a file `HOST.json` for each measured host.

mod answer;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::args::RaceArgs;
use crate::hosts::Host;
use crate::protocol::rounds::TargetFacts;
use crate::race::groups;
use crate::race::running_race::{ReplayedRace, RunningRace};
use crate::store::race::{Measurement, MissedHost, RoundRecord};
use crate::store::{FleetRun, HostOutcome, HostRun};
use answer::{CollectedHost, answers};
use ui::exit::Failure;

/// A round in its folder.
struct Round {
    /// Folder with the answers of the round.
    folder: PathBuf,
    /// Answers of its hosts, by their indices.
    hosts: BTreeMap<usize, CollectedHost>,
}

/// The race with the rounds of a folder, in order, up to the round that decides it, and the indices of the hosts to
/// measure next; empty if it is decided. `run` is a new run.
///
/// # Errors
/// Refused, if the folder has no rounds, files for unknown hosts, or files that are not answers.
pub(super) fn collect(
    folder: &Path,
    args: &RaceArgs,
    hosts: &[Host],
    mut run: FleetRun,
) -> Result<(FleetRun, Vec<usize>), Failure> {
    if let Some(floor) = args.floor.iter().find(|floor| floor.is_of_disks()) {
        return Err(Failure::refused(format!(
            "the floor {floor} is of the kernel's counts in each round, which 'bench --json' does not \
             have; give one of a phase"
        )));
    }
    let rounds = rounds_of(folder, hosts, &run)?;
    group_measured(&rounds, args, folder, &mut run)?;
    let Some(record) = run.race.as_mut() else {
        return Ok((run, Vec::new()));
    };
    let base = record.as_ref().clone();
    let replayed = ReplayedRace::of(&base);
    let setup = replayed.setup(&base);
    let mut course = RunningRace::new(&setup);
    for round in rounds {
        let next = course.next();
        if next.is_empty() {
            break;
        }
        let measured = recorded(round, &next, hosts);
        course.take(&measured);
        record.rounds.push(measured);
    }
    let next = course.next();
    record.interrupted = !next.is_empty();
    Ok((run, next))
}

/// Folders of rounds; numbered ones in numeric order.
fn rounds_of(folder: &Path, hosts: &[Host], run: &FleetRun) -> Result<Vec<Round>, Failure> {
    let mut folders: Vec<PathBuf> = listed(folder)?
        .into_iter()
        .filter(|one| one.is_dir())
        .collect();
    let number = |path: &Path| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        (digits.parse::<u64>().unwrap_or(u64::MAX), name)
    };
    folders.sort_by_key(|path| number(path));
    if folders.is_empty() {
        return Err(Failure::refused(format!(
            "{} has no folder of a round; put the answers of round 1 into {}",
            folder.display(),
            folder.join("1/HOST.json").display()
        )));
    }
    let figures = run.race.iter().flat_map(|record| &record.figures);
    let figures: Vec<_> = figures.cloned().collect();
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut rounds = Vec::new();
    for folder in folders {
        let mut of_hosts = BTreeMap::new();
        for file in listed(&folder)?.into_iter().filter(|file| is_answer(file)) {
            let name = file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let Some(place) = hosts.iter().position(|host| host.name == name) else {
                wrong.push(format!("{}: no host is called {name}", file.display()));
                continue;
            };
            match answers(&file, &figures) {
                Ok(answered) => {
                    for run in &answered.runs {
                        if let Some(other) = seen.insert(run.clone(), file.clone()) {
                            wrong.push(format!(
                                "{}: it is the run {run} of {}; each round is to be measured",
                                file.display(),
                                other.display()
                            ));
                        }
                    }
                    of_hosts.insert(place, answered);
                }
                Err(why) => wrong.push(format!("{}: {why}", file.display())),
            }
        }
        rounds.push(Round {
            folder,
            hosts: of_hosts,
        });
    }
    match wrong.is_empty() {
        true => Ok(rounds),
        false => Err(Failure::refused_for("the rounds are not collected", &wrong)),
    }
}

fn is_answer(file: &Path) -> bool {
    file.extension().is_some_and(|kind| kind == "json") && file.is_file()
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let refused = |error: std::io::Error| Failure::refused(linux::remedy::unread(folder, &error));
    let entries = fs::read_dir(folder).map_err(refused)?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(refused)?;
    paths.sort();
    Ok(paths)
}

/// Assigns the hosts with any measurement to their groups.
fn group_measured(
    rounds: &[Round],
    args: &RaceArgs,
    folder: &Path,
    run: &mut FleetRun,
) -> Result<(), Failure> {
    let mut targets: BTreeMap<usize, Vec<TargetFacts>> = BTreeMap::new();
    for (place, answered) in rounds.iter().flat_map(|round| &round.hosts) {
        targets
            .entry(*place)
            .or_insert_with(|| answered.facts.clone());
    }
    for (place, host) in run.hosts.iter_mut().enumerate() {
        match targets.contains_key(&place) {
            true => host.outcome = HostOutcome::Done,
            false => {
                host.outcome = HostOutcome::Unreached;
                host.why = Some(format!(
                    "no round in {} has an answer of it.",
                    folder.display()
                ));
            }
        }
    }
    let Some(record) = run.race.as_mut() else {
        return Ok(());
    };
    let ready: Vec<Option<(&HostRun, &[TargetFacts])>> = (run.hosts.iter().enumerate())
        .map(|(place, host)| Some((host, &targets.get(&place)?[..])))
        .collect();
    groups::assign_groups(&ready, args, record)?;
    for (place, raced) in record.hosts.iter_mut().enumerate() {
        raced.targets = targets.remove(&place).unwrap_or_default();
    }
    Ok(())
}

/// A round, limited to the hosts that were to be measured in it.
fn recorded(round: Round, next: &[usize], hosts: &[Host]) -> RoundRecord {
    let next: BTreeSet<usize> = next.iter().copied().collect();
    let missing = next.iter().filter(|place| !round.hosts.contains_key(place));
    let missed = missing.map(|place| MissedHost {
        host: *place,
        why: format!(
            "{} has no answer of {}.",
            round.folder.display(),
            hosts.get(*place).map_or("", |host| &host.name)
        ),
    });
    RoundRecord {
        missed: missed.collect(),
        measured: round
            .hosts
            .into_iter()
            .filter(|(place, _)| next.contains(place))
            .map(|(host, answered)| Measurement {
                host,
                targets: answered.targets,
                round: None,
            })
            .collect(),
        ..RoundRecord::default()
    }
}

#[cfg(test)]
mod tests;
