//! The start of the job of a target: anew, or from the last checkpoint.

use ledger::{Error, LongWork, Work, WorkError};
use ui::context::Context;
use ui::exit::{Failure, sentence};

use crate::checkpoint::CheckpointWriter;
use crate::interval::Interval;
use crate::store::{Job, Store, Takeover};

/// A start that is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The name of the target in the ledger.
    pub key: &'a str,
    /// Not to go on from an earlier checkpoint, not even from one that a later version has written.
    pub anew: bool,
    /// The owners from whom it may be taken.
    pub from: Takeover,
    /// How often a checkpoint is written.
    pub interval: Interval,
}

/// The last checkpoint of a target.
#[derive(Debug)]
pub enum Previous<'a, W> {
    /// Of a job that is not finished.
    Unfinished(&'a Work<W>),
    /// Of a finished one.
    Finished(&'a Work<W>),
    /// It is there and cannot be read.
    Unreadable(&'a Error),
}

/// A job that can go on.
pub struct Started<W> {
    /// Its state.
    pub checkpoint: W,
    /// The writer of later states.
    pub writer: CheckpointWriter<W>,
    /// Why none is written, as a clause; `None` where they are.
    pub not_written: Option<String>,
}

/// Claims the job of a target and writes its first checkpoint: `fresh`, of which `resume` makes more where an
/// earlier checkpoint still fits the target. A ledger that cannot be used is no reason not to work.
///
/// # Errors
/// Refused, when another process is at work on it.
pub fn start<W: LongWork + Clone + Send + 'static>(
    request: Request<'_>,
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
    request: Request<'_>,
    context: &Context,
    checkpoint: &mut W,
    resume: impl FnOnce(Previous<'_, W>, &mut W),
) -> anyhow::Result<CheckpointWriter<W>> {
    let Request {
        key,
        anew,
        from,
        interval,
    } = request;
    let mut store = Store::open(context).map_err(Failure::error)?;
    let job = match store.find::<W>(key) {
        Ok(Some(work)) if work.summary.finished.is_none() => {
            resume(Previous::Unfinished(&work), checkpoint);
            let (mut job, _) = Job::claim(store, key, from)?;
            job.save(checkpoint)?;
            job
        }
        Ok(finished) => {
            if let Some(work) = &finished {
                resume(Previous::Finished(work), checkpoint);
            }
            Job::begin(store, key, checkpoint, from)?
        }
        Err(error) => {
            resume(Previous::Unreadable(&error), checkpoint);
            // What cannot be read is of use to nobody; what a later version has written is.
            if anew || matches!(error, Error::Work(WorkError::Unreadable { .. })) {
                store.remove::<W>(key, from)?;
            }
            Job::begin(store, key, checkpoint, from)?
        }
    };
    Ok(CheckpointWriter::start(job, interval)?)
}
