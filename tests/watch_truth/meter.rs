//! The kernel's counters of a device, in simulated time.

use std::sync::Arc;

use record::sample::{BytesPerSecond, Device, DeviceSample, Flow, Fraction, PerSecond};
use record::{Bytes, Nanos};

/// The kernel's counters of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    ops: [u64; 2],
    bytes: [u64; 2],
    waited: [u64; 2],
    pub(crate) in_flight: u64,
    changed: u64,
    area: u64,
    busy: u64,
}

impl Meter {
    fn settle(&mut self, now: u64) {
        let passed = now - self.changed;
        self.area += passed * self.in_flight;
        self.busy += if self.in_flight > 0 { passed } else { 0 };
        self.changed = now;
    }

    /// A request begins.
    pub(crate) fn begin(&mut self, now: u64) {
        self.settle(now);
        self.in_flight += 1;
    }

    /// One that began then has ended.
    pub(crate) fn end(&mut self, now: u64, began: u64, write: bool, bytes: u64) {
        self.settle(now);
        self.in_flight -= 1;
        let side = usize::from(write);
        self.ops[side] += 1;
        self.bytes[side] += bytes;
        self.waited[side] += now - began;
    }

    /// The counts of the last second, which are then reset.
    pub(crate) fn take(&mut self, device: &Arc<Device>, now: u64) -> DeviceSample {
        self.settle(now);
        let flow = |side: usize| {
            let ops = self.ops[side];
            // The kernel counts time in milliseconds.
            let wait = |ops: u64| Nanos(self.waited[side] / 1_000_000 * 1_000_000 / ops);
            Flow {
                iops: Some(PerSecond(ops as f64)),
                bytes: Some(BytesPerSecond(self.bytes[side] as f64)),
                merged: Some(PerSecond(0.0)),
                wait: (ops > 0).then(|| wait(ops)),
                size: (ops > 0).then(|| Bytes(self.bytes[side] / ops)),
            }
        };
        let mut sample = DeviceSample::unknown(Arc::clone(device));
        sample.read = flow(0);
        sample.write = flow(1);
        sample.mean_in_flight = Some(self.area as f64 / 1e9);
        sample.in_flight = Some(self.in_flight);
        sample.busy = Some(Fraction(self.busy as f64 / 1e9));
        sample.sum_up();
        *self = Meter {
            in_flight: self.in_flight,
            changed: now,
            ..Meter::default()
        };
        sample
    }
}
