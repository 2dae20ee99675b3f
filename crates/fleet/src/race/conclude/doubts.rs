//! Reasons to doubt a host's figures, and the state in which it was left.

use study::burnin::HostEstimate;

use crate::race::running_race::RunningRace;
use crate::store::race::{Measurement, RaceRecord};
use crate::store::{HostOutcome, HostRun};

/// Measurements of a host, also those that came too late.
fn measurements(place: usize, record: &RaceRecord) -> impl Iterator<Item = &Measurement> {
    let rounds = record.rounds.iter();
    let measurements = rounds.flat_map(|round| round.measured.iter().chain(&round.late));
    measurements.filter(move |measurement| measurement.host == place)
}

/// Doubts reported for a host's targets, each sentence once.
pub(super) fn reported(place: usize, record: &RaceRecord) -> Vec<String> {
    let reported = measurements(place, record)
        .flat_map(|measurement| &measurement.targets)
        .flat_map(|target| &target.doubts);
    let mut doubts: Vec<String> = Vec::new();
    for doubt in reported {
        // A host that is lost and comes back reports it again.
        if !doubts.contains(doubt) {
            doubts.push(doubt.clone());
        }
    }
    doubts
}

/// True where something else than its disks may have slowed them in any round.
pub(super) fn is_slowed(place: usize, record: &RaceRecord) -> bool {
    measurements(place, record)
        .any(|measurement| measurement.targets.iter().any(|target| target.is_slowed))
}

/// Doubt that a host was not measured often enough to see all of it; `None` where it was.
pub(super) fn of_rounds(known: &Option<HostEstimate>, proof_rounds: usize) -> Option<String> {
    let rounds = known.map_or(0, |known| known.rounds);
    (rounds < proof_rounds).then(|| {
        format!(
            "It was measured in {rounds} rounds, and it takes {proof_rounds} to see a host that is slow in \
             one of ten."
        )
    })
}

/// Doubt that a host missed its floor in one round alone: a machine that was paused for part of it would
/// have, too.
pub(super) const MISSED_ONCE: &str =
    "It missed the floor in one round alone, in which its machine may have been paused.";

/// Doubt that a host was away so often that slowness may hide there; `None` where it was not.
pub(super) fn of_unseen(course: &RunningRace<'_>, place: usize) -> Option<String> {
    let unseen = course.unmeasured_rounds(place);
    RunningRace::is_much(unseen).then(|| {
        format!(
            "It was not measured in {unseen} of {} rounds, since it was away, and may be slow at such times.",
            course.rounds()
        )
    })
}

/// Doubt that a host was not there any more when the race was over, with the reason; `None` where it was there, and
/// where a signal ended the race. Its measurements are as good as those of any other host, but the host may not be
/// available.
pub(super) fn of_absence(host: &HostRun) -> Option<String> {
    match host.outcome {
        HostOutcome::Waiting | HostOutcome::Done | HostOutcome::Interrupted => None,
        _ => {
            let why = host.why.as_deref().unwrap_or_default();
            let why = why.trim_end_matches('.');
            let word = "It was not there any more when the race was over";
            Some(match why {
                "" => format!("{word}."),
                why => format!("{word}: {why}."),
            })
        }
    }
}
