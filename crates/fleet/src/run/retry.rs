//! The hosts on which a verb did not complete the last time.

use std::collections::BTreeSet;

use linux::remedy;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

use crate::hosts::{Host, fold};
use crate::store::past::{keys, newest, run_of};
use crate::store::{FleetRun, HostOutcome, RunKind};

/// The hosts on which the last `fleet run` or `fleet exec` with these words did not complete.
///
/// # Errors
/// Refused, if the ledger has no such run, or all of its hosts completed.
pub(crate) fn failed(
    hosts: Vec<Host>,
    (kind, words): (RunKind, &[String]),
    context: &mut Context,
) -> Result<Vec<Host>, Failure> {
    let none = || {
        Failure::refused(format!(
            "the ledger has no '{}' of these words whose failed hosts could be tried again; run it on all hosts \
             first: {}",
            kind.name(),
            remedy::without("--retry-failed")
        ))
    };
    let ledger = context.open_ledger_if_there()?.ok_or_else(none)?;
    let keys = keys(&ledger).refused()?;
    let mut last = None;
    for key in newest(&keys) {
        let run = run_of(&ledger, &keys, key).refused()?;
        last = run.filter(|run| run.kind == kind && is_same(&run.args, words));
        if last.is_some() {
            break;
        }
    }
    let last = last.ok_or_else(none)?;
    let names = names(&last);
    let again: Vec<Host> = hosts
        .into_iter()
        .filter(|host| names.contains(host.name.as_str()))
        .collect();
    if again.is_empty() {
        return Err(Failure::refused(format!(
            "no host is left to try again: in the run {}, {}",
            last.id,
            match names.is_empty() {
                true => "all hosts completed".to_owned(),
                false => format!(
                    "only {} did not complete, which is not among these hosts",
                    fold(names)
                ),
            }
        )));
    }
    Ok(again)
}

/// The hosts on which a run did not complete.
fn names(run: &FleetRun) -> BTreeSet<&str> {
    let is_failed = |outcome: HostOutcome| !matches!(outcome, HostOutcome::Done | HostOutcome::No);
    let failed = run.hosts.iter().filter(|host| is_failed(host.outcome));
    failed.map(|host| host.host.as_str()).collect()
}

/// True if two verbs are the same, apart from `--json`.
fn is_same(one: &[String], other: &[String]) -> bool {
    let plain = |words: &[String]| -> Vec<String> {
        words
            .iter()
            .filter(|word| *word != "--json")
            .cloned()
            .collect()
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_answer_makes_no_other_verb() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        assert!(is_same(&words("devices --json"), &words("devices")));
        assert!(!is_same(&words("devices --all"), &words("devices")));
    }
}
