//! Packed samples: a body, with its times and counts.

use jiff::Timestamp;
use record::Nanos;
use record::sample::{RecordedInterval, Sample, SampleTime};

use super::block::{self, LastHead, Packer};
use super::bytes::PackingGoal;
use super::{BATCH, UNTHINNED, pack};

/// Packed samples of one block or batch.
pub(super) struct PackedSamples {
    pub(super) step: u32,
    pub(super) body: Vec<u8>,
    /// Start and end of the first of them, and end of the last one.
    pub(super) began: Timestamp,
    pub(super) elapsed: Nanos,
    pub(super) ended: Timestamp,
    /// Number of samples, and of devices.
    pub(super) samples: usize,
    pub(super) rows: usize,
}

impl PackedSamples {
    /// Packs samples for this step; `None` if there are none.
    pub(super) fn of(step: u32, samples: &[RecordedInterval]) -> Option<PackedSamples> {
        let (first, last) = (samples.first()?, samples.last()?);
        let rows = samples.iter().map(|one| one.sample.devices.len()).sum();
        let times = Times::of(&first.sample);
        let body = pack(step, samples);
        Some(times.packed(step, last.sample.at, samples.len(), rows, body))
    }

    /// Packs a batch of samples; `head` is that of the batch before. `None` if there are no samples.
    pub(super) fn batch(samples: &[Sample], head: &mut LastHead) -> Option<PackedSamples> {
        let (first, last) = (samples.first()?, samples.last()?);
        let rows = samples.iter().map(|one| one.devices.len()).sum();
        let body = block::pack_after(samples, PackingGoal::Time, head);
        Some(Times::of(first).packed(BATCH, last.at, samples.len(), rows, body))
    }
}

/// Packs samples one at a time, as they were taken, so that few of them are in memory at once: unpacked, they take many
/// times the space.
#[derive(Default)]
pub(super) struct SamplePacker {
    packer: Packer,
    times: Option<Times>,
    last: SampleTime,
    samples: usize,
    rows: usize,
}

impl SamplePacker {
    /// Adds the next sample.
    pub(super) fn add(&mut self, sample: &Sample) {
        self.times.get_or_insert_with(|| Times::of(sample));
        self.last = sample.at;
        self.samples += 1;
        self.rows += sample.devices.len();
        self.packer.add(sample);
    }

    /// Finishes the block; `None` if there are no samples.
    pub(super) fn finish(self) -> Option<PackedSamples> {
        let times = self.times?;
        let body = self.packer.finish();
        Some(times.packed(UNTHINNED, self.last, self.samples, self.rows, body))
    }
}

/// Start and end of the first sample.
struct Times {
    began: Timestamp,
    elapsed: Nanos,
}

impl Times {
    fn of(first: &Sample) -> Times {
        Times {
            // Only samples from log files can lack a time of day, and those are not recorded.
            began: first.at.before(first.length).wall.unwrap_or_default(),
            elapsed: first.at.elapsed,
        }
    }

    fn packed(
        self,
        step: u32,
        last: SampleTime,
        samples: usize,
        rows: usize,
        body: Vec<u8>,
    ) -> PackedSamples {
        PackedSamples {
            step,
            body,
            began: self.began,
            elapsed: self.elapsed,
            // If the clock was set back meanwhile, the block still does not end before it began.
            ended: last.wall.unwrap_or_default().max(self.began),
            samples,
            rows,
        }
    }
}
