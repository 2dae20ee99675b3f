//! Several recordings as one series: one clock, and one number for each device.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use record::sample::{Device, DeviceId, Gap, RecordedInterval, Sample, SampleTime};
use record::{Nanos, Subject};
use study::watch::WatchEvent;

/// Longest time between two samples that neither covers and that is no gap: a watch is late now and then.
const MAX_SAMPLE_DISTANCE: Nanos = Nanos::from_secs(2);

/// Identity of a device across recordings: its name, and its serial number and its size in bytes where they are known.
type Identity = (String, Option<String>, Option<u64>);

/// Joins recordings, read one after the other, into one series.
#[derive(Default)]
pub(super) struct Joiner {
    /// Devices of the series. The index of a device is its number in the series.
    known: Vec<Identity>,
    /// Numbers in the series, by the numbers in the recording that is being read.
    ids: HashMap<DeviceId, DeviceId>,
    /// Devices by their numbers in the recording: as the recording has each, and as the series has it.
    devices: HashMap<DeviceId, (Arc<Device>, Arc<Device>)>,
    /// Time of the recording's first sample, in the series.
    added: Nanos,
    /// Time of the recording's first sample, by its own clock.
    taken: Nanos,
    /// Time of the last sample, in the series.
    last: Option<SampleTime>,
    /// Numbers of events in the series, by their numbers in the recording.
    events: HashMap<u64, u64>,
    /// Number of the last event of the series.
    last_event: u64,
}

impl Joiner {
    /// Begins the next recording, whose first sample is `first`.
    pub(super) fn begin(&mut self, first: &Sample) {
        self.ids.clear();
        self.devices.clear();
        self.events.clear();
        self.taken = first.at.elapsed;
        self.added = match self.last {
            None => Nanos(0),
            Some(last) => last.elapsed + between(last.wall, first.at.wall),
        };
    }

    /// End of the last sample, in the series.
    pub(super) fn last(&self) -> Option<SampleTime> {
        self.last
    }

    /// Changes the times and the devices of a sample into those of the series, and sets its gap.
    pub(super) fn join(&mut self, recorded: &mut RecordedInterval) {
        let own = recorded.sample.at.elapsed;
        let at = self.series_time(recorded.sample.at);
        let length = recorded.sample.length;
        let since = self.last.map(|last| at.elapsed - last.elapsed);
        let missing = since.map_or(Nanos(0), |since| since - length);
        let gap = recorded
            .sample
            .gap
            .or_else(|| (missing > MAX_SAMPLE_DISTANCE).then_some(Gap::Unseen(missing)));
        self.last = Some(at);
        self.renumber(&mut recorded.sample, at, gap);
        if let Some(spread) = &mut recorded.spread {
            debug_assert_eq!(spread.least.at.elapsed, own);
            self.renumber(&mut spread.least, at, gap);
            self.renumber(&mut spread.most, at, gap);
        }
    }

    /// The event with its number, its device and its times in the series.
    pub(super) fn event(&mut self, mut event: WatchEvent) -> WatchEvent {
        let number = self.events.get(&event.id).copied().unwrap_or_else(|| {
            self.last_event += 1;
            self.events.insert(event.id, self.last_event);
            self.last_event
        });
        event.id = number;
        if let Subject::Device(id) = event.subject {
            event.subject = Subject::Device(self.number_of(id, &event.name));
        }
        event.began = self.series_time(event.began);
        event.ended = event.ended.map(|ended| self.series_time(ended));
        event
    }

    /// Time of the series for a time of the recording.
    fn series_time(&self, recorded: SampleTime) -> SampleTime {
        SampleTime {
            wall: recorded.wall,
            elapsed: (recorded.elapsed + self.added) - self.taken,
        }
    }

    /// Gives the devices of a sample their numbers in the series, and sets the sample's time and gap.
    fn renumber(&mut self, sample: &mut Sample, at: SampleTime, gap: Option<Gap>) {
        sample.at = at;
        sample.gap = gap;
        for one in &sample.devices {
            self.number(&one.device);
        }
        for one in &mut sample.devices {
            one.device = self.device(&one.device);
            if let Some(array) = &mut one.array {
                for member in &mut array.members {
                    let known = member.device.and_then(|id| self.ids.get(&id).copied());
                    member.device = known;
                }
            }
        }
    }

    /// Gives a device its number in the series, where it has none yet.
    fn number(&mut self, device: &Device) {
        if self.ids.contains_key(&device.id) {
            return;
        }
        let identity = (
            device.name.clone(),
            device.serial.clone(),
            device.size.map(|size| size.0),
        );
        self.give_number(device.id, |known| *known == identity, identity.clone());
    }

    /// Number of a device, in the series, to which an event belongs. Where no sample of it was read, its own number
    /// may be that of another device in the series.
    fn number_of(&mut self, id: DeviceId, name: &str) -> DeviceId {
        match self.ids.get(&id) {
            Some(number) => *number,
            None => self.give_number(id, |known| known.0 == name, (name.to_owned(), None, None)),
        }
    }

    /// Gives a device of the recording the number of the same one in earlier recordings, or else a new one.
    fn give_number(
        &mut self,
        id: DeviceId,
        is_same: impl Fn(&Identity) -> bool,
        identity: Identity,
    ) -> DeviceId {
        let taken: HashSet<DeviceId> = self.ids.values().copied().collect();
        let is_free = |at: usize| !taken.contains(&DeviceId(at as u32));
        let mut known = self.known.iter().enumerate();
        let same = known.position(|(at, known)| is_same(known) && is_free(at));
        let at = same.unwrap_or_else(|| {
            self.known.push(identity);
            self.known.len() - 1
        });
        let number = DeviceId(at as u32);
        self.ids.insert(id, number);
        number
    }

    fn device(&mut self, own: &Arc<Device>) -> Arc<Device> {
        if let Some((before, here)) = self.devices.get(&own.id)
            && (Arc::ptr_eq(before, own) || before == own)
        {
            return Arc::clone(here);
        }
        let mut device = Device::clone(own);
        let number = |id: &DeviceId| self.ids.get(id).copied();
        device.id = number(&own.id).unwrap_or(own.id);
        device.lies_on = own.lies_on.iter().filter_map(number).collect();
        device.first_seen = self.series_time(own.first_seen);
        let here = Arc::new(device);
        self.devices
            .insert(own.id, (Arc::clone(own), Arc::clone(&here)));
        here
    }
}

/// Time between two timestamps; 0 if one is missing, or if the clock was set back.
fn between(from: Option<Timestamp>, to: Option<Timestamp>) -> Nanos {
    let passed = from
        .zip(to)
        .map_or(0, |(from, to)| to.as_nanosecond() - from.as_nanosecond());
    Nanos(u64::try_from(passed).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use record::Severity;
    use record::sample::DeviceSample;
    use study::watch::EventCode;

    use super::*;

    fn recorded(second: u64, names: &[&str]) -> RecordedInterval {
        let at = SampleTime {
            wall: Timestamp::from_second(second as i64).ok(),
            elapsed: Nanos::from_secs(second),
        };
        let device = |(name, id): (&&str, u32)| {
            DeviceSample::unknown(Arc::new(Device::by_name(DeviceId(id), name, at)))
        };
        RecordedInterval::taken(Sample {
            at,
            length: Nanos::from_secs(1),
            devices: names.iter().zip(0..).map(device).collect(),
            ..Sample::default()
        })
    }

    fn subject(joiner: &mut Joiner, id: u32, name: &str) -> Subject {
        let event = joiner.event(WatchEvent {
            id: u64::from(id),
            code: EventCode::Stalled,
            severity: Severity::Warn,
            subject: Subject::Device(DeviceId(id)),
            name: name.to_owned(),
            began: SampleTime::default(),
            ended: None,
            text: String::new(),
            advice: String::new(),
            figures: Vec::new(),
        });
        event.subject
    }

    #[test]
    fn a_finding_about_a_device_without_samples_is_not_about_another_one() {
        let mut joiner = Joiner::default();
        let mut first = recorded(1, &["vda", "vdb", "vdc"]);
        joiner.begin(&first.sample);
        joiner.join(&mut first);
        // In the next recording, number 2 is a device that is gone when the replay begins.
        let mut second = recorded(100, &["vdb", "vda"]);
        joiner.begin(&second.sample);
        joiner.join(&mut second);
        let number = |name: &str| second.sample.named(name).unwrap().device.id;
        assert_eq!(
            subject(&mut joiner, 0, "vdb"),
            Subject::Device(number("vdb"))
        );
        assert_eq!(number("vdb"), DeviceId(1));
        let gone = subject(&mut joiner, 2, "vdz");
        assert_eq!(gone, Subject::Device(DeviceId(3)));
        assert_eq!(subject(&mut joiner, 2, "vdz"), gone);
        assert_eq!(
            subject(&mut joiner, 7, "vdc"),
            Subject::Device(DeviceId(2)),
            "the one of that name before"
        );
    }
}
