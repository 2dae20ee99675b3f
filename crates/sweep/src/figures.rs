//! The figures of a run for a sweep, by name.

use std::collections::BTreeMap;

use record::{Direction, Flow, Histogram, Phase, Run, Workload};

use super::figure::{Figure, Metric};
use super::record::Value;
use bench::conclusion::Conclusion;
use bench::figures::{Estimate, PhaseFigures};

/// Figures of a run: of each phase over all directions, and of each direction if there are several. Rates have
/// intervals; a percentile is computed from all requests of the phase and has no interval.
///
/// Over all directions, a phase's requests are its reads and writes. If the phase commits they are the commits
/// instead: a database waits for a commit.
pub fn figures_of(run: &Run, conclusion: &Conclusion) -> BTreeMap<Figure, Value> {
    let mut figures = BTreeMap::new();
    // The figures of a trace are those of its reads and writes, some of which are part of commits.
    let is_trace = run.replay.is_some();
    for (phase, studied) in run.phases.iter().zip(&conclusion.phases) {
        let mut put = |direction, metric, value| {
            let figure = Figure {
                phase: phase.name.clone(),
                direction,
                metric,
            };
            figures.insert(figure, value);
        };
        for (metric, value) in together(phase, studied, is_trace) {
            put(None, metric, value);
        }
        if phase.directions().count() < 2 {
            continue;
        }
        for (direction, flow) in phase.directions() {
            for (metric, value) in of_flow(flow, direction, studied) {
                put(Some(direction), metric, value);
            }
        }
    }
    figures
}

/// Reason why a phase with this workload never has a figure, and the figure to use instead, as a clause; `None` if
/// [`figures_of`] can return the figure.
pub fn reason_never_measured(figure: &Figure, workload: &Workload) -> Option<String> {
    let phase = &figure.phase;
    let commits = workload.sync_every > 0;
    let Some(direction) = figure.direction else {
        // If the phase commits, its requests are the commits.
        let never = commits && !workload.writes() && figure.metric != Metric::Bytes;
        return never.then(|| {
            format!(
                "there is no figure {figure}, since the phase {phase} is to commit and writes \
                 nothing; leave sync out of its workload"
            )
        });
    };
    let instead = Figure {
        direction: None,
        ..figure.clone()
    };
    let does = match direction {
        Direction::Read => workload.reads(),
        Direction::Write => workload.writes(),
        Direction::Sync => (commits && workload.writes()) || workload.sync_at_end,
        Direction::Commit => commits && workload.writes(),
        Direction::Trim => workload.trims_first(),
    };
    let why = if !does {
        let what = match direction {
            Direction::Read => "reads nothing",
            Direction::Write => "writes nothing",
            Direction::Sync => "makes no fdatasync",
            Direction::Commit => "makes no commits",
            Direction::Trim => "trims nothing",
        };
        format!("the phase {phase} {what}")
    } else if !moves_bytes(direction) && figure.metric == Metric::Bytes {
        "bytes are counted where they are read or written".to_owned()
    } else if !commits && !workload.sync_at_end && is_only(direction, workload) {
        format!("the phase {phase} does nothing else")
    } else {
        return None;
    };
    Some(format!(
        "there is no figure {figure}, since {why}; write {instead}"
    ))
}

/// True if a workload of reads and writes has no other direction than this one.
fn is_only(direction: Direction, workload: &Workload) -> bool {
    match direction {
        Direction::Read => !workload.writes(),
        Direction::Write => !workload.reads(),
        Direction::Sync | Direction::Commit | Direction::Trim => false,
    }
}

/// True if requests of a direction transfer counted bytes: an fdatasync and a commit do not.
fn moves_bytes(direction: Direction) -> bool {
    matches!(direction, Direction::Read | Direction::Write)
}

/// The figures of one direction.
fn of_flow(flow: &Flow, direction: Direction, studied: &PhaseFigures) -> Vec<(Metric, Value)> {
    let mut values = latencies(&flow.latency);
    if let Some(figures) = studied.flow(direction) {
        values.push((Metric::Iops, value(figures.iops)));
        if moves_bytes(direction) {
            values.push((Metric::Bytes, value(figures.bytes_per_s)));
        }
    }
    values
}

/// The figures over all directions; empty if there were no requests.
fn together(phase: &Phase, studied: &PhaseFigures, is_trace: bool) -> Vec<(Metric, Value)> {
    let moving: Vec<&Flow> = [&phase.read, &phase.write].into_iter().flatten().collect();
    let commits = phase.commit.as_ref().filter(|_| !is_trace);
    let mut values = match commits {
        Some(commits) => of_flow(commits, Direction::Commit, studied),
        None => {
            let mut merged = Histogram::new();
            moving.iter().for_each(|flow| merged.merge(&flow.latency));
            latencies(&merged)
        }
    };
    if moving.is_empty() {
        return values;
    }
    let total = |of: fn(&Flow) -> u64| moving.iter().map(|flow| of(flow)).sum::<u64>();
    let estimate = |slices: Vec<f64>, total: u64| {
        let per_second = total as f64 / phase.seconds;
        value(Estimate::of(&slices, studied.warmup_slices, per_second))
    };
    if commits.is_none() {
        let rates = slices(phase, |slice| slice.ops);
        values.push((Metric::Iops, estimate(rates, total(|flow| flow.ops))));
    }
    let rates = slices(phase, |slice| slice.bytes);
    values.push((Metric::Bytes, estimate(rates, total(|flow| flow.bytes))));
    values
}

/// Reads and writes a second in each complete slice, or their bytes.
fn slices(phase: &Phase, of: fn(&record::Slice) -> u64) -> Vec<f64> {
    let mut rates = Vec::new();
    for window in &phase.windows {
        let mut sums = vec![0; window.complete_slices()];
        for flow in [&window.read, &window.write].into_iter().flatten() {
            sums.iter_mut()
                .zip(&flow.slices)
                .for_each(|(sum, slice)| *sum += of(slice));
        }
        rates.extend(sums.iter().map(|sum| *sum as f64 / window.slice_seconds));
    }
    rates
}

/// Latencies of a histogram; empty if no request completed.
fn latencies(latency: &Histogram) -> Vec<(Metric, Value)> {
    if latency.is_empty() {
        return Vec::new();
    }
    let quantile = |q: f64| latency.quantile(q) as f64;
    [
        (Metric::Mean, latency.mean()),
        (Metric::P50, quantile(0.50)),
        (Metric::P90, quantile(0.90)),
        (Metric::P95, quantile(0.95)),
        (Metric::P99, quantile(0.99)),
        (Metric::P99_9, quantile(0.999)),
    ]
    .into_iter()
    .map(|(metric, nanos)| (metric, Value::plain(nanos)))
    .collect()
}

fn value(estimate: Estimate) -> Value {
    Value {
        mean: estimate.mean,
        low: estimate.low,
        high: estimate.high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::views::sample;

    fn figures() -> (Run, BTreeMap<Figure, Value>) {
        let (run, conclusion) = sample::database_run(7);
        let figures = figures_of(&run, &conclusion);
        (run, figures)
    }

    fn get(figures: &BTreeMap<Figure, Value>, name: &str) -> Value {
        let figure: Figure = name.parse().unwrap();
        *figures.get(&figure).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn each_phase_has_all_metrics_and_each_direction_of_a_mixed_one_too() {
        let (run, figures) = figures();
        for phase in &run.phases {
            for metric in Metric::ALL {
                let value = figures.get(&Figure::of(&phase.name, metric));
                assert!(
                    value.is_some_and(|value| value.mean > 0.0),
                    "{} {metric:?}",
                    phase.name
                );
            }
        }
        for direction in ["read", "write"] {
            for metric in Metric::ALL {
                get(
                    &figures,
                    &format!("page-mixed.{direction}.{}", metric.name()),
                );
            }
        }
        assert!(!figures.contains_key(&"page-read.read.iops".parse().unwrap()));
    }

    #[test]
    fn figures_that_are_never_measured_are_those_that_a_run_lacks() {
        let (run, figures) = figures();
        let mut refused = 0;
        for phase in &run.phases {
            // The sample does not sync at the end, as the engine does.
            let workload = Workload {
                sync_at_end: phase.sync.is_some(),
                ..phase.workload.clone()
            };
            for direction in [None].into_iter().chain(Direction::ALL.map(Some)) {
                for metric in Metric::ALL {
                    let figure = Figure {
                        direction,
                        ..Figure::of(&phase.name, metric)
                    };
                    let never = reason_never_measured(&figure, &workload);
                    assert_eq!(
                        never.is_none(),
                        figures.contains_key(&figure),
                        "{figure}: {never:?}"
                    );
                    refused += usize::from(never.is_some());
                }
            }
        }
        assert!(refused > 0);
    }

    #[test]
    fn the_error_of_a_figure_that_is_never_measured_names_another() {
        let (run, _) = figures();
        let never = |text: &str| {
            let figure: Figure = text.parse().unwrap();
            let mut phases = run.phases.iter();
            let phase = phases.find(|phase| phase.name == figure.phase).unwrap();
            reason_never_measured(&figure, &phase.workload)
        };
        assert_eq!(
            never("page-read.write.p99").as_deref(),
            Some(
                "there is no figure page-read.write.p99, since the phase page-read writes nothing; \
                 write page-read.p99"
            )
        );
        for (text, expected) in [
            (
                "page-read.read.p99",
                "does nothing else; write page-read.p99",
            ),
            ("page-mixed.commit.p99", "makes no commits"),
            ("log-append.commit.bytes", "write log-append.bytes"),
        ] {
            let why = never(text).unwrap_or_default();
            assert!(why.contains(expected), "{text}: {why}");
        }
        assert_eq!(never("page-mixed.read.p99"), None);
        assert_eq!(never("log-append.write.p99"), None);
        let log = run.phases.iter().find(|phase| phase.name == "log-append");
        let reads = Workload {
            read_fraction: 1.0,
            ..log.unwrap().workload.clone()
        };
        let figure: Figure = "workload.iops".parse().unwrap();
        assert!(
            reason_never_measured(&figure, &reads)
                .unwrap()
                .contains("leave sync out")
        );
    }

    #[test]
    fn reads_and_writes_add_up_and_have_an_interval() {
        let (_, figures) = figures();
        let all = get(&figures, "page-mixed.iops");
        let reads = get(&figures, "page-mixed.read.iops");
        let writes = get(&figures, "page-mixed.write.iops");
        assert!((all.mean / (reads.mean + writes.mean) - 1.0).abs() < 1e-9);
        assert!(all.low.unwrap() < all.mean && all.mean < all.high.unwrap());
        let bytes = get(&figures, "page-mixed.bytes");
        assert!((bytes.mean / (all.mean * 16384.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_log_is_counted_in_commits() {
        let (run, figures) = figures();
        let log = run.phases.iter().find(|phase| phase.name == "log-append");
        let log = log.unwrap();
        let commit = log.commit.as_ref().unwrap();
        let p99 = get(&figures, "log-append.p99");
        assert_eq!(p99, Value::plain(commit.latency.quantile(0.99) as f64));
        let rate = get(&figures, "log-append.iops");
        assert_eq!(rate, get(&figures, "log-append.commit.iops"));
        // Appended bytes are counted as writes.
        let bytes = |name| get(&figures, name).mean;
        assert_eq!(bytes("log-append.bytes"), bytes("log-append.write.bytes"));
        assert!(!figures.contains_key(&"log-append.commit.bytes".parse().unwrap()));
    }

    #[test]
    fn latencies_are_those_of_all_requests() {
        let (run, figures) = figures();
        let mixed = run.phases.iter().find(|phase| phase.name == "page-mixed");
        let mixed = mixed.unwrap();
        let mut merged = mixed.read.clone().unwrap().latency;
        merged.merge(&mixed.write.clone().unwrap().latency);
        assert_eq!(
            get(&figures, "page-mixed.p99.9").mean,
            merged.quantile(0.999) as f64
        );
    }

    #[test]
    fn an_imported_run_without_windows_has_figures_without_intervals() {
        let (run, conclusion) = sample::imported_run(3);
        let figures = figures_of(&run, &conclusion);
        assert!(!figures.is_empty());
        assert!(
            figures
                .values()
                .all(|value| value.low.is_none() && value.mean.is_finite())
        );
    }
}
