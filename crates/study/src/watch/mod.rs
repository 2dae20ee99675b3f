//! Findings about the disks of a host, from moment to moment: samples in, events out.
//!
//! A [`Watch`] is shown one sample after the other, of any length: just taken, replayed from a
//! recording, or read from a log. Each rule looks at the last seconds or minutes and reports what
//! it sees now; the [`event_tracker`] turns these sightings into events, each with one start and one end.
//!
//! | rule | what it goes by |
//! | --- | --- |
//! | [`stalled`] | requests in flight and no completion |
//! | [`slow_member`] | waits of an array's members at the same load |
//! | [`imbalance`] | loads of an array's members |
//! | [`volume_cap`], [`instance_cap`] | the volume's own page; a rate too flat to be a disk's |
//! | [`burst_spent`] | a level, and then a lower and flat one, at the same demand |
//! | [`scrub_hurts`] | an array's waits before and during a check |
//! | [`cold`] | slow reads at low load on a disk that is known to be fast |
//! | [`small_io`], [`queue_full`] | the size and the number of requests |
//! | [`cgroup_limit`] | what control groups use of their limits |
//! | [`removed`] | devices that are gone |
//! | [`writeback`] | dirty memory against the kernel's limits |
//! | [`errors`] | the kernel's log and md |
//!
//! The crate's proofs measure the rules' error rates on simulated hosts.

mod alone;
mod burst_spent;
mod cgroup_limit;
mod cold;
mod errors;
mod event_tracker;
mod format;
mod history;
mod imbalance;
mod instance_cap;
mod members;
mod page;
mod plateaus;
mod queue_full;
mod removed;
mod scrub_hurts;
#[cfg(test)]
pub(crate) mod simulated;
mod slow_member;
mod small_io;
mod stalled;
#[cfg(test)]
mod tests;
mod volume_cap;
mod writeback;

use record::sample::{DeviceKind, DeviceSample, Gap, Moment, Sample};
use record::{Event, EventCode, Nanos, Severity, Subject};

use event_tracker::EventTracker;
use history::History;

/// Settings that a person may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A device with requests in flight of which none completes for so long has stalled.
    pub stall: Nanos,
    /// The devices that are requested; none means all.
    pub names: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            stall: Nanos::from_secs(2),
            names: Vec::new(),
        }
    }
}

/// Change of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was found.
    Opened,
    /// It lasts, with other figures or a higher severity. Reported once a minute at most.
    Updated,
    /// Its cause is gone.
    Closed,
}

/// An event, and what happened to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The change.
    pub kind: ChangeKind,
    /// The event as it stands.
    pub event: Event,
}

/// Sighting of a rule at a moment.
#[derive(Clone, Debug, PartialEq)]
struct Sighting {
    subject: Subject,
    name: String,
    severity: Severity,
    /// Start of the cause.
    began: Moment,
    text: String,
    advice: &'static str,
    figures: Vec<(&'static str, f64)>,
}

impl Sighting {
    /// Something about a device.
    fn of(device: &DeviceSample, severity: Severity, began: Moment) -> Sighting {
        Sighting {
            subject: Subject::Device(device.device.id),
            name: device.device.name.clone(),
            severity,
            began,
            text: String::new(),
            advice: "",
            figures: Vec::new(),
        }
    }
}

/// Data shown to a rule.
struct Now<'a> {
    sample: &'a Sample,
    history: &'a History,
    disks: Vec<&'a DeviceSample>,
}

impl<'a> Now<'a> {
    /// The devices that do the work.
    fn disks(&self) -> impl Iterator<Item = &'a DeviceSample> {
        self.disks.iter().copied()
    }
}

/// The devices that do the work: the disks, or, where none is in view, what lies on no other that is: in a
/// log of an array alone, and where only loop devices are in use. (An old log does not tell what
/// lies on what, and its arrays do the same work as its disks.)
fn disks<'a>(sample: &'a Sample, names: &[String]) -> Vec<&'a DeviceSample> {
    let is_disk = |device: &DeviceSample| device.device.kind == DeviceKind::Disk;
    let all = || sample.devices.iter();
    let wanted = sample.wanted(names);
    let is_wanted = |device: &DeviceSample| wanted.contains(&device.device.id);
    if !wanted.is_empty() && !all().any(|device| is_disk(device) && is_wanted(device)) {
        return lowest(sample, &is_wanted);
    }
    if all().any(is_disk) {
        return all().filter(|device| is_disk(device)).collect();
    }
    lowest(sample, &|_| true)
}

/// Devices in view that lie on nothing else, partitions aside.
fn lowest<'a>(
    sample: &'a Sample,
    is_seen: &dyn Fn(&DeviceSample) -> bool,
) -> Vec<&'a DeviceSample> {
    let lies_on_none = |device: &&DeviceSample| {
        device.device.kind != DeviceKind::Partition && sample.below(&device.device).next().is_none()
    };
    let seen = sample.devices.iter().filter(|device| is_seen(device));
    seen.filter(lies_on_none).collect()
}

/// One kind of event and how it is seen.
trait Rule {
    /// The kind.
    fn code(&self) -> EventCode;

    /// Time for which its cause may be out of sight before the event ends.
    fn linger(&self) -> Nanos {
        Nanos::from_secs(10)
    }

    /// True if it looks at every sample, and not only once a second.
    fn is_instant(&self) -> bool {
        false
    }

    /// Sightings at this moment.
    fn look(&mut self, now: &Now<'_>, seen: &mut Vec<Sighting>);

    /// Forgets what it remembers: what comes next does not follow it.
    fn forget(&mut self) {}
}

/// Watches a host.
pub struct Watch {
    rules: Vec<Box<dyn Rule + Send>>,
    /// The devices that are requested; none means all.
    names: Vec<String>,
    history: History,
    book: EventTracker,
    /// Findings of the last sample without a predecessor.
    alone: Vec<(EventCode, Subject)>,
}

impl Watch {
    /// A watch that has seen nothing yet.
    pub fn new(settings: Settings) -> Watch {
        Watch {
            rules: vec![
                Box::new(stalled::Stalled::new(settings.stall)),
                Box::new(removed::Removed::new(settings.names.clone())),
                Box::new(errors::Errors::default()),
                Box::new(writeback::Writeback::default()),
                Box::new(cgroup_limit::CgroupLimit::default()),
                Box::new(slow_member::SlowMember),
                Box::new(imbalance::Imbalance),
                Box::new(volume_cap::VolumeCap::default()),
                Box::new(instance_cap::InstanceCap::default()),
                Box::new(burst_spent::BurstSpent::default()),
                Box::new(scrub_hurts::ScrubHurts::default()),
                Box::new(cold::Cold::default()),
                Box::new(small_io::SmallIo),
                Box::new(queue_full::QueueFull),
            ],
            names: settings.names,
            history: History::default(),
            book: EventTracker::default(),
            alone: Vec::new(),
        }
    }

    /// Looks at a sample, and tells which events began, continued or ended. Samples come in order of
    /// their time.
    pub fn see(&mut self, sample: &Sample) -> Vec<Change> {
        if let Some(Gap::Suspended(_) | Gap::Unseen(_)) = sample.gap {
            self.history.clear();
            for rule in &mut self.rules {
                rule.forget();
            }
        }
        let is_point = self.history.take(sample);
        let now = Now {
            sample,
            history: &self.history,
            disks: disks(sample, &self.names),
        };
        let mut changes = Vec::new();
        let mut seen = Vec::new();
        for rule in &mut self.rules {
            if is_point || rule.is_instant() {
                rule.look(&now, &mut seen);
                for sighting in seen.drain(..) {
                    changes.extend(self.book.enter(rule.code(), sighting, sample.at));
                }
            }
            changes.extend(
                self.book
                    .close_unseen(rule.code(), rule.linger(), sample.at),
            );
        }
        changes
    }

    /// Looks at a sample that no other of its run comes before or after, as in a log of one report. What it shows
    /// begins and ends with it, and is not repeated where the run before showed it too.
    pub fn see_alone(&mut self, sample: &Sample) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut seen = Vec::new();
        for (code, sighting) in alone::look(sample, &self.names) {
            let key = (code, sighting.subject);
            if !self.alone.contains(&key) {
                changes.extend(self.book.note(code, sighting, sample.at));
            }
            seen.push(key);
        }
        self.alone = seen;
        changes
    }

    /// Ends all events: a log or a recording is over.
    pub fn finish(&mut self) -> Vec<Change> {
        self.book.close_all()
    }

    /// The events that last now, the oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Event> {
        self.book.open()
    }
}
