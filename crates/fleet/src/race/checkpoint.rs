//! Checkpoints of a race in the ledger.

use std::time::Duration;

use job::{CheckpointInterval, CheckpointWriter, EndState, JobStore, OwnedJob, Takeover};
use ui::exit::{ExitClass as _, Failure};

use crate::store::FleetRun;

/// Begins a race in the ledger. It does not use [`job::start`]: a race cannot be resumed, and one that cannot be kept
/// is not begun, since `--terminate` and `fleet show` need its measurements.
///
/// # Errors
/// Refused, if the ledger cannot be written, or no thread can be started.
pub(super) fn begin(
    store: JobStore,
    run: &FleetRun,
) -> Result<CheckpointWriter<FleetRun>, Failure> {
    let job = OwnedJob::begin(store, &run.id, run, Takeover::FromDead).refused()?;
    CheckpointWriter::start(job, CheckpointInterval::every(Duration::ZERO)).refused()
}

/// Writes a checkpoint of a race, unless an earlier one is still being written. A ledger that cannot be written is
/// reported once, and retried at the next checkpoint.
pub(super) fn write(
    writer: &mut CheckpointWriter<FleetRun>,
    ran: Duration,
    run: &FleetRun,
    notice: &mut dyn FnMut(&str),
) {
    if writer.is_due(ran) {
        writer.write(run);
    }
    if let Some(why) = writer.failure() {
        notice(&format!(
            "disksmith: the race cannot be written to the ledger: {why}. It continues, and writing \
             is tried again after each round; free some space there."
        ));
    }
    if writer.has_recovered() {
        notice("disksmith: the race is in the ledger again.");
    }
}

/// Writes the end of a race.
///
/// # Errors
/// A sentence about which data of the race is in the ledger.
pub(super) fn finish(writer: CheckpointWriter<FleetRun>, run: &FleetRun) -> Result<(), String> {
    let is_failing = writer.is_failing();
    let finished = writer.end(run, EndState::Finished);
    finished.map(drop).map_err(|why| match is_failing {
        true => format!("the race is not in the ledger as it ended: {why}."),
        false => format!("the race is in the ledger, but not that it is over: {why}."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::test_races;
    use crate::store::store_at;

    #[test]
    fn a_ledger_that_fails_is_reported_once_and_tried_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ledger.db");
        let run = test_races::raced(&[1000.0, 900.0, 500.0]);
        let mut writer = begin(store_at(&path), &run).unwrap();
        let mut notices: Vec<String> = Vec::new();
        let mut ran = Duration::ZERO;
        let mut keep = |writer: &mut CheckpointWriter<FleetRun>| {
            for _ in 0..2 {
                ran += Duration::from_secs(3600);
                write(writer, ran, &run, &mut |text| notices.push(text.to_owned()));
                while writer.is_writing() {
                    std::thread::yield_now();
                }
            }
        };
        keep(&mut writer);
        let mut other = store_at(&path);
        other
            .remove::<FleetRun>(&run.id, Takeover::WithTargetOrOwn)
            .unwrap();
        keep(&mut writer);
        keep(&mut writer);
        assert!(writer.save(&run).is_err());
        // A removed job exists again, as after a restore.
        let job = OwnedJob::begin(other, &run.id, &run, Takeover::FromDead).unwrap();
        keep(&mut writer);
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(notices[0].contains("cannot be written"), "{notices:?}");
        assert!(notices[1].contains("again"), "{notices:?}");
        drop(job);
        assert_eq!(finish(writer, &run), Ok(()));
    }

    #[test]
    fn a_race_whose_end_cannot_be_written_is_reported() {
        for (is_kept, notices) in [(true, "but not that it is over"), (false, "as it ended")] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("ledger.db");
            let run = test_races::raced(&[1000.0, 900.0, 500.0]);
            let writer = begin(store_at(&path), &run).unwrap();
            if is_kept {
                writer.save(&run).unwrap();
            }
            let from = Takeover::WithTargetOrOwn;
            store_at(&path).remove::<FleetRun>(&run.id, from).unwrap();
            if !is_kept {
                assert!(writer.save(&run).is_err());
            }
            let why = finish(writer, &run).unwrap_err();
            assert!(why.contains(notices), "{why}");
        }
    }
}
