//! The main figure of a verb's answer, by which hosts are compared.

use record::Verdict;
use serde_json::Value;

use super::answer::VerbAnswer;
use crate::store::{HostOutcome, HostRun};

/// Relative difference from the median below which hosts count as equal.
const EQUAL_SHARE: f64 = 0.1;

/// The main figure of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MainFigure {
    /// Name, such as `page-mixed.iops`.
    pub name: String,
    /// Value of the figure; for all main figures a larger one is better.
    pub value: f64,
    /// Bounds of 95 %, if the verb reports them.
    pub interval: Option<(f64, f64)>,
    /// Verdict of the findings of the run, where the verb reports one: `trusted`, `doubtful` or `invalid`.
    pub verdict: Option<String>,
}

impl MainFigure {
    /// True unless its verdict is `invalid`.
    fn counts(&self) -> bool {
        self.verdict.as_deref() != Some(Verdict::Invalid.name())
    }
}

/// The main figure of an answer; `None` if the verb has none, or it was not measured.
fn of(answer: &Value) -> Option<MainFigure> {
    let answer = VerbAnswer::of(answer)?;
    let (name, (value, interval)) = answer.main_figure()?;
    value.is_finite().then_some(MainFigure {
        name,
        value,
        interval,
        verdict: answer.verdict(),
    })
}

/// Comparison of the hosts by one figure, with their median.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HostComparison {
    /// Name of the figure.
    pub name: Option<String>,
    /// Median over the compared hosts.
    pub median: Option<f64>,
    /// Figure of each host; `None` if it has none.
    pub figures: Vec<Option<MainFigure>>,
    /// True for each host whose figure is an outlier.
    pub outlying: Vec<bool>,
}

/// Compares the hosts that have the figure which most of them have. Only complete and valid runs are compared: a
/// burst, or the first seconds, would be mistaken for the host's own rate.
pub(crate) fn compare(hosts: &[HostRun]) -> HostComparison {
    let figures: Vec<Option<MainFigure>> = hosts.iter().map(|host| of(&host.answer)).collect();
    let name = figures
        .iter()
        .flatten()
        .map(|figure| &figure.name)
        .max_by_key(|name| {
            figures
                .iter()
                .flatten()
                .filter(|figure| figure.name == **name)
                .count()
        });
    let name = name.cloned();
    let figures: Vec<Option<MainFigure>> = figures
        .into_iter()
        .map(|figure| figure.filter(|one| Some(&one.name) == name.as_ref()))
        .collect();
    let compared = |(host, figure): (&HostRun, &Option<MainFigure>)| {
        let outcome = matches!(host.outcome, HostOutcome::Done | HostOutcome::No);
        let figure = figure.as_ref().filter(|figure| outcome && figure.counts());
        figure.map(|figure| figure.value)
    };
    let values: Vec<Option<f64>> = hosts.iter().zip(&figures).map(compared).collect();
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let mut marks = study::outlying::outlying(&known, EQUAL_SHARE)
        .unwrap_or_default()
        .into_iter();
    let outlying = values
        .iter()
        .map(|value| value.is_some() && marks.next().unwrap_or(false))
        .collect();
    HostComparison {
        name,
        median: study::median::median(known),
        figures,
        outlying,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hosts::Host;

    fn bench(iops: f64) -> Value {
        json!({ "command": "bench", "phases": [
            { "name": "page-read", "read": { "iops": { "mean": 1.0 } }, "write": null },
            { "name": "page-mixed", "read": { "iops": { "mean": iops * 0.7 } },
              "write": { "iops": { "mean": iops * 0.3 } } },
        ] })
    }

    #[test]
    fn each_verb_has_its_figure_or_none() {
        let figure = of(&bench(1000.0)).unwrap();
        assert_eq!(
            (figure.name.as_str(), figure.value.round()),
            ("page-mixed.iops", 1000.0)
        );
        let zero = json!({ "command": "zero", "disks": [
            { "bytes_per_s": { "mean": 5e8 } }, { "bytes_per_s": { "mean": 1e8 } } ] });
        assert_eq!(of(&zero).unwrap().value, 1e8);
        let warm = json!({ "command": "warm", "volumes": [{ "bytes_per_s": 7.0 }] });
        assert_eq!(of(&warm).unwrap().value, 7.0);
        for none in [
            json!({ "command": "devices" }),
            json!("text"),
            json!({ "command": "bench", "phases": [] }),
        ] {
            assert_eq!(of(&none), None);
        }
    }

    #[test]
    fn a_host_that_is_not_like_the_others_is_named_and_one_without_a_figure_is_not() {
        let mut hosts: Vec<HostRun> = [1000.0, 1010.0, 990.0, 1005.0, 300.0]
            .map(|iops| host(HostOutcome::Done, bench(iops)))
            .to_vec();
        hosts.insert(2, host(HostOutcome::Unreached, Value::Null));
        let compared = compare(&hosts);
        assert_eq!(compared.name.as_deref(), Some("page-mixed.iops"));
        assert_eq!(compared.outlying, [false, false, false, false, false, true]);
        assert_eq!(compared.median.map(f64::round), Some(1000.0));
        assert_eq!(compared.figures[2], None);
    }

    fn host(outcome: HostOutcome, answer: Value) -> HostRun {
        HostRun {
            outcome,
            answer,
            ..HostRun::waiting(&Host::default())
        }
    }

    #[test]
    fn invalid_or_unfinished_figures_are_shown_and_not_compared() {
        let mut hosts = vec![host(HostOutcome::Done, bench(1000.0)); 5];
        for (outcome, verdict) in [
            (HostOutcome::Lost, "trusted"),
            (HostOutcome::Interrupted, "trusted"),
            (HostOutcome::Done, "invalid"),
            (HostOutcome::Done, "doubtful"),
        ] {
            let mut answer = bench(9000.0);
            answer["verdict"] = json!(verdict);
            hosts.push(host(outcome, answer));
        }
        let compared = compare(&hosts);
        // The doubtful one is compared too, and is an outlier.
        let marked: Vec<usize> = (0..9).filter(|at| compared.outlying[*at]).collect();
        assert_eq!(marked, [8]);
        assert_eq!(compared.median.map(f64::round), Some(1000.0));
        let shown = compared.figures[7].as_ref().unwrap();
        assert_eq!(shown.verdict.as_deref(), Some("invalid"));
        assert_eq!(shown.value.round(), 9000.0);
    }

    #[test]
    fn the_interval_of_a_sum_is_never_too_narrow() {
        let flow =
            |mean: f64| json!({ "iops": { "mean": mean, "low": mean - 5.0, "high": mean + 5.0 } });
        let answer = json!({ "command": "bench", "phases": [
            { "name": "page-mixed", "read": flow(70.0), "write": flow(30.0) } ] });
        assert_eq!(of(&answer).unwrap().interval, Some((90.0, 110.0)));
        assert_eq!(of(&bench(100.0)).unwrap().interval, None);
    }
}
