//! Results that rules of a job file request, as notes of the run.

use record::{Phase, Steady, SteadyFigure, SteadyState};

use ui::format::percent;
use ui::units::duration;

/// Notes on a phase, as sentences.
pub(super) fn notes(phase: &Phase) -> Vec<String> {
    let details = phase.workload.details.as_ref();
    let rule = details.and_then(|details| details.steady_state);
    let steady = phase.outcome.steady.zip(rule);
    let search = details.and_then(|details| details.depth_search);
    let verified = phase.outcome.verified.as_ref();
    [
        steady.map(|(steady, rule)| steady_note(&phase.name, &steady, &rule)),
        search.map(|search| depth_note(phase, duration(search.latency.as_secs_f64()))),
        verified
            .filter(|it| it.requests > 0 && it.failed == 0)
            .map(|it| {
                let unjudged = match it.unjudged {
                    0 => String::new(),
                    count => format!(
                        "; {} could not be judged, as two writes to them were in flight at once",
                        count
                    ),
                };
                let count = it.requests;
                format!(
                    "{}: {count} blocks were read back as they were written{unjudged}.",
                    phase.name
                )
            }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn steady_note(name: &str, steady: &Steady, rule: &SteadyState) -> String {
    let what = match rule.of {
        SteadyFigure::Iops => "IOPS",
        SteadyFigure::Bandwidth => "bandwidth",
        SteadyFigure::Latency => "latency",
    };
    let share = percent(if steady.mean > 0.0 {
        steady.deviation / steady.mean
    } else {
        0.0
    });
    let seen = match rule.slope {
        true => format!("a slope of {share} of the mean by each figure"),
        false => format!("deviations up to {share} from the mean"),
    };
    match steady.after_s {
        Some(after) => format!(
            "{name}: the {what} was steady after {}: {seen}.",
            duration(after)
        ),
        None => format!("{name}: the {what} did not become steady: {seen} at the end."),
    }
}

fn depth_note(phase: &Phase, latency: String) -> String {
    let name = &phase.name;
    match phase.outcome.depth {
        None => format!(
            "{name}: the time was up before the requests in flight that keep {latency} were found."
        ),
        Some(0) => format!("{name}: not even one request in flight keeps {latency}."),
        Some(depth) => format!("{name}: {depth} requests in flight keep {latency}."),
    }
}
