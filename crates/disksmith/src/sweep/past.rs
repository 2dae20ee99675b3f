//! Sweeps that the ledger keeps: showing one again, and giving one up.

use std::path::Path;

use ledger::{Ledger, LongWork as _};

use super::kept::Kept;
use super::start::{ETC, take_down};
use crate::array::programs::Programs;
use crate::cli::SweepArgs;
use crate::context::Context;
use crate::failure::{Answer, Failure, Outcome, Standing as _};
use crate::longwork::Here;

/// The word for the newest.
const LAST: &str = "last";

/// Shows a sweep again.
pub(crate) fn show(args: &SweepArgs, word: &str, context: &mut Context) -> Outcome {
    let ledger = context.open_ledger()?;
    let key = find(&ledger, word, false)?;
    let Some(work) = ledger.work::<Kept>(&key).refused()? else {
        return Err(Failure::refused(format!(
            "the sweep {key} was removed just now"
        )));
    };
    super::answer(args, context, &work.document.record, &ledger)
}

/// Takes down what an unfinished sweep left, and keeps it as finished.
pub(crate) fn abandon(word: &str, context: &mut Context, programs: &mut dyn Programs) -> Outcome {
    let mut ledger = context.open_ledger()?;
    let key = find(&ledger, word, true)?;
    let here = Here::of_process(&context.root, Path::new(ETC)).refused()?;
    let (claim, work) = ledger
        .claim_work::<Kept>(&key, here.owner(), |owner| here.standing(owner))
        .refused()?;
    let mut kept = work.document;
    take_down(&mut kept, context, programs)?;
    kept.record.given_up = true;
    ledger.finish_work(claim, &kept).midway()?;
    context.print(&format!(
        "The sweep {key} is given up, and nothing is left of it on its devices. What it measured \
         is kept: disksmith sweep --show {key}\n"
    ))?;
    Ok(Answer::Done)
}

/// The sweep that a word names: `last`, an id, or the beginning of one.
fn find(ledger: &Ledger, word: &str, unfinished: bool) -> Result<String, Failure> {
    let all = ledger.list_work(Some(Kept::KIND)).refused()?;
    let mut keys = all
        .into_iter()
        .filter(|work| !unfinished || work.finished.is_none())
        .map(|work| work.key);
    let what = if unfinished {
        "unfinished sweep"
    } else {
        "sweep"
    };
    if word == LAST {
        return keys
            .next()
            .ok_or_else(|| Failure::refused(format!("the ledger has no {what}")));
    }
    let named: Vec<String> = keys.filter(|key| key.starts_with(word)).collect();
    match &named[..] {
        [only] => Ok(only.clone()),
        [] => Err(Failure::refused(format!(
            "the ledger has no {what} {word}; 'last' is the newest"
        ))),
        several => Err(Failure::refused(format!(
            "{word} begins the names of {} sweeps: {}; write more of it",
            several.len(),
            several.join(", ")
        ))),
    }
}
