//! `fleet show`: the answer of an earlier run, from the ledger.

use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};

use crate::args::FleetShowArgs;
use crate::store::past;
use crate::{race, run};

/// Name of the newest run.
pub(crate) const LAST: &str = "last";

/// Shows a run of the fleet again.
pub(crate) fn show(args: &FleetShowArgs, context: &mut Context) -> Outcome {
    let none = || Failure::refused("the ledger has no run of a fleet");
    let ledger = context.open_ledger_if_there()?.ok_or_else(none)?;
    let keys = past::keys(&ledger).refused()?;
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let key = chosen(&names, &args.run)
        .map_err(Failure::refused)?
        .ok_or_else(none)?;
    let shown = past::run_of(&ledger, &keys, key).refused()?;
    let shown = shown.ok_or_else(none)?;
    let of_race = race::show(&shown, args.json, context.columns);
    let text = of_race.unwrap_or_else(|| {
        if args.json {
            run::view::json(&shown)
        } else {
            run::view::text(&shown, context.columns)
        }
    });
    context.print(&text)?;
    Ok(Answer::Done)
}

/// The run that is requested; `None` where there is none. Ids begin with when a run began, so that the
/// last of them is that of the newest; the ledger may have got to know an older one later.
///
/// # Errors
/// A sentence, where several are meant.
pub(crate) fn chosen<'a>(keys: &[&'a str], asked: &str) -> Result<Option<&'a str>, String> {
    if let Some(key) = keys.iter().find(|key| **key == asked) {
        return Ok(Some(key));
    }
    let runs = || keys.iter().copied().filter(|key| !key.contains('.'));
    if asked == LAST {
        return Ok(runs().max());
    }
    let mut fitting = runs().filter(|key| key.starts_with(asked));
    let first = fitting.next();
    match fitting.next() {
        None => Ok(first),
        Some(_) => Err(format!(
            "several runs of a fleet begin with '{asked}'; write more of the id"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_that_is_asked_for_is_found_whatever_is_alongside_it() {
        let (old, new) = ("20260101-000000-aaaa", "20260102-000000-bbbb");
        let beside = "20260101-000000-aaaa.h1.4711";
        // The ledger lists what it has got to know last first, and an answer is kept alongside its run.
        let keys = [beside, old, new];
        assert_eq!(chosen(&keys, LAST), Ok(Some(new)));
        assert_eq!(chosen(&keys, old), Ok(Some(old)));
        assert_eq!(chosen(&keys, "20260101"), Ok(Some(old)));
        assert_eq!(chosen(&keys, "2025"), Ok(None));
        assert!(chosen(&keys, "2026").unwrap_err().contains("several runs"));
    }
}
