//! The main figure of a verb's answer, by which hosts are compared.

use serde_json::Value;

/// The phase of the suite `database` that stands for all of it.
const MAIN_PHASE: &str = "page-mixed";
/// Hosts whose figure differs by less than this share of the median are alike.
const NEAR: f64 = 0.1;

/// The main figure of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// What it is, such as `page-mixed.iops`.
    pub name: String,
    /// Its value; of all main figures more is better.
    pub value: f64,
}

/// The main figure of an answer; `None` where the verb has none, or it was not measured.
pub(crate) fn of(answer: &Value) -> Option<Figure> {
    let (name, value) = match answer["command"].as_str()? {
        "bench" => bench(answer)?,
        // The slowest disk holds all others up.
        "zero" => (
            "slowest disk's bytes/s".to_owned(),
            least(&answer["disks"], "/bytes_per_s/mean")?,
        ),
        "warm" => (
            "slowest volume's bytes/s".to_owned(),
            least(&answer["volumes"], "/bytes_per_s")?,
        ),
        _ => return None,
    };
    value.is_finite().then_some(Figure { name, value })
}

/// Requests a second of the phase that stands for the run.
fn bench(answer: &Value) -> Option<(String, f64)> {
    let phases = answer["phases"].as_array()?;
    let phase = phases
        .iter()
        .find(|phase| phase["name"] == MAIN_PHASE)
        .or_else(|| phases.first())?;
    let flows = ["read", "write", "create", "stat", "delete"];
    let means = flows
        .iter()
        .filter_map(|flow| phase[flow]["iops"]["mean"].as_f64());
    let means: Vec<f64> = means.collect();
    let name = format!("{}.iops", phase["name"].as_str()?);
    (!means.is_empty()).then(|| (name, means.iter().sum()))
}

fn least(list: &Value, path: &str) -> Option<f64> {
    let values = list.as_array()?.iter();
    values
        .filter_map(|one| one.pointer(path)?.as_f64())
        .reduce(f64::min)
}

/// How hosts compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    /// What is compared.
    pub name: Option<String>,
    /// The middle of the hosts that have it.
    pub median: Option<f64>,
    /// For each host, its figure.
    pub figures: Vec<Option<f64>>,
    /// For each host, whether it is not like the others.
    pub outlying: Vec<bool>,
}

/// Compares the answers of hosts, of those that have the figure which most of them have.
pub(crate) fn compare<'a>(answers: impl Iterator<Item = &'a Value>) -> Comparison {
    let figures: Vec<Option<Figure>> = answers.map(of).collect();
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
    let values: Vec<Option<f64>> = figures
        .into_iter()
        .map(|figure| {
            figure
                .filter(|one| Some(&one.name) == name.as_ref())
                .map(|one| one.value)
        })
        .collect();
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let mut marks = study::outlying::outlying(&known, NEAR)
        .unwrap_or_default()
        .into_iter();
    let outlying = values
        .iter()
        .map(|value| value.is_some() && marks.next().unwrap_or(false))
        .collect();
    Comparison {
        name,
        median: study::outlying::median(&known),
        figures: values,
        outlying,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let mut answers: Vec<Value> = [1000.0, 1010.0, 990.0, 1005.0, 300.0].map(bench).to_vec();
        answers.insert(2, Value::Null);
        let compared = compare(answers.iter());
        assert_eq!(compared.name.as_deref(), Some("page-mixed.iops"));
        assert_eq!(compared.outlying, [false, false, false, false, false, true]);
        assert_eq!(compared.median.map(f64::round), Some(1000.0));
        assert_eq!(compared.figures[2], None);
    }
}
