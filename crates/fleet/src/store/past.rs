//! Fleet runs in the ledger, merged with late answers.

use ledger::{Error, Ledger, LongWork as _};

use super::FleetRun;

/// The keys of all runs, and of answers stored beside them.
///
/// # Errors
/// When the ledger cannot be read.
pub(crate) fn keys(ledger: &Ledger) -> Result<Vec<String>, Error> {
    let kept = ledger.list_work(Some(FleetRun::KIND))?;
    Ok(kept.into_iter().map(|work| work.key).collect())
}

/// The keys of runs, the newest first. An id begins with the start of its run; an older run may be added to the ledger
/// later.
pub(crate) fn newest(keys: &[String]) -> Vec<&str> {
    let keys = keys.iter().map(String::as_str);
    let mut runs: Vec<&str> = keys.filter(|key| !key.contains('.')).collect();
    runs.sort_unstable_by(|one, other| other.cmp(one));
    runs
}

/// The complete run of a key.
///
/// # Errors
/// When the ledger cannot be read.
pub(crate) fn run_of(
    ledger: &Ledger,
    keys: &[String],
    key: &str,
) -> Result<Option<FleetRun>, Error> {
    let Some(work) = ledger.work::<FleetRun>(key)? else {
        return Ok(None);
    };
    let mut run = work.document;
    for late in keys.iter().filter(|other| is_beside(other, key)) {
        let late = ledger.work::<FleetRun>(late)?;
        late.into_iter().for_each(|late| run.merge(late.document));
    }
    Ok(Some(run))
}

/// True if this is the key of an answer stored beside this run, because another process worked on the run when the
/// answer arrived: it begins with the run's id and a dot, which no id contains.
pub(crate) fn is_beside(key: &str, run: &str) -> bool {
    key.strip_prefix(run)
        .is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_beside_its_run() {
        let (old, new) = ("20260101-000000-aaaa", "20260102-000000-bbbb");
        let beside = "20260101-000000-aaaa.h1.4711";
        assert!(is_beside(beside, old) && !is_beside(new, old) && !is_beside(old, old));
    }
}
