//! Foreground I/O on a device: the kernel's counts minus the background's own I/O.

use std::collections::VecDeque;

/// Minimum size of a database's request, in bytes. Requests are counted in this unit of bytes, since the kernel splits
/// and merges requests, which leaves bytes unchanged.
const PAGE: f64 = 4096.0;
/// Time window over which the minimum excess counts as foreground if the background's queue is deep, in seconds. The
/// kernel counts a completion before the background has noticed it, so that its own I/O briefly looks like foreground.
/// With a shallow queue, all background requests in flight are subtracted instead.
const LAG_S: f64 = 0.25;
/// Minimum number of polls in that window: a background without processor time polls rarely, each time just after it
/// was kept from noticing completions.
const MIN_POLLS: usize = 6;
/// Time after a commit of the ledger in which up to [`COMMIT_PAGES`] of writes count as the background's own, in
/// seconds.
const COMMIT_S: f64 = 1.0;
/// Maximum number of pages that a commit writes, with the file system's journal and metadata.
const COMMIT_PAGES: f64 = 64.0;
/// Time over which the latency of own requests is averaged, and maximum of that latency, in seconds.
const LATENCY_S: f64 = 1.0;

/// Bytes that the kernel counted on a device since the last poll, and the background's own part of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IoCounts {
    /// Bytes read, by all programs.
    pub read: f64,
    /// Bytes written, by all programs.
    pub written: f64,
    /// The background's own bytes, as it completed them: blocks, segments, probes.
    pub own: f64,
    /// Bytes of the background's requests that were issued and not noted as completed when `own` was.
    pub in_flight: f64,
}

/// Foreground I/O in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Foreground {
    /// Number of requests, or of pages of 4 KiB; `None` without counts of the kernel.
    pub requests: Option<f64>,
    /// Seconds in which foreground requests were outstanding, or an estimate; zero without foreground.
    pub waited_s: f64,
}

/// Subtracts the background's own I/O from the kernel's counts.
#[derive(Clone, Debug, Default)]
pub struct ForegroundDetector {
    now_s: f64,
    /// Length of time for which the background's queue has been deep, in seconds.
    deep_s: f64,
    /// Excess over the own bytes since the start, with its time, for the last [`LAG_S`] and the last [`MIN_POLLS`].
    excess: VecDeque<(f64, f64)>,
    sum: f64,
    /// Bytes of that excess that were already returned.
    given: f64,
    commit_s: Option<f64>,
    of_commit: f64,
    /// Own bytes a second, and own bytes in flight, averaged while the queue is deep.
    own_per_s: f64,
    own_in_flight: f64,
}

impl ForegroundDetector {
    /// Notes that a commit of the ledger to this device is in progress.
    pub fn commits(&mut self) {
        if !self.is_after_commit() {
            self.of_commit = COMMIT_PAGES * PAGE;
        }
        self.commit_s = Some(self.now_s);
    }

    fn is_after_commit(&self) -> bool {
        self.commit_s
            .is_some_and(|since| self.now_s - since <= COMMIT_S)
    }

    /// Adds the counts of an interval; `None` without counts of the kernel. Returns the foreground's part: all of it
    /// at once, or, if the background's queue is `deep`, the part that is certain.
    pub fn take(&mut self, seconds: f64, counts: Option<IoCounts>, deep: bool) -> Foreground {
        self.now_s += seconds;
        let Some(counts) = counts else {
            return Foreground::default();
        };
        let mut written = counts.written;
        if self.is_after_commit() {
            let ledgers = written.min(self.of_commit);
            self.of_commit -= ledgers;
            written -= ledgers;
        }
        self.sum += counts.read + written - counts.own;
        if deep {
            self.note_own(seconds, &counts);
        } else {
            self.excess.clear();
            self.deep_s = self.now_s;
            (self.own_per_s, self.own_in_flight) = (0.0, 0.0);
        }
        self.excess.push_back((self.now_s, self.sum));
        while self.excess.len() > MIN_POLLS && self.excess[0].0 <= self.now_s - LAG_S {
            self.excess.pop_front();
        }
        let least = |least: f64, one: &(f64, f64)| least.min(one.1);
        let least = self.excess.iter().fold(f64::INFINITY, least);
        let is_deep_for_long = self.now_s - self.deep_s >= LAG_S && self.excess.len() >= MIN_POLLS;
        let is_known = !deep || is_deep_for_long;
        let known_excess = if deep {
            least
        } else {
            self.sum - counts.in_flight
        };
        let bytes = if is_known {
            (known_excess - self.given).max(0.0)
        } else {
            0.0
        };
        self.given += bytes;
        let requests = bytes / PAGE;
        Foreground {
            requests: Some(requests),
            waited_s: requests * self.own_latency_s(),
        }
    }

    fn note_own(&mut self, seconds: f64, counts: &IoCounts) {
        if seconds > 0.0 {
            let weight = (seconds / LATENCY_S).min(1.0);
            self.own_per_s += weight * (counts.own / seconds - self.own_per_s);
            self.own_in_flight += weight * (counts.in_flight - self.own_in_flight);
        }
    }

    /// Latency of own requests while the queue is deep, by Little's law. A foreground request waits in the same queue,
    /// for about as long.
    fn own_latency_s(&self) -> f64 {
        let latency_s = self.own_in_flight / self.own_per_s;
        match latency_s.is_finite() {
            true => latency_s.clamp(0.0, LATENCY_S),
            false => 0.0,
        }
    }
}

/// Time over which requests are judged, in seconds.
const WINDOW_S: f64 = 3.0;
/// Maximum number of requests in that time without a foreground: a file system's journal, and programs that
/// occasionally query a disk. Ten a second.
const MAX_REQUESTS_WHILE_ABSENT: f64 = 30.0;
/// Time without a foreground request after which a foreground counts as gone, in seconds. It doubles, up to
/// [`GONE_MAX_S`], each time that the foreground returns soon: one that comes in bursts should not meet a background
/// at full speed each time.
const GONE_S: f64 = 1.5;
const GONE_MAX_S: f64 = 60.0;
/// Maximum time after which a foreground that returns counts as the same, in seconds.
const SOON_S: f64 = 120.0;
/// Time with outstanding foreground requests within [`WINDOW_S`], in seconds, from which they may be few only because
/// the background at full speed delays each: the background then pauses.
const SUSPECT_S: f64 = 0.3;
/// Maximum length of that pause, in seconds.
const SUSPECT_MAX_S: f64 = 1.5;
/// Time without a request that ends that pause early, in seconds; longer than [`LAG_S`].
const QUIET_S: f64 = 0.4;
/// Time from a pause without a foreground to the next, in seconds. It doubles up to [`AGAIN_MAX_S`], since a file
/// system's journal waits too.
const AGAIN_S: f64 = 5.0;
const AGAIN_MAX_S: f64 = 60.0;

/// Presence of a foreground on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForegroundPresence {
    /// No foreground.
    Absent,
    /// A foreground may be hidden by the background's own speed: requests are to be counted while the background
    /// pauses.
    Suspected,
    /// A foreground was detected.
    Present,
}

/// Detects the [`ForegroundPresence`].
#[derive(Clone, Debug)]
pub(super) struct PresenceWatch {
    now_s: f64,
    /// Seconds, requests and seconds waited of the last [`WINDOW_S`].
    recent: VecDeque<(f64, f64, f64)>,
    presence: ForegroundPresence,
    quiet_s: f64,
    gone_after_s: f64,
    left_s: Option<f64>,
    last_request_s: f64,
    suspected_s: f64,
    again_s: f64,
    /// Time of the last pause in which no foreground was seen.
    in_vain_s: Option<f64>,
}

impl PresenceWatch {
    pub(super) fn new() -> PresenceWatch {
        PresenceWatch {
            now_s: 0.0,
            recent: VecDeque::new(),
            presence: ForegroundPresence::Present,
            quiet_s: 0.0,
            // Initially a foreground that is not seen within a moment is absent.
            gone_after_s: QUIET_S,
            left_s: None,
            last_request_s: 0.0,
            suspected_s: 0.0,
            again_s: AGAIN_S,
            in_vain_s: None,
        }
    }

    pub(super) fn take(&mut self, seconds: f64, seen: &Foreground) -> ForegroundPresence {
        self.now_s += seconds;
        let now_s = self.now_s;
        let Some(requests) = seen.requests else {
            // There may be a foreground.
            self.quiet_s = now_s;
            self.presence = ForegroundPresence::Present;
            return self.presence;
        };
        self.recent.push_back((now_s, requests, seen.waited_s));
        while self
            .recent
            .front()
            .is_some_and(|one| now_s - one.0 >= WINDOW_S)
        {
            self.recent.pop_front();
        }
        if requests > 0.0 || seen.waited_s > 0.0 {
            self.last_request_s = now_s;
        }
        let (requests, waited_s) = self
            .recent
            .iter()
            .fold((0.0, 0.0), |all, one| (all.0 + one.1, all.1 + one.2));
        // Initially, with a shorter observation, fewer requests are enough.
        let enough = MAX_REQUESTS_WHILE_ABSENT * (now_s / WINDOW_S).clamp(0.3, 1.0);
        if requests > enough {
            self.seen();
        } else {
            self.not_seen(waited_s);
        }
        self.presence
    }

    fn seen(&mut self) {
        self.quiet_s = self.now_s;
        if self.presence == ForegroundPresence::Present {
            return;
        }
        let is_back = |left: f64| self.now_s - left < SOON_S;
        self.gone_after_s = if self.left_s.is_some_and(is_back) {
            (2.0 * self.gone_after_s).clamp(GONE_S, GONE_MAX_S)
        } else {
            GONE_S
        };
        self.presence = ForegroundPresence::Present;
        (self.again_s, self.in_vain_s) = (AGAIN_S, None);
    }

    fn not_seen(&mut self, waited_s: f64) {
        let now_s = self.now_s;
        match self.presence {
            ForegroundPresence::Present if now_s - self.quiet_s >= self.gone_after_s => {
                self.presence = ForegroundPresence::Absent;
                self.left_s = (self.gone_after_s > QUIET_S).then_some(now_s);
            }
            ForegroundPresence::Present => {}
            ForegroundPresence::Absent => {
                let is_due = |last: f64| now_s - last >= self.again_s;
                if waited_s >= SUSPECT_S && self.in_vain_s.is_none_or(is_due) {
                    self.presence = ForegroundPresence::Suspected;
                    self.suspected_s = now_s;
                }
            }
            ForegroundPresence::Suspected => {
                let is_still = now_s - self.last_request_s.max(self.suspected_s) >= QUIET_S;
                if is_still || now_s - self.suspected_s >= SUSPECT_MAX_S {
                    if self.in_vain_s.is_some() {
                        self.again_s = (2.0 * self.again_s).min(AGAIN_MAX_S);
                    }
                    self.in_vain_s = Some(now_s);
                    self.presence = ForegroundPresence::Absent;
                }
            }
        }
    }
}
