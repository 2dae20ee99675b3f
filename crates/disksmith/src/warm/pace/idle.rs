//! Takes what is idle: all that the device gives while nobody else uses it, and what leaves the others
//! about as they are when somebody does.

use record::{Bytes, Nanos};
use study::pace::{Interval, Pacer};

use super::company::Presence;
use super::{Counted, LEAST, PROBE_EVERY, pacer, percentile};

/// Others may wait so many times as long as beside a few requests of ours.
const FACTOR: f64 = 2.0;
/// Others may wait this long in any case, in seconds: a volume whose reads take half a millisecond would
/// otherwise be left alone for every single block that is under way.
const LEAST_TARGET_S: f64 = 0.005;
/// So much goes on while it is listened to how long others wait by themselves, in bytes a second: a few
/// blocks.
const FEW: f64 = 4.0 * LEAST;
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
const PERCENT: usize = 90;
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
    /// It listens to how long others wait by themselves.
    Listening { until: Nanos },
    /// Others are there, and wait no longer than they may.
    Paced { pacer: Pacer, again: Nanos },
}

/// Takes what is idle.
#[derive(Debug, Default)]
pub(super) struct Idle {
    presence: Presence,
    state: State,
    next_probe: Nanos,
    /// The latencies of the last probes in seconds, the oldest first.
    felt: Vec<f64>,
    /// Bytes of the warming, and of all our own requests, in this interval.
    bytes: u64,
    own: u64,
    /// Bytes a second before others came.
    before: f64,
    yielded: Nanos,
}

impl Idle {
    /// Bytes a second that may be read now; `None` for all that comes.
    pub(super) fn rate(&self) -> Option<f64> {
        match &self.state {
            State::Free => None,
            State::Settling { .. } | State::Listening { .. } => Some(FEW),
            State::Paced { pacer, .. } => Some(pacer.allowed()),
        }
    }

    /// For how long others were there.
    pub(super) fn yielded(&self) -> Nanos {
        self.yielded
    }

    /// Whether a probe is due. None is sent while nobody is there: it would cost the volume requests.
    pub(super) fn probes(&mut self, now: Nanos) -> bool {
        let due = !matches!(self.state, State::Free) && now >= self.next_probe;
        if due {
            self.next_probe = now + PROBE_EVERY;
        }
        due
    }

    pub(super) fn felt(&mut self, bytes: Bytes, latency: Nanos) {
        self.own += bytes.0;
        if self.felt.len() == PROBES {
            self.felt.remove(0);
        }
        self.felt.push(latency.as_secs_f64());
    }

    pub(super) fn came(&mut self, bytes: Bytes) {
        self.own += bytes.0;
        self.bytes += bytes.0;
    }

    /// An interval of so many seconds has ended, in which the kernel has counted this.
    pub(super) fn adjust(&mut self, now: Nanos, seconds: f64, counted: Option<Counted>) {
        let somebody = self.presence.is_seen(counted, self.own);
        let background = self.bytes as f64 / seconds;
        (self.own, self.bytes) = (0, 0);
        if !matches!(self.state, State::Free) {
            self.yielded += Nanos((seconds * 1e9) as u64);
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
                    foreground_s: percentile(&self.felt, PERCENT),
                    background,
                });
                State::Paced { pacer, again }
            }
        };
    }

    /// How long others wait by themselves is known now.
    fn listened(&mut self, now: Nanos) -> State {
        let own = percentile(&self.felt, PERCENT).filter(|_| self.felt.len() >= LEAST_PROBES);
        let target = own.map(|own| (FACTOR * own).max(LEAST_TARGET_S));
        match target.and_then(pacer) {
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

fn settling(now: Nanos) -> State {
    State::Settling {
        until: now + SETTLE,
    }
}
