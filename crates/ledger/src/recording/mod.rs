//! Recordings: the samples and events of a watch, stored compactly.
//!
//! # Form
//!
//! Samples arrive in batches of a few seconds. A batch is one small row, which is on the disk when [`Ledger::record`]
//! returns; so a kill loses only later samples. When there are enough batches, one transaction replaces them by one
//! block. Batches are packed quickly, blocks tightly.
//!
//! A block holds figures by columns, as differences from their predictions, compressed with deflate. A count of
//! requests, bytes or milliseconds is exact below 2048 of its unit (sectors, if it is whole sectors), and above within
//! [`MAX_RELATIVE_ERROR`], which is 0.049 %. A mean wait and a mean size are quotients of two counts, so their error is
//! at most twice that; the error of the mean number in flight, if it is not stored because it follows from rates and
//! waits, is at most 0.25 % or 0.004. All printed figures have three or four digits. Of a volume's statistics page,
//! sums over 15 seconds are stored, without its histograms.
//!
//! # Retention
//!
//! [`Retention`] sets when samples are thinned out to one a minute, with the minimum, mean and maximum of each figure,
//! and then to one an hour. If they take more space than allowed, the oldest are thinned out sooner, and finally
//! dropped.

mod block;
mod blocks;
mod bytes;
mod device;
mod host;
mod join;
mod keep;
mod level;
mod marks;
mod packed;
mod read;
#[cfg(test)]
pub(crate) mod simulated;
mod table;
#[cfg(test)]
mod tests;
mod thin;
mod write;

use jiff::Timestamp;
use record::sample::{RecordedInterval, SampleSource, SampleTime};
use record::{Bytes, varint};
use study::watch::WatchEvent;

use bytes::PackingGoal;
pub use keep::Retention;
pub use level::MAX_RELATIVE_ERROR;
pub use marks::{Mark, MarkReader};
pub use read::{RecordedSpan, ReplayedSample};
pub use thin::{Thinner, thin};
pub use write::Recording;

/// Step of a batch: samples as they were taken, in the order of arrival.
const BATCH: u32 = 0;
/// Step of a block of samples as they were taken.
const UNTHINNED: u32 = 1;
/// Step of a block of samples thinned out to minutes.
const MINUTES: u32 = 60;
/// Step of a block of samples thinned out to hours.
const HOURS: u32 = 3600;

/// An event, and when it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    /// The event in its present state.
    pub event: WatchEvent,
    /// The end of the sample in which it was found.
    pub found: SampleTime,
}

/// A recording, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSummary {
    /// Number of the recording in the ledger.
    pub number: i64,
    /// Name of the host that was recorded.
    pub host: String,
    /// Start of the first sample that is still stored.
    pub from: Timestamp,
    /// End of its last sample.
    pub to: Timestamp,
    /// True if it was not ended: it continues, or its recorder was killed.
    pub is_open: bool,
    /// Number of samples kept as they were taken.
    pub taken: u64,
    /// Number of samples kept by the minute.
    pub minutes: u64,
    /// Number of samples kept by the hour.
    pub hours: u64,
    /// Number of events.
    pub events: u64,
    /// Bytes that its samples take.
    pub bytes: Bytes,
    /// Source of the samples.
    pub source: SampleSource,
}

/// The body of a block of this step.
fn pack(step: u32, samples: &[RecordedInterval]) -> Vec<u8> {
    if step <= UNTHINNED {
        return block::pack(samples.iter().map(|one| &one.sample), PackingGoal::Room);
    }
    let mut out = Vec::new();
    varint::put(&mut out, samples.len() as u64);
    for one in samples {
        varint::put(&mut out, one.samples());
    }
    let parts: [fn(&RecordedInterval) -> &record::sample::Sample; 3] = [
        |one| &one.sample,
        RecordedInterval::least,
        RecordedInterval::most,
    ];
    // Samples taken so rarely that there was nothing to thin out have no minimum and maximum: these are left empty.
    let is_plain = samples.iter().all(|one| one.spread.is_none());
    for (nth, part) in parts.into_iter().enumerate() {
        if is_plain && nth > 0 {
            varint::put(&mut out, 0_u64);
            continue;
        }
        let packed = block::pack(samples.iter().map(part), PackingGoal::Room);
        varint::put(&mut out, packed.len() as u64);
        out.extend_from_slice(&packed);
    }
    out
}

/// Returns an error unless the body of a block of this step can be read.
pub(crate) fn demand_readable(step: u32, body: &[u8]) -> Result<(), String> {
    unpack(step, body).map(drop)
}

/// Unpacks the samples of a body; the error is a clause that describes the damage.
fn unpack(step: u32, body: &[u8]) -> Result<Vec<RecordedInterval>, String> {
    if step <= UNTHINNED {
        let samples = block::unpack(body)?;
        return Ok(samples.into_iter().map(RecordedInterval::taken).collect());
    }
    let cut = || "it is cut short".to_owned();
    let mut rest = body;
    let mut take = || varint::take(&mut rest).ok_or_else(cut);
    let many = usize::try_from(take()?).map_err(|_| cut())?;
    if many > body.len() {
        return Err(cut());
    }
    let counts: Vec<u64> = (0..many).map(|_| take()).collect::<Result<_, _>>()?;
    let mut part = || -> Result<Option<std::vec::IntoIter<_>>, String> {
        let length = varint::take(&mut rest).and_then(|length| usize::try_from(length).ok());
        let (packed, tail) = length
            .and_then(|length| rest.split_at_checked(length))
            .ok_or_else(cut)?;
        rest = tail;
        if packed.is_empty() {
            return Ok(None);
        }
        let samples = block::unpack(packed)?;
        if samples.len() != many {
            return Err(cut());
        }
        Ok(Some(samples.into_iter()))
    };
    let means = part()?.ok_or_else(cut)?;
    let (Some(leasts), Some(mosts)) = (part()?, part()?) else {
        return Ok(means.map(RecordedInterval::taken).collect());
    };
    let spreads = leasts.zip(mosts).zip(counts);
    Ok(means
        .zip(spreads)
        .map(|(sample, ((least, most), samples))| RecordedInterval {
            sample,
            spread: Some(Box::new(record::sample::Spread {
                least,
                most,
                samples,
            })),
        })
        .collect())
}
