//! Rate of reading: within the limit that all volumes share, and within what the foreground allows
//! ([`study::pace`]).

use engine::list::{Next, Request};
use reader::{ForegroundReport, LeastLatency, PROBE_BYTES, Pacer, QueueBound, RateLimiter};
use record::{Bytes, Nanos};
use study::pace::{Allowed, Controller, IoCounts, Targets};

use super::depth_beside::DepthBeside;
use super::limit::SharedRateLimit;

/// Interval at which the rate is updated.
const INTERVAL: Nanos = Nanos(40_000_000);
/// Wait when nothing can be requested; a completion ends it earlier.
const IDLE_WAIT: Nanos = Nanos(10_000_000);
/// Tag of a request that is a probe of foreground latency.
pub(crate) const PROBE_MARK: u64 = u64::MAX;

/// Policy towards the foreground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum IoPolicy {
    /// Foreground latency is kept within these targets.
    Target(Targets),
    /// Foreground latency is kept within targets that follow from its latency alone.
    Idle,
    /// The queue is kept short, since the kernel's counters do not distinguish the foreground.
    Short,
}

impl IoPolicy {
    /// Policy for the targets that were given, if any. `are_parts` is true if several volumes are parts of one disk:
    /// each would take the reads of the others for foreground.
    pub(crate) fn of(targets: Option<Targets>, are_parts: bool) -> IoPolicy {
        match targets {
            Some(targets) => IoPolicy::Target(targets),
            None if are_parts => IoPolicy::Short,
            None => IoPolicy::Idle,
        }
    }
}

/// The wait where nothing can be requested.
pub(crate) fn idle_wait(now: Nanos) -> Next {
    Next::Wait(now + IDLE_WAIT)
}

/// Decides when the next request is issued.
pub(crate) struct Pace<'a> {
    limit: &'a SharedRateLimit,
    pacer: Option<Pacer>,
    bound: Option<QueueBound>,
    beside: DepthBeside,
    /// Number of blocks in flight.
    in_flight: usize,
    in_flight_bytes: u64,
    /// Offset of the limit's clock to this device's.
    ahead: Nanos,
    /// Time at which this device may issue its next request by the limit that all devices share.
    own_place: Nanos,
    limiter: RateLimiter,
    interval: Interval,
    next_probe: Nanos,
    /// Start of the probe in flight, if there is one.
    probing: Option<Nanos>,
    /// Number of probes so far.
    probes: u64,
    block: Bytes,
    traffic: Traffic,
}

/// Counts since the rate was last set.
#[derive(Debug, Default)]
struct Interval {
    since: Nanos,
    /// Bytes of completed blocks.
    blocks: u64,
    /// Bytes of all own completed requests, with probes.
    own: u64,
    latencies_s: Vec<f64>,
    /// Minimum latency of an own request of the size that is used beside a foreground.
    least: LeastLatency,
}

/// Bytes that the kernel counted on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelBytes {
    /// Bytes read, by all programs.
    pub read_bytes: u64,
    /// Bytes written, by all programs.
    pub written_bytes: u64,
    /// True if the ledger's own writes may be among them.
    pub commits: bool,
}

/// Bytes that were read from and written to the device: by this program (`own`), and by all programs (`all`).
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    own: u64,
    all: u64,
}

impl<'a> Pace<'a> {
    /// Pace under a limit and a policy towards the foreground.
    pub(crate) fn new(limit: &'a SharedRateLimit, policy: IoPolicy) -> Pace<'a> {
        let targets = match policy {
            IoPolicy::Target(targets) => Some(targets),
            IoPolicy::Idle => Some(Targets::default()),
            IoPolicy::Short => None,
        };
        Pace {
            limit,
            pacer: targets.map(Pacer::new),
            bound: Some(QueueBound::new()),
            beside: DepthBeside::default(),
            in_flight: 0,
            in_flight_bytes: 0,
            ahead: limit.now(),
            own_place: Nanos(0),
            limiter: RateLimiter::default(),
            interval: Interval::default(),
            next_probe: Nanos(0),
            probing: None,
            probes: 0,
            block: Bytes(0),
            traffic: Traffic::default(),
        }
    }

    /// Pace under a limit, with no bound on the requests in flight.
    #[cfg(test)]
    pub(crate) fn unbound(limit: &'a SharedRateLimit) -> Pace<'a> {
        Pace {
            bound: None,
            ..Pace::new(limit, IoPolicy::Short)
        }
    }

    fn allowed(&self) -> Allowed {
        self.pacer.as_ref().map_or(Allowed::All, Pacer::allowed)
    }

    /// Rate that the foreground allows, in bytes a second; `None` where it is unlimited, or nothing may be read.
    fn rate(&self) -> Option<f64> {
        match self.allowed() {
            Allowed::Rate(rate) => Some(rate),
            Allowed::All | Allowed::Nothing => None,
        }
    }

    /// True while the rate is limited because of a foreground.
    pub(crate) fn is_beside(&self) -> bool {
        self.allowed() != Allowed::All
    }

    fn controller(&self) -> Option<&Controller> {
        self.pacer.as_ref().map(Pacer::controller)
    }

    /// True if as much is in flight as may be.
    fn is_full(&self) -> bool {
        let most = self.bound.as_ref().map_or(usize::MAX, QueueBound::most);
        let beside = self.rate().map(|rate| self.beside.most(rate));
        self.in_flight >= most || beside.is_some_and(|most| Bytes(self.in_flight_bytes) >= most)
    }

    /// The wait until the next request may be issued; `None` if it may be issued now.
    pub(crate) fn wait(&self, now: Nanos) -> Option<Next> {
        let mut until = self.limiter.due(self.rate()).max(self.own_place);
        // Before the first block there is no warm place to probe.
        let is_first = self.probes == 0 && self.in_flight == 0 && self.probing.is_none();
        let pauses = self.allowed() == Allowed::Nothing && !is_first;
        if pauses || self.is_full() {
            until = until.max(now + IDLE_WAIT);
        }
        if until <= now {
            return None;
        }
        // Wake up for a due probe: one that is issued only when a block is would always precede that block.
        let probe = self.waits_for_probe().then_some(self.next_probe.max(now));
        let until = until.min(probe.unwrap_or(until));
        Some(Next::Wait(until.min(now + IDLE_WAIT)))
    }

    /// Size of a request beside a foreground.
    fn request_size(&self) -> Bytes {
        self.block.min(reader::REQUEST_SIZE_BESIDE_FOREGROUND)
    }

    fn waits_for_probe(&self) -> bool {
        self.probing.is_none() && self.controller().is_some_and(Controller::probes)
    }

    /// Notes a block of so many bytes that is issued.
    pub(crate) fn note_issued(&mut self, now: Nanos, bytes: Bytes) {
        self.in_flight += 1;
        self.in_flight_bytes += bytes.0;
        self.block = bytes;
        self.own_place = self.limit.note_issued(now + self.ahead, bytes) - self.ahead;
        self.limiter.issued(now, bytes, self.rate());
    }

    /// A probe of foreground latency, if one is due. It reads at the offset that `warm` returns for one of `places`
    /// places, a different one each time; no probe where `warm` returns `None`.
    pub(crate) fn probe(
        &mut self,
        now: Nanos,
        places: u64,
        warm: impl FnOnce(u64) -> Option<u64>,
    ) -> Option<Request> {
        if !self.is_probe_due(now) {
            return None;
        }
        // Multiples of the golden ratio are spread evenly over all places (Knuth, volume 3, 6.4).
        let spread = (self.probes + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let Some(at) = warm(((u128::from(spread) * u128::from(places)) >> 64) as u64) else {
            self.next_probe = now + IDLE_WAIT;
            return None;
        };
        self.probes += 1;
        self.probing = Some(now);
        Some(Request::read(at, PROBE_BYTES, PROBE_MARK))
    }

    fn is_probe_due(&mut self, now: Nanos) -> bool {
        if self.waits_for_probe() {
            return now >= self.next_probe;
        }
        let has_no_controller = !self.controller().is_some_and(Controller::probes);
        has_no_controller && self.bound.as_mut().is_some_and(|bound| bound.probes(now))
    }

    /// True if there was a probe so far.
    pub(crate) fn has_probed(&self) -> bool {
        self.probes > 0
    }

    /// Notes a probe that completed.
    pub(crate) fn note_probe(&mut self, now: Nanos, bytes: Bytes, latency: Nanos) {
        self.probing = None;
        self.traffic.own += bytes.0;
        self.interval.own += bytes.0;
        if let Some(bound) = &mut self.bound {
            bound.note_probe(now, latency, self.in_flight);
        }
        if let Some(gap_s) = self.controller().map(Controller::probe_gap_s) {
            // At a constant interval the probes could keep step with the blocks. The fractional parts of multiples of
            // the golden ratio fill the interval from 0 to 1 evenly (Knuth, volume 3, 6.4).
            let part = 0.5 + (self.probes as f64 * 0.618_033_988_75).fract();
            let after_s = part * gap_s.unwrap_or_default();
            self.next_probe = now + Nanos((after_s * 1e9) as u64);
            self.interval.latencies_s.push(latency.as_secs_f64());
            self.beside.note_probe(latency);
        }
    }

    /// Notes a request for `bytes` bytes of a block that completed. A failed one has no latency; its bytes count too,
    /// as in the kernel's counters.
    pub(crate) fn note_completed(&mut self, bytes: Bytes, latency: Option<Nanos>) {
        self.interval
            .least
            .note(bytes, self.request_size(), latency);
        // Those of the deep queue without a foreground tell nothing of one beside it.
        if let Some(latency) = latency.filter(|_| self.rate().is_some()) {
            self.beside.note_block(latency);
        }
        if self.probes == 0 {
            // Now there may be a warm place.
            self.next_probe = Nanos(0);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes.0);
        self.traffic.own += bytes.0;
        self.interval.own += bytes.0;
        self.interval.blocks += bytes.0;
    }

    /// Updates the rate, if an interval has passed. `counted` returns the kernel's counts of the device since the last
    /// call; `None` where the kernel does not count.
    pub(crate) fn adjust(&mut self, now: Nanos, counted: impl FnOnce() -> Option<KernelBytes>) {
        let passed = now - self.interval.since;
        if passed < INTERVAL {
            return;
        }
        let interval = std::mem::take(&mut self.interval);
        self.interval.since = now;
        self.beside.pass(passed.as_secs_f64());
        let counted = counted();
        if let Some(counted) = counted {
            self.traffic.all += counted.read_bytes + counted.written_bytes;
        }
        let request = self.request_size();
        let Some(pacer) = &mut self.pacer else {
            return;
        };
        let waiting = self.probing.map_or(Nanos(0), |since| now - since);
        let probing = self.probing.map_or(0, |_| u64::from(PROBE_BYTES));
        pacer.take(&reader::MeasuredInterval {
            seconds: passed.as_secs_f64(),
            counts: counted.map(|counted| IoCounts {
                read: counted.read_bytes as f64,
                written: counted.written_bytes as f64,
                own: interval.own as f64,
                in_flight: (self.in_flight_bytes + probing) as f64,
            }),
            commits: counted.is_some_and(|counted| counted.commits),
            latencies_s: &interval.latencies_s,
            waiting_s: waiting.as_secs_f64(),
            background: interval.blocks as f64,
            is_busy: self.in_flight > 0,
            request,
            own_latency_s: interval.least.take(),
        });
    }

    /// The foreground's share of the bytes that were read from and written to the device, from 0 to 1; `None` where the
    /// kernel does not count.
    pub(crate) fn others_share(&self) -> Option<f64> {
        let others = self.traffic.all.saturating_sub(self.traffic.own);
        (self.traffic.all > 0).then(|| others as f64 / self.traffic.all as f64)
    }

    /// Text with latency and target of the foreground; `None` while there is no foreground.
    pub(crate) fn live(&self) -> Option<String> {
        self.pacer.as_ref().and_then(Pacer::live)
    }

    /// Foreground latency and targets over the whole reading; `None` where no foreground lasted a second, or where the
    /// policy does not detect one.
    pub(crate) fn foreground(&self) -> Option<ForegroundReport> {
        self.pacer.as_ref().and_then(Pacer::foreground)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Bytes = Bytes::kib(512);
    const PAGE: Bytes = Bytes(PROBE_BYTES as u64);
    const OWN: Nanos = Nanos(300_000);

    #[test]
    fn one_block_is_read_before_the_first_probe() {
        let limit = SharedRateLimit::new(None);
        let mut pace = Pace::new(&limit, IoPolicy::Idle);
        let now = Nanos(1);
        assert!(pace.probe(now, 0, |_| None).is_none(), "no warm place");
        // The first block fails, the second does not.
        for is_warm in [false, true] {
            assert!(pace.wait(now).is_none());
            pace.note_issued(now, BLOCK);
            assert!(pace.wait(now).is_some());
            pace.note_completed(BLOCK, is_warm.then_some(OWN));
            let place = |_| is_warm.then_some(0);
            assert_eq!(pace.probe(now, 1, place).is_some(), is_warm);
        }
        assert!(pace.wait(now).is_some(), "while the foreground is measured");
        pace.note_probe(now, PAGE, OWN);
        assert!(pace.wait(now).is_some());
    }

    #[test]
    fn beside_a_foreground_no_more_is_in_flight_than_the_rate_takes() {
        let limit = SharedRateLimit::new(None);
        let mut pace = Pace::new(&limit, IoPolicy::Idle);
        let mut most = 0;
        for step in 1..2000 {
            let now = Nanos(step * INTERVAL.0);
            // A read of the foreground a millisecond.
            let mut read = Bytes(40 * PAGE.0);
            // All that is in flight completes by the next poll.
            while pace.in_flight > 0 {
                pace.note_completed(reader::REQUEST_SIZE_BESIDE_FOREGROUND, Some(OWN));
                read.0 += reader::REQUEST_SIZE_BESIDE_FOREGROUND.0;
            }
            if pace.probe(now, 1, Some).is_some() {
                pace.note_probe(now, PAGE, OWN);
                read.0 += PAGE.0;
            }
            pace.adjust(now, || {
                Some(KernelBytes {
                    read_bytes: read.0,
                    ..KernelBytes::default()
                })
            });
            for at in 0..40 {
                let now = now + Nanos(at * 1_000_000);
                if pace.wait(now).is_none() {
                    pace.note_issued(now, reader::REQUEST_SIZE_BESIDE_FOREGROUND);
                }
            }
            most = most.max(pace.in_flight);
        }
        // Less than 5 MiB/s of 0.3 ms each; without a foreground it would be 4.
        assert!((2..=3).contains(&most), "{most}");
    }

    #[test]
    fn a_foreground_waits_for_a_request_beside_it_and_not_for_a_block() {
        let limit = SharedRateLimit::new(None);
        let mut pace = Pace::new(&limit, IoPolicy::Idle);
        let targets = (1..1000).find_map(|step| {
            let now = Nanos(step * INTERVAL.0);
            let mut read = Bytes(0);
            if !pace.is_beside() {
                // 125 MiB/s.
                for _ in 0..10 {
                    pace.note_issued(now, BLOCK);
                    pace.note_completed(BLOCK, Some(Nanos(64_000_000)));
                    read.0 += BLOCK.0;
                }
            }
            if pace.probe(now, 1, Some).is_some() {
                pace.note_probe(now, PAGE, OWN);
                read.0 += PAGE.0;
            }
            if step > 100 {
                read.0 += 100 * PAGE.0;
            }
            pace.adjust(now, || {
                Some(KernelBytes {
                    read_bytes: read.0,
                    ..KernelBytes::default()
                })
            });
            let (targets, _) = pace.controller()?.targets()?;
            targets.p99_s.filter(|_| step > 100)
        });
        let (p99_s, own_s) = (targets.unwrap(), OWN.as_secs_f64());
        assert!(p99_s <= (1.5 * own_s).max(own_s + 0.000_6), "{p99_s}");
    }
}
