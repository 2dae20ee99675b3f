//! `cgroup-limit`: a control group is at its I/O limit on a device.
//!
//! Requests beyond the limit wait before they reach the disk, whose counters show a fast disk with little work. The
//! group's use shows that it is at its limit. The wait of its programs shows in its pressure, or, if groups have none
//! (version 1), in that of the host: without pressure the finding is a note, since a program's demand may happen to
//! equal its limit.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use record::sample::{DeviceNumber, DeviceSample, GroupLimit, LimitKind, Sample, SampleTime};
use record::{Bytes, Severity, Subject};

use crate::watch::format::{digits, percent};
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Window in seconds, and minimum number of samples.
const WINDOW_S: f64 = 5.0;
const MIN_POINTS: usize = 3;
/// Share of its limit from which a group is at the limit. The kernel grants in slices of 100 ms, and the rest of a
/// slice may be lost.
const AT_LIMIT_SHARE: f64 = 0.9;
/// Share of the time for which tasks wait.
const WAIT_SHARE: f64 = 0.1;

const ADVICE: &str = "A faster disk does not help. Raise the limit (io.max or blkio.throttle.* of the group, which systemd \
                      sets by IOReadIOPSMax= and similar, container runtimes by --device-read-iops) or reduce the \
                      load.";

/// A limit: its group, its device and its kind.
type Key = (Arc<str>, DeviceNumber, LimitKind);

/// A group's use in an interval.
#[derive(Clone, Copy)]
struct GroupUse {
    seconds: f64,
    used: f64,
    pressure: Option<f64>,
}

#[derive(Default)]
struct Track {
    uses: VecDeque<GroupUse>,
    limit: f64,
    /// Time since which the group is at its limit.
    since: Option<SampleTime>,
}

/// Rule for groups at their limits.
#[derive(Default)]
pub(super) struct CgroupLimit {
    tracks: HashMap<Key, Track>,
}

/// A group that is at its limit.
struct LimitedGroup<'a> {
    limit: &'a GroupLimit,
    since: SampleTime,
    used: f64,
    share: f64,
    pressure: Option<f64>,
    /// True if the pressure is the group's own.
    own: bool,
}

impl Rule for CgroupLimit {
    fn is_instant(&self) -> bool {
        true
    }

    fn forget(&mut self) {
        self.tracks.clear();
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        let sample = now.sample;
        let mut tracks = std::mem::take(&mut self.tracks);
        let mut found: Vec<LimitedGroup<'_>> = Vec::new();
        for limit in &sample.host.limits {
            let key = (Arc::clone(&limit.group), limit.device, limit.kind);
            let mut track = tracks.remove(&key).unwrap_or_default();
            found.extend(track.take(limit, sample));
            self.tracks.insert(key, track);
        }
        // One device may be limited for many groups: the one with the longest wait is named.
        found.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        let mut sightings: HashMap<DeviceNumber, (Sighting, usize)> = HashMap::new();
        for one in found {
            let at = one.limit.device;
            match sightings.get_mut(&at) {
                Some((_, more)) => *more += 1,
                None => drop(sightings.insert(at, (one.sighting(sample), 0))),
            }
        }
        seen.extend(sightings.into_values().map(|(mut sighting, more)| {
            if more > 0 {
                sighting
                    .text
                    .push_str(&format!(" The same holds for {more} more limits on it."));
            }
            sighting
        }));
    }
}

impl Track {
    fn take<'a>(&mut self, limit: &'a GroupLimit, sample: &Sample) -> Option<LimitedGroup<'a>> {
        if self.limit != limit.limit {
            *self = Track::default();
            self.limit = limit.limit;
        }
        let host = || {
            sample
                .host
                .pressure
                .and_then(|pressure| pressure.some.stalled)
        };
        self.uses.push_back(GroupUse {
            seconds: sample.length.as_secs_f64(),
            used: limit.used?,
            pressure: limit.pressure.or_else(host).map(|share| share.0),
        });
        let length = |uses: &VecDeque<GroupUse>| uses.iter().map(|one| one.seconds).sum::<f64>();
        while self.uses.len() > MIN_POINTS
            && length(&self.uses) - self.uses.front().map_or(0.0, |one| one.seconds) >= WINDOW_S
        {
            self.uses.pop_front();
        }
        let seconds = length(&self.uses);
        let is_long = self.uses.len() >= MIN_POINTS && seconds >= 0.97 * WINDOW_S;
        let used = self
            .uses
            .iter()
            .map(|one| one.used * one.seconds)
            .sum::<f64>()
            / seconds;
        let share = used / limit.limit;
        if !is_long || limit.limit <= 0.0 || share < AT_LIMIT_SHARE {
            self.since = None;
            return None;
        }
        let began = sample.at.before(record::Nanos((seconds * 1e9) as u64));
        let waits: Option<Vec<f64>> = self.uses.iter().map(|one| one.pressure).collect();
        let pressure = waits.map(|waits| waits.iter().sum::<f64>() / waits.len() as f64);
        Some(LimitedGroup {
            limit,
            since: *self.since.get_or_insert(began),
            used,
            share,
            pressure,
            own: limit.pressure.is_some(),
        })
    }
}

impl LimitedGroup<'_> {
    fn weight(&self) -> f64 {
        self.pressure.unwrap_or(0.0) + self.share / 1e3
    }

    fn sighting(&self, sample: &Sample) -> Sighting {
        let is_device = |one: &&DeviceSample| one.device.number == Some(self.limit.device);
        let device = sample.devices.iter().find(is_device);
        let name = device.map_or_else(
            || self.limit.device.to_string(),
            |one| one.device.name.clone(),
        );
        let waits = self.pressure.filter(|pressure| *pressure >= WAIT_SHARE);
        let severity = if waits.is_some() {
            Severity::Warn
        } else {
            Severity::Note
        };
        let amount = |value: f64| match self.limit.kind {
            LimitKind::Reads => format!("{} reads", digits(value)),
            LimitKind::Writes => format!("{} writes", digits(value)),
            LimitKind::ReadBytes => format!("{} read", Bytes(value as u64)),
            LimitKind::WrittenBytes => format!("{} written", Bytes(value as u64)),
        };
        let waiting = match (waits, self.own) {
            (Some(share), true) => {
                format!(" Its tasks wait for I/O {} of the time.", percent(share))
            }
            (Some(share), false) => format!(
                " Tasks of this host wait for I/O {} of the time.",
                percent(share)
            ),
            (None, _) => String::new(),
        };
        Sighting {
            subject: device.map_or(Subject::Host, |one| Subject::Device(one.device.id)),
            name: name.clone(),
            severity,
            began: self.since,
            text: format!(
                "The control group {} is at {} of its limit on {name}: {} a second of {}. Requests beyond it \
                 wait before {name}, where its counters do not include them.{waiting}",
                self.limit.group,
                percent(self.share),
                amount(self.used),
                amount(self.limit.limit),
            ),
            advice: ADVICE,
            figures: vec![
                ("limit_per_s", self.limit.limit),
                ("used_per_s", self.used),
                ("share", self.share),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use record::Nanos;
    use record::sample::{Device, DeviceId, Fraction, HostSample, Pressure, PressureLine};

    use super::*;
    use crate::watch::EventCode;
    use crate::watch::{ChangeKind, EventChange, Settings, Watch};

    fn number(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 8, minor }
    }

    fn limit(group: &str, used: f64, pressure: Option<f64>) -> GroupLimit {
        GroupLimit {
            group: group.into(),
            device: number(16),
            kind: LimitKind::Reads,
            limit: 100.0,
            used: Some(used),
            pressure: pressure.map(Fraction),
        }
    }

    /// Findings if each interval has these limits.
    fn found(
        host: Option<f64>,
        length_s: f64,
        limits: &dyn Fn(u64) -> Vec<GroupLimit>,
    ) -> Vec<EventChange> {
        let mut watch = Watch::new(Settings::default());
        let line = |share: f64| PressureLine {
            stalled: Some(Fraction(share)),
            ..PressureLine::default()
        };
        let mut changes = Vec::new();
        for step in 1..=20 {
            let at = SampleTime {
                wall: None,
                elapsed: Nanos((step as f64 * length_s * 1e9) as u64),
            };
            let mut device = Device::by_name(DeviceId(0), "sdb", SampleTime::default());
            device.number = Some(number(16));
            changes.extend(watch.observe(&Sample {
                at,
                length: Nanos((length_s * 1e9) as u64),
                host: HostSample {
                    limits: limits(step),
                    pressure: host.map(|share| Pressure {
                        some: line(share),
                        full: None,
                    }),
                    ..HostSample::default()
                },
                devices: vec![DeviceSample::unknown(Arc::new(device))],
                ..Sample::default()
            }));
        }
        changes
    }

    #[test]
    fn a_group_at_its_limit_is_named_whatever_the_interval() {
        for length_s in [0.1, 1.0, 10.0, 60.0] {
            let changes = found(None, length_s, &|_| vec![limit("/db", 98.0, Some(0.9))]);
            if length_s * 20.0 < WINDOW_S {
                assert!(changes.is_empty());
                continue;
            }
            assert_eq!(changes[0].kind, ChangeKind::Opened, "{length_s}");
            let event = &changes[0].event;
            assert_eq!(
                (event.code, event.name.as_str()),
                (EventCode::CgroupLimit, "sdb")
            );
            assert_eq!(event.severity, Severity::Warn);
            for part in [
                "/db",
                "98 %",
                "98.0 reads a second of 100 reads",
                "90 % of the time",
            ] {
                assert!(event.text.contains(part), "{part}: {}", event.text);
            }
        }
    }

    #[test]
    fn a_group_below_its_limit_is_not_named() {
        assert!(found(None, 1.0, &|_| vec![limit("/db", 80.0, Some(0.9))]).is_empty());
        // A short peak has no finding, nor has a limit that was just set.
        let peak = |step: u64| {
            vec![limit(
                "/db",
                if step.is_multiple_of(5) { 100.0 } else { 50.0 },
                Some(0.9),
            )]
        };
        assert!(found(None, 1.0, &peak).is_empty());
    }

    #[test]
    fn without_anything_that_waits_it_is_a_note() {
        let severity = |host: Option<f64>, own: Option<f64>| {
            let changes = found(host, 1.0, &|_| vec![limit("/db", 99.0, own)]);
            changes[0].event.severity
        };
        assert_eq!(severity(None, None), Severity::Note);
        assert_eq!(severity(Some(0.01), None), Severity::Note);
        assert_eq!(severity(Some(0.5), None), Severity::Warn);
        // The group's own pressure counts, if it has one.
        assert_eq!(severity(Some(0.5), Some(0.0)), Severity::Note);
    }

    #[test]
    fn of_many_groups_on_a_device_the_one_that_waits_most_is_named_once() {
        let limits = |_| {
            vec![
                limit("/a", 99.0, Some(0.2)),
                limit("/b", 99.0, Some(0.8)),
                limit("/c", 10.0, Some(0.9)),
            ]
        };
        let changes = found(None, 1.0, &limits);
        assert_eq!(changes.len(), 1);
        assert!(changes[0].event.text.contains("/b") && changes[0].event.text.contains("1 more"));
    }

    #[test]
    fn it_is_over_when_the_limit_is_raised() {
        let raised = |step: u64| {
            let mut one = limit("/db", 99.0, Some(0.9));
            if step > 8 {
                one.limit = 1000.0;
            }
            vec![one]
        };
        let changes = found(None, 2.0, &raised);
        let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Opened, ChangeKind::Closed]);
    }
}
