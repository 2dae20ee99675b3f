//! Reasons to doubt a host's figures, and its state at the end.

use study::burnin::HostEstimate;

use crate::race::running_race::RunningRace;
use crate::store::race::{Measurement, RaceRecord};
use crate::store::{HostOutcome, HostRun};

/// Measurements of a host, including those that arrived too late.
fn measurements(place: usize, record: &RaceRecord) -> impl Iterator<Item = &Measurement> {
    let rounds = record.rounds.iter();
    let measurements = rounds.flat_map(|round| round.measured.iter().chain(&round.late));
    measurements.filter(move |measurement| measurement.host == place)
}

/// Doubts reported for a host's targets, without duplicates.
pub(super) fn reported(place: usize, record: &RaceRecord) -> Vec<String> {
    let reported = measurements(place, record)
        .flat_map(|measurement| &measurement.targets)
        .flat_map(|target| &target.doubts);
    let mut doubts: Vec<String> = Vec::new();
    for doubt in reported {
        // A host that is lost and reconnects reports it again.
        if !doubts.contains(doubt) {
            doubts.push(doubt.clone());
        }
    }
    doubts
}

/// True if something other than its disks may have slowed them in any round.
pub(super) fn is_slowed(place: usize, record: &RaceRecord) -> bool {
    measurements(place, record)
        .any(|measurement| measurement.targets.iter().any(|target| target.is_slowed))
}

/// Doubt that a host was measured too rarely to see all of its behaviour; `None` if it was not.
pub(super) fn of_rounds(known: &Option<HostEstimate>, proof_rounds: usize) -> Option<String> {
    let rounds = known.map_or(0, |known| known.rounds);
    (rounds < proof_rounds).then(|| {
        format!(
            "It was measured in {rounds} rounds, and it takes {proof_rounds} to see a host that is slow in \
             one of ten."
        )
    })
}

/// Doubt for a host that missed its floor in one round only: a machine that was paused for a part of it would have
/// missed it too.
pub(super) const MISSED_ONCE: &str =
    "It missed the floor in one round alone, in which its machine may have been paused.";

/// Doubt that a host was unreachable so often that slowness may have been missed; `None` if it was not.
pub(super) fn of_unseen(course: &RunningRace<'_>, place: usize) -> Option<String> {
    let unseen = course.unmeasured_rounds(place);
    RunningRace::is_much(unseen).then(|| {
        format!(
            "It was not measured in {unseen} of {} rounds, since it was away, and may be slow at such times.",
            course.rounds()
        )
    })
}

/// Doubt that a host was unreachable at the end of the race, with the reason; `None` if it was reachable, and if a
/// signal ended the race. Its measurements are as good as those of any other host, but the host may not be available.
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
