//! Answers of `doctor` on many hosts: common results, and the checks in which a host differs from the majority.

use std::collections::{BTreeMap, BTreeSet};

use doctor::CheckResult;
use serde::Serialize;

use super::answer::{DoctorCheck, VerbAnswer};
use crate::store::HostRun;

/// Minimum number of hosts for a majority.
const MIN_MAJORITY_HOSTS: usize = 3;

/// The answers of the hosts to `doctor`, each with the host's index; empty for any other verb.
pub(super) struct DoctorAnswers(Vec<(usize, Vec<DoctorCheck>)>);

/// A check in which a host differs from most others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Difference<'a> {
    /// Name of the host.
    pub(super) host: &'a str,
    /// Name of the check.
    pub(super) check: &'a str,
    /// The gravest result on the host.
    pub(super) result: CheckResult,
    /// Value that the check found.
    pub(super) value: &'a str,
    /// The result that most hosts have.
    pub(super) usual: CheckResult,
    /// Number of hosts that have the usual result.
    pub(super) hosts: usize,
}

impl DoctorAnswers {
    pub(super) fn of(hosts: &[HostRun]) -> DoctorAnswers {
        let checked = hosts.iter().enumerate().filter_map(|(at, host)| {
            let VerbAnswer::Doctor { checks } = VerbAnswer::of(&host.answer)? else {
                return None;
            };
            Some((at, checks))
        });
        DoctorAnswers(checked.collect())
    }

    /// Checks to fix or to consider, the most severe first, each once for the hosts with the same result.
    pub(super) fn findings(&self) -> Vec<(&DoctorCheck, Vec<usize>)> {
        let mut found: BTreeMap<&DoctorCheck, Vec<usize>> = BTreeMap::new();
        for (at, checks) in &self.0 {
            let is_finding = |check: &&DoctorCheck| {
                matches!(check.result, CheckResult::Fix | CheckResult::Consider)
            };
            for check in checks.iter().filter(is_finding).collect::<BTreeSet<_>>() {
                found.entry(check).or_default().push(*at);
            }
        }
        found.into_iter().collect()
    }

    /// Number of hosts that answered.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Results that more than half of the hosts share but one host does not.
    pub(super) fn differences<'a>(&'a self, hosts: &'a [HostRun]) -> Vec<Difference<'a>> {
        let mut by_check: BTreeMap<&str, Vec<(usize, &DoctorCheck)>> = BTreeMap::new();
        for (at, checks) in &self.0 {
            for check in worst_results(checks).into_values() {
                by_check.entry(&check.name).or_default().push((*at, check));
            }
        }
        let mut found = Vec::new();
        for (name, results) in by_check {
            let count = |result: CheckResult| {
                let same = results.iter().filter(|(_, check)| check.result == result);
                same.count()
            };
            let all = CheckResult::ALL.into_iter();
            let usual = all.max_by_key(|result| count(*result));
            let is_most = |usual: &CheckResult| {
                results.len() >= MIN_MAJORITY_HOSTS && count(*usual) * 2 > results.len()
            };
            let Some(usual) = usual.filter(is_most) else {
                continue;
            };
            let others = results.iter().filter(|(_, check)| check.result != usual);
            found.extend(others.map(|(at, check)| Difference {
                host: hosts.get(*at).map_or("", |host| &host.host),
                check: name,
                result: check.result,
                value: &check.value,
                usual,
                hosts: count(usual),
            }));
        }
        found
    }
}

/// The gravest result of each check.
fn worst_results(checks: &[DoctorCheck]) -> BTreeMap<&str, &DoctorCheck> {
    let mut found: BTreeMap<&str, &DoctorCheck> = BTreeMap::new();
    for check in checks {
        let known = found.entry(&check.name).or_insert(check);
        if check.result < known.result {
            *known = check;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Host;
    use serde_json::{Value, json};

    fn hosts(answers: &[&Value]) -> Vec<HostRun> {
        let host = |(at, answer): (usize, &&Value)| HostRun {
            host: format!("h{at}"),
            answer: (*answer).clone(),
            ..HostRun::waiting(&Host::default())
        };
        answers.iter().enumerate().map(host).collect()
    }

    fn answer(result: &str, value: &str) -> Value {
        json!({ "command": "doctor", "checks": [
            { "name": "scheduler", "result": "ok", "value": "sda: none" },
            { "name": "scheduler", "result": result, "value": value },
            { "name": "numa", "result": "consider", "value": "2 nodes" } ] })
    }

    #[test]
    fn the_host_that_differs_is_named_with_its_check() {
        let (well, bad) = (answer("ok", "none"), answer("consider", "vda: bfq"));
        let all = hosts(&[&well, &bad, &well, &Value::Null, &well]);
        let checked = DoctorAnswers::of(&all);
        let found = checked.differences(&all);
        assert_eq!(
            found,
            [Difference {
                host: "h1",
                check: "scheduler",
                result: CheckResult::Consider,
                value: "vda: bfq",
                usual: CheckResult::Ok,
                hosts: 3,
            }]
        );
        for few in [vec![&well, &bad], vec![&well, &bad, &well, &bad]] {
            let few = hosts(&few);
            assert_eq!(DoctorAnswers::of(&few).differences(&few), []);
        }
    }

    #[test]
    fn equal_findings_are_one_with_its_hosts() {
        let (well, bad) = (answer("ok", "none"), answer("fix", "vda: bfq"));
        let all = hosts(&[&well, &bad, &well]);
        let checked = DoctorAnswers::of(&all);
        let found: Vec<(&str, Vec<usize>)> = checked
            .findings()
            .into_iter()
            .map(|(check, hosts)| (check.name.as_str(), hosts))
            .collect();
        assert_eq!(found, [("scheduler", vec![1]), ("numa", vec![0, 1, 2])]);
        assert_eq!(checked.count(), 3);
    }
}
