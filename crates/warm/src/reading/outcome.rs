//! Result of a reading.

use reader::ForegroundReport;
use record::{Bytes, Ranges};
use study::cold::forecast::MERGE_BYTES;
use study::depth::verdict::{self, BindingLimit, KnownCaps, Verdict};

use super::{EndOfReading, Reading};

impl Reading<'_> {
    /// Reason why no more is requested.
    pub(crate) fn end_of_reading(&self) -> EndOfReading {
        if self.gone {
            EndOfReading::Gone
        } else if self.doubt.is_silent() {
            EndOfReading::Silent
        } else {
            EndOfReading::All
        }
    }

    /// True if all space of the plan was read or marked as unreadable.
    pub(crate) fn is_complete(&self) -> bool {
        self.work.left().0 == 0 && !self.later.may_add()
    }

    /// Ranges that were read, now or at an earlier start.
    pub(crate) fn done_ranges(&self) -> &Ranges {
        self.work.done()
    }

    /// Ranges that could not be read.
    pub(crate) fn unreadable(&self) -> &Ranges {
        self.work.unreadable()
    }

    /// True if ranges that are marked as unreadable may hold readable pages, because to read each page would have
    /// taken too long.
    pub(crate) fn is_coarse(&self) -> bool {
        self.work.is_coarse()
    }

    /// Bytes that were read at this start.
    pub(crate) fn read(&self) -> Bytes {
        self.work.read()
    }

    /// Share of the blocks read at this start that were cold, from 0 to 1, where it is known.
    pub(crate) fn cold_share(&self) -> Option<f64> {
        self.stream.cold_share()
    }

    /// Limit of the rate; `None` if the reading ended before the limit was known.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        verdict::of_one(self.depth.as_ref()?, &KnownCaps::default())
    }

    /// Limit of the rate while all volumes were read together, and the rate of this volume alone, in bytes a second.
    pub(crate) fn in_parallel(&self) -> Option<(Verdict, f64)> {
        let bytes_per_s = self.together.rate()?;
        let depth = self.wanted();
        let binds = match self.verdict() {
            Some(verdict) => verdict.binds,
            None => BindingLimit::Unknown,
        };
        let requests_per_s = bytes_per_s / self.block.0 as f64;
        let together = Verdict {
            binds,
            bytes_per_s,
            iops: bytes_per_s / MERGE_BYTES as f64,
            depth,
            latency_s: depth as f64 / requests_per_s,
            share_of_limit: None,
        };
        Some((together, self.alone?))
    }

    /// Size of the volume at the last poll, and its smallest size during the reading.
    pub(crate) fn sizes(&self) -> (Bytes, Bytes) {
        (self.size, self.work.end())
    }

    /// The foreground's share of the bytes that were read from and written to the device, from 0 to 1; `None` where the
    /// kernel does not count.
    pub(crate) fn others_share(&self) -> Option<f64> {
        self.pace.others_share()
    }

    /// Foreground latency and targets over the whole reading; `None` where there was no foreground.
    pub(crate) fn foreground(&self) -> Option<ForegroundReport> {
        self.pace.foreground()
    }
}
