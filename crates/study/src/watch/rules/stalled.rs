//! `stalled`: requests are in flight and none completes, whatever the busy time says.
//!
//! It begins at the last completion that was seen. If the number in flight is unknown, as in a log of iostat, a device
//! that is always busy and completes nothing has something in flight. A single huge discard may look the same, and may
//! take a disk as long.

use std::collections::HashMap;

use record::sample::{DeviceId, DeviceSample, SampleTime};
use record::{Nanos, Severity};

use crate::watch::format::time;
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Share of busy time that counts as all of it; the rest is the clock's error.
const FULL_BUSY_SHARE: f64 = 0.98;

const ADVICE: &str = "The disk or the path to it hangs, and the programs that use it are blocked. Check the \
                      volume's status in the cloud and the kernel's log; if it does not recover, \
                      fail the member or detach the volume.";

/// Rule for devices on which nothing completes.
pub(super) struct Stalled {
    least: Nanos,
    /// Time since which nothing completed, for each device with something in flight.
    since: HashMap<DeviceId, SampleTime>,
}

impl Stalled {
    /// `least`: time without completions from which a device has stalled.
    pub(super) fn new(least: Nanos) -> Stalled {
        Stalled {
            least,
            since: HashMap::new(),
        }
    }
}

impl Rule for Stalled {
    fn grace_period(&self) -> Nanos {
        // An occasional completion does not end the event: otherwise each would begin a new one.
        Nanos::from_secs(5)
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn forget(&mut self) {
        self.since.clear();
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        let length = now.sample.length.as_secs_f64();
        let mut since = HashMap::with_capacity(self.since.len());
        for device in now.devices.causes(hangs) {
            let id = device.device.id;
            // The requests arrived when the device became busy, within the first interval.
            let shares = [device.busy.map(|busy| busy.0), device.mean_in_flight];
            let busy = shares.into_iter().flatten().fold(0.0, f64::max).min(1.0);
            let known = self.since.get(&id).copied();
            let began = known.unwrap_or_else(|| now.sample.at.before(time(busy * length)));
            since.insert(id, began);
            let lasts = now.sample.at.elapsed - began.elapsed;
            if lasts >= self.least {
                seen.push(sighting(device, began, lasts));
            }
        }
        self.since = since;
    }
}

/// True if something is in flight and nothing completed in the interval.
pub(crate) fn hangs(device: &DeviceSample) -> bool {
    let known = device.all.iops.is_some();
    // A driver may count bytes and not requests, and a log rounds one in a long time to zero.
    let moves = device.all.bytes.is_some_and(|bytes| bytes.0 > 0.0);
    let completes = device.all.is_active() || device.flush.is_active() || moves;
    let waits = match device.in_flight {
        Some(count) => count > 0,
        // Kernels from 5.0 on count the time of a request when it completes, older ones continuously.
        None => {
            let is_busy = device.busy.is_some_and(|busy| busy.0 >= FULL_BUSY_SHARE);
            is_busy
                || device
                    .mean_in_flight
                    .is_some_and(|mean| mean >= FULL_BUSY_SHARE)
        }
    };
    known && !completes && waits
}

fn sighting(device: &DeviceSample, began: SampleTime, lasts: Nanos) -> Sighting {
    let what = match device.in_flight {
        Some(1) => "1 request is in flight".to_owned(),
        Some(count) => format!("{count} requests are in flight"),
        None => "Requests are in flight".to_owned(),
    };
    Sighting {
        text: format!(
            "{what} on {} and nothing has completed for {lasts}.",
            device.device.name
        ),
        advice: ADVICE,
        figures: vec![
            ("stalled_s", lasts.as_secs_f64()),
            (
                "in_flight",
                device.in_flight.map_or(f64::NAN, |count| count as f64),
            ),
        ]
        .into_iter()
        .filter(|(_, value)| value.is_finite())
        .collect(),
        ..Sighting::of(device, Severity::Warn, began)
    }
}
