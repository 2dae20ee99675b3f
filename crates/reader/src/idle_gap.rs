//! Idle gaps of a disk: short intervals with few foreground requests.
//!
//! A disk has one queue, and no cloud volume gives some requests a lower priority. So a background read is not issued
//! while foreground requests wait: a read that starts on an idle disk delays the next foreground request by at most its
//! remaining time, while one that joins a queue delays all requests after it, and lengthens the queue while it lasts.
//! (Two priority classes without preemption: Cobham 1954, "Priority assignment in waiting line problems".)
//!
//! A volume with a cap may complete a request at once and delay the next one instead: it can be at its cap without
//! requests in flight. So an idle gap also requires that no request has completed for a short interval (a moment).

use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::diskstats::DiskStats;

/// Weight of one moment in the mean number of requests.
const MOMENT_COUNTS: f64 = 0.02;
/// Length of a moment as a share of the duration of a read, within [`MIN_GAP`] and [`MAX_GAP`].
const MOMENT: f64 = 0.3;
/// Minimum length of a moment.
const MIN_GAP: Duration = Duration::from_micros(500);
/// Maximum length of a moment.
const MAX_GAP: Duration = Duration::from_millis(4);
/// Weight of one read in the mean duration of a read.
const READ_COUNTS: f64 = 0.1;
/// Wait after which a read starts even without an idle gap, in durations of a read: other programs may do I/O without
/// interruption.
const TIMEOUT: f64 = 25.0;
/// Maximum of that wait.
const MAX_TIMEOUT: Duration = Duration::from_millis(250);

/// Waits for idle gaps of one member.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleGap {
    /// Mean number of foreground requests that are in flight or completed in a moment.
    usual: f64,
    /// Mean duration of a read, in seconds.
    takes: f64,
    /// Start of the last read.
    last: Option<Instant>,
}

impl IdleGap {
    /// Calls `read` once, in an idle gap at least `apart` after the last read, or at once if `apart` is `None`;
    /// `counters` reads the member's counters. Returns the duration of the read too.
    pub fn read<T>(
        &mut self,
        apart: Option<Duration>,
        counters: impl FnMut() -> Option<DiskStats>,
        read: impl FnOnce() -> T,
    ) -> (T, Duration) {
        if let Some(apart) = apart {
            self.wait(apart, counters);
        }
        let began = Instant::now();
        let came = read();
        let took = began.elapsed();
        self.note_read_time(took);
        (came, took)
    }

    /// Waits until `apart` after the last read, and then for an idle gap of the member: at most the timeout, and not at
    /// all if there are no counters.
    fn wait(&mut self, apart: Duration, mut counters: impl FnMut() -> Option<DiskStats>) {
        if let Some(last) = self.last {
            sleep((last + apart).saturating_duration_since(Instant::now()));
        }
        self.wait_for_gap(Instant::now() + self.timeout(), &mut counters);
        self.last = Some(Instant::now());
    }

    fn wait_for_gap(&mut self, until: Instant, counters: &mut impl FnMut() -> Option<DiskStats>) {
        let Some(mut before) = counters() else { return };
        loop {
            sleep(self.moment());
            let Some(now) = counters() else { return };
            let requests = requests(&before, &now);
            before = now;
            self.usual += MOMENT_COUNTS * (requests as f64 - self.usual);
            if self.is_gap(requests) || Instant::now() >= until {
                return;
            }
        }
    }

    /// Records the duration of a read.
    fn note_read_time(&mut self, read: Duration) {
        let read = read.as_secs_f64();
        self.takes += match self.takes > 0.0 {
            true => READ_COUNTS * (read - self.takes),
            false => read,
        };
    }

    /// True in an idle gap: no requests or, on a busy member, fewer than the mean by a standard deviation, which for
    /// random (Poisson) arrivals is the square root of the mean.
    fn is_gap(&self, requests: u64) -> bool {
        requests == 0 || requests as f64 <= self.usual - self.usual.sqrt()
    }

    fn moment(&self) -> Duration {
        Duration::from_secs_f64(MOMENT * self.takes).clamp(MIN_GAP, MAX_GAP)
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs_f64(TIMEOUT * self.takes).min(MAX_TIMEOUT)
    }
}

/// Number of requests that completed between two readings, or are in flight at the second.
fn requests(before: &DiskStats, now: &DiskStats) -> u64 {
    let answered = |stats: &DiskStats| stats.reads + stats.writes;
    answered(now).saturating_sub(answered(before)) + now.in_flight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(reads: u64, in_flight: u64) -> DiskStats {
        DiskStats {
            reads,
            in_flight,
            ..DiskStats::default()
        }
    }

    /// Idle gaps of a member whose reads take 8 ms, with `usual` foreground requests on average.
    fn idle_gap(usual: f64) -> IdleGap {
        let mut idle_gap = IdleGap::default();
        idle_gap.note_read_time(Duration::from_millis(8));
        idle_gap.usual = usual;
        idle_gap
    }

    /// Number of polls before the wait ended.
    fn polls(idle_gap: &mut IdleGap, mut stats: impl FnMut(u64) -> Option<DiskStats>) -> u64 {
        let mut polls = 0;
        // A stall of the host must not end the wait.
        let late = Instant::now() + Duration::from_secs(60);
        idle_gap.wait_for_gap(late, &mut || {
            polls += 1;
            stats(polls)
        });
        polls
    }

    #[test]
    fn it_waits_until_nothing_is_on_its_way_and_nothing_was_answered_for_a_moment() {
        let in_use = |counters| match counters {
            // In flight, then just completed, then nothing.
            1..5 => Some(stats(7, 1)),
            _ => Some(stats(8, 0)),
        };
        assert_eq!(polls(&mut idle_gap(0.5), in_use), 6);
        assert_eq!(polls(&mut idle_gap(0.5), |_| Some(stats(7, 0))), 2);
    }

    #[test]
    fn where_there_is_always_something_it_waits_for_less_than_usual_and_not_for_ever() {
        // With a mean of ten, six are few.
        let waves = |counters: u64| Some(stats(0, if counters.is_multiple_of(5) { 6 } else { 12 }));
        assert_eq!(polls(&mut idle_gap(10.0), waves), 5);
        let began = Instant::now();
        let mut reads = 0;
        idle_gap(10.0).wait(Duration::ZERO, || {
            reads += 12;
            Some(stats(reads, 12))
        });
        assert!(began.elapsed() >= Duration::from_millis(200));
        assert_eq!(
            polls(&mut idle_gap(10.0), |_| None),
            1,
            "nothing is counted"
        );
    }

    #[test]
    fn reads_are_apart() {
        let mut idle_gap = idle_gap(0.5);
        let began = Instant::now();
        (0..4).for_each(|_| idle_gap.wait(Duration::from_millis(30), || Some(stats(0, 0))));
        assert!(began.elapsed() >= Duration::from_millis(90));
    }
}
