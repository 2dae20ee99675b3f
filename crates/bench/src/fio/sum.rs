//! Streams that are reported as one: their sums.

use record::{
    Bytes, Direction, Flow, Histogram, JobOptions, Phase, Slice, StopReason, Window, WindowFlow,
    Workload,
};

use super::stream::Stream;

/// A phase that is the sum of streams: its name, and the indices of the streams.
pub(super) type Reported = (String, Vec<usize>);

/// The phases that the streams between two walls are summed to, in order.
pub(super) fn reported(streams: &[Stream]) -> Vec<Reported> {
    let mut reported: Vec<(Option<usize>, Reported)> = Vec::new();
    for (number, stream) in streams.iter().enumerate() {
        let known = reported
            .iter_mut()
            .find(|(group, _)| group.is_some() && *group == stream.group);
        match known {
            Some((_, (_, members))) => members.push(number),
            None => reported.push((stream.group, (stream.name.clone(), vec![number]))),
        }
    }
    let named = reported.into_iter().map(|(group, (name, members))| {
        let mut jobs: Vec<&str> = members.iter().map(|at| streams[*at].job.as_str()).collect();
        jobs.dedup();
        match group {
            Some(_) => (jobs.join("+"), members),
            None => (name, members),
        }
    });
    named.collect()
}

/// Notes on sums, as sentences.
pub(super) fn notes(streams: &[Stream]) -> Vec<String> {
    let mixed = reported(streams).into_iter().filter(|(_, members)| {
        let job = |member: &usize| &streams[*member].job;
        members.iter().any(|member| job(member) != job(&members[0]))
    });
    mixed
        .map(|(name, members)| {
            format!(
                "{name} is the sum of {} jobs or clones that differ; its workload is described by \
                 their mean.",
                members.len()
            )
        })
        .collect()
}

/// The phase `name`, which is the sum of `members`.
pub(super) fn phase(
    name: String,
    members: &[usize],
    streams: &[Stream],
    phases: &[Phase],
    began_s: f64,
) -> Phase {
    let mut parts = members.iter().map(|member| &phases[*member]);
    let Some(first) = parts.next() else {
        return Phase {
            name,
            began_s,
            ..phases[0].clone()
        };
    };
    let mut sum = first.clone();
    parts.for_each(|part| add(&mut sum, part));
    sum.name = name;
    sum.began_s = began_s;
    sum.seconds = sum.windows.iter().map(|window| window.seconds).sum();
    for (at, window) in sum.windows.iter_mut().enumerate() {
        let parts = members.iter().map(|member| &phases[*member]);
        window.idle_fraction = idle_fraction(parts.filter_map(|part| part.windows.get(at)));
    }
    let all: Vec<&Stream> = members.iter().map(|member| &streams[*member]).collect();
    sum.workload = workload(&all);
    sum
}

/// Idle share of the time of the streams that ran in a window. Streams that had ended were neither idle nor busy.
fn idle_fraction<'a>(windows: impl Iterator<Item = &'a Window>) -> f64 {
    let (mut idle, mut all) = (0.0, 0.0);
    for window in windows {
        idle += window.idle_fraction * window.seconds;
        all += window.seconds;
    }
    if all > 0.0 { idle / all } else { 0.0 }
}

/// The workload of a sum of streams. Where they differ in a value that cannot be added, it is their mean, and the
/// details say so.
fn workload(streams: &[&Stream]) -> Workload {
    let first = &streams[0].workload;
    let count = streams.len() as f64;
    let mean = |of: &dyn Fn(&Workload) -> f64| {
        // A value that is the same for all stays exactly the same.
        let same = streams
            .iter()
            .all(|stream| of(&stream.workload) == of(first));
        if same {
            return of(first);
        }
        streams
            .iter()
            .map(|stream| of(&stream.workload))
            .sum::<f64>()
            / count
    };
    let alike = |of: &dyn Fn(&Workload) -> u64| {
        streams
            .iter()
            .all(|stream| of(&stream.workload) == of(first))
    };
    let same_files = streams
        .iter()
        .all(|stream| stream.files == streams[0].files);
    let one_job = streams.iter().all(|stream| stream.job == streams[0].job);
    // The span is that of each file if the details give the number of files.
    let spans = streams.iter().map(|stream| match one_job {
        true => stream.span.0,
        false => stream.span.0 * stream.files.len() as u64,
    });
    let span = match same_files {
        true => spans.max(),
        false => Some(spans.sum()),
    };
    let rates: Option<Vec<f64>> = streams
        .iter()
        .map(|stream| stream.workload.rate_per_s)
        .collect();
    let details = first.details.clone().map(|mut details| {
        if !one_job {
            return Box::new(JobOptions {
                mixed: true,
                trims: first.trims(),
                trims_first: first.trims_first(),
                ..JobOptions::default()
            });
        }
        // Clones that differ only in their start are alike.
        if !alike(&|workload| {
            workload
                .details
                .as_ref()
                .map_or(0, |details| details.offset.0)
        }) {
            details.offset = Bytes(0);
        }
        details
    });
    Workload {
        threads: streams.len() as u32,
        depth: mean(&|workload| f64::from(workload.depth)).round() as u32,
        read_fraction: mean(&|workload| workload.read_fraction),
        block: Bytes(mean(&|workload| workload.block.0 as f64).round() as u64),
        rate_per_s: rates.map(|rates| rates.iter().sum()),
        span: span.map(Bytes),
        ops: first
            .ops
            .filter(|_| one_job)
            .map(|ops| ops * streams.len() as u64),
        details,
        ..first.clone()
    }
}

fn add(sum: &mut Phase, part: &Phase) {
    for (at, window) in part.windows.iter().enumerate() {
        match sum.windows.get_mut(at) {
            Some(mine) => add_window(mine, window),
            None => sum.windows.push(window.clone()),
        }
    }
    for direction in Direction::ALL {
        if let Some(theirs) = part.flow(direction) {
            add_flow(flow_of(sum, direction), theirs);
        }
    }
    sum.thread_ops.extend(&part.thread_ops);
    sum.thread_seconds.extend(&part.thread_seconds);
    sum.drain_seconds = sum.drain_seconds.max(part.drain_seconds);
    sum.cpu.user_s += part.cpu.user_s;
    sum.cpu.system_s += part.cpu.system_s;
    sum.outcome.add(&part.outcome);
    if part.stopped == StopReason::Signal {
        sum.stopped = StopReason::Signal;
    }
}

fn flow_of(phase: &mut Phase, direction: Direction) -> &mut Flow {
    phase.flow_mut(direction).get_or_insert_with(|| Flow {
        ops: 0,
        bytes: 0,
        latency: Histogram::new(),
        service: None,
    })
}

fn add_flow(mine: &mut Flow, theirs: &Flow) {
    mine.ops += theirs.ops;
    mine.bytes += theirs.bytes;
    mine.latency.merge(&theirs.latency);
    if let Some(service) = &theirs.service {
        mine.service
            .get_or_insert_with(Histogram::new)
            .merge(service);
    }
}

fn add_window(mine: &mut Window, theirs: &Window) {
    mine.seconds = mine.seconds.max(theirs.seconds);
    for direction in Direction::ALL {
        add_window_flow(mine.flow_mut(direction), theirs.flow(direction));
    }
    mine.in_flight += theirs.in_flight;
    mine.device = mine.device.or(theirs.device);
}

fn add_window_flow(mine: &mut Option<WindowFlow>, theirs: Option<&WindowFlow>) {
    let Some(theirs) = theirs else { return };
    let Some(mine) = mine else {
        *mine = Some(theirs.clone());
        return;
    };
    if mine.slices.len() < theirs.slices.len() {
        mine.slices.resize(theirs.slices.len(), Slice::default());
    }
    for (slice, other) in mine.slices.iter_mut().zip(&theirs.slices) {
        slice.ops += other.ops;
        slice.bytes += other.bytes;
    }
    mine.latency.merge(&theirs.latency);
}
