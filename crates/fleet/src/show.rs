//! `fleet show`: the answer of an earlier run, from the ledger.

use job::named;
use ledger::Ledger;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};

use crate::args::FleetShowArgs;
use crate::store::{FleetRun, past};
use crate::{race, run};

/// Width of a page, in columns of text.
const PAGE_COLUMNS: usize = 120;

/// Shows a fleet run again.
pub(crate) fn show(args: &FleetShowArgs, context: &mut Context) -> Outcome {
    let ledger = context.open_ledger_if_there()?.ok_or_else(none)?;
    let shown = find_run(&ledger, &args.run)?;
    let text = match args.json {
        true => json(&shown),
        false => text(&shown, context.columns),
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// Answer of a fleet run, for a server of pages.
pub enum FleetPage {
    /// A race, which has a page of its own.
    Race(Vec<u8>),
    /// Any other run, as text.
    Text(String),
}

/// The page of a fleet run.
///
/// # Errors
/// When it is not in the ledger, or cannot be read.
pub fn report_page(ledger: &Ledger, run: &str) -> Result<FleetPage, Failure> {
    let shown = find_run(ledger, run)?;
    match race::page(&shown) {
        Some(page) => Ok(FleetPage::Race(page.midway()?)),
        None => Ok(FleetPage::Text(text(&shown, PAGE_COLUMNS))),
    }
}

/// The document of a fleet run.
///
/// # Errors
/// When it is not in the ledger, or cannot be read.
pub fn document(ledger: &Ledger, run: &str) -> Result<String, Failure> {
    Ok(json(&find_run(ledger, run)?))
}

fn none() -> Failure {
    Failure::refused("the ledger has no such run of a fleet")
}

fn find_run(ledger: &Ledger, given: &str) -> Result<FleetRun, Failure> {
    let keys = past::keys(ledger).refused()?;
    let key = chosen(&keys, given)
        .map_err(Failure::refused)?
        .ok_or_else(none)?;
    past::run_of(ledger, &keys, key).refused()?.ok_or_else(none)
}

fn json(run: &FleetRun) -> String {
    race::show(run, true, 0).unwrap_or_else(|| run::view::json(run))
}

fn text(run: &FleetRun, columns: usize) -> String {
    race::show(run, false, columns).unwrap_or_else(|| run::view::text(run, columns))
}

/// The requested run, or an answer stored beside one, by its full name; `None` if there is none.
///
/// # Errors
/// A sentence, if several match.
pub(crate) fn chosen<'a>(keys: &'a [String], given: &str) -> Result<Option<&'a str>, String> {
    if let Some(key) = keys.iter().find(|key| *key == given) {
        return Ok(Some(key));
    }
    named(&past::newest(keys), given)
        .map_err(|_| format!("several runs of a fleet begin with '{given}'; write more of the id"))
}

#[cfg(test)]
mod tests {
    use job::LAST_JOB_WORD;

    use super::*;

    #[test]
    fn the_run_that_is_asked_for_is_found_whatever_is_alongside_it() {
        let (old, new) = ("20260101-000000-aaaa", "20260102-000000-bbbb");
        let beside = "20260101-000000-aaaa.h1.4711";
        // The ledger lists the latest additions first, and an answer is kept beside its run.
        let keys = [beside, old, new].map(str::to_owned);
        assert_eq!(chosen(&keys, LAST_JOB_WORD), Ok(Some(new)));
        for whole in [old, beside] {
            assert_eq!(chosen(&keys, whole), Ok(Some(whole)));
        }
        assert_eq!(chosen(&keys, "20260101"), Ok(Some(old)));
        assert_eq!(chosen(&keys, "2025"), Ok(None));
        assert!(chosen(&keys, "2026").unwrap_err().contains("several runs"));
    }
}
