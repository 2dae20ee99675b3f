//! Sums up a run of this program, to write it in other tools' formats.

use record::{
    Activity, Bytes, CpuShares, EngineKind, Fairness, Flow, FlowSummary, Histogram, LatencySummary,
    Percentile, Phase, PhaseSummary, Run, Samples, Summary, Window, WorkSummary,
};

/// fio's default percentiles, and the 99.999th.
const PERCENTILES: [f64; 18] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99, 99.999,
];

/// Sums up a run. A summary has no confidence intervals, findings or figures over time.
pub fn sum_up(run: &Run) -> Summary {
    Summary {
        tool: format!("disksmith {}", run.disksmith),
        ran: Some(run.started),
        host: Some(run.machine.hostname.clone()).filter(|name| !name.is_empty()),
        target: Some(run.target.path.clone()),
        target_kind: Some(run.target.kind),
        options: Vec::new(),
        phases: run
            .phases
            .iter()
            .map(|phase| of_phase(run, phase))
            .collect(),
    }
}

fn of_phase(run: &Run, phase: &Phase) -> PhaseSummary {
    let share = |seconds: f64| (phase.seconds > 0.0).then(|| seconds / phase.seconds);
    PhaseSummary {
        name: phase.name.clone(),
        work: work(run, phase),
        seconds: Some(phase.seconds),
        cpu: CpuShares {
            user: share(phase.cpu.user_s),
            system: share(phase.cpu.system_s),
            total: None,
        },
        flows: flows(phase),
        fairness: fairness(&phase.thread_ops, &phase.thread_seconds),
        failure: None,
    }
}

/// The workload. If different jobs were summed, it has only what is the same for all of them, since no job was run with
/// the mean.
fn work(run: &Run, phase: &Phase) -> WorkSummary {
    let workload = &phase.workload;
    let mut details = workload.details.clone().unwrap_or_default();
    let options = std::mem::take(&mut details.options);
    let of_all = WorkSummary {
        direct: Some(run.target.direct),
        engine: engine(phase.engine.kind).map(str::to_owned),
        ..WorkSummary::default()
    };
    if details.mixed {
        return of_all;
    }
    let files = details.files.max(1);
    let span = workload.span.unwrap_or(run.target.size);
    let differ = !details.read_sizes.is_empty() || !details.write_sizes.is_empty();
    WorkSummary {
        pattern: Some(workload.pattern),
        read_fraction: Some(workload.read_fraction),
        block: Some(workload.block).filter(|_| !differ),
        threads: Some(workload.threads),
        depth: Some(workload.depth),
        rate_per_s: Some(workload.rate_per_s.unwrap_or(0.0)),
        span: Some(Bytes(span.0.saturating_mul(u64::from(files)))),
        files: Some(files),
        sync_every: Some(workload.sync_every),
        sync_at_end: Some(workload.sync_at_end),
        details: Some(details),
        options,
        ..of_all
    }
}

/// fio's name of the I/O engine.
fn engine(kind: EngineKind) -> Option<&'static str> {
    match kind {
        EngineKind::Uring => Some("io_uring"),
        EngineKind::Sync => Some("psync"),
        EngineKind::Scripted | EngineKind::Imported => None,
    }
}

/// Flows of a phase: each direction, and reads and writes together if there are both.
fn flows(phase: &Phase) -> Vec<FlowSummary> {
    let mut flows: Vec<FlowSummary> = phase
        .directions()
        .map(|(direction, flow)| FlowSummary {
            ops_spread: spread(&phase.windows, |window| Some(window.flow(direction)?.ops())),
            ..of_flow(phase.workload.activity(direction), flow, phase.seconds)
        })
        .collect();
    if let (Some(read), Some(write)) = (&phase.read, &phase.write) {
        let mut both = read.clone();
        // Bonnie++ counts a block that is read and written back once.
        let once = phase.workload.calls().is_some();
        if !once {
            both.ops += write.ops;
            both.bytes += write.bytes;
        }
        both.latency.merge(&write.latency);
        both.service = both
            .service
            .zip(write.service.as_ref())
            .map(|(mut both, write)| {
                both.merge(write);
                both
            });
        let ops = |window: &Window| match once {
            true => Some(window.read.as_ref()?.ops()),
            false => Some(window.ops()),
        };
        flows.push(FlowSummary {
            ops_spread: spread(&phase.windows, ops),
            ..of_flow(Activity::All, &both, phase.seconds)
        });
    }
    flows
}

fn of_flow(activity: Activity, flow: &Flow, seconds: f64) -> FlowSummary {
    let rate = |amount: u64| (seconds > 0.0).then(|| amount as f64 / seconds);
    let moves = matches!(
        activity,
        Activity::Read | Activity::Write | Activity::Trim | Activity::All
    );
    FlowSummary {
        activity,
        ops: Some(flow.ops),
        bytes: moves.then_some(flow.bytes),
        ops_per_s: rate(flow.ops),
        bytes_per_s: if moves { rate(flow.bytes) } else { None },
        too_fast: false,
        ops_spread: None,
        latency: latency(&flow.latency),
        service: flow.service.as_ref().map(latency),
    }
}

/// The rates of the complete windows.
fn spread(windows: &[Window], ops: impl Fn(&Window) -> Option<u64>) -> Option<Samples> {
    let last = windows.last()?;
    let whole = |window: &&Window| window.seconds >= windows[0].seconds * 0.99;
    let short = !whole(&last) && windows.len() > 1;
    let windows = &windows[..windows.len() - usize::from(short)];
    let rates: Vec<f64> = windows
        .iter()
        .filter(|window| window.seconds > 0.0)
        .filter_map(|window| Some(ops(window)? as f64 / window.seconds))
        .collect();
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    Some(Samples {
        min: rates.iter().copied().reduce(f64::min)?,
        max: rates.iter().copied().reduce(f64::max)?,
        mean,
        // fio writes the sample standard deviation.
        stddev: (squares / (count - 1.0).max(1.0)).sqrt(),
        samples: rates.len() as u64,
    })
}

fn latency(all: &Histogram) -> LatencySummary {
    if all.is_empty() {
        return LatencySummary::default();
    }
    LatencySummary {
        min_ns: Some(all.min() as f64),
        mean_ns: Some(all.mean()),
        stddev_ns: Some(all.stddev()),
        max_ns: Some(all.max() as f64),
        percentiles: PERCENTILES
            .into_iter()
            .map(|percent| Percentile {
                percent,
                ns: all.quantile(percent / 100.0) as f64,
            })
            .collect(),
        histogram: Some(all.clone()),
    }
}

/// Fairness between the threads: means and the population's deviations.
fn fairness(thread_ops: &[u64], thread_seconds: &[f64]) -> Option<Fairness> {
    let ops: Vec<f64> = thread_ops.iter().map(|ops| *ops as f64).collect();
    let (ops_mean, ops_stddev) = mean_and_deviation(&ops)?;
    let seconds = mean_and_deviation(thread_seconds);
    Some(Fairness {
        ops_mean,
        ops_stddev,
        seconds_mean: seconds.map(|(mean, _)| mean),
        seconds_stddev: seconds.map(|(_, stddev)| stddev),
    })
}

fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (!values.is_empty()).then(|| (mean, (squares / count).sqrt()))
}
