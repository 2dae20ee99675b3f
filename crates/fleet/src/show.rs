//! `fleet show`: the answer of an earlier run, from the ledger.

use ledger::LongWork as _;
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};

use crate::args::FleetShowArgs;
use crate::store::FleetRun;
use crate::{race, run};

/// Name of the newest run.
pub(crate) const LAST: &str = "last";

/// Shows a run of the fleet again.
pub(crate) fn show(args: &FleetShowArgs, context: &mut Context) -> Outcome {
    let none = || Failure::refused("the ledger has no run of a fleet");
    let ledger = context.open_ledger_if_there()?.ok_or_else(none)?;
    let kept = ledger.list_work(Some(FleetRun::KIND)).refused()?;
    let keys: Vec<&str> = kept.iter().map(|work| work.key.as_str()).collect();
    let key = chosen(&keys, &args.run)
        .map_err(Failure::refused)?
        .ok_or_else(none)?;
    let work = ledger.work::<FleetRun>(key).refused()?;
    let mut shown = work.ok_or_else(none)?.document;
    for late in keys.iter().filter(|other| is_beside(other, key)) {
        let late = ledger.work::<FleetRun>(late).refused()?;
        late.into_iter().for_each(|late| shown.merge(late.document));
    }
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

/// True where an answer was kept next to this run, since another process was at it when it came: its name
/// begins with the run's id and a dot, which is in no id.
fn is_beside(key: &str, run: &str) -> bool {
    key.strip_prefix(run)
        .is_some_and(|rest| rest.starts_with('.'))
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
        assert!(is_beside(beside, old) && !is_beside(new, old) && !is_beside(old, old));
    }
}
