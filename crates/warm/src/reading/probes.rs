//! The probes of foreground latency.

use std::ops::Range;

use engine::list::Request;
use reader::PROBE_BYTES;
use record::{Nanos, Ranges};

use super::Reading;

impl Reading<'_> {
    /// A probe of a page that is warm, if one is due.
    pub(super) fn probe(&mut self, now: Nanos) -> Option<Request> {
        let length = u64::from(PROBE_BYTES);
        let done = self.work.done();
        let pages = done.total().0 / length;
        let page = |page| Some(page_at(done, page * length)?.start);
        self.pace.probe(now, pages, page)
    }
}

/// The first aligned page after the first `at` bytes of the ranges, if the range there holds a whole one.
pub(super) fn page_at(ranges: &Ranges, mut at: u64) -> Option<Range<u64>> {
    let length = u64::from(PROBE_BYTES);
    for range in ranges.iter() {
        let own = range.end - range.start;
        if at + length <= own {
            let start = (range.start + at).next_multiple_of(length);
            return (start + length <= range.end).then_some(start..start + length);
        }
        at = at.saturating_sub(own);
    }
    None
}
