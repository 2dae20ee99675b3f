//! Checks of `doctor` in which a host differs from most others.

use std::collections::BTreeMap;

use serde_json::Value;

/// With fewer hosts there is no most.
const HOSTS: usize = 3;

/// A check of one thing, in which a host differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Odd {
    /// Index of the host.
    pub(crate) host: usize,
    pub(crate) check: String,
    /// Result and value of the host, and the result of most others.
    pub(crate) found: String,
    pub(crate) usual: String,
    /// Number of hosts that have the usual result.
    pub(crate) count: usize,
}

/// Result and value of each check of a host.
type Checks<'a> = BTreeMap<&'a str, (&'a str, &'a str)>;

/// Differences of answers of `doctor`: results that more than half of the hosts share and a host does not.
pub(crate) fn odd(answers: &[&Value]) -> Vec<Odd> {
    let hosts: Vec<(usize, Checks<'_>)> = answers
        .iter()
        .enumerate()
        .filter(|(_, answer)| answer["command"] == "doctor")
        .map(|(at, answer)| (at, gravest(answer)))
        .collect();
    let names: std::collections::BTreeSet<&str> = hosts
        .iter()
        .flat_map(|(_, checks)| checks.keys().copied())
        .collect();
    let mut found = Vec::new();
    for name in names {
        let results: Vec<(usize, &str, &str)> = hosts
            .iter()
            .filter_map(|(at, checks)| {
                checks
                    .get(name)
                    .map(|(result, value)| (*at, *result, *value))
            })
            .collect();
        let count = |word: &str| {
            results
                .iter()
                .filter(|(_, result, _)| *result == word)
                .count()
        };
        let usual = results
            .iter()
            .map(|(_, result, _)| *result)
            .max_by_key(|result| count(result));
        let Some(usual) =
            usual.filter(|usual| results.len() >= HOSTS && count(usual) * 2 > results.len())
        else {
            continue;
        };
        let others = results.iter().filter(|(_, result, _)| *result != usual);
        found.extend(others.map(|(host, result, value)| Odd {
            host: *host,
            check: name.to_owned(),
            found: format!("{result} ({value})"),
            usual: usual.to_owned(),
            count: count(usual),
        }));
    }
    found
}

/// For each check the gravest result, which is the first, with its value.
fn gravest(answer: &Value) -> Checks<'_> {
    let mut found = BTreeMap::new();
    for row in answer["checks"].as_array().into_iter().flatten() {
        let word = |key: &str| row[key].as_str();
        if let (Some(name), Some(result), Some(value)) =
            (word("name"), word("result"), word("value"))
        {
            found.entry(name).or_insert((result, value));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_host_that_differs_is_named_with_its_check() {
        let answer = |result: &str, value: &str| {
            json!({ "command": "doctor", "checks": [
                { "name": "scheduler", "result": result, "value": value },
                { "name": "scheduler", "result": "ok", "value": "sda: none" },
                { "name": "numa", "result": "ok", "value": "1 node" } ] })
        };
        let (well, bad) = (answer("ok", "none"), answer("consider", "vda: bfq"));
        let all = [&well, &bad, &well, &Value::Null, &well];
        let found = odd(&all);
        assert_eq!(found.len(), 1);
        let one = &found[0];
        assert_eq!(
            (one.host, one.check.as_str(), one.count),
            (1, "scheduler", 3)
        );
        assert_eq!(one.found, "consider (vda: bfq)");
        assert!(odd(&[&well, &bad]).is_empty());
        assert!(odd(&[&well, &bad, &well, &bad]).is_empty());
    }
}
