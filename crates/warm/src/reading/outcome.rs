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

    /// True if all space was read, or given up as unreadable.
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

    /// True if more is called unreadable than may be, because to read closer would have taken too long.
    pub(crate) fn is_coarse(&self) -> bool {
        self.work.is_coarse()
    }

    /// Bytes that were read at this start.
    pub(crate) fn read(&self) -> Bytes {
        self.work.read()
    }

    /// The share of what was read at this start that was cold, where that is known.
    pub(crate) fn cold_share(&self) -> Option<f64> {
        self.stream.cold_share()
    }

    /// Limit of the rate; `None` when the reading was over before that was known.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        verdict::of_one(self.depth.as_ref()?, &KnownCaps::default())
    }

    /// Limit while all volumes were read together, and the bytes a second that this one gave alone.
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

    /// The size of the volume at the last poll, and the smallest that was seen.
    pub(crate) fn sizes(&self) -> (Bytes, Bytes) {
        (self.size, self.work.end())
    }

    /// The share of the bytes that went through the device meanwhile which were others'; `None` where
    /// the kernel does not count.
    pub(crate) fn others_share(&self) -> Option<f64> {
        self.pace.others_share()
    }

    /// Result of the foreground; `None` where there was none.
    pub(crate) fn foreground(&self) -> Option<ForegroundReport> {
        self.pace.foreground()
    }
}
