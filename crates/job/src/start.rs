//! The start of the job of a target: anew, or from the last checkpoint.

use ledger::{Error, LongWork, StoredWork, WorkError};
use ui::context::Context;
use ui::exit::{Failure, sentence};

use crate::checkpoint::CheckpointWriter;
use crate::interval::CheckpointInterval;
use crate::store::{JobStore, OwnedJob, Takeover};

/// A requested start.
#[derive(Clone, Debug)]
pub struct JobRequest<'a> {
    /// The name of the target in the ledger.
    pub key: &'a str,
    /// True to ignore an earlier checkpoint, even one written by a later version.
    pub anew: bool,
    /// The owners from whom it may be taken over.
    pub from: Takeover,
    /// The time between two checkpoints.
    pub interval: CheckpointInterval,
}

/// The last checkpoint of a target.
#[derive(Debug)]
pub enum Previous<'a, W> {
    /// Checkpoint of a job that is not finished.
    Unfinished(&'a StoredWork<W>),
    /// Checkpoint of a finished job.
    Finished(&'a StoredWork<W>),
    /// A checkpoint that cannot be read.
    Unreadable(&'a Error),
}

/// A job that can begin.
pub struct Started<W> {
    /// State with which the job begins.
    pub checkpoint: W,
    /// The writer of its checkpoints.
    pub writer: CheckpointWriter<W>,
    /// The reason why no checkpoints are written, as a clause; `None` if they are.
    pub not_written: Option<String>,
}

/// Claims the job of a target and writes its first checkpoint: `fresh`, or the state that `resume` returns for an
/// earlier checkpoint that still fits the target. If the ledger cannot be used, the job runs without checkpoints.
///
/// # Errors
/// Refused, if another process is working on it.
pub fn start<W: LongWork + Clone + Send + 'static>(
    request: JobRequest<'_>,
    fresh: W,
    context: &Context,
    resume: impl FnOnce(Previous<'_, W>, &mut W),
) -> Result<Started<W>, Failure> {
    let mut checkpoint = fresh;
    let opened = open(request, context, &mut checkpoint, resume);
    let (writer, not_written) = match opened {
        Ok(writer) => (writer, None),
        Err(error) if is_under_way(&error) => return Err(Failure::Refused(error)),
        Err(error) => (CheckpointWriter::none(), Some(sentence(&error))),
    };
    Ok(Started {
        checkpoint,
        writer,
        not_written,
    })
}

fn is_under_way(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<Error>();
    matches!(error, Some(Error::Work(WorkError::UnderWay { .. })))
}

fn open<W: LongWork + Clone + Send + 'static>(
    request: JobRequest<'_>,
    context: &Context,
    checkpoint: &mut W,
    resume: impl FnOnce(Previous<'_, W>, &mut W),
) -> anyhow::Result<CheckpointWriter<W>> {
    let JobRequest {
        key,
        anew,
        from,
        interval,
    } = request;
    let mut store = JobStore::open(context).map_err(Failure::error)?;
    let job = match store.find::<W>(key) {
        Ok(Some(work)) if work.summary.finished.is_none() => {
            resume(Previous::Unfinished(&work), checkpoint);
            let (mut job, _) = OwnedJob::claim(store, key, from)?;
            job.save(checkpoint)?;
            job
        }
        Ok(finished) => {
            if let Some(work) = &finished {
                resume(Previous::Finished(work), checkpoint);
            }
            OwnedJob::begin(store, key, checkpoint, from)?
        }
        Err(error) => {
            resume(Previous::Unreadable(&error), checkpoint);
            // An unreadable document is useless; one that a later version wrote is not.
            if anew || matches!(error, Error::Work(WorkError::Unreadable { .. })) {
                store.remove::<W>(key, from)?;
            }
            OwnedJob::begin(store, key, checkpoint, from)?
        }
    };
    Ok(CheckpointWriter::start(job, interval)?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::checkpoint::EndState;
    use crate::store::tests::{Count, store};

    /// The same kind of job, as written by a later version.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Later(u64);

    impl LongWork for Later {
        const KIND: &'static str = Count::KIND;
        const FORM: u32 = Count::FORM + 1;
    }

    fn request(anew: bool) -> JobRequest<'static> {
        JobRequest {
            key: "a",
            anew,
            from: Takeover::WithTargetOrOwn,
            interval: CheckpointInterval::every(Duration::ZERO),
        }
    }

    fn context(folder: &Path) -> Context {
        Context::of_process(Some(folder.join("ledger.db")))
    }

    /// Starts a job, and describes the previous checkpoint, such as `unfinished 5`. It continues from an unfinished
    /// one.
    fn started(folder: &Path, request: JobRequest<'_>) -> (Started<Count>, String) {
        let mut found = String::new();
        let started = start(request, Count(1), &context(folder), |previous, fresh| {
            found = match previous {
                Previous::Unfinished(work) => {
                    *fresh = work.document.clone();
                    format!("unfinished {}", work.document.0)
                }
                Previous::Finished(work) => format!("finished {}", work.document.0),
                Previous::Unreadable(_) => "unreadable".to_owned(),
            };
        });
        (started.unwrap(), found)
    }

    #[test]
    fn a_target_continues_from_the_checkpoint_that_was_left_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let (first, found) = started(folder.path(), request(false));
        assert_eq!((first.checkpoint, found.as_str()), (Count(1), ""));
        first.writer.end(&Count(5), EndState::Suspended).unwrap();
        // Its owner, this process, is alive.
        let by_another = JobRequest {
            from: Takeover::WithTarget,
            ..request(true)
        };
        let refused = start(by_another, Count(7), &context(folder.path()), |_, _| ());
        assert!(matches!(refused, Err(Failure::Refused(_))));
        let (second, found) = started(folder.path(), request(false));
        assert_eq!(
            (second.checkpoint, found.as_str()),
            (Count(5), "unfinished 5")
        );
        second.writer.end(&Count(9), EndState::Finished).unwrap();
        let (third, found) = started(folder.path(), request(false));
        assert_eq!((third.checkpoint, found.as_str()), (Count(1), "finished 9"));
        assert!(third.writer.writes() && third.not_written.is_none());
    }

    #[test]
    fn what_a_later_version_has_written_stays_unless_it_is_to_begin_again() {
        let folder = tempfile::tempdir().unwrap();
        let later = OwnedJob::begin(store(folder.path()), "a", &Later(3), Takeover::FromDead);
        drop(later.unwrap());
        let (refused, found) = started(folder.path(), request(false));
        assert_eq!(
            (refused.checkpoint, found.as_str()),
            (Count(1), "unreadable")
        );
        assert!(!refused.writer.writes() && refused.not_written.is_some());
        let there = store(folder.path()).find::<Later>("a").unwrap();
        assert_eq!(there.unwrap().document, Later(3));
        let (anew, _) = started(folder.path(), request(true));
        assert!(anew.writer.writes());
        let there = store(folder.path()).find::<Count>("a").unwrap();
        assert_eq!(there.unwrap().document, Count(1));
    }

    #[test]
    fn a_ledger_that_cannot_be_used_is_told_and_no_reason_not_to_work() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("ledger.db")).unwrap();
        let (started, found) = started(folder.path(), request(false));
        assert_eq!((started.checkpoint, found.as_str()), (Count(1), ""));
        assert!(!started.writer.writes() && started.not_written.is_some());
    }
}
