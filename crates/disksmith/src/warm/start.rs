//! How the warming of a volume starts: anew, or where the ledger says that it was left.

use jiff::Timestamp;
use record::{Bytes, Ranges};

use super::finding::{Code, Finding};
use super::place::{Keeper, Kept};
use crate::context::Context;
use crate::failure::Failure;
use crate::reading::{Begin, Key, Refused, Volume, begin};

/// A warming that can go on.
pub(crate) struct Started {
    /// Where it stands.
    pub kept: Kept,
    /// What keeps that; `None` where it cannot be kept.
    pub keeper: Option<Keeper>,
    /// What is to be said of it.
    pub findings: Vec<Finding>,
}

/// What is asked of a start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    /// What is fetched at once.
    pub block: Bytes,
    /// Whether the whole volume is to be read.
    pub whole: bool,
    /// Whether what was read before does not count.
    pub anew: bool,
    /// Whether the ledger is to be used.
    pub keep: bool,
}

/// Starts the warming of a volume, as the ledger has it. A ledger that cannot be used is no reason
/// not to warm.
///
/// # Errors
/// When another process is at it.
pub(crate) fn start(volume: &Volume, ask: Ask, context: &Context) -> Result<Started, Failure> {
    let mut kept = fresh(volume, ask);
    let mut findings = Vec::new();
    if !ask.keep {
        return Ok(Started {
            kept,
            keeper: None,
            findings,
        });
    }
    match with_ledger(volume, ask, context, &mut kept, &mut findings) {
        Ok(keeper) => Ok(Started {
            kept,
            keeper: Some(keeper),
            findings,
        }),
        Err(Refused::UnderWay(error)) => Err(Failure::Refused(error.into())),
        Err(Refused::NotKept(error)) => {
            findings.push(Finding::warn(
                Code::NotKept,
                format!(
                    "How far it is cannot be kept, so that after a kill it begins from the start: \
                     {error:#}."
                ),
            ));
            Ok(Started {
                kept,
                keeper: None,
                findings,
            })
        }
    }
}

fn fresh(volume: &Volume, ask: Ask) -> Kept {
    Kept {
        path: volume.path.display().to_string(),
        size: volume.size,
        block: ask.block,
        done: Ranges::new(),
        unreadable: Ranges::new(),
        whole: ask.whole,
        attached: volume.key.attached().cloned(),
        began: Timestamp::now(),
        ran_s: 0.0,
        starts: 1,
    }
}

fn with_ledger(
    volume: &Volume,
    ask: Ask,
    context: &Context,
    kept: &mut Kept,
    findings: &mut Vec<Finding>,
) -> Result<Keeper, Refused> {
    let what = Begin {
        key: volume.key.text(),
        anew: ask.anew,
    };
    begin(what, context, kept, |before, kept| match before {
        Ok(work) => {
            let unfinished = work.summary.finished.is_none();
            take_over(volume, ask, &work.document, unfinished, kept, findings);
        }
        Err(error) => findings.push(Finding::warn(
            Code::NotKept,
            format!("What was read before is not known, and all is read: {error}."),
        )),
    })
}

/// Takes over what was read before, where it can be believed.
fn take_over(
    volume: &Volume,
    ask: Ask,
    before: &Kept,
    unfinished: bool,
    kept: &mut Kept,
    findings: &mut Vec<Finding>,
) {
    if ask.anew {
        return;
    }
    let read = before.done.intersect(&Ranges::all(volume.size));
    if !is_believed(&volume.key, volume.size, before, unfinished) {
        return;
    }
    if before.size != volume.size {
        findings.push(Finding::note(
            Code::Resized,
            format!(
                "The volume had {} when it was read before, and has {} now.",
                before.size, volume.size
            ),
        ));
    }
    if !read.is_empty() {
        findings.push(Finding::note(
            Code::Resumed,
            format!(
                "{} were read before, since {}, and are not read again (--anew would).",
                read.total(),
                before.began.strftime("%Y-%m-%d %H:%M UTC")
            ),
        ));
    }
    kept.done = read;
    kept.began = before.began;
    kept.ran_s = before.ran_s;
    kept.starts = before.starts.saturating_add(1);
}

/// Whether what the ledger says of a volume of this name and size is true of this one.
fn is_believed(key: &Key, size: Bytes, before: &Kept, unfinished: bool) -> bool {
    match key {
        Key::Ebs(_) => true,
        Key::Unique(_) => unfinished,
        Key::Path(_, attached) => {
            unfinished && before.size == size && attached.is_some() && before.attached == *attached
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Attached;

    #[test]
    fn only_the_same_volume_is_believed_to_be_warm() {
        let attached = |diskseq| {
            Some(Attached {
                boot: "b".to_owned(),
                diskseq,
            })
        };
        let kept = |attached| Kept {
            path: "/dev/sdb".to_owned(),
            size: Bytes(1000),
            block: Bytes(100),
            done: Ranges::from(0..500),
            unreadable: Ranges::new(),
            whole: true,
            attached,
            began: Timestamp::UNIX_EPOCH,
            ran_s: 1.0,
            starts: 1,
        };
        let before = kept(attached(3));
        let believed = |key: &Key, before: &Kept, unfinished| {
            is_believed(key, Bytes(1000), before, unfinished)
        };
        let ebs = Key::Ebs("vol0123".to_owned());
        assert!(believed(&ebs, &before, true) && believed(&ebs, &before, false));
        let unique = Key::Unique("naa.600".to_owned());
        assert!(believed(&unique, &before, true));
        assert!(!believed(&unique, &before, false), "restored anew, perhaps");
        let path = |attached| Key::Path("/dev/sdb".to_owned(), attached);
        assert!(believed(&path(attached(3)), &before, true));
        assert!(!believed(&path(attached(3)), &before, false));
        assert!(!believed(&path(attached(4)), &before, true), "another disk");
        assert!(!believed(&path(None), &kept(None), true), "nobody knows");
        assert!(!is_believed(&path(attached(3)), Bytes(2000), &before, true));
    }
}
