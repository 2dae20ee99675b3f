//! A start of long work on a device, anew or where the ledger says that it was left.

use std::path::Path;

use ledger::{Error, LongWork, OwnerLiveness, Work, WorkError};

use job::keeper::Keeper;
use job::process::ProcessIdentity;
use ui::context::Context;
use ui::exit::Failure;

/// Where programs keep their settings.
const ETC: &str = "/etc";

/// Why the ledger is not used.
pub enum Refused {
    /// Somebody is at it.
    UnderWay(Error),
    /// It does not work.
    NotKept(anyhow::Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        match error {
            Error::Work(WorkError::UnderWay { .. }) => Refused::UnderWay(error),
            other => Refused::NotKept(other.into()),
        }
    }
}

/// What is begun.
#[derive(Clone, Copy, Debug)]
pub struct Begin<'a> {
    /// By what the ledger knows it.
    pub key: &'a str,
    /// Whether what was done before does not count, even if it cannot be understood.
    pub anew: bool,
}

/// Begins work, or goes on with work that is not finished. `take_over` is told what the ledger has of
/// it, or why that is not known, and makes `kept` of it.
///
/// # Errors
/// When another process of this host is at it, or the ledger cannot be used.
pub fn begin<W: LongWork + Clone + Send + 'static>(
    what: Begin<'_>,
    context: &Context,
    kept: &mut W,
    take_over: impl FnOnce(Result<&Work<W>, &Error>, &mut W),
) -> Result<Keeper<W>, Refused> {
    let mut ledger = context
        .open_ledger()
        .map_err(|failure: Failure| Refused::NotKept(failure.error()))?;
    let here = ProcessIdentity::of_process(&context.root, Path::new(ETC))
        .map_err(|error| Refused::NotKept(error.into()))?;
    // A device is where it is attached: whoever was at it on another host is not any more, and if he
    // were, no more would be lost than the time of reading something twice.
    let standing = |owner: &ledger::Owner| match here.standing(owner) {
        OwnerLiveness::Alive => OwnerLiveness::Alive,
        OwnerLiveness::Dead | OwnerLiveness::Elsewhere => OwnerLiveness::Dead,
    };
    let mut unfinished = false;
    match ledger.work::<W>(what.key) {
        Ok(Some(work)) => {
            unfinished = work.summary.finished.is_none();
            take_over(Ok(&work), kept);
        }
        Ok(None) => {}
        Err(error) => {
            take_over(Err(&error), kept);
            // What cannot be read is of use to nobody; what a later version has written is.
            if what.anew || matches!(error, Error::Work(WorkError::Unreadable { .. })) {
                ledger.remove_work(W::KIND, what.key, standing)?;
            }
        }
    }
    let claim = if unfinished {
        let (claim, _) = ledger.claim_work::<W>(what.key, here.owner(), standing)?;
        ledger.keep_work(&claim, kept)?;
        claim
    } else {
        ledger.begin_work(what.key, here.owner(), kept, standing)?
    };
    Keeper::start(ledger, claim).map_err(|error| Refused::NotKept(error.into()))
}
