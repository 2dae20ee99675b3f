//! Takes what is idle: all that the device gives while nobody else uses it, and what leaves the others
//! about as they are when somebody does.

use std::collections::VecDeque;

use record::{Bytes, Histogram, Nanos};
use study::pace::{Interval, Pacer};

use super::foreground::Presence;
use super::{Counted, LEAST, PROBE_EVERY, pacer};

/// Others may wait so many times as long as beside none of our requests.
const FACTOR: f64 = 2.0;
/// Others may wait this long in any case, in seconds: a volume whose reads take half a millisecond would
/// otherwise be left alone for every single block that is under way.
const LEAST_TARGET_S: f64 = 0.005;
/// What it is never slower than, as a share of what the volume gives: at this one even on a volume on
/// which a block takes long 9 of 10 requests of others meet none.
const LEAST_SHARE: f64 = 1.0 / 16.0;
/// Nor is it ever slower than this, in bytes a second.
const SLOWEST: f64 = LEAST / 32.0;
/// Before that counts, what was in flight has so long to come back.
const SETTLE: Nanos = Nanos(500_000_000);
/// So long it is listened.
const LISTEN: Nanos = Nanos(1_000_000_000);
/// After so long it is listened again: others change.
const AGAIN: Nanos = Nanos(60_000_000_000);
/// With fewer probes than this nothing is known.
const LEAST_PROBES: usize = 20;
/// The last second of probes.
const PROBES: usize = 50;
/// What 9 of 10 probes do not exceed is what others feel: of so few a higher one is chance.
const QUANTILE: f64 = 0.9;
/// The weight of the last half second in what the volume gives.
const RECENT: f64 = 0.1;
/// Others must get at least this share of what they read and write by themselves.
const THEIR_SHARE: f64 = 0.5;
/// So many pages a second more or less are no proof of that: what the kernel has counted of our own and we
/// have not.
const DOUBT: f64 = 64.0;
/// That is judged by so many intervals.
const THEIR_INTERVALS: usize = 4;
/// Where others get less at the lowest rate for so long, they want less: it is listened again.
const IN_VAIN: Nanos = Nanos(5_000_000_000);
/// When others come, it goes on with this share of the rate of before.
const BEGIN: f64 = 0.5;

/// What is done.
#[derive(Debug, Default)]
enum State {
    /// Nobody is there.
    #[default]
    Free,
    /// It waits until what was in flight is back.
    Settling { until: Nanos },
    /// It reads nothing, and listens to how long others wait by themselves.
    Listening { until: Nanos },
    /// Others are there, and wait no longer than they may.
    Paced { pacer: Pacer, again: Nanos },
}

/// What others had while it was read more slowly for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Yielded {
    /// For how long that was.
    pub time: Nanos,
    /// What 9 of 10 probes did not exceed while it was read beside others; `None` before there were any.
    pub felt: Option<Nanos>,
    /// To what that was held, at last.
    pub held_to: Option<Nanos>,
    /// For how much of that time the rate was the lowest that there is.
    pub at_least: Nanos,
    /// That rate, in bytes a second.
    pub least: f64,
}

/// Takes what is idle.
#[derive(Debug, Default)]
pub(super) struct Idle {
    presence: Presence,
    state: State,
    next_probe: Nanos,
    /// How many probes were due.
    probes: f64,
    /// The latencies of the last probes, the oldest first.
    felt: Vec<Nanos>,
    /// Bytes of the warming, and of all our own requests, in this interval.
    bytes: u64,
    own: u64,
    /// Pages and writes of others in the last intervals, and how long these were in seconds.
    others: VecDeque<(f64, f64)>,
    /// Pages and writes of others a second, without us.
    by_themselves: f64,
    /// For how long others got too little at the lowest rate.
    in_vain: Nanos,
    /// Bytes a second before others came, and what the volume gives while nobody is there.
    before: f64,
    gives: Option<f64>,
    yielded: Nanos,
    at_least: Nanos,
    held_to_s: Option<f64>,
    /// All probes that were felt beside our own reading, in nanoseconds.
    beside: Histogram,
}

impl Idle {
    /// Bytes a second that may be read now; `None` for all that comes.
    pub(super) fn rate(&self) -> Option<f64> {
        match &self.state {
            State::Free | State::Settling { .. } | State::Listening { .. } => None,
            State::Paced { pacer, .. } => Some(pacer.allowed()),
        }
    }

    /// Whether nothing is to be read now. On a slow volume a single block under way would be felt in most of
    /// the probes that are to tell how long others wait without it.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.state, State::Settling { .. } | State::Listening { .. })
    }

    /// What others had while it was slower for them.
    pub(super) fn yielded(&self) -> Option<Yielded> {
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        (self.yielded.0 > 0).then(|| Yielded {
            time: self.yielded,
            felt: felt_in(&self.beside),
            held_to: self.held_to_s.map(nanos),
            at_least: self.at_least,
            least: self.least(),
        })
    }

    /// Whether a probe is due. While nobody is there a few are enough, which are not sent for this.
    pub(super) fn probes(&mut self, now: Nanos) -> bool {
        let due = !matches!(self.state, State::Free) && now >= self.next_probe;
        if due {
            // At even distances they could keep step with what is read. Multiples of the golden ratio fill
            // the unit evenly (Knuth, volume 3, 6.4), so that on average the distance is as said.
            self.probes += 1.0;
            let part = 0.5 + (self.probes * 0.618_033_988_75).fract();
            self.next_probe = now + Nanos((part * PROBE_EVERY.0 as f64) as u64);
        }
        due
    }

    /// When the next probe is due, if there is one.
    pub(super) fn next_probe(&self) -> Option<Nanos> {
        (!matches!(self.state, State::Free)).then_some(self.next_probe)
    }

    pub(super) fn felt(&mut self, bytes: Bytes, latency: Nanos) {
        self.own += bytes.0;
        if matches!(self.state, State::Paced { .. }) {
            self.beside.record(latency.0);
        }
        if self.felt.len() == PROBES {
            self.felt.remove(0);
        }
        self.felt.push(latency);
    }

    pub(super) fn came(&mut self, bytes: Bytes) {
        self.own += bytes.0;
        self.bytes += bytes.0;
    }

    /// An interval of so many seconds has ended, in which the kernel has counted this. A page takes
    /// `wait_s` seconds beside our own reading, where that is known.
    pub(super) fn adjust(
        &mut self,
        now: Nanos,
        seconds: f64,
        counted: Option<Counted>,
        wait_s: Option<f64>,
    ) {
        self.count_others(seconds, counted);
        let somebody = self.presence.is_seen(counted, self.own, wait_s);
        let background = self.bytes as f64 / seconds;
        (self.own, self.bytes) = (0, 0);
        if matches!(self.state, State::Free) {
            let before = self.gives.unwrap_or(background);
            self.gives = Some(before + RECENT * (background - before));
        }
        let passed = Nanos((seconds * 1e9) as u64);
        if !matches!(self.state, State::Free) {
            self.yielded += passed;
        }
        self.state = match std::mem::take(&mut self.state) {
            State::Free if somebody => {
                self.before = background;
                settling(now)
            }
            State::Free => State::Free,
            State::Settling { until } if now < until => State::Settling { until },
            State::Settling { .. } => {
                self.felt.clear();
                self.others.clear();
                let until = now + LISTEN;
                State::Listening { until }
            }
            State::Listening { until } if now < until => State::Listening { until },
            State::Listening { .. } => self.listened(now),
            State::Paced { .. } if !somebody => State::Free,
            State::Paced { again, .. } if now >= again => {
                self.before = background / BEGIN;
                settling(now)
            }
            State::Paced { mut pacer, again } => {
                pacer.observe(&Interval {
                    seconds,
                    foreground_s: self.others_feel(&pacer),
                    background,
                });
                let is_least = pacer.allowed() <= self.least();
                if is_least {
                    self.at_least += passed;
                }
                self.in_vain = if is_least && self.others_lack() {
                    self.in_vain + passed
                } else {
                    Nanos(0)
                };
                self.held_to_s = Some(pacer.held_to_s());
                let again = if self.in_vain >= IN_VAIN { now } else { again };
                State::Paced { pacer, again }
            }
        };
    }

    fn count_others(&mut self, seconds: f64, counted: Option<Counted>) {
        let Some(counted) = counted else {
            return;
        };
        let bytes = counted.read_bytes as f64 - self.own as f64;
        if self.others.len() == THEIR_INTERVALS {
            self.others.pop_front();
        }
        let requests = bytes / 4096.0 + counted.writes as f64;
        self.others.push_back((requests, seconds));
    }

    /// Pages and writes of others a second, of late.
    fn others_rate(&self) -> f64 {
        let (requests, seconds) = self
            .others
            .iter()
            .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        requests / f64::max(seconds, f64::MIN_POSITIVE)
    }

    /// Whether others get less than they should of what they want.
    fn others_lack(&self) -> bool {
        let is_known = self.others.len() == THEIR_INTERVALS;
        is_known && self.others_rate() + DOUBT < THEIR_SHARE * self.by_themselves
    }

    /// What the last probes felt, in seconds.
    fn felt_lately(&self) -> Option<f64> {
        let mut felt = Histogram::new();
        self.felt.iter().for_each(|latency| felt.record(latency.0));
        felt_in(&felt).map(Nanos::as_secs_f64)
    }

    /// What others feel, in seconds. Who fills what a volume gives waits long for some requests anyway, and
    /// could lose nearly all of it without that these wait longer: so getting too little counts
    /// as waiting too long, while there is anything to give back.
    fn others_feel(&self, pacer: &Pacer) -> Option<f64> {
        let felt = self.felt_lately()?;
        let held_to = pacer.held_to_s();
        Some(if !self.others_lack() {
            felt
        } else if pacer.allowed() > self.least() {
            felt.max(1.05 * held_to)
        } else {
            // The rate stays.
            0.95 * held_to
        })
    }

    /// The lowest rate, in bytes a second.
    fn least(&self) -> f64 {
        let share = self.gives.map_or(LEAST, |gives| LEAST_SHARE * gives);
        share.clamp(SLOWEST, LEAST)
    }

    /// How long others wait by themselves is known now.
    fn listened(&mut self, now: Nanos) -> State {
        let own = self
            .felt_lately()
            .filter(|_| self.felt.len() >= LEAST_PROBES);
        let target = own.map(|own| (FACTOR * own).max(LEAST_TARGET_S));
        self.by_themselves = self.others_rate();
        self.in_vain = Nanos(0);
        self.others.clear();
        let pacer = target.and_then(|target| pacer(target, self.least()));
        match pacer {
            Some(pacer) => State::Paced {
                pacer: pacer.beginning_at(BEGIN * self.before),
                again: now + AGAIN,
            },
            // Too few came back.
            None => State::Listening {
                until: now + LISTEN,
            },
        }
    }
}

/// What others feel by these latencies in nanoseconds; `None` where there are none.
fn felt_in(latencies: &Histogram) -> Option<Nanos> {
    (!latencies.is_empty()).then(|| Nanos(latencies.quantile(QUANTILE)))
}

fn settling(now: Nanos) -> State {
    State::Settling {
        until: now + SETTLE,
    }
}
