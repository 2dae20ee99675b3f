//! Packs consecutive samples into bytes.
//!
//! A block is a form number, a checksum of the rest, a head in JSON with data that rarely changes (which devices, an
//! array's members, kernel errors), the times, and three tables: of the host, its network interfaces and its devices.
//!
//! A volume's own latency histograms ([`record::sample::VendorSample`]) are not stored: they would take as much space
//! as all other data.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use record::Nanos;
use record::sample::{
    ArraySample, Device, DeviceId, DeviceKind, DeviceSample, Gap, KernelError, LatencySample,
    ProcessSample, Sample, SampleTime, TracingSample,
};
use record::varint::{folded, put, take, unfolded};
use serde::{Deserialize, Serialize};

use super::bytes::{PackingGoal, checksum, put_figures, put_stream, take_stream};
use super::table::{Row, RowOwner, put_table, take_table};
use super::{device, host};

/// The form of the blocks that are written.
const FORM: u8 = 1;
/// Maximum bytes of a head or of a stream of times; a longer one is damaged.
const MAX_BYTES: usize = 1 << 28;

/// Data of a block that rarely changes. Samples are numbered from 0; devices and names are given as indices of their
/// lists.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Head {
    samples: usize,
    /// Description of every device, again where it changed.
    devices: Vec<Device>,
    /// Present devices in order; each list with the sample from which on it holds.
    rosters: Vec<(usize, Vec<usize>)>,
    interfaces: Vec<String>,
    /// Present interfaces in order; each list with the sample from which on it holds.
    links: Vec<(usize, Vec<usize>)>,
    /// State of arrays without their figures: the sample from which on it holds, the device and the state.
    arrays: Vec<(usize, usize, ArraySample)>,
    gaps: Vec<(usize, Gap)>,
    errors: Vec<(usize, Vec<KernelError>)>,
    /// Latencies of single requests, if they were traced: device, sample and latencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    latencies: Vec<(usize, usize, LatencySample)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    processes: Vec<(usize, Vec<ProcessSample>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tracing: Vec<(usize, TracingSample)>,
}

/// Packs samples.
pub(super) fn pack<'a>(samples: impl IntoIterator<Item = &'a Sample>, aim: PackingGoal) -> Vec<u8> {
    pack_after(samples, aim, &mut LastHead::default())
}

/// Packs samples; `last` is the head of the samples before, whose stored form is reused if the head is the same.
pub(super) fn pack_after<'a>(
    samples: impl IntoIterator<Item = &'a Sample>,
    aim: PackingGoal,
    last: &mut LastHead,
) -> Vec<u8> {
    let mut packer = Packer {
        aim,
        ..Packer::default()
    };
    for sample in samples {
        packer.add(sample);
    }
    packer.finish_after(last)
}

/// Head of the samples before, and its stored form. It stays the same until a device appears or disappears, and with
/// few samples it is most of the data to compress.
#[derive(Debug, Default)]
pub(super) struct LastHead {
    json: Vec<u8>,
    stored: Vec<u8>,
}

impl LastHead {
    fn put(&mut self, out: &mut Vec<u8>, json: Vec<u8>) {
        if self.json != json {
            self.stored.clear();
            put_stream(&mut self.stored, &json);
            self.json = json;
        }
        out.extend_from_slice(&self.stored);
    }
}

/// Packs samples into a block, one at a time.
#[derive(Default)]
pub(super) struct Packer {
    aim: PackingGoal,
    head: Head,
    devices: Numbering,
    device_rows: Vec<Row<{ device::FIGURES }>>,
    device_keys: Vec<RowOwner>,
    net_rows: Vec<Row<{ host::NET_FIGURES }>>,
    net_keys: Vec<RowOwner>,
    host_rows: Vec<Row<{ host::FIGURES }>>,
    states: HashMap<usize, ArraySample>,
    times: Vec<(SampleTime, Nanos)>,
}

impl Packer {
    /// Adds the next sample.
    pub(super) fn add(&mut self, sample: &Sample) {
        let nth = self.head.samples;
        self.head.samples += 1;
        let seconds = seconds(sample.length);
        let mut roster = Vec::with_capacity(sample.devices.len());
        for one in &sample.devices {
            let number = self.devices.number(&one.device, &mut self.head.devices);
            roster.push(number);
            self.device_rows.push(device::row(one, seconds));
            if let Some(state) = one.array.as_ref().map(shape)
                && self.states.get(&number) != Some(&state)
            {
                self.head.arrays.push((nth, number, state.clone()));
                self.states.insert(number, state);
            }
            let latency = one.latency.as_deref().cloned();
            let latency = latency.map(|latency| (nth, number, latency));
            self.head.latencies.extend(latency);
        }
        self.device_keys.extend(keys(&roster, &self.head.devices));
        change(&mut self.head.rosters, nth, roster);
        let mut links = Vec::with_capacity(sample.host.interfaces.len());
        for interface in &sample.host.interfaces {
            links.push(named(&mut self.head.interfaces, &interface.name));
            let figures = host::net_figures(interface, seconds);
            self.net_rows.push(host::row(&figures));
        }
        let net_keys = links.iter().map(|own| RowOwner::alone(*own));
        self.net_keys.extend(net_keys);
        change(&mut self.head.links, nth, links);
        self.host_rows.push(host::row(&host::figures(&sample.host)));
        self.head.gaps.extend(sample.gap.map(|gap| (nth, gap)));
        if !sample.host.errors.is_empty() {
            self.head.errors.push((nth, sample.host.errors.clone()));
        }
        if !sample.host.processes.is_empty() {
            let processes = sample.host.processes.clone();
            self.head.processes.push((nth, processes));
        }
        let tracing = sample.host.tracing.map(|tracing| (nth, tracing));
        self.head.tracing.extend(tracing);
        self.times.push((sample.at, sample.length));
    }

    /// The block.
    pub(super) fn finish(self) -> Vec<u8> {
        self.finish_after(&mut LastHead::default())
    }

    fn finish_after(self, last: &mut LastHead) -> Vec<u8> {
        let mut body = Vec::new();
        // The head can always be written as JSON: it has no maps and no floating-point numbers.
        let json = serde_json::to_vec(&self.head).unwrap_or_default();
        last.put(&mut body, json);
        let aim = self.aim;
        put_times(&mut body, &self.times, aim);
        let keys = host_keys(self.head.samples);
        put_table(&mut body, &self.host_rows, &keys, &host::UNITS, aim);
        let keys = self.net_keys;
        put_table(&mut body, &self.net_rows, &keys, &host::NET_UNITS, aim);
        let keys = self.device_keys;
        put_table(&mut body, &self.device_rows, &keys, &device::UNITS, aim);
        let mut out = vec![FORM];
        out.extend_from_slice(&checksum(&body).to_le_bytes());
        out.extend_from_slice(&body);
        out
    }
}

/// Unpacks samples; the error is a clause that describes the damage.
pub(super) fn unpack(block: &[u8]) -> Result<Vec<Sample>, String> {
    let cut = || "it is cut short".to_owned();
    let (&form, rest) = block.split_first().ok_or_else(cut)?;
    if form != FORM {
        return Err(format!(
            "it is of form {form}, and this disksmith knows form {FORM} only"
        ));
    }
    let (sum, body) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
    if u64::from_le_bytes(*sum) != checksum(body) {
        return Err("its checksum is wrong".to_owned());
    }
    let mut rest = body;
    let json = take_stream(&mut rest, MAX_BYTES).ok_or_else(cut)?;
    let head: Head = serde_json::from_slice(&json)
        .map_err(|error| format!("its head is not understood ({error})"))?;
    assemble(head, rest).ok_or_else(|| "its figures are not understood".to_owned())
}

/// Builds samples from a head and the bytes that follow it.
fn assemble(head: Head, mut rest: &[u8]) -> Option<Vec<Sample>> {
    let mut samples = take_times(&mut rest, head.samples)?;
    for (nth, gap) in &head.gaps {
        samples.get_mut(*nth)?.gap = Some(*gap);
    }
    let rows = take_table(&mut rest, &host_keys(samples.len()), &host::UNITS)?;
    for (sample, row) in samples.iter_mut().zip(&rows) {
        sample.host = host::host(&host::unrow(row));
    }
    for (nth, errors) in &head.errors {
        samples.get_mut(*nth)?.host.errors.clone_from(errors);
    }
    for (nth, processes) in &head.processes {
        let host = &mut samples.get_mut(*nth)?.host;
        host.processes.clone_from(processes);
    }
    for (nth, tracing) in &head.tracing {
        samples.get_mut(*nth)?.host.tracing = Some(*tracing);
    }
    let links = each(&head.links, samples.len());
    let own = links.iter().flat_map(|links| links.iter());
    let net_keys: Vec<RowOwner> = own.map(|own| RowOwner::alone(*own)).collect();
    let mut rows = take_table(&mut rest, &net_keys, &host::NET_UNITS)?.into_iter();
    let names: Vec<Arc<str>> = head
        .interfaces
        .iter()
        .map(|name| name.as_str().into())
        .collect();
    for (sample, links) in samples.iter_mut().zip(links) {
        let seconds = seconds(sample.length);
        for link in links {
            let name = Arc::clone(names.get(*link)?);
            let figures = host::unrow(&rows.next()?);
            let interface = host::interface(name, &figures, seconds);
            sample.host.interfaces.push(interface);
        }
    }
    fill_devices(&mut samples, &head, rest)?;
    Some(samples)
}

fn fill_devices(samples: &mut [Sample], head: &Head, mut rest: &[u8]) -> Option<()> {
    let rosters = each(&head.rosters, samples.len());
    if rosters
        .iter()
        .flat_map(|roster| roster.iter())
        .any(|number| *number >= head.devices.len())
    {
        return None;
    }
    let device_keys: Vec<RowOwner> = rosters
        .iter()
        .flat_map(|roster| keys(roster, &head.devices))
        .collect();
    let mut rows = take_table(&mut rest, &device_keys, &device::UNITS)?.into_iter();
    let devices: Vec<Arc<Device>> = head.devices.iter().cloned().map(Arc::new).collect();
    let mut changes = head.arrays.iter().peekable();
    let latencies = head.latencies.iter();
    let mut latencies: HashMap<(usize, usize), &LatencySample> = latencies
        .map(|(nth, number, latency)| ((*nth, *number), latency))
        .collect();
    let mut states: HashMap<usize, &ArraySample> = HashMap::new();
    for (nth, (sample, roster)) in samples.iter_mut().zip(rosters).enumerate() {
        while let Some((_, number, state)) = changes.next_if(|change| change.0 == nth) {
            states.insert(*number, state);
        }
        let seconds = seconds(sample.length);
        for number in roster {
            let mut one = DeviceSample::unknown(Arc::clone(&devices[*number]));
            one.array = states.get(number).map(|state| (*state).clone());
            device::fill(&mut one, &rows.next()?, seconds);
            let latency = latencies.remove(&(nth, *number));
            one.latency = latency.map(|latency| Arc::new(latency.clone()));
            sample.devices.push(one);
        }
    }
    Some(())
}

/// Length of an interval in seconds, by which rates are multiplied to give counts; 1 for an interval of no length.
fn seconds(length: Nanos) -> f64 {
    match length.0 {
        0 => 1.0,
        _ => length.as_secs_f64(),
    }
}

/// An array's state without its figures.
fn shape(array: &ArraySample) -> ArraySample {
    ArraySample {
        position: None,
        speed: None,
        mismatched: None,
        ..array.clone()
    }
}

/// Assigns numbers to descriptions of devices.
#[derive(Default)]
struct Numbering {
    last: HashMap<DeviceId, (Arc<Device>, usize)>,
}

impl Numbering {
    fn number(&mut self, device: &Arc<Device>, devices: &mut Vec<Device>) -> usize {
        if let Some((before, number)) = self.last.get(&device.id)
            && (Arc::ptr_eq(before, device) || before == device)
        {
            return *number;
        }
        devices.push(Device::clone(device));
        let number = devices.len() - 1;
        self.last.insert(device.id, (Arc::clone(device), number));
        number
    }
}

/// Row owners for a list of devices: a partition has its disk as twin.
fn keys<'a>(roster: &'a [usize], devices: &'a [Device]) -> impl Iterator<Item = RowOwner> + 'a {
    roster.iter().map(move |own| {
        let device = &devices[*own];
        let disk = device
            .lies_on
            .first()
            .filter(|_| device.kind == DeviceKind::Partition);
        let twin = disk.and_then(|disk| {
            let is_disk = |number: &&usize| devices[**number].id == *disk;
            roster.iter().find(is_disk).copied()
        });
        RowOwner { own: *own, twin }
    })
}

fn host_keys(samples: usize) -> Vec<RowOwner> {
    vec![RowOwner::alone(0); samples]
}

fn named(names: &mut Vec<String>, name: &str) -> usize {
    let at = names.iter().position(|known| known == name);
    at.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// Appends a list, with the sample from which on it holds, if it differs from the last one.
fn change(lists: &mut Vec<(usize, Vec<usize>)>, nth: usize, list: Vec<usize>) {
    if lists.last().is_none_or(|(_, last)| *last != list) {
        lists.push((nth, list));
    }
}

/// The list that holds for each sample.
fn each(lists: &[(usize, Vec<usize>)], samples: usize) -> Vec<&[usize]> {
    let mut changes = lists.iter().peekable();
    let mut now: &[usize] = &[];
    (0..samples)
        .map(|nth| {
            while let Some((_, list)) = changes.next_if(|(from, _)| *from <= nth) {
                now = list;
            }
            now
        })
        .collect()
}

/// Appends the exact times: lengths as differences, the continuous clock as its difference from the length, and the
/// time of day as its difference from the continuous clock.
fn put_times(out: &mut Vec<u8>, times: &[(SampleTime, Nanos)], aim: PackingGoal) {
    let mut stream = Vec::new();
    let (mut length, mut elapsed, mut wall) = (0_i128, 0_i128, 0_i128);
    for (at, own_length) in times {
        let now = i128::from(own_length.0);
        put(&mut stream, wide(now - length));
        length = now;
        let now = i128::from(at.elapsed.0);
        let passed = now - elapsed;
        put(&mut stream, wide(passed - length));
        elapsed = now;
        match at.wall {
            None => put(&mut stream, NO_TIME),
            Some(time) => {
                let now = time.as_nanosecond();
                put_wide(&mut stream, now - wall - passed);
                wall = now;
            }
        }
    }
    put_figures(out, &stream, aim);
}

fn wide(value: i128) -> u64 {
    folded(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Forms of a time of day: none, one number, or, where two times lie so far apart that it would not fit,
/// seconds and nanoseconds.
const NO_TIME: u64 = 0;
const ONE_NUMBER: u64 = 1;
const TWO_NUMBERS: u64 = 2;

fn put_wide(stream: &mut Vec<u8>, value: i128) {
    if let Ok(value) = i64::try_from(value) {
        put(stream, ONE_NUMBER);
        put(stream, folded(value));
    } else {
        put(stream, TWO_NUMBERS);
        put(stream, wide(value.div_euclid(1_000_000_000)));
        put(stream, value.rem_euclid(1_000_000_000) as u64);
    }
}

fn take_wide(stream: &mut &[u8]) -> Option<Option<i128>> {
    Some(match take(stream)? {
        NO_TIME => None,
        ONE_NUMBER => Some(i128::from(unfolded(take(stream)?))),
        TWO_NUMBERS => {
            let whole = i128::from(unfolded(take(stream)?));
            Some(whole * 1_000_000_000 + i128::from(take(stream)?))
        }
        _ => return None,
    })
}

fn take_times(rest: &mut &[u8], samples: usize) -> Option<Vec<Sample>> {
    let stream = take_stream(rest, MAX_BYTES)?;
    if samples > stream.len() {
        return None;
    }
    let mut stream = &stream[..];
    let (mut length, mut elapsed, mut wall) = (0_i128, 0_i128, 0_i128);
    let mut found = Vec::with_capacity(samples);
    for _ in 0..samples {
        length += i128::from(unfolded(take(&mut stream)?));
        let passed = i128::from(unfolded(take(&mut stream)?)) + length;
        elapsed += passed;
        let time = match take_wide(&mut stream)? {
            None => None,
            Some(off) => {
                wall += off + passed;
                Some(Timestamp::from_nanosecond(wall).ok()?)
            }
        };
        found.push(Sample {
            at: SampleTime {
                wall: time,
                elapsed: Nanos(u64::try_from(elapsed).ok()?),
            },
            length: Nanos(u64::try_from(length).ok()?),
            ..Sample::default()
        });
    }
    Some(found)
}
