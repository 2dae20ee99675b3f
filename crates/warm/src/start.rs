//! The start of the warming of a volume: from its last checkpoint, or anew.

use std::time::Duration;

use jiff::Timestamp;
use job::{CheckpointInterval, CheckpointWriter, JobRequest, Previous, Resumable, Takeover};
use record::{Bytes, Ranges};

use super::checkpoint::Checkpoint;
use super::finding::{Finding, FindingCode};
use reader::{Volume, VolumeKey};
use ui::context::Context;
use ui::exit::Failure;

/// A warming that was started, with the state from which it continues.
pub(crate) struct StartedVolume {
    /// State from which the warming continues.
    pub checkpoint: Checkpoint,
    /// Writer of later checkpoints.
    pub writer: CheckpointWriter<Checkpoint>,
    /// Findings of the start.
    pub findings: Vec<Finding>,
}

/// Options of a start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartOptions {
    /// Bytes fetched at once.
    pub block: Bytes,
    /// True if the whole volume is to be read.
    pub whole: bool,
    /// True if ranges that were read at earlier starts are read again.
    pub anew: bool,
    /// True if the ledger is to be used.
    pub keep: bool,
}

/// Starts the warming of a volume.
///
/// # Errors
/// When another process is warming it.
pub(crate) fn start(
    volume: &Volume,
    options: StartOptions,
    context: &Context,
) -> Result<StartedVolume, Failure> {
    let fresh = new_checkpoint(volume, options);
    let mut findings = Vec::new();
    let is_known_again = volume.key.resumable() != Resumable::Never;
    if options.keep && !is_known_again {
        findings.push(cannot_be_known());
    }
    if !options.keep || !is_known_again {
        return Ok(StartedVolume {
            checkpoint: fresh,
            writer: CheckpointWriter::none(),
            findings,
        });
    }
    let request = JobRequest {
        key: volume.key.text(),
        anew: options.anew,
        from: Takeover::WithTarget,
        interval: CheckpointInterval::every(Duration::ZERO),
    };
    let started = job::start(request, fresh, context, |previous, fresh| match previous {
        Previous::Unfinished(work) => {
            take_over(volume, options, &work.document, true, fresh, &mut findings);
        }
        Previous::Finished(work) => {
            take_over(volume, options, &work.document, false, fresh, &mut findings);
        }
        Previous::Unreadable(error) => findings.push(Finding::warn(
            FindingCode::NotKept,
            format!("The ranges that were read before are not known, so all are read: {error}."),
        )),
    })?;
    findings.extend(started.not_written.map(|why| {
        Finding::warn(
            FindingCode::NotKept,
            format!(
                "Progress cannot be stored, so after a kill the warming begins from the start: {why}."
            ),
        )
    }));
    Ok(StartedVolume {
        checkpoint: started.checkpoint,
        writer: started.writer,
        findings,
    })
}

fn cannot_be_known() -> Finding {
    Finding::warn(
        FindingCode::NotKept,
        "The volume has no unique name, and the kernel does not show whether it stays attached \
         (diskseq, since Linux 5.15): it cannot be recognized later, so after a kill the warming begins \
         from the start.",
    )
}

fn new_checkpoint(volume: &Volume, options: StartOptions) -> Checkpoint {
    Checkpoint {
        path: volume.path.display().to_string(),
        size: volume.size,
        block: options.block,
        done: Ranges::new(),
        unreadable: Ranges::new(),
        whole: options.whole,
        attached: volume.key.attached().cloned(),
        ended: false,
        began: Timestamp::now(),
        ran_s: 0.0,
        starts: 1,
    }
}

/// Takes over the ranges that were read at earlier starts, where the record can be relied on.
fn take_over(
    volume: &Volume,
    options: StartOptions,
    before: &Checkpoint,
    unfinished: bool,
    fresh: &mut Checkpoint,
    findings: &mut Vec<Finding>,
) {
    let read = before.done.intersect(&Ranges::all(volume.size));
    if options.anew || read.is_empty() {
        return;
    }
    if let Some(doubt) = record_doubt(&volume.key, volume.size, before, unfinished) {
        findings.push(doubt.finding(before));
        return;
    }
    if before.size != volume.size {
        findings.push(Finding::note(
            FindingCode::Resized,
            format!(
                "The volume had {} when it was read before, and has {} now.",
                before.size, volume.size
            ),
        ));
    }
    findings.push(Finding::note(
        FindingCode::Resumed,
        format!(
            "{} were read before, since {}, and are not read again (--anew would).",
            read.total(),
            day(before)
        ),
    ));
    fresh.done = read;
    fresh.began = before.began;
    fresh.ran_s = before.ran_s;
    fresh.starts = before.starts.saturating_add(1);
}

/// Time of a warming's first start, to the minute in UTC.
fn day(work: &Checkpoint) -> String {
    work.began.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Reason why the ledger's record of a volume may not apply to this volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordDoubt {
    /// The volume was read to its end, and may be restored anew.
    Whole,
    /// An earlier warming had ended as requested, and the volume may be restored anew.
    Ended,
    /// The volume was attached again since.
    Attached,
    /// The volume has another size.
    Size,
}

impl RecordDoubt {
    fn finding(self, before: &Checkpoint) -> Finding {
        let why = match self {
            RecordDoubt::Whole => {
                "the whole volume was read then, and it may have been restored again since"
            }
            RecordDoubt::Ended => {
                "that warming ended as requested, and the volume may have been restored again \
                 since, under the same name"
            }
            RecordDoubt::Attached => {
                "the volume is identified only by its path, and was attached again or the host \
                 restarted since: it may be another one"
            }
            RecordDoubt::Size => {
                "the volume is identified only by its path, and had another size: it may be \
                 another one"
            }
        };
        let text = format!(
            "The ranges that were read before, since {}, are read again: {why}.",
            day(before)
        );
        match self {
            // A user who warms a volume again after it was done expects this.
            RecordDoubt::Whole => Finding::note(FindingCode::NotKept, text),
            RecordDoubt::Ended | RecordDoubt::Attached | RecordDoubt::Size => {
                Finding::warn(FindingCode::NotKept, text)
            }
        }
    }
}

/// Reason why the ledger's record of a volume with this key may not apply to this volume of this size; `None` where it
/// applies.
fn record_doubt(
    key: &VolumeKey,
    size: Bytes,
    before: &Checkpoint,
    unfinished: bool,
) -> Option<RecordDoubt> {
    let is_attached = key.attached().is_some() && key.attached() == before.attached.as_ref();
    match key {
        VolumeKey::Ebs(_) => None,
        _ if !unfinished => Some(RecordDoubt::Whole),
        VolumeKey::Unique(..) => (before.ended && !is_attached).then_some(RecordDoubt::Ended),
        VolumeKey::Path(..) if !is_attached => Some(RecordDoubt::Attached),
        VolumeKey::Path(..) => (before.size != size).then_some(RecordDoubt::Size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reader::DiskAttachment;

    #[test]
    fn only_the_same_volume_is_believed_to_be_warm() {
        let attached = |diskseq| {
            Some(DiskAttachment {
                boot: "b".to_owned(),
                diskseq,
            })
        };
        let kept = |attached| Checkpoint {
            path: "/dev/sdb".to_owned(),
            size: Bytes(1000),
            block: Bytes(100),
            done: Ranges::from(0..500),
            unreadable: Ranges::new(),
            whole: true,
            attached,
            ended: false,
            began: Timestamp::UNIX_EPOCH,
            ran_s: 1.0,
            starts: 1,
        };
        let before = kept(attached(3));
        let doubts = |key: &VolumeKey, before: &Checkpoint, unfinished| {
            record_doubt(key, Bytes(1000), before, unfinished)
        };
        let ended = Checkpoint {
            ended: true,
            ..before.clone()
        };
        let ebs = VolumeKey::Ebs("vol0123".to_owned());
        assert_eq!(doubts(&ebs, &before, true), None);
        assert_eq!(doubts(&ebs, &ended, false), None);
        let unique = |attached| VolumeKey::Unique("naa.600".to_owned(), attached);
        assert_eq!(doubts(&unique(attached(4)), &before, true), None);
        // Restored anew, perhaps.
        let whole = doubts(&unique(attached(3)), &ended, false);
        assert_eq!(whole, Some(RecordDoubt::Whole));
        assert_eq!(doubts(&unique(attached(3)), &ended, true), None);
        for elsewhere in [attached(4), None] {
            let doubt = doubts(&unique(elsewhere), &ended, true);
            assert_eq!(doubt, Some(RecordDoubt::Ended));
        }
        let unknown = Checkpoint {
            ended: true,
            ..kept(None)
        };
        assert_eq!(
            doubts(&unique(None), &unknown, true),
            Some(RecordDoubt::Ended),
            "nobody knows"
        );
        let path = |attached| VolumeKey::Path("/dev/sdb".to_owned(), attached);
        assert_eq!(doubts(&path(attached(3)), &before, true), None);
        assert_eq!(doubts(&path(attached(3)), &ended, true), None);
        let whole = doubts(&path(attached(3)), &before, false);
        assert_eq!(whole, Some(RecordDoubt::Whole));
        let another = doubts(&path(attached(4)), &before, true);
        assert_eq!(another, Some(RecordDoubt::Attached));
        let unknown = doubts(&path(None), &kept(None), true);
        assert_eq!(unknown, Some(RecordDoubt::Attached));
        let size = record_doubt(&path(attached(3)), Bytes(2000), &before, true);
        assert_eq!(size, Some(RecordDoubt::Size));
    }
}
