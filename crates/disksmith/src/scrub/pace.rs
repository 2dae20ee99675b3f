//! How much of an array may be checked at this moment.
//!
//! Alone on the array, all that it gives. In company, a rate that the [`Pacer`] of `study` finds from
//! what the foreground feels, in multiples of its target. The first company is measured with the
//! check held, unless the user has said what is to be kept.

use record::Nanos;
use study::pace::{Interval, Pacer, Rates};

use super::felt::{Felt, Seen, Targets};

/// How long an interval is by which the rate is set.
const INTERVAL: Nanos = Nanos(500_000_000);
/// The check never gets less, in bytes a second.
pub(crate) const LEAST: f64 = (1 << 20) as f64;
/// More than any array gives.
const MOST: f64 = 1e12;
/// So many requests in an interval are nobody: what asks for the state of a disk now and then.
const NOBODY: u64 = 2;
/// For so many intervals nobody must be seen before the array counts as idle.
const QUIET: u32 = 3;
/// A target that is passed by this factor ends all checking until it is kept again.
const PANIC: f64 = 2.5;
/// So long at most.
const HELD: Nanos = Nanos(1_000_000_000);
/// So long the foreground is measured before its target is set.
pub(crate) const MEASURED: Nanos = Nanos(3_000_000_000);

/// What the check may do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum May {
    /// Whatever the array gives: nobody else is there.
    All,
    /// So many bytes a second.
    Rate(f64),
    /// Nothing at the moment.
    Nothing,
}

/// Finds it out.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    targets: Option<Targets>,
    pacer: Option<Pacer>,
    felt: Felt,
    state: State,
    quiet: u32,
    others: Option<u64>,
    since: Nanos,
    bytes: f64,
    /// Below this the rate does not fall: what a deadline demands.
    floor: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Alone,
    /// The foreground is measured by itself since then.
    Measuring(Nanos),
    Company,
    /// It suffers; nothing is done since then.
    Held(Nanos),
}

impl Pace {
    /// To keep `targets`, or with `None` what is measured before the check begins.
    pub(crate) fn new(targets: Option<Targets>, now: Nanos) -> Pace {
        let state = match targets {
            Some(_) => State::Company,
            None => State::Measuring(now),
        };
        Pace {
            targets,
            pacer: pacer(),
            felt: Felt::default(),
            state,
            quiet: 0,
            others: Some(0),
            since: now,
            bytes: 0.0,
            floor: 0.0,
        }
    }

    /// Sets the rate below which it may not fall, in bytes a second; 0 for none.
    pub(crate) fn at_least(&mut self, floor: f64) {
        self.floor = floor;
    }

    /// The latencies that are kept, once they are known.
    pub(crate) fn targets(&self) -> Option<Targets> {
        self.targets
    }

    /// What the foreground feels now; `None` while nobody is there.
    pub(crate) fn felt(&self) -> Option<&Felt> {
        (self.state != State::Alone).then_some(&self.felt)
    }

    /// Whether probes are wanted. On an idle array they would only hold back the check.
    pub(crate) fn probes(&self) -> bool {
        self.state != State::Alone
    }

    /// Whether the foreground is just being measured.
    pub(crate) fn is_measuring(&self) -> bool {
        matches!(self.state, State::Measuring(_))
    }

    /// Measures the foreground from now on: what was felt so far is not its own.
    pub(crate) fn measure_anew(&mut self, now: Nanos) {
        if self.is_measuring() {
            self.felt.clear();
            self.state = State::Measuring(now);
        }
    }

    /// Takes what was seen since the last time, in which so many bytes were checked.
    pub(crate) fn take(&mut self, now: Nanos, seen: &Seen, bytes: f64) {
        self.felt.take(seen);
        self.bytes += bytes;
        self.others = match (self.others, seen.others) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            _ => None,
        };
        let is_anybody = self.others.is_none_or(|others| others > NOBODY);
        if self.state == State::Alone && is_anybody {
            self.meet(now);
        }
        let ratio = self.ratio();
        match self.state {
            State::Company if ratio.is_some_and(|ratio| ratio > PANIC) => {
                self.close(now);
                // What was felt until now is answered; only what comes after it counts. A rate that did
                // this is nothing to return to.
                self.felt.clear();
                self.pacer = pacer();
                self.state = State::Held(now);
            }
            State::Held(since) => {
                let is_well = ratio.is_some_and(|ratio| ratio <= 1.0);
                if is_well || now.0.saturating_sub(since.0) >= HELD.0 {
                    self.state = State::Company;
                    (self.since, self.bytes) = (now, 0.0);
                }
            }
            _ => {}
        }
        if now.0.saturating_sub(self.since.0) >= INTERVAL.0 {
            self.close(now);
        }
    }

    /// So many more bytes were checked.
    pub(crate) fn moved(&mut self, bytes: f64) {
        self.bytes += bytes;
    }

    /// What may be done.
    pub(crate) fn may(&self) -> May {
        match self.state {
            State::Alone => May::All,
            State::Measuring(_) => May::Nothing,
            State::Held(_) if self.floor <= 0.0 => May::Nothing,
            State::Held(_) => May::Rate(self.floor),
            State::Company => {
                let allowed = self.pacer.as_ref().map_or(LEAST, Pacer::allowed);
                May::Rate(allowed.max(self.floor))
            }
        }
    }

    fn ratio(&self) -> Option<f64> {
        self.felt.ratio(self.targets.as_ref()?)
    }

    /// Somebody has come.
    fn meet(&mut self, now: Nanos) {
        self.felt.clear();
        self.pacer = pacer();
        self.quiet = 0;
        (self.since, self.bytes, self.others) = (now, 0.0, Some(0));
        self.state = match self.targets {
            Some(_) => State::Company,
            None => State::Measuring(now),
        };
    }

    /// An interval is over.
    fn close(&mut self, now: Nanos) {
        let passed = now.0.saturating_sub(self.since.0);
        let seconds = Nanos(passed).as_secs_f64();
        let is_nobody = self.others.is_some_and(|others| others <= NOBODY);
        self.quiet = if is_nobody { self.quiet + 1 } else { 0 };
        if let State::Measuring(since) = self.state
            && now.0.saturating_sub(since.0) >= MEASURED.0
            && !is_nobody
        {
            self.targets = self.felt.with_room();
            if self.targets.is_some() {
                self.state = State::Company;
            }
        }
        if self.state == State::Company
            && let (Some(ratio), Some(pacer)) = (self.ratio(), &mut self.pacer)
        {
            pacer.observe(&Interval {
                seconds,
                foreground_s: Some(ratio),
                background: if seconds > 0.0 {
                    self.bytes / seconds
                } else {
                    0.0
                },
            });
        }
        if self.quiet >= QUIET {
            self.state = State::Alone;
        }
        (self.since, self.bytes, self.others) = (now, 0.0, Some(0));
    }
}

/// The target is 1: what is felt is told in multiples of it.
fn pacer() -> Option<Pacer> {
    Pacer::new(Rates::new(LEAST, MOST)?, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 100_000_000;

    struct Bench {
        pace: Pace,
        now: u64,
    }

    impl Bench {
        fn new(targets: Option<Targets>) -> Bench {
            Bench {
                pace: Pace::new(targets, Nanos(0)),
                now: 0,
            }
        }

        /// For so many ticks of 100 ms: the latency of probes, and the requests of others.
        fn live(&mut self, ticks: u32, latency: f64, others: u64) -> May {
            for _ in 0..ticks {
                self.now += TICK;
                let bytes = match self.pace.may() {
                    May::Rate(rate) => rate / 10.0,
                    May::All => 1e7,
                    May::Nothing => 0.0,
                };
                let seen = Seen {
                    probes: vec![latency; if self.pace.probes() { 5 } else { 0 }],
                    waiting: 0.0,
                    others: Some(others),
                    counted: None,
                };
                self.pace.take(Nanos(self.now), &seen, bytes);
            }
            self.pace.may()
        }
    }

    fn p99(target: f64) -> Option<Targets> {
        Some(Targets {
            mean: None,
            p99: Some(target),
        })
    }

    #[test]
    fn an_idle_array_gives_all_and_company_is_measured_first() {
        let mut bench = Bench::new(None);
        assert_eq!(bench.live(30, 0.001, 0), May::All);
        assert!(!bench.pace.probes());
        assert_eq!(bench.live(1, 0.001, 70), May::Nothing, "measuring");
        assert_eq!(bench.live(20, 0.001, 70), May::Nothing);
        assert!(matches!(bench.live(15, 0.001, 70), May::Rate(_)));
        let targets = bench.pace.targets().unwrap();
        assert!((targets.mean.unwrap() - 0.0015).abs() < 1e-9, "{targets:?}");
        assert!((targets.p99.unwrap() - 0.0015).abs() < 1e-9);
        assert_eq!(bench.live(30, 0.001, 0), May::All, "it has gone again");
    }

    #[test]
    fn a_foreground_that_suffers_gets_the_disks_within_a_second() {
        let mut bench = Bench::new(p99(0.005));
        let May::Rate(before) = bench.live(100, 0.001, 70) else {
            panic!("company");
        };
        assert!(before > 100.0 * LEAST, "{before}");
        assert_eq!(bench.live(4, 0.050, 70), May::Nothing);
        let May::Rate(after) = bench.live(20, 0.001, 70) else {
            panic!("it is well again");
        };
        assert!(after < before, "{after} of {before}");
        // A little beyond the target is answered with a cut, not with an end.
        let mut bench = Bench::new(p99(0.005));
        bench.live(100, 0.001, 70);
        let May::Rate(cut) = bench.live(8, 0.006, 70) else {
            panic!("no end");
        };
        assert!(cut < 0.8 * before, "{cut} of {before}");
    }

    #[test]
    fn a_deadline_holds_the_rate_up() {
        let mut bench = Bench::new(p99(0.005));
        bench.pace.at_least(5e7);
        assert_eq!(bench.live(20, 0.050, 70), May::Rate(5e7));
    }

    #[test]
    fn where_nobody_counts_somebody_may_be_there() {
        let mut pace = Pace::new(p99(0.005), Nanos(0));
        for tick in 1..100 {
            pace.take(Nanos(tick * TICK), &Seen::default(), 0.0);
            assert_ne!(pace.may(), May::All);
        }
    }
}
