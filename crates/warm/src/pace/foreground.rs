//! Whether others use the device.

use std::collections::VecDeque;

use super::Counted;

/// So many intervals in a row nobody else may be seen before the probes are not listened to: two
/// seconds.
pub(super) const QUIET: usize = 4;
/// So many reads in that time are nobody: what asks for the state of a disk now and then.
const NOBODY: i64 = 2;

/// Whether others use the device, by what the kernel counts beyond our own.
///
/// The kernel is always a little ahead, by what has come back and was not yet taken note of here; by
/// how much changes with the moment. So the reads beyond our own are summed up, and the least sum of
/// one stretch of intervals is compared with that of the stretch before: what is only ahead comes
/// back, and what others read does not.
#[derive(Debug, Default)]
pub(super) struct Foreground {
    /// Reads beyond our own since the start, after each of the last intervals.
    beyond: VecDeque<i64>,
    /// For so many intervals nobody was seen.
    pub(super) quiet: usize,
}

impl Foreground {
    /// Whether there is surely nobody, after an interval in which the kernel has counted this, and we
    /// so many reads.
    pub(super) fn is_none(&mut self, counted: Option<Counted>, own: u64) -> bool {
        let Some(counted) = counted else {
            *self = Foreground::default();
            return false;
        };
        let more = i64::try_from(counted.reads).unwrap_or(i64::MAX)
            - i64::try_from(own).unwrap_or(i64::MAX);
        let sum = self.beyond.back().copied().unwrap_or(0);
        self.beyond.push_back(sum.saturating_add(more));
        if self.beyond.len() > 2 * QUIET {
            self.beyond.pop_front();
        }
        let is_quiet = counted.writes == 0 && is_about(counted.reads, own);
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        self.quiet >= QUIET && self.growth().is_some_and(|growth| growth <= NOBODY)
    }

    /// By how much the reads of others have grown, from one stretch of intervals to the next. `None`
    /// before there were two.
    fn growth(&self) -> Option<i64> {
        let least = |from: usize| self.beyond.iter().skip(from).take(QUIET).min();
        let full = self.beyond.len() == 2 * QUIET;
        full.then(|| Some(least(QUIET)? - least(0)?)).flatten()
    }
}

/// Whether what was counted may be our own for all that one interval shows.
fn is_about(reads: u64, own: u64) -> bool {
    reads <= own + own / 50 + 4
}

/// Others are somebody who read or write this often in [`QUIET`] intervals: four times a second. What
/// asks for the state of a disk now and then, or writes a log when it is idle, need not be waited for.
const SOMEBODY_OPS: u64 = 8;
/// Reads are counted in pages.
const PAGE: i64 = 4096;
/// So many pages are always somebody's.
const LEAST_PAGES: f64 = 2.0;
/// How long [`QUIET`] intervals last, in seconds.
const STRETCH_S: f64 = 2.0;
/// Writes of one interval beyond this do not count: who works writes in most intervals, and what writes
/// many blocks at once every few seconds is a file system's own bookkeeping, or a log's.
const MOST_WRITES: u64 = 3;

/// Whether somebody uses the device, for whom what is idle is not to be taken.
///
/// Here the doubt is for nobody: who warms a volume that nobody uses yet must not lose anything. So it goes
/// by bytes, which are the same however the kernel splits requests, and reads count only if they grow
/// over two stretches of intervals: what the kernel is ahead by cannot do that for long. Who always has one
/// page asked for cannot read more of them than their latency allows, which beside us may be
/// long: half of that is somebody too.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// Bytes read beyond our own since the start, after each of the last intervals.
    beyond: VecDeque<i64>,
    /// Writes in each of them.
    writes: VecDeque<u64>,
}

impl Presence {
    /// Whether there is somebody, after an interval in which the kernel has counted this, and we have
    /// read so many bytes. A page takes `wait_s` seconds beside us, where that is known. Where it does not
    /// count, nobody is seen.
    pub(super) fn is_seen(
        &mut self,
        counted: Option<Counted>,
        own_bytes: u64,
        wait_s: Option<f64>,
    ) -> bool {
        let Some(counted) = counted else {
            *self = Presence::default();
            return false;
        };
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let sum = self.beyond.back().copied().unwrap_or(0);
        let more = signed(counted.read_bytes) - signed(own_bytes);
        self.beyond.push_back(sum.saturating_add(more));
        self.writes.push_back(counted.writes.min(MOST_WRITES));
        if self.beyond.len() > 3 * QUIET {
            self.beyond.pop_front();
            self.writes.pop_front();
        }
        let writes: u64 = self.writes.iter().rev().take(QUIET).sum();
        let by_turns = wait_s.map_or(f64::INFINITY, |wait_s| 0.5 * STRETCH_S / wait_s);
        let somebody = by_turns.clamp(LEAST_PAGES, SOMEBODY_OPS as f64);
        writes as f64 >= somebody || self.reads_grow(PAGE * somebody as i64)
    }

    /// Whether they grow by so many bytes from each stretch to the next.
    fn reads_grow(&self, bytes: i64) -> bool {
        let least = |stretch: usize| {
            let sums = self.beyond.iter().skip(stretch * QUIET).take(QUIET);
            sums.min().copied().unwrap_or(0)
        };
        let grows = |from: usize| least(from + 1) - least(from) >= bytes;
        self.beyond.len() == 3 * QUIET && grows(0) && grows(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether nobody is seen after twenty intervals, in which others read `others` each and the
    /// kernel is ahead by what `ahead` says.
    fn nobody(others: u64, writes: u64, ahead: fn(u64) -> u64) -> bool {
        let mut company = Foreground::default();
        let mut before = 0;
        let mut seen = false;
        for number in 0..20 {
            let own = 1000;
            let reads = own + others + ahead(number) - before;
            before = ahead(number);
            seen = company.is_none(
                Some(Counted {
                    reads,
                    writes,
                    ..Counted::default()
                }),
                own,
            );
        }
        seen
    }

    #[test]
    fn others_are_noticed_by_what_the_kernel_counts_beyond_our_own() {
        assert!(nobody(0, 0, |_| 0));
        assert!(nobody(0, 0, |number| 7 * number % 20), "only ahead");
        for light in [1, 5, 24, 1000] {
            assert!(!nobody(light, 0, |_| 0), "{light} reads in half a second");
            assert!(!nobody(light, 0, |number| 7 * number % 20), "{light}");
        }
        assert!(!nobody(0, 1, |_| 0), "we write nothing");
    }

    /// In how many of 400 intervals somebody is seen who reads so many pages and writes so often in each,
    /// while the kernel is ahead by what `ahead` says in blocks.
    fn seen(pages: u64, writes: u64, ahead: fn(u64) -> u64) -> usize {
        seen_beside(pages, writes, ahead, None)
    }

    /// The same where a page takes so long beside us.
    fn seen_beside(pages: u64, writes: u64, ahead: fn(u64) -> u64, wait_s: Option<f64>) -> usize {
        let mut presence = Presence::default();
        let own = 100 << 20;
        let block = 512 << 10;
        let mut before = 0;
        let is_seen = |number: &u64| {
            let read_bytes = own + 4096 * pages + block * ahead(*number) - block * before;
            before = ahead(*number);
            let counted = Counted {
                writes,
                read_bytes,
                ..Counted::default()
            };
            presence.is_seen(Some(counted), own, wait_s)
        };
        (0..400).filter(is_seen).count()
    }

    #[test]
    fn somebody_is_who_reads_or_writes_a_few_times_a_second() {
        for pages in [3, 10, 1000] {
            assert!(seen(pages, 0, |_| 0) > 385, "{pages}");
            assert!(seen(pages, 0, |number| number % 4) > 385, "{pages}");
        }
        assert!(seen(0, 2, |_| 0) > 390);
        assert_eq!(seen(0, 1, |_| 0), 0);
        assert_eq!(seen(1, 0, |_| 0), 0);
    }

    #[test]
    fn who_waits_long_for_each_page_is_somebody_all_the_same() {
        // A page in each half second, which is all that he gets who waits as long for each.
        assert_eq!(seen_beside(1, 0, |_| 0, Some(0.05)), 0);
        assert!(seen_beside(1, 0, |_| 0, Some(0.5)) > 385);
        assert!(seen_beside(1, 0, |number| number % 4, Some(0.5)) > 385);
        assert_eq!(seen_beside(0, 0, |_| 0, Some(5.0)), 0);
    }

    #[test]
    fn many_writes_at_once_now_and_then_are_a_file_systems_own() {
        let mut presence = Presence::default();
        let mut is_seen = |number: u64, every: u64| {
            let writes = if number.is_multiple_of(every) { 60 } else { 0 };
            let counted = Counted {
                writes,
                ..Counted::default()
            };
            presence.is_seen(Some(counted), 0, None)
        };
        assert!((0..100).all(|number| !is_seen(number, 3)));
        assert!((0..100).filter(|number| is_seen(*number, 1)).count() > 90);
    }

    #[test]
    fn what_the_kernel_is_ahead_by_is_nobody() {
        assert_eq!(seen(0, 0, |_| 0), 0);
        assert_eq!(seen(0, 0, |number| 7 * number % 4), 0);
        // Once more in flight for good, as when the depth grows.
        assert_eq!(seen(0, 0, |number| if number > 50 { 9 } else { 1 }), 0);
        // Any number, by chance.
        let chance = |number: u64| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 16;
        assert!(seen(0, 0, chance) < 60, "{}", seen(0, 0, chance));
    }

    #[test]
    fn nobody_is_seen_where_nothing_is_counted() {
        let mut presence = Presence::default();
        assert!((0..20).all(|_| !presence.is_seen(None, 1, None)));
    }
}
