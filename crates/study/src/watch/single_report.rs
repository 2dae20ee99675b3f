//! Findings from a single report: the only one of a run of iostat, or the only one beside the means since boot.
//!
//! Rules about duration need more reports. Here a ratio of means must suffice, which is most reliable over the days
//! since boot: members of an array with unequal load, and a device that hardly keeps up.

use record::raid::Level;
use record::sample::{DeviceKind, DeviceSample, Flow, Sample};
use record::{Nanos, Severity};

use super::format::{digits, time};
use super::rule::{Devices, Sighting};
use super::rules::{EventCode, stalled};
use crate::median::median;

/// Minimum ratio to the others' median at which a member is unequal.
const UNEQUAL: f64 = 1.5;
/// Minimum number of requests a second for a conclusion about a member.
const MIN_OPS: f64 = 1.0;
/// Minimum total number of requests for that, if the report's length is known.
const MIN_REQUESTS: f64 = 30.0;
/// Minimum number of bytes a second at which mirrors are recognized by their writes.
const MIN_BYTES_PER_S: f64 = 1024.0;
/// Minimum ratio to the others' median wait; with two members it is unknown which one is normal.
const SLOW_RATIO: f64 = 2.0;
const SLOW_RATIO_OF_TWO: f64 = 3.0;
/// Minimum difference of waits that matters, in seconds.
const MIN_WAIT_DIFFERENCE_S: f64 = 0.001;
/// Maximum relative difference of the writes of devices that may mirror each other.
const EQUAL_WRITES: f64 = 0.03;
/// Tolerance within which the writes of all devices together are a whole multiple of their array's writes: the number
/// of copies.
const MULTIPLE_TOLERANCE: f64 = 0.1;
/// Share of busy time, and latency of requests in seconds, from which a device does not keep up.
const BUSY_SHARE: f64 = 0.95;
const LONG_LATENCY_S: f64 = 0.2;

const STALLED: &str = "The disk or the path to it hangs, and the programs that use it are blocked. Check the volume's \
                       status and the kernel's log.";
const SATURATED: &str = "The demand exceeds what the disk can do. Find the programs that cause it (iotop, pidstat -d), and \
                         compare the rate with the volume's limits.";
const READ_LESS: &str = "md reads from the member that answers sooner or whose head is nearer. Compare the members' await, \
                         and look for one that is slow, write-mostly or recently added.";
const STRIPED: &str =
    "A striped array is no faster than its busiest member. Look for one hot file or table.";
const SLOWER_ADVICE: &str = "All members wait for this one. Compare it with the others (disksmith bench), and replace it \
                      if it stays slow.";

/// Findings from a single report. `names`: the requested devices; empty for all.
pub(super) fn observe(sample: &Sample, names: &[String]) -> Vec<(EventCode, Sighting)> {
    let mut seen = Vec::new();
    let devices = Devices::of(sample, names);
    for device in devices.causes(stalled::hangs) {
        seen.push((EventCode::Stalled, hangs(sample, device)));
    }
    for device in devices.causes(|device| saturated(sample, device).is_some()) {
        seen.extend(saturated(sample, device).map(|one| (EventCode::Saturated, one)));
    }
    for group in groups(sample) {
        seen.extend(unequal(sample, &group).map(|one| (EventCode::Imbalance, one)));
        seen.extend(slower(sample, &group).map(|one| (EventCode::SlowMember, one)));
    }
    seen
}

fn hangs(sample: &Sample, device: &DeviceSample) -> Sighting {
    let flight = match device.mean_in_flight.filter(|mean| *mean > 0.0) {
        Some(mean) => format!("{} requests are in flight", digits(mean)),
        None => "Requests are in flight".to_owned(),
    };
    let span = match sample.length {
        Nanos(0) => "all the time of the report".to_owned(),
        length => format!("{length}"),
    };
    let name = &device.device.name;
    Sighting {
        text: format!("{flight} on {name}, and nothing completed in {span}."),
        advice: STALLED,
        ..Sighting::of(device, Severity::Warn, sample.at)
    }
}

fn saturated(sample: &Sample, device: &DeviceSample) -> Option<Sighting> {
    let busy = device.busy.filter(|busy| busy.0 >= BUSY_SHARE)?;
    let flows = [&device.read, &device.write, &device.all];
    let wait = flows.iter().filter_map(|flow| flow.wait).max()?;
    let wait = wait.as_secs_f64();
    (wait >= LONG_LATENCY_S).then(|| Sighting {
        text: format!(
            "{} is busy {:.0} % of the time, and requests take {} on average.",
            device.device.name,
            busy.percent(),
            time(wait)
        ),
        advice: SATURATED,
        figures: vec![("busy_share", busy.0), ("await_s", wait)],
        ..Sighting::of(device, Severity::Warn, sample.at)
    })
}

/// Devices that should have equal load.
struct Group<'a> {
    members: Vec<&'a DeviceSample>,
    /// True if the devices are copies of each other.
    mirrors: bool,
    /// Evidence that they are a group, as the end of a sentence.
    known_by: String,
}

/// The arrays that are listed; without any, the devices with equal writes next to an array of md, as the members of a
/// mirror have.
fn groups(sample: &Sample) -> Vec<Group<'_>> {
    let is_array = |one: &&DeviceSample| one.device.kind == DeviceKind::Array;
    let arrays: Vec<&DeviceSample> = sample.devices.iter().filter(is_array).collect();
    let named = arrays.iter().filter(|one| !one.device.lies_on.is_empty());
    let named: Vec<Group<'_>> = named
        .map(|array| Group {
            members: sample.below(&array.device).collect(),
            mirrors: array.device.raid_level().is_some_and(Level::has_copies),
            known_by: format!("both in {}", array.device.name),
        })
        .collect();
    if !named.is_empty() || arrays.is_empty() {
        return named;
    }
    let written = |one: &DeviceSample| one.write.bytes.map_or(0.0, |bytes| bytes.0);
    let disks = sample.devices.iter();
    let disks =
        disks.filter(|one| one.device.kind == DeviceKind::Disk && written(one) >= MIN_BYTES_PER_S);
    let mut groups: Vec<Vec<&DeviceSample>> = Vec::new();
    for disk in disks {
        let alike = |group: &&mut Vec<&DeviceSample>| {
            let first = group.first().map_or(0.0, |first| written(first));
            (written(disk) - first).abs() <= EQUAL_WRITES * first
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(disk),
            None => groups.push(vec![disk]),
        }
    }
    let of_arrays: Vec<f64> = arrays.iter().map(|array| written(array)).collect();
    let groups = groups.into_iter().filter(|group| {
        let all = group.iter().map(|one| written(one)).sum();
        is_mirrored(all, group.len(), &of_arrays)
    });
    groups
        .map(|members| Group {
            members,
            mirrors: true,
            known_by: "which write the same, as members of a mirror do".to_owned(),
        })
        .collect()
}

/// True if disks write copies of the data of one of the arrays, or of all: members of a stripe write equally too, but
/// each byte once. `all`: bytes written by the disks; `disks`: their number.
fn is_mirrored(all: f64, disks: usize, arrays: &[f64]) -> bool {
    let sum: f64 = arrays.iter().sum();
    let mut written = arrays.iter().chain([&sum]);
    written.any(|array| {
        let copies = (all / array).round();
        (2.0..=disks as f64).contains(&copies)
            && (all / array - copies).abs() <= MULTIPLE_TOLERANCE * copies
    })
}

/// True if there are enough requests for a member to be judged.
fn is_enough(sample: &Sample, iops: f64) -> bool {
    let seconds = sample.length.as_secs_f64();
    iops >= MIN_OPS && (seconds == 0.0 || iops * seconds >= MIN_REQUESTS)
}

fn ops(flow: &Flow) -> f64 {
    flow.iops.map_or(0.0, |iops| iops.0)
}

/// The member with the highest figure, that figure, and the others' median.
fn highest_member<'a>(
    group: &Group<'a>,
    figure: impl Fn(&DeviceSample) -> Option<f64>,
) -> Option<(&'a DeviceSample, f64, f64)> {
    let known = group
        .members
        .iter()
        .filter_map(|one| Some((*one, figure(one)?)));
    let known: Vec<(&DeviceSample, f64)> = known.collect();
    let (most, own) = known.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = known
        .iter()
        .filter(|(one, _)| one.device.id != most.device.id);
    Some((
        most,
        own,
        median(others.map(|(_, value)| *value).collect())?,
    ))
}

fn unequal(sample: &Sample, group: &Group<'_>) -> Option<Sighting> {
    type FlowKindPoint = (&'static str, fn(&DeviceSample) -> f64);
    let kinds: [FlowKindPoint; 2] = [
        ("reads", |one| ops(&one.read)),
        ("requests", |one| ops(&one.all)),
    ];
    let (word, figure) = kinds[usize::from(!group.mirrors)];
    let (device, own, others) = highest_member(group, |one| Some(figure(one)))?;
    if !is_enough(sample, own) || own < UNEQUAL * others {
        return None;
    }
    Some(Sighting {
        text: format!(
            "{} has {} {word} a second, and the median of {} is {} ({}).",
            device.device.name,
            digits(own),
            rest(group, device),
            digits(others),
            group.known_by,
        ),
        advice: if group.mirrors { READ_LESS } else { STRIPED },
        figures: vec![("iops", own), ("others_iops", others)],
        ..Sighting::of(device, Severity::Note, sample.at)
    })
}

fn slower(sample: &Sample, group: &Group<'_>) -> Option<Sighting> {
    let needed = if group.members.len() == 2 {
        SLOW_RATIO_OF_TWO
    } else {
        SLOW_RATIO
    };
    type FlowKindPoint = (&'static str, fn(&DeviceSample) -> &Flow);
    let kinds: [FlowKindPoint; 3] = [
        ("Reads", |one| &one.read),
        ("Writes", |one| &one.write),
        ("Requests", |one| &one.all),
    ];
    let slow = kinds.into_iter().filter_map(|(word, flow)| {
        let known = |one: &DeviceSample| {
            let flow = flow(one);
            is_enough(sample, ops(flow)).then(|| Some(flow.wait?.as_secs_f64()))?
        };
        let (device, own, others) = highest_member(group, known)?;
        let is_slow =
            own >= needed * others && own - others >= MIN_WAIT_DIFFERENCE_S && others > 0.0;
        is_slow.then_some((word, device, own, others))
    });
    let ratio = |one: &(_, _, f64, f64)| one.2 / one.3;
    let (word, device, own, others) = slow.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    Some(Sighting {
        text: format!(
            "{word} of {} take {}, {} times the median of {} ({}; {}).",
            device.device.name,
            time(own),
            digits(own / others),
            rest(group, device),
            time(others),
            group.known_by,
        ),
        advice: SLOWER_ADVICE,
        figures: vec![("await_s", own), ("siblings_await_s", others)],
        ..Sighting::of(device, Severity::Warn, sample.at)
    })
}

/// The other members of the group in words: the name of a single one, or their number.
fn rest(group: &Group<'_>, device: &DeviceSample) -> String {
    let others = group.members.iter();
    let others = others.filter(|one| one.device.id != device.device.id);
    let names: Vec<&str> = others.map(|one| one.device.name.as_str()).collect();
    match names.as_slice() {
        [one] => (*one).to_owned(),
        names => format!("its {} siblings", names.len()),
    }
}
