//! A [`Pacer`] that knows what others have by themselves, since it listens before it begins.

use std::collections::VecDeque;

use super::{Interval, Pacer, Rates};

/// Before it is listened, what was in flight has so long to come back, in seconds.
const SETTLE_S: f64 = 0.5;
/// So long it is listened, in seconds.
const LISTEN_S: f64 = 1.5;
/// After so long it is listened again, where others do not reach the target by themselves, in seconds.
const AGAIN_S: f64 = 60.0;
/// Of so few latencies nothing is known.
const LEAST: usize = 20;
/// The latencies that count are the last so many.
const MOST: usize = 100;
/// Others may have so many times what they have by themselves: of so few reads it is known no better.
const ROOM: f64 = 2.0;

/// Keeps the p99 of others' latencies under a target, or under what they have by themselves with some
/// room where that is more.
///
/// Where others do not reach the target by themselves, a [`Pacer`] finds that out only after it has
/// starved the background at the floor. So here the background does little at first, while it is
/// listened to others; and again every minute where they had more than the target.
///
/// The p99 is the second largest of the last hundred latencies. After a cut those of before count no
/// more, nor those of the next interval, as they would call for one cut after the other, and it is the
/// second largest of those that there are: one slow read alone is chance.
#[derive(Clone, Debug)]
pub struct Keeper {
    few: f64,
    target_s: f64,
    pacer: Pacer,
    state: State,
    felt: VecDeque<f64>,
    /// The last interval ended with a cut: what is felt now was in flight before it.
    was_cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Requests in flight come back.
    Settling { left_s: f64 },
    /// It is listened to others.
    Listening { left_s: f64 },
    /// The background has what the pacer allows, since so long.
    Paced { since_s: f64 },
}

impl Keeper {
    /// Keeps to a target in seconds; while it is listened, the background has a rate of `few`, brought
    /// within the bounds. `None` where the target is not positive and finite.
    pub fn new(rates: Rates, few: f64, target_s: f64) -> Option<Keeper> {
        let few = few.clamp(rates.floor, rates.ceiling);
        Some(Keeper {
            few,
            target_s,
            pacer: Pacer::new(rates, target_s)?.beginning_at(few),
            // Nothing was in flight.
            state: State::Listening { left_s: LISTEN_S },
            felt: VecDeque::new(),
            was_cut: false,
        })
    }

    /// The rate now allowed.
    pub fn allowed(&self) -> f64 {
        match self.state {
            State::Settling { .. } | State::Listening { .. } => self.few,
            State::Paced { .. } => self.pacer.allowed(),
        }
    }

    /// The latency in seconds that others are held to now.
    pub fn held_to_s(&self) -> f64 {
        self.pacer.held_to_s()
    }

    /// A read as others make them took so many seconds.
    pub fn felt(&mut self, latency_s: f64) {
        if self.felt.len() == MOST {
            self.felt.pop_front();
        }
        self.felt.push_back(latency_s);
    }

    /// An interval of so many seconds has ended, in which the background had this rate, and in which
    /// nobody else was there if it is `alone`. Answers the rate allowed from now on.
    pub fn observe(&mut self, seconds: f64, background: f64, alone: bool) -> f64 {
        self.state = match self.state {
            // There is nobody to listen to, whose level is not known when somebody comes.
            State::Settling { .. } | State::Listening { .. } if alone => {
                State::Paced { since_s: 0.0 }
            }
            State::Settling { left_s } if left_s > seconds => State::Settling {
                left_s: left_s - seconds,
            },
            State::Settling { .. } => {
                self.felt.clear();
                State::Listening { left_s: LISTEN_S }
            }
            State::Listening { left_s } if left_s > seconds || self.felt.len() < LEAST => {
                State::Listening {
                    left_s: left_s - seconds,
                }
            }
            State::Listening { .. } => {
                self.listened();
                State::Paced { since_s: 0.0 }
            }
            State::Paced { since_s } => {
                self.paced(seconds, background, alone);
                let is_lenient = self.pacer.held_to_s() > self.target_s;
                if since_s >= AGAIN_S && is_lenient && !alone {
                    State::Settling { left_s: SETTLE_S }
                } else {
                    State::Paced {
                        since_s: since_s + seconds,
                    }
                }
            }
        };
        self.allowed()
    }

    /// Notes that the others' own latency is known now.
    fn listened(&mut self) {
        let own = self.p99().unwrap_or(self.target_s);
        let held_s = self.target_s.max(ROOM * own);
        self.pacer.hold_to(held_s);
        self.felt.clear();
    }

    fn paced(&mut self, seconds: f64, background: f64, alone: bool) {
        let foreground_s = if self.was_cut {
            // Neither good nor bad: the rate stays.
            Some(self.pacer.held_to_s())
        } else {
            self.p99()
        };
        // Where others wait and nothing has come back yet, nothing is known.
        if foreground_s.is_none() && !alone {
            return;
        }
        let before = self.pacer.allowed();
        let after = self.pacer.observe(&Interval {
            seconds,
            foreground_s: foreground_s.filter(|_| !alone),
            background,
        });
        if after < before || self.was_cut {
            self.felt.clear();
        }
        self.was_cut = after < before;
    }

    /// The second largest of what was felt lately, or the only one.
    fn p99(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.felt.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let second = sorted.len().saturating_sub(2);
        sorted.get(second).copied()
    }
}
