//! Merges several samples into one, with the minimum, mean and maximum of each figure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use record::sample::{
    BytesPerSecond, DeviceId, DeviceSample, Flow, Fraction, HostSample, InterfaceSample,
    KernelError, LatencySample, PerSecond, ProcessSample, RecordedInterval, Sample, Spread,
    TimeOverLimits, TracingSample, VendorSample,
};
use record::{Bytes, Nanos};

use super::host;

/// Number of the kernel's errors that a thinned sample keeps.
const MAX_ERRORS: usize = 32;
/// Number of processes that a thinned sample keeps.
const MAX_PROCESSES: usize = 10;

/// Groups samples by the time step in which they end, and returns each group as one sample.
#[derive(Default)]
pub struct Thinner {
    step: Nanos,
    group: Vec<RecordedInterval>,
}

impl Thinner {
    /// A thinner with steps of this length; they begin at whole multiples since 1970.
    pub fn new(step: Nanos) -> Thinner {
        Thinner {
            step,
            group: Vec::new(),
        }
    }

    /// Takes the next sample; if it begins a new group, returns the group before it.
    pub fn take(&mut self, next: RecordedInterval) -> Option<RecordedInterval> {
        let is_other = self
            .group
            .last()
            .is_some_and(|last| self.slot(last) != self.slot(&next));
        let done = if is_other { self.finish() } else { None };
        self.group.push(next);
        done
    }

    /// Returns the last group.
    pub fn finish(&mut self) -> Option<RecordedInterval> {
        let group = std::mem::take(&mut self.group);
        thin(&group)
    }

    fn slot(&self, recorded: &RecordedInterval) -> i128 {
        let at = recorded.sample.at;
        let time = at
            .wall
            .map_or(i128::from(at.elapsed.0), Timestamp::as_nanosecond);
        // An interval that ends on the full minute belongs to the minute before.
        (time - 1).div_euclid(i128::from(self.step.0.max(1)))
    }
}

/// Merges several consecutive samples into one; `None` for no samples. A single one stays as it is.
pub fn thin(samples: &[RecordedInterval]) -> Option<RecordedInterval> {
    if let [one] = samples {
        return Some(one.clone());
    }
    let (first, last) = (samples.first()?, samples.last()?);
    let order = order(samples);
    let part = |which: FigureChoice| {
        let found = by_device(samples, which);
        Sample {
            at: last.sample.at,
            length: Nanos(samples.iter().map(|one| one.sample.length.0).sum()),
            gap: first.sample.gap,
            host: merge_host(samples, which),
            devices: order
                .iter()
                .filter_map(|id| merge_device(found.get(id)?, which))
                .collect(),
            removed: Vec::new(),
        }
    };
    Some(RecordedInterval {
        sample: part(FigureChoice::Mean),
        spread: Some(Box::new(Spread {
            least: part(FigureChoice::Least),
            most: part(FigureChoice::Most),
            samples: samples.iter().map(RecordedInterval::samples).sum(),
        })),
    })
}

/// Rule by which several figures are merged into one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FigureChoice {
    Least,
    Mean,
    Most,
}

impl FigureChoice {
    /// The sample whose figures are merged: the mean, or the minimum or maximum of a thinned one.
    fn of(self, recorded: &RecordedInterval) -> &Sample {
        match self {
            FigureChoice::Least => recorded.least(),
            FigureChoice::Mean => &recorded.sample,
            FigureChoice::Most => recorded.most(),
        }
    }

    /// Merges figures with their weights into one.
    fn merge(self, figures: impl Iterator<Item = (Option<f64>, f64)>) -> Option<f64> {
        let known = figures.filter_map(|(figure, weight)| Some((figure?, weight)));
        match self {
            FigureChoice::Least => known.map(|(figure, _)| figure).reduce(f64::min),
            FigureChoice::Most => known.map(|(figure, _)| figure).reduce(f64::max),
            FigureChoice::Mean => {
                let (sum, weight, plain, count) = known.fold(
                    (0.0, 0.0, 0.0, 0.0),
                    |(sum, all, plain, count), (figure, weight)| {
                        (
                            sum + figure * weight,
                            all + weight,
                            plain + figure,
                            count + 1.0,
                        )
                    },
                );
                if weight > 0.0 {
                    Some(sum / weight)
                } else {
                    (count > 0.0).then(|| plain / count)
                }
            }
        }
    }
}

/// Devices of all samples, each new one after the device that precedes it in its sample.
fn order(samples: &[RecordedInterval]) -> Vec<DeviceId> {
    let mut order: Vec<DeviceId> = Vec::new();
    let mut known: HashSet<DeviceId> = HashSet::new();
    for recorded in samples {
        let mut place = 0;
        for device in &recorded.sample.devices {
            let id = device.device.id;
            if order.get(place) == Some(&id) {
                place += 1;
            } else if known.insert(id) {
                order.insert(place, id);
                place += 1;
            } else if let Some(at) = order.iter().position(|known| *known == id) {
                place = at + 1;
            }
        }
    }
    order
}

/// Samples of each device, with the length of each, in one pass: to look for each of thousands of devices would take
/// minutes for an hour of samples.
fn by_device(
    samples: &[RecordedInterval],
    which: FigureChoice,
) -> HashMap<DeviceId, Vec<(&DeviceSample, f64)>> {
    let mut found: HashMap<DeviceId, Vec<(&DeviceSample, f64)>> = HashMap::new();
    for recorded in samples {
        let length = recorded.sample.length.as_secs_f64();
        for device in &which.of(recorded).devices {
            let all = found.entry(device.device.id).or_default();
            all.push((device, length));
        }
    }
    found
}

fn merge_device(all: &[(&DeviceSample, f64)], which: FigureChoice) -> Option<DeviceSample> {
    let (last, _) = all.last()?;
    let flow = |of: fn(&DeviceSample) -> &Flow| {
        let flows: Vec<(&Flow, f64)> = all.iter().map(|(one, time)| (of(one), *time)).collect();
        merge_flow(&flows, which)
    };
    let merge = |of: fn(&DeviceSample) -> Option<f64>| {
        which.merge(all.iter().map(|(one, time)| (of(one), *time)))
    };
    let mut merged = DeviceSample::unknown(Arc::clone(&last.device));
    merged.read = flow(|one| &one.read);
    merged.write = flow(|one| &one.write);
    merged.discard = flow(|one| &one.discard);
    merged.flush = flow(|one| &one.flush);
    merged.all = flow(|one| &one.all);
    merged.mean_in_flight = merge(|one| one.mean_in_flight);
    merged.in_flight =
        merge(|one| one.in_flight.map(|count| count as f64)).map(|count| count.round() as u64);
    merged.busy = merge(|one| one.busy.map(|busy| busy.0)).map(Fraction);
    merged.reset = all.iter().any(|(one, _)| one.reset);
    merged.array = all.iter().rev().find_map(|(one, _)| one.array.clone());
    if which == FigureChoice::Mean {
        merged.vendor = all
            .iter()
            .filter_map(|(one, _)| one.vendor.clone())
            .reduce(|sum, next| add_pages(&sum, &next));
        let latencies = all.iter().filter_map(|(one, _)| one.latency.as_deref());
        let latencies: Vec<&LatencySample> = latencies.collect();
        let is_traced = !latencies.is_empty();
        merged.latency = is_traced.then(|| Arc::new(LatencySample::merged(&latencies)));
    }
    Some(merged)
}

fn merge_flow(flows: &[(&Flow, f64)], which: FigureChoice) -> Flow {
    let merge = |of: fn(&Flow) -> Option<f64>| {
        which.merge(flows.iter().map(|(flow, time)| (of(flow), *time)))
    };
    // A mean over requests is weighted by the number of requests.
    let by_requests = |of: fn(&Flow) -> Option<f64>| {
        which.merge(flows.iter().map(|(flow, time)| {
            let requests = flow.iops.map_or(*time, |iops| iops.0 * time);
            (of(flow), requests)
        }))
    };
    Flow {
        iops: merge(|flow| flow.iops.map(|iops| iops.0)).map(PerSecond),
        bytes: merge(|flow| flow.bytes.map(|bytes| bytes.0)).map(BytesPerSecond),
        merged: merge(|flow| flow.merged.map(|merged| merged.0)).map(PerSecond),
        wait: by_requests(|flow| flow.wait.map(|wait| wait.0 as f64))
            .map(|wait| Nanos(wait.round() as u64)),
        size: by_requests(|flow| flow.size.map(|size| size.0 as f64))
            .map(|size| Bytes(size.round() as u64)),
    }
}

/// Adds two consecutive readings of a volume's statistics page. The histograms are dropped.
pub(super) fn add_pages(a: &VendorSample, b: &VendorSample) -> VendorSample {
    let both = |a: Option<Nanos>, b: Option<Nanos>| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    };
    VendorSample {
        page: b.page,
        length: a.length + b.length,
        reads: a.reads.saturating_add(b.reads),
        writes: a.writes.saturating_add(b.writes),
        read_bytes: a.read_bytes.saturating_add(b.read_bytes),
        write_bytes: a.write_bytes.saturating_add(b.write_bytes),
        read_time: a.read_time + b.read_time,
        write_time: a.write_time + b.write_time,
        exceeded: TimeOverLimits {
            volume_iops: a.exceeded.volume_iops + b.exceeded.volume_iops,
            volume_bytes: a.exceeded.volume_bytes + b.exceeded.volume_bytes,
            instance_iops: both(a.exceeded.instance_iops, b.exceeded.instance_iops),
            instance_bytes: both(a.exceeded.instance_bytes, b.exceeded.instance_bytes),
        },
        queue: b.queue,
        read_latency: Vec::new(),
        write_latency: Vec::new(),
    }
}

fn merge_host(samples: &[RecordedInterval], which: FigureChoice) -> HostSample {
    let all: Vec<(_, f64)> = samples
        .iter()
        .map(|recorded| {
            let figures = host::figures(&which.of(recorded).host);
            (figures, recorded.sample.length.as_secs_f64())
        })
        .collect();
    let merged = std::array::from_fn(|at| {
        which.merge(all.iter().map(|(figures, time)| (figures[at], *time)))
    });
    let mut merged = host::host(&merged);
    merged.interfaces = merge_interfaces(samples, which);
    if which == FigureChoice::Mean {
        let errors = samples.iter().flat_map(|one| &one.sample.host.errors);
        merged.errors = errors
            .take(MAX_ERRORS)
            .cloned()
            .collect::<Vec<KernelError>>();
        let hosts = || samples.iter().map(|one| &one.sample.host);
        merged.processes = add_processes(hosts().flat_map(|host| &host.processes));
        merged.tracing = hosts().filter_map(|host| host.tracing).reduce(add_tracing);
    }
    merged
}

/// The I/O of processes, added over several intervals; those with most I/O first.
fn add_processes<'a>(all: impl Iterator<Item = &'a ProcessSample>) -> Vec<ProcessSample> {
    let mut sums: HashMap<(u32, &str), ProcessSample> = HashMap::new();
    for one in all {
        match sums.get_mut(&(one.pid, one.name.as_str())) {
            Some(sum) => {
                sum.read = Bytes(sum.read.0.saturating_add(one.read.0));
                sum.written = Bytes(sum.written.0.saturating_add(one.written.0));
                sum.requests = sum.requests.saturating_add(one.requests);
            }
            None => {
                sums.insert((one.pid, &one.name), one.clone());
            }
        }
    }
    let mut sums: Vec<ProcessSample> = sums.into_values().collect();
    sums.sort_by_key(|one| (std::cmp::Reverse(one.weight()), one.pid));
    sums.truncate(MAX_PROCESSES);
    sums
}

fn add_tracing(a: TracingSample, b: TracingSample) -> TracingSample {
    TracingSample {
        cpu: a.cpu + b.cpu,
        requests: a.requests.saturating_add(b.requests),
        lost: a.lost.saturating_add(b.lost),
        over: a.over + b.over,
    }
}

fn merge_interfaces(samples: &[RecordedInterval], which: FigureChoice) -> Vec<InterfaceSample> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for interface in samples.iter().flat_map(|one| &one.sample.host.interfaces) {
        if !names.contains(&interface.name) {
            names.push(Arc::clone(&interface.name));
        }
    }
    let merge = |name: Arc<str>| {
        let all: Vec<(_, f64)> = samples
            .iter()
            .filter_map(|recorded| {
                let mut interfaces = which.of(recorded).host.interfaces.iter();
                let interface = interfaces.find(|one| one.name == name)?;
                let time = recorded.sample.length.as_secs_f64();
                Some((host::net_figures(interface, 1.0), time))
            })
            .collect();
        let figures = std::array::from_fn(|at| {
            which.merge(all.iter().map(|(figures, time)| (figures[at], *time)))
        });
        host::interface(name, &figures, 1.0)
    };
    names.into_iter().map(merge).collect()
}
