//! Drives a race: brings all hosts to the start, tells them each round, and takes in what they give.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::super::hosts::Host;
use super::super::rounds::{HostRound, Round, TargetFacts};
use super::super::run::{Came, HostRun};
use super::record::{Absent, Lap, RoundRecord};
use super::runner::Told;

/// How often it is looked whether the user wants the end.
const LOOK: Duration = Duration::from_millis(50);

/// A host, as the race sees it.
pub(super) struct Seat {
    /// What came of it until now.
    pub came: HostRun,
    /// What names its boot.
    pub boot: String,
    /// The id by which it knows itself.
    pub own_id: Option<String>,
    /// What is measured there.
    pub targets: Vec<TargetFacts>,
    /// Where it stands.
    pub state: State,
    /// Where it is told the rounds.
    tell: Option<Sender<Round>>,
}

/// Where a host stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is being reached, or prepares.
    Coming,
    /// It waits for a round.
    Ready,
    /// It measures a round.
    Busy,
    /// It is away for a while; why.
    Away(String),
    /// It is gone for good, since when its own record says why.
    Gone,
}

/// The hosts of a race.
pub(super) struct Field<'a> {
    /// The hosts, in the order of their source.
    pub seats: Vec<Seat>,
    told: Receiver<(usize, Told)>,
    interrupt: &'a AtomicBool,
}

/// The ends of the wires to the hosts' threads: where they tell, and where each hears its rounds.
pub(super) type Wires = (Sender<(usize, Told)>, Vec<Receiver<Round>>);

impl<'a> Field<'a> {
    /// Hosts of which none is reached yet.
    pub(super) fn new(hosts: &[Host], interrupt: &'a AtomicBool) -> (Field<'a>, Wires) {
        let (sender, told) = channel();
        let mut receivers = Vec::new();
        let seats = hosts
            .iter()
            .map(|host| {
                let (tell, rounds) = channel();
                receivers.push(rounds);
                Seat {
                    came: HostRun::waiting(host),
                    boot: String::new(),
                    own_id: None,
                    targets: Vec::new(),
                    state: State::Coming,
                    tell: Some(tell),
                }
            })
            .collect();
        let field = Field {
            seats,
            told,
            interrupt,
        };
        (field, (sender, receivers))
    }

    /// Waits until every host is ready or gone, at most so long. Those that are not ready then take no
    /// part.
    pub(super) fn gather(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        let coming = |seats: &[Seat]| seats.iter().any(|seat| seat.state == State::Coming);
        while coming(&self.seats) && !self.interrupt.load(Relaxed) && Instant::now() < until {
            self.hear(&mut |_, _| {});
        }
        let is_over = self.interrupt.load(Relaxed);
        for seat in &mut self.seats {
            if seat.state == State::Coming && !is_over {
                let late = format!("it was not ready after {} s.", patience.as_secs());
                seat.came.came = Came::Failed;
                seat.came.why = Some(late);
                seat.leave();
            }
        }
    }

    /// Measures a round on these hosts, at the same time. A host that has not answered `late` after the
    /// round's end is waited for no longer.
    pub(super) fn measure(&mut self, hosts: &[usize], round: Round, late: Duration) -> RoundRecord {
        let mut record = RoundRecord::default();
        let mut waiting: Vec<usize> = Vec::new();
        for place in hosts {
            let Some(seat) = self.seats.get_mut(*place) else {
                continue;
            };
            match &seat.state {
                State::Ready => {
                    seat.state = State::Busy;
                    // Where its thread has ended, that was told.
                    let told = seat.tell.as_ref().map(|tell| tell.send(round));
                    if matches!(told, Some(Ok(()))) {
                        waiting.push(*place);
                    }
                }
                State::Busy => record
                    .missed
                    .push(absent(*place, "it was still at an earlier round")),
                State::Away(why) => record.missed.push(absent(*place, why)),
                State::Coming => record.missed.push(absent(*place, "it prepares anew")),
                State::Gone => {
                    let why = seat.came.why.clone();
                    record.gone.push(absent(*place, &why.unwrap_or_default()));
                }
            }
        }
        let until = Instant::now() + Duration::from_secs_f64(round.seconds) + late;
        while !waiting.is_empty() && !self.interrupt.load(Relaxed) && Instant::now() < until {
            let mut came: Option<(usize, HostRound)> = None;
            self.hear(&mut |place, measured| came = Some((place, measured)));
            if let Some((place, measured)) = came
                && measured.number == round.number
            {
                let targets = measured.targets;
                record.measured.push(Lap {
                    host: place,
                    targets,
                });
                waiting.retain(|one| *one != place);
            }
            waiting.retain(|place| {
                match self
                    .seats
                    .get(*place)
                    .map(|seat| (&seat.state, &seat.came.why))
                {
                    Some((State::Away(why), _)) => {
                        record.missed.push(absent(*place, why));
                        false
                    }
                    Some((State::Gone, why)) => {
                        record
                            .gone
                            .push(absent(*place, why.as_deref().unwrap_or_default()));
                        false
                    }
                    _ => true,
                }
            });
        }
        let word = format!(
            "it did not answer {:.0} s after the round's end",
            late.as_secs_f64()
        );
        record
            .missed
            .extend(waiting.iter().map(|place| absent(*place, &word)));
        // The order in which they answer is no part of what was measured.
        record.measured.sort_by_key(|lap| lap.host);
        record
    }

    /// A host takes no part any more.
    pub(super) fn release(&mut self, place: usize) {
        if let Some(seat) = self.seats.get_mut(place) {
            seat.tell = None;
        }
    }

    /// The race is over: all hosts are told so.
    pub(super) fn end(&mut self) {
        for seat in &mut self.seats {
            seat.tell = None;
        }
    }

    /// Takes in what a host tells, if one does within a moment.
    fn hear(&mut self, measured: &mut dyn FnMut(usize, HostRound)) {
        let (place, told) = match self.told.recv_timeout(LOOK) {
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout) => return,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(LOOK);
                return;
            }
        };
        let Some(seat) = self.seats.get_mut(place) else {
            return;
        };
        match told {
            Told::Known(came, boot, own_id) => {
                (seat.came, seat.boot, seat.own_id) = (*came, boot, own_id);
            }
            Told::Ready(targets) => {
                seat.targets = targets;
                seat.state = State::Ready;
            }
            Told::Measured(round) => {
                seat.state = State::Ready;
                measured(place, round);
            }
            Told::Away(why) => seat.state = State::Away(why),
            Told::Gone(came) => {
                // That it was too late to the start stays.
                if seat.came.why.is_none() {
                    seat.came = *came;
                }
                seat.leave();
            }
        }
    }
}

impl Seat {
    fn leave(&mut self) {
        self.state = State::Gone;
        self.tell = None;
    }
}

fn absent(host: usize, why: &str) -> Absent {
    Absent {
        host,
        why: why.to_owned(),
    }
}
