//! How fast to read: no faster than the limit, and no faster than others on the device can bear.
//!
//! - `company`: whether there are others;
//! - `idle`: what is idle is taken, which is what happens unless something else is asked for;
//! - `limit`: what all devices share;
//! - `short`: the queue before others is kept short, whether they are seen or not.

mod foreground;
mod idle;
mod limit;
mod short;

use record::{Bytes, Nanos};
use study::pace::{Keeper, Pacer, Rates};

use foreground::Foreground;
use idle::Idle;
use short::Short;

pub(crate) use idle::Yielded;
pub(crate) use limit::Limit;

/// After a pause so much time is made up for at once.
const SLACK: Nanos = Nanos(50_000_000);
/// How long an interval is by which the pace is set.
const INTERVAL: Nanos = Nanos(500_000_000);
/// Probes are sent this far apart: 50 a second cost a volume next to nothing.
const PROBE_EVERY: Nanos = Nanos(20_000_000);
/// The background never gets less, in bytes a second.
const LEAST: f64 = (1 << 20) as f64;
/// How long to wait where nothing says for how long.
const NAP: Nanos = Nanos(10_000_000);
/// So much goes on while it is listened to how long others wait by themselves, in bytes a second: a few
/// blocks.
const FEW: f64 = 4.0 * LEAST;
/// More than any volume gives.
const MOST: f64 = 1e12;

/// What others may expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoPolicy {
    /// That their requests take no longer than this in 99 of 100 cases.
    Target(Nanos),
    /// That only what is idle is taken.
    Idle,
    /// That the queue before them is short, where it cannot be told whether they are there.
    Short,
    /// Nothing.
    None,
}

/// Says when the next request may go.
pub(crate) struct Pace<'a> {
    limit: &'a Limit,
    courtesy: Option<PolicyState>,
    idle: Option<Idle>,
    short: Option<Short>,
    /// Requests of the warming itself.
    in_flight: usize,
    /// The time of now, and by what the limit's clock is ahead.
    now: Nanos,
    ahead: Nanos,
    /// Its place in the line of all devices that keep to the limit.
    own_place: Nanos,
    traffic: Traffic,
    /// The kernel counts a request once for each part of this size, where that is known.
    split: Option<Bytes>,
    not_before: Nanos,
}

/// What the kernel has counted on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Reads, of anybody, also those that were merged with others.
    pub reads: u64,
    /// Writes, which nobody here makes.
    pub writes: u64,
    /// Bytes read, of anybody.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// What went through the device, and our own part of it.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    since: Nanos,
    /// Our own bytes, and of them those of before `since`.
    own: u64,
    own_before: u64,
    /// All bytes that the kernel has counted.
    all: u64,
}

impl Traffic {
    /// The others' share of the bytes; `None` where nothing was counted.
    fn others(&self) -> Option<f64> {
        let others = self.all.saturating_sub(self.own_before);
        (self.all > 0).then(|| others as f64 / self.all as f64)
    }
}

/// What others on the device feel, and the rate that this leaves.
struct PolicyState {
    keeper: Keeper,
    next_probe: Nanos,
    bytes: u64,
    own: u64,
    company: Foreground,
}

impl<'a> Pace<'a> {
    /// With a limit, and what others may expect. The kernel counts a request once for each part of the
    /// size `split`; where that is not known, others may always be there.
    pub(crate) fn new(limit: &'a Limit, manners: IoPolicy, split: Option<Bytes>) -> Pace<'a> {
        let keeper = match manners {
            IoPolicy::Target(target) => keeper(target.as_secs_f64()),
            IoPolicy::Idle | IoPolicy::Short | IoPolicy::None => None,
        };
        Pace {
            limit,
            idle: (manners == IoPolicy::Idle).then(Idle::default),
            short: matches!(manners, IoPolicy::Idle | IoPolicy::Short).then(Short::new),
            in_flight: 0,
            now: Nanos(0),
            ahead: limit.now(),
            own_place: Nanos(0),
            traffic: Traffic::default(),
            courtesy: keeper.map(|keeper| PolicyState {
                keeper,
                next_probe: Nanos(0),
                bytes: 0,
                own: 0,
                company: Foreground::default(),
            }),
            split: split.filter(|split| split.0 > 0),
            not_before: Nanos(0),
        }
    }

    /// When the next request may go: `None` for at once.
    pub(crate) fn wait(&self, now: Nanos) -> Option<Nanos> {
        let until = self.not_before.max(self.own_place);
        let is_silent = self.idle.as_ref().is_some_and(Idle::is_silent);
        let is_full = self.in_flight >= self.most_in_flight();
        let until = if is_silent || is_full {
            until.max(now + NAP)
        } else {
            until
        };
        if until <= now {
            return None;
        }
        // A probe that waits until a request goes anyway would always be before it, and never feel it.
        let probe = self.idle.as_ref().and_then(Idle::next_probe);
        Some(probe.map_or(until, |probe| until.min(probe.max(now))))
    }

    /// How many requests of the warming may be in flight.
    fn most_in_flight(&self) -> usize {
        self.short.as_ref().map_or(usize::MAX, Short::most)
    }

    /// A request of so many bytes goes.
    pub(crate) fn goes(&mut self, now: Nanos, bytes: Bytes) {
        self.in_flight += 1;
        self.own_place = self.limit.goes(now + self.ahead, bytes) - self.ahead;
        if let Some(rate) = self.rate() {
            let takes = Nanos((bytes.0 as f64 / rate * 1e9) as u64);
            self.not_before = self.not_before.max(now - SLACK) + takes;
        }
    }

    /// Bytes a second that may be read of this device now, whatever the limit of all is.
    fn rate(&self) -> Option<f64> {
        let polite = self.courtesy.as_ref().map(|own| own.keeper.allowed());
        let idle = self.idle.as_ref().and_then(Idle::rate);
        [polite, idle].into_iter().flatten().reduce(f64::min)
    }

    /// Whether a probe is due; the next one is due later then.
    pub(crate) fn probes(&mut self, now: Nanos) -> bool {
        self.now = now;
        let of_idle = self.idle.as_mut().is_some_and(|idle| idle.probes(now));
        if let Some(short) = &mut self.short {
            return of_idle || short.probes(now);
        }
        let Some(courtesy) = &mut self.courtesy else {
            return false;
        };
        let due = now >= courtesy.next_probe;
        if due {
            courtesy.next_probe = now + PROBE_EVERY;
        }
        due
    }

    /// A probe came back.
    pub(crate) fn felt(&mut self, bytes: Bytes, latency: Nanos) {
        self.traffic.own += bytes.0;
        if let Some(short) = &mut self.short {
            short.felt(self.now, latency, self.in_flight);
        }
        if let Some(idle) = &mut self.idle {
            idle.felt(bytes, latency);
        }
        if let Some(courtesy) = &mut self.courtesy {
            courtesy.own += 1;
            courtesy.keeper.felt(latency.as_secs_f64());
        }
    }

    /// A request of the warming itself came back, of so many bytes: as many as were asked for, also
    /// where they could not be read. The kernel counts those too, and they are no stranger's.
    pub(crate) fn came(&mut self, bytes: Bytes) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.traffic.own += bytes.0;
        if let Some(idle) = &mut self.idle {
            idle.came(bytes);
        }
        if let Some(courtesy) = &mut self.courtesy {
            let parts = self.split.map_or(0, |split| bytes.0.div_ceil(split.0));
            courtesy.own += parts;
            courtesy.bytes += bytes.0;
        }
    }

    /// Sets the pace anew, if it is time to. `counted` says what the kernel has counted on the device
    /// since the last time; `None` where it does not count.
    pub(crate) fn adjust(&mut self, now: Nanos, counted: impl FnOnce() -> Option<Counted>) {
        let passed = now - self.traffic.since;
        if passed < INTERVAL {
            return;
        }
        self.traffic.since = now;
        let counted = counted();
        if let Some(counted) = counted {
            self.traffic.all += counted.read_bytes + counted.written_bytes;
            self.traffic.own_before = self.traffic.own;
        }
        let seconds = passed.as_secs_f64();
        if let Some(idle) = &mut self.idle {
            let wait_s = self.short.as_ref().and_then(Short::wait_s);
            idle.adjust(now, seconds, counted, wait_s);
        }
        let Some(courtesy) = &mut self.courtesy else {
            return;
        };
        let counted = counted.filter(|_| self.split.is_some());
        let alone = courtesy.company.is_none(counted, courtesy.own);
        let background = courtesy.bytes as f64 / seconds;
        courtesy.keeper.observe(seconds, background, alone);
        (courtesy.bytes, courtesy.own) = (0, 0);
    }

    /// The share of the bytes that went through the device meanwhile which were others', by what the
    /// kernel has counted; `None` where it does not count.
    pub(crate) fn others_share(&self) -> Option<f64> {
        self.traffic.others()
    }

    /// What others had while reading was slower for them, without having been asked to be; `None` where it
    /// never was.
    pub(crate) fn yielded(&self) -> Option<Yielded> {
        self.idle.as_ref().and_then(Idle::yielded)
    }
}

/// Keeps others' requests under this latency in seconds, with a rate of at least so many bytes a second.
fn pacer(target_s: f64, least: f64) -> Option<Pacer> {
    Pacer::new(Rates::new(least, MOST)?, target_s)
}

/// Keeps others' requests under this latency in seconds, or what they have by themselves.
fn keeper(target_s: f64) -> Option<Keeper> {
    Keeper::new(Rates::new(LEAST, MOST)?, FEW, target_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(1_000_000_000);

    /// How many bytes go in a second, in requests of 1,000.
    fn bytes_in_a_second(pace: &mut Pace, from: Nanos) -> u64 {
        let mut now = from;
        let mut bytes = 0;
        while now < from + SECOND {
            match pace.wait(now) {
                Some(until) => now = until,
                None => {
                    pace.goes(now, Bytes(1000));
                    pace.came(Bytes(1000));
                    bytes += 1000;
                    now += Nanos(1000);
                }
            }
        }
        bytes
    }

    #[test]
    fn the_limit_is_kept_and_what_one_does_not_use_is_the_others() {
        let limit = Limit::new(Some(Bytes(1_000_000)));
        let mut paces = [(); 2].map(|()| Pace::new(&limit, IoPolicy::None, Some(Bytes(1000))));
        // How much each reads in a second, of which the second one wants so much.
        let mut both = |from: Nanos, wanted: u64| {
            let (mut now, mut bytes) = (from, [0, 0]);
            while now < from + SECOND {
                for (number, pace) in paces.iter_mut().enumerate() {
                    if pace.wait(now).is_none() && (number == 0 || bytes[1] < wanted) {
                        pace.goes(now, Bytes(1000));
                        pace.came(Bytes(1000));
                        bytes[number] += 1000;
                    }
                }
                now += Nanos(100_000);
            }
            bytes
        };
        let [a, b] = both(SECOND, u64::MAX);
        assert!((990_000..1_070_000).contains(&(a + b)), "{a} {b}");
        let [a, b] = both(Nanos(3 * SECOND.0), 100_000);
        assert_eq!(b, 100_000);
        assert!(
            (890_000..970_000).contains(&a),
            "{a}: what the other leaves"
        );
        let none = Limit::new(None);
        let mut pace = Pace::new(&none, IoPolicy::None, Some(Bytes(1000)));
        assert_eq!(
            bytes_in_a_second(&mut pace, SECOND),
            SECOND.0,
            "one each microsecond"
        );
    }

    #[test]
    fn the_pace_falls_when_others_wait_and_rises_when_they_are_gone() {
        let limit = Limit::new(None);
        let mut pace = Pace::new(
            &limit,
            IoPolicy::Target(Nanos(5_000_000)),
            Some(Bytes(1000)),
        );
        let mut now = Nanos(0);
        let mut step = |pace: &mut Pace, latency: u64, writes: u64| {
            now += INTERVAL;
            let rate = pace.rate().unwrap();
            pace.came(Bytes((rate / 2.0) as u64));
            (0..100).for_each(|_| pace.felt(Bytes(4096), Nanos(latency)));
            let reads = pace.courtesy.as_ref().unwrap().own;
            pace.adjust(now, || {
                Some(Counted {
                    reads,
                    writes,
                    ..Counted::default()
                })
            });
            pace.rate().unwrap()
        };
        let rates: Vec<f64> = (0..20).map(|_| step(&mut pace, 1_000_000, 9)).collect();
        assert!(rates[19] > 100.0 * rates[0], "{rates:?}");
        let cut = step(&mut pace, 20_000_000, 9);
        assert!(cut < 0.8 * rates[19], "{cut}");
        let still = step(&mut pace, 20_000_000, 0);
        assert!(still <= cut, "a pause of others is not their end: {still}");
        let later: Vec<f64> = (0..8).map(|_| step(&mut pace, 20_000_000, 0)).collect();
        assert!(later[7] > later[3], "nobody is there to wait: {later:?}");
    }

    #[test]
    fn nobody_is_there_only_after_a_while_and_where_it_is_counted() {
        let mut company = Foreground::default();
        let own = Some(Counted {
            reads: 100,
            ..Counted::default()
        });
        let mut seen = |counted| company.is_none(counted, 100);
        assert!((1..2 * foreground::QUIET).all(|_| !seen(own)));
        assert!(seen(own));
        assert!(!seen(None) && !seen(own));
        // Where it is not known how requests are split, nothing is known.
        let limit = Limit::new(None);
        let mut pace = Pace::new(&limit, IoPolicy::Target(Nanos(5_000_000)), None);
        for number in 1..20 {
            pace.felt(Bytes(4096), Nanos(20_000_000));
            pace.adjust(Nanos(number * INTERVAL.0), || Some(Counted::default()));
        }
        assert_eq!(pace.courtesy.unwrap().company.quiet, 0);
    }
}
