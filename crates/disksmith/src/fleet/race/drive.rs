//! Drives a race: brings all hosts to the start, tells them each round, and takes in what they give.

use std::collections::BTreeSet;
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
/// How long nothing is said of who is waited for, at first; it doubles each time.
const FIRST_WORD: Duration = Duration::from_secs(30);
/// More hosts than so many are counted, not named.
const MOST_NAMED: usize = 5;

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
    /// part. `tell` is given a sentence now and then while it takes long.
    pub(super) fn gather(&mut self, patience: Duration, tell: &mut dyn FnMut(&str)) {
        let began = Instant::now();
        let mut pause = FIRST_WORD;
        let mut next = began + pause;
        let coming = |seats: &[Seat]| seats.iter().any(|seat| seat.state == State::Coming);
        while coming(&self.seats) && !self.interrupt.load(Relaxed) && began.elapsed() < patience {
            self.hear();
            if Instant::now() >= next {
                tell(&self.who_is_coming(began.elapsed()));
                pause *= 2;
                next = Instant::now() + pause;
            }
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

    /// Who is waited for, as a sentence.
    fn who_is_coming(&self, elapsed: Duration) -> String {
        let coming = || self.seats.iter().filter(|seat| seat.state == State::Coming);
        let named: Vec<&str> = coming()
            .take(MOST_NAMED)
            .map(|seat| seat.came.host.as_str())
            .collect();
        let more = match coming().count().saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "disksmith: after {} s the race waits for {}{more}, of {} hosts.",
            elapsed.as_secs(),
            named.join(", "),
            self.seats.len()
        )
    }

    /// Measures a round on these hosts, at the same time. A host that has not answered `late` after the
    /// round's end is waited for no longer.
    pub(super) fn measure(&mut self, hosts: &[usize], round: Round, late: Duration) -> RoundRecord {
        let began = Instant::now();
        let lasts = Duration::from_secs_f64(round.seconds);
        let mut record = RoundRecord::default();
        let mut waiting = self.begin(hosts, round, &mut record);
        while !self.interrupt.load(Relaxed) && began.elapsed() < lasts + late {
            // Where hosts are missing a round takes its time all the same: they may come back in it.
            let is_due = record.missed.is_empty() || began.elapsed() >= lasts;
            if waiting.is_empty() && is_due {
                break;
            }
            let Some((place, measured)) = self.hear() else {
                continue;
            };
            if !waiting.contains(&place) {
                continue;
            }
            let gave = match (measured, &self.seats[place].state) {
                (Some(measured), _) if measured.number == round.number => {
                    let targets = measured.targets;
                    record.measured.push(Lap {
                        host: place,
                        targets,
                    });
                    true
                }
                (_, State::Away(why)) => {
                    record.missed.push(absent(place, why));
                    true
                }
                (_, State::Gone) => {
                    record.gone.push(self.seats[place].gone(place));
                    true
                }
                _ => false,
            };
            if gave {
                waiting.remove(&place);
            }
        }
        let word = format!(
            "it did not answer {:.0} s after the round's end",
            late.as_secs_f64()
        );
        let silent = waiting.iter().map(|place| absent(*place, &word));
        record.missed.extend(silent);
        // The order in which they answer is no part of what was measured.
        record.measured.sort_by_key(|lap| lap.host);
        record
    }

    /// Tells a round to these hosts. Those that measure it now.
    fn begin(
        &mut self,
        hosts: &[usize],
        round: Round,
        record: &mut RoundRecord,
    ) -> BTreeSet<usize> {
        let mut waiting = BTreeSet::new();
        for place in hosts {
            let Some(seat) = self.seats.get_mut(*place) else {
                continue;
            };
            match &seat.state {
                State::Ready => {
                    // Where its thread has ended, that was told.
                    let told = seat.tell.as_ref().map(|tell| tell.send(round));
                    if matches!(told, Some(Ok(()))) {
                        seat.state = State::Busy;
                        waiting.insert(*place);
                    } else {
                        record.missed.push(absent(*place, "it is not there"));
                    }
                }
                State::Busy => record
                    .missed
                    .push(absent(*place, "it was still at an earlier round")),
                State::Away(why) => record.missed.push(absent(*place, why)),
                State::Coming => record.missed.push(absent(*place, "it is not ready")),
                State::Gone => record.gone.push(seat.gone(*place)),
            }
        }
        waiting
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

    /// Takes in what a host tells, if one does within a moment: its place, and the round that it has
    /// measured, if it is that.
    fn hear(&mut self) -> Option<(usize, Option<HostRound>)> {
        let (place, told) = match self.told.recv_timeout(LOOK) {
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(LOOK);
                return None;
            }
        };
        let seat = self.seats.get_mut(place)?;
        let mut measured = None;
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
                measured = Some(round);
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
        Some((place, measured))
    }
}

impl Seat {
    /// That it is gone, and why.
    fn gone(&self, place: usize) -> Absent {
        absent(place, self.came.why.as_deref().unwrap_or_default())
    }

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
