//! Places of the probes of foreground latency.

use std::ops::Range;

use reader::PROBE_BYTES;
use record::Ranges;

use super::Reading;

impl Reading<'_> {
    /// A place that is warm, another one each time.
    pub(super) fn warm_place(&mut self) -> Option<Range<u64>> {
        let length = u64::from(PROBE_BYTES);
        let pages = self.work.done().total().0 / length;
        self.probes = self.probes.wrapping_add(1);
        // A multiplication by the golden ratio spreads the places over all (Knuth, volume 3, 6.4).
        let spread = self.probes.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = ((u128::from(spread) * u128::from(pages)) >> 64) as u64 * length;
        page_at(self.work.done(), at)
    }
}

/// A page behind the first `at` bytes of ranges, if one begins there.
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
