//! Data of the page of a watch: figures over time, in a bounded number of steps, however long the watch was. A step has
//! the minimum, the mean and the maximum of each figure.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use record::Nanos;
use record::sample::{
    Device, DeviceId, DeviceSample, Gap, HostSample, Latencies, ProcessSample, RecordedInterval,
    SampleTime,
};
use study::watch::EventChange;
use study::watch::WatchEvent;

use super::figures::{DEVICE, FIGURES, values};

/// Maximum number of steps; above it, pairs of steps are merged.
const MAX_STEPS: usize = 1_200;
/// Maximum number of cells of all devices together, some 50 MB: with more than a few hundred devices there are fewer
/// steps.
const MAX_CELLS: usize = 280_000;
/// Lower bound of the maximum number of steps with many devices.
const MIN_STEPS: usize = 120;
/// Maximum number of processes whose I/O is summed.
const MAX_PROCESSES: usize = 10_000;

/// Number of figures of the host.
pub(super) const HOST: usize = 6;
/// Index, in the host's figures, of the share of the time in which some task waited for I/O.
pub(super) const SOME: usize = 0;
/// Index of the share of the time in which all tasks waited for I/O.
pub(super) const FULL: usize = 1;
/// Index of the bytes received a second.
pub(super) const RECEIVED: usize = 2;
/// Index of the bytes sent a second.
pub(super) const SENT: usize = 3;
/// Index of the bytes that wait to be written.
pub(super) const DIRTY: usize = 4;
/// Index of the number of tasks that run or wait for a disk.
pub(super) const LOAD: usize = 5;

/// Minimum, mean and maximum of a figure in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Band {
    pub(super) least: f32,
    pub(super) mean: f32,
    pub(super) most: f32,
    /// Weight of the mean when steps are merged: seconds, or number of requests.
    weight: f32,
}

impl Band {
    fn of(least: Option<f64>, mean: Option<f64>, most: Option<f64>, weight: f64) -> Option<Band> {
        let mean = mean?;
        Some(Band {
            least: least.unwrap_or(mean) as f32,
            mean: mean as f32,
            most: most.unwrap_or(mean) as f32,
            weight: weight as f32,
        })
    }

    /// A figure with a single value.
    pub(super) fn exact(value: f64) -> Band {
        let value = value as f32;
        Band {
            least: value,
            mean: value,
            most: value,
            weight: 1.0,
        }
    }

    fn with(self, other: Band) -> Band {
        let weight = self.weight + other.weight;
        let mean = if weight > 0.0 {
            (self.mean * self.weight + other.mean * other.weight) / weight
        } else {
            (self.mean + other.mean) / 2.0
        };
        Band {
            least: self.least.min(other.least),
            mean,
            most: self.most.max(other.most),
            weight,
        }
    }
}

fn both(a: Option<Band>, b: Option<Band>) -> Option<Band> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.with(b)),
        (one, other) => one.or(other),
    }
}

/// A stretch of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Start, in seconds from the first reading.
    pub(super) begin: f64,
    /// End, in seconds from the first reading.
    pub(super) end: f64,
    /// Time of day at the end.
    pub(super) wall: Option<Timestamp>,
    /// True if there is a gap before the step, or the clock was set back there.
    pub(super) after_gap: bool,
    /// Number of samples in the step.
    pub(super) samples: u64,
}

/// Figures of a device, one set for each step.
pub(super) struct DeviceSeries {
    pub(super) device: Arc<Device>,
    pub(super) steps: Vec<[Option<Band>; DEVICE]>,
    /// Latencies of the device's requests, one set for each step; empty where they were not traced.
    pub(super) latency: Vec<Option<Latencies>>,
    /// Figures over the whole time.
    pub(super) total: [Option<Band>; DEVICE],
}

impl DeviceSeries {
    /// True if the device had any activity.
    pub(super) fn is_active(&self) -> bool {
        self.total.iter().flatten().any(|band| band.most > 0.0)
    }
}

/// Figures of all devices and of the host over time.
#[derive(Default)]
pub(crate) struct FigureSeries {
    pub(super) steps: Vec<Step>,
    pub(super) devices: Vec<DeviceSeries>,
    places: HashMap<DeviceId, usize>,
    pub(super) host: Vec<[Option<Band>; HOST]>,
    /// I/O of processes over the whole time, by process id and name.
    pub(super) processes: HashMap<(u32, String), ProcessSample>,
    pub(super) events: Vec<WatchEvent>,
    pub(super) samples: u64,
    pub(super) gaps: u64,
    /// Number of times that the time of day was set back.
    pub(super) set_back: u64,
    /// Interval to which earlier samples were thinned out; `None` where none were.
    pub(super) thinned: Option<Nanos>,
    /// Number of samples in a full step; doubled when steps are merged.
    per_step: u64,
    filled: u64,
}

impl FigureSeries {
    /// Adds a sample and the changes of findings in it.
    pub(crate) fn observe(&mut self, recorded: &RecordedInterval, changes: &[EventChange]) {
        let sample = &recorded.sample;
        let gap = sample.gap.filter(|_| self.samples > 0);
        let is_gap = matches!(gap, Some(Gap::Unseen(_) | Gap::Suspended(_)));
        let is_set_back = matches!(gap, Some(Gap::SetBack(_)));
        self.gaps += u64::from(is_gap);
        self.set_back += u64::from(is_set_back);
        let after_gap = is_gap || is_set_back;
        self.samples += recorded.samples();
        if recorded.spread.is_some() {
            self.thinned = self.thinned.max(Some(sample.length));
        }
        let end = sample.at.elapsed.as_secs_f64();
        let step = Step {
            begin: end - sample.length.as_secs_f64(),
            end,
            wall: sample.at.wall,
            after_gap,
            samples: recorded.samples(),
        };
        // A step does not mix samples of different resolutions.
        let alike = self.steps.last().is_some_and(|last| {
            last.samples / self.filled.max(1) == step.samples || step.samples == 1
        });
        if self.filled == 0 || self.filled >= self.per_step || after_gap || !alike {
            self.add_step(step);
        } else {
            self.widen(step);
        }
        self.filled += 1;
        self.observe_host(recorded);
        self.observe_processes(&sample.host);
        for nth in 0..sample.devices.len() {
            self.observe_device(nth, recorded);
        }
        self.close(changes);
        if self.steps.len() > self.most_steps() {
            self.halve();
        }
    }

    /// Adds changes of events.
    pub(crate) fn close(&mut self, changes: &[EventChange]) {
        for change in changes {
            let id = change.event.id;
            match self.events.iter_mut().find(|event| event.id == id) {
                Some(known) => known.clone_from(&change.event),
                None => self.events.push(change.event.clone()),
            }
        }
    }

    fn add_step(&mut self, step: Step) {
        self.per_step = self.per_step.max(1);
        self.steps.push(step);
        self.host.push([None; HOST]);
        for device in &mut self.devices {
            device.steps.push([None; DEVICE]);
            if !device.latency.is_empty() {
                device.latency.push(None);
            }
        }
        self.filled = 0;
    }

    fn widen(&mut self, step: Step) {
        if let Some(last) = self.steps.last_mut() {
            last.end = step.end;
            last.wall = step.wall;
            last.samples += step.samples;
        }
    }

    fn observe_host(&mut self, recorded: &RecordedInterval) {
        let seconds = recorded.sample.length.as_secs_f64();
        let (least, most) = (host(&recorded.least().host), host(&recorded.most().host));
        let mean = host(&recorded.sample.host);
        if let Some(last) = self.host.last_mut() {
            for at in 0..HOST {
                let band = Band::of(least[at], mean[at], most[at], seconds);
                last[at] = both(last[at], band);
            }
        }
    }

    fn observe_processes(&mut self, host: &HostSample) {
        for one in &host.processes {
            let known = (one.pid, one.name.clone());
            let has_room = self.processes.len() < MAX_PROCESSES;
            match self.processes.get_mut(&known) {
                Some(sum) => {
                    sum.read.0 += one.read.0;
                    sum.written.0 += one.written.0;
                    sum.requests += one.requests;
                }
                None if has_room => {
                    self.processes.insert(known, one.clone());
                }
                None => {}
            }
        }
    }

    fn most_steps(&self) -> usize {
        (MAX_CELLS / self.devices.len().max(1)).clamp(MIN_STEPS, MAX_STEPS)
    }

    fn observe_device(&mut self, nth: usize, recorded: &RecordedInterval) {
        let one = &recorded.sample.devices[nth];
        let id = one.device.id;
        let place = *self.places.entry(id).or_insert_with(|| {
            self.devices.push(DeviceSeries {
                device: Arc::clone(&one.device),
                steps: vec![[None; DEVICE]; self.steps.len()],
                latency: Vec::new(),
                total: [None; DEVICE],
            });
            self.devices.len() - 1
        });
        let known = |sample: Option<&DeviceSample>| sample.map_or([None; DEVICE], values);
        let least = known(recorded.least().near(nth, id));
        let most = known(recorded.most().near(nth, id));
        let mean = values(one);
        let seconds = recorded.sample.length.as_secs_f64();
        let course = &mut self.devices[place];
        course.device = Arc::clone(&one.device);
        if let Some(all) = one
            .latency
            .as_ref()
            .and_then(|latency| latency.all.as_ref())
        {
            course.latency.resize(course.steps.len(), None);
            if let Some(last) = course.latency.last_mut() {
                *last = Latencies::merged(last.iter().chain([all]));
            }
        }
        let Some(last) = course.steps.last_mut() else {
            return;
        };
        for at in 0..DEVICE {
            let per_request = FIGURES[at].per_request;
            let rate = per_request.and_then(|requests| requests(one));
            let weight = rate.map_or(seconds, |rate| rate * seconds);
            let band = Band::of(least[at], mean[at], most[at], weight);
            last[at] = both(last[at], band);
            course.total[at] = both(course.total[at], band);
        }
    }

    /// Merges pairs of steps, but not across a gap.
    fn halve(&mut self) {
        let mut groups: Vec<(usize, usize)> = Vec::with_capacity(self.steps.len() / 2 + 1);
        let mut at = 0;
        while at < self.steps.len() {
            let pairs = at + 1 < self.steps.len() && !self.steps[at + 1].after_gap;
            groups.push((at, at + usize::from(pairs)));
            at += 1 + usize::from(pairs);
        }
        let merge = |a: &[Option<Band>], b: &[Option<Band>], at: usize| both(a[at], b[at]);
        self.steps = groups
            .iter()
            .map(|(a, b)| Step {
                begin: self.steps[*a].begin,
                after_gap: self.steps[*a].after_gap,
                samples: self.steps[*a].samples + if a == b { 0 } else { self.steps[*b].samples },
                ..self.steps[*b]
            })
            .collect();
        let pair = |(a, b): &(usize, usize)| (*a, (a != b).then_some(*b));
        self.host = groups
            .iter()
            .map(pair)
            .map(|(a, b)| match b {
                Some(b) => std::array::from_fn(|at| merge(&self.host[a], &self.host[b], at)),
                None => self.host[a],
            })
            .collect();
        for device in &mut self.devices {
            device.steps = groups
                .iter()
                .map(pair)
                .map(|(a, b)| match b {
                    Some(b) => {
                        std::array::from_fn(|at| merge(&device.steps[a], &device.steps[b], at))
                    }
                    None => device.steps[a],
                })
                .collect();
        }
        for device in &mut self.devices {
            let of = |(a, b): &(usize, usize)| {
                let pair = device.latency.get(*a..=*b).unwrap_or_default();
                Latencies::merged(pair.iter().flatten())
            };
            if !device.latency.is_empty() {
                device.latency = groups.iter().map(of).collect();
            }
        }
        self.per_step *= 2;
        // The last step may take as many samples again.
        self.filled = self.per_step;
    }

    /// The time of day at `at` seconds from the first reading.
    pub(super) fn wall(&self, at: f64) -> Option<Timestamp> {
        let after = self.steps.partition_point(|step| step.end < at);
        let step = self.steps.get(after).or_else(|| self.steps.last())?;
        let off = SignedDuration::from_secs_f64(at - step.end);
        step.wall?.checked_add(off).ok()
    }

    /// The time of day at which a step begins, computed from its own end: the clock may have been set before it.
    pub(super) fn begin(&self, step: &Step) -> Option<Timestamp> {
        if !step.after_gap {
            return self.wall(step.begin);
        }
        let length = SignedDuration::from_secs_f64(step.end - step.begin);
        step.wall?.checked_sub(length).ok()
    }

    /// Seconds from the first reading at a time, not before the first step.
    pub(super) fn seconds(&self, moment: SampleTime) -> f64 {
        let first = self.steps.first().map_or(0.0, |step| step.begin);
        moment.elapsed.as_secs_f64().max(first)
    }

    /// Start and end, in seconds.
    pub(super) fn span(&self) -> (f64, f64) {
        (
            self.steps.first().map_or(0.0, |step| step.begin),
            self.steps.last().map_or(1.0, |step| step.end),
        )
    }

    /// The device with this id.
    pub(super) fn device(&self, id: DeviceId) -> Option<&DeviceSeries> {
        self.places.get(&id).map(|place| &self.devices[*place])
    }
}

fn host(host: &HostSample) -> [Option<f64>; HOST] {
    let pressure = host.pressure.as_ref();
    let stalled = |line: record::sample::PressureLine| line.stalled.map(|share| share.percent());
    let net = |of: fn(&record::sample::InterfaceSample) -> f64| {
        (!host.interfaces.is_empty()).then(|| host.interfaces.iter().map(of).sum())
    };
    [
        pressure.and_then(|pressure| stalled(pressure.some)),
        pressure.and_then(|pressure| stalled(pressure.full?)),
        net(|one| one.rx.bytes.0),
        net(|one| one.tx.bytes.0),
        host.memory
            .and_then(|memory| memory.dirty)
            .map(|bytes| bytes.0 as f64),
        host.load.map(|load| load.one),
    ]
}

#[cfg(test)]
mod tests {
    use record::sample::{PerSecond, Sample};

    use super::super::figures::READS;
    use super::*;

    fn recorded(second: u64, iops: f64) -> RecordedInterval {
        let device = Arc::new(Device::by_name(DeviceId(0), "vda", SampleTime::default()));
        let mut one = DeviceSample::unknown(device);
        one.read.iops = Some(PerSecond(iops));
        RecordedInterval::taken(Sample {
            at: SampleTime {
                wall: None,
                elapsed: Nanos::from_secs(second),
            },
            length: Nanos::from_secs(1),
            devices: vec![one],
            ..Sample::default()
        })
    }

    #[test]
    fn a_long_course_keeps_its_extremes_its_mean_and_its_ends() {
        let mut course = FigureSeries::default();
        for second in 1..=10_000 {
            let iops = if second == 7_777 { 50_000.0 } else { 100.0 };
            course.observe(&recorded(second, iops), &[]);
        }
        assert!(course.steps.len() <= MAX_STEPS && course.steps.len() > MAX_STEPS / 3);
        assert_eq!(course.span(), (0.0, 10_000.0));
        let steps = &course.devices[0].steps;
        let most = steps.iter().filter_map(|step| Some(step[READS]?.most));
        assert_eq!(most.fold(0.0, f32::max), 50_000.0);
        let total = course.devices[0].total[READS].unwrap();
        assert!((total.mean - 104.99).abs() < 0.01, "{}", total.mean);
        assert!(
            course
                .steps
                .windows(2)
                .all(|pair| pair[0].end == pair[1].begin)
        );
        let samples: u64 = course.steps.iter().map(|step| step.samples).sum();
        assert_eq!(samples, 10_000);
    }

    #[test]
    fn thousands_of_devices_have_fewer_steps_each() {
        let mut course = FigureSeries::default();
        let mut one = recorded(1, 1.0);
        let device = one.sample.devices[0].clone();
        one.sample.devices = (0..3_000)
            .map(|id| DeviceSample {
                device: Arc::new(Device::by_name(DeviceId(id), "vda", SampleTime::default())),
                ..device.clone()
            })
            .collect();
        for second in 1..=250 {
            one.sample.at.elapsed = Nanos::from_secs(second);
            course.observe(&one, &[]);
        }
        assert!(course.steps.len() <= MIN_STEPS && course.steps.len() > MIN_STEPS / 3);
        assert_eq!(course.span(), (0.0, 250.0));
        assert!(
            course
                .devices
                .iter()
                .all(|one| one.steps.len() == course.steps.len())
        );
    }

    #[test]
    fn steps_are_not_made_one_across_a_gap() {
        let mut course = FigureSeries::default();
        for second in 1..=3_000 {
            let mut one = recorded(second + if second > 1_001 { 500 } else { 0 }, 1.0);
            if second == 1_002 {
                one.sample.gap = Some(Gap::Unseen(Nanos::from_secs(500)));
            }
            course.observe(&one, &[]);
        }
        let after = course.steps.iter().position(|step| step.after_gap).unwrap();
        assert_eq!(course.steps[after].begin, 1_501.0);
        assert_eq!(course.steps[after - 1].end, 1_001.0);
    }
}
