//! Drives a race: waits for all hosts to be ready, sends them each round, and collects the results.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::hosts::Host;
use crate::protocol::rounds::{HostRound, Round, TargetFacts};
use crate::race::runner::HostEvent;
use crate::store::race::{Measurement, MissedHost, RoundRecord};
use crate::store::{HostOutcome, HostRun};

/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(50);
/// Time before the first notice about hosts that are waited for; it doubles each time.
const FIRST_NOTICE: Duration = Duration::from_secs(30);
/// Maximum number of hosts that are named; more are counted.
const MAX_NAMED_HOSTS: usize = 5;

/// A host and its state in the race.
pub(super) struct Entrant<'a> {
    /// Its result so far.
    pub host_run: HostRun,
    /// Boot id.
    pub boot: String,
    /// The instance id that its metadata service reports.
    pub own_id: Option<String>,
    /// Targets that are measured there.
    pub targets: Vec<TargetFacts>,
    /// True if it was not ready again after a loss: it may then be another machine, or have other disks.
    pub may_be_other: bool,
    /// State of the host in the race.
    pub state: State,
    /// Channel to its thread, for the rounds.
    notice: Option<Sender<Round>>,
    /// Tells its thread that the race is over for it, whatever the thread is doing.
    over: &'a AtomicBool,
}

/// State of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The host is being connected to, or prepares.
    Coming,
    /// The host waits for a round.
    Ready,
    /// The host measures a round.
    Busy,
    /// The host is temporarily unreachable, for this reason.
    Away(String),
    /// The host has left the race, for the reason in its own record.
    Gone,
}

/// The hosts of a race.
pub(super) struct Entrants<'a> {
    /// The hosts, in the order of their source.
    pub entrants: Vec<Entrant<'a>>,
    events: Receiver<(usize, HostEvent)>,
    interrupt: &'a AtomicBool,
}

/// The channels to the hosts' threads: of their events, and of the rounds of each.
pub(super) type HostChannels = (Sender<(usize, HostEvent)>, Vec<Receiver<Round>>);

impl<'a> Entrants<'a> {
    /// The hosts of a race, none of which is connected yet. The thread of each host polls its `over` for the end of
    /// the race.
    pub(super) fn new(
        hosts: &[Host],
        over: &'a [AtomicBool],
        interrupt: &'a AtomicBool,
    ) -> (Entrants<'a>, HostChannels) {
        let (sender, events) = channel();
        let mut receivers = Vec::new();
        let entrants = hosts
            .iter()
            .zip(over)
            .map(|(host, over)| {
                let (notice, rounds) = channel();
                receivers.push(rounds);
                Entrant {
                    host_run: HostRun::waiting(host),
                    boot: String::new(),
                    own_id: None,
                    targets: Vec::new(),
                    may_be_other: false,
                    state: State::Coming,
                    notice: Some(notice),
                    over,
                }
            })
            .collect();
        let race = Entrants {
            entrants,
            events,
            interrupt,
        };
        (race, (sender, receivers))
    }

    /// Waits until every host is ready or gone, for at most `timeout`. Hosts that are not ready then do not take part.
    /// While it takes long, `notice` is called with a sentence now and then.
    pub(super) fn gather(&mut self, timeout: Duration, notice: &mut dyn FnMut(&str)) {
        let began = Instant::now();
        let mut pause = FIRST_NOTICE;
        let mut next = began + pause;
        let coming = |entrants: &[Entrant<'_>]| {
            entrants
                .iter()
                .any(|entrant| entrant.state == State::Coming)
        };
        while coming(&self.entrants) && !self.interrupt.load(Relaxed) && began.elapsed() < timeout {
            self.receive();
            if Instant::now() >= next {
                notice(&self.pending_hosts(began.elapsed()));
                pause *= 2;
                next = Instant::now() + pause;
            }
        }
        let is_over = self.interrupt.load(Relaxed);
        for entrant in &mut self.entrants {
            if entrant.state == State::Coming && !is_over {
                let late = format!("it was not ready after {} s.", timeout.as_secs());
                entrant.host_run.outcome = HostOutcome::Failed;
                entrant.host_run.why = Some(late);
                entrant.withdraw();
            }
        }
    }

    /// Notice of the hosts that are waited for.
    fn pending_hosts(&self, elapsed: Duration) -> String {
        let coming = || {
            self.entrants
                .iter()
                .filter(|entrant| entrant.state == State::Coming)
        };
        let named: Vec<&str> = coming()
            .take(MAX_NAMED_HOSTS)
            .map(|entrant| entrant.host_run.host.as_str())
            .collect();
        let more = match coming().count().saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "disksmith: after {} s the race waits for {}{more}, of {} hosts.",
            elapsed.as_secs(),
            named.join(", "),
            self.entrants.len()
        )
    }

    /// Measures a round on these hosts at the same time. A host that has not answered `late` after the round's end is
    /// no longer waited for; a later result is added to the record of the round that is then being measured. `tick` is
    /// called regularly with the number of hosts that were measured.
    pub(super) fn measure(
        &mut self,
        hosts: &[usize],
        round: Round,
        late: Duration,
        tick: &mut dyn FnMut(usize),
    ) -> RoundRecord {
        let began = Instant::now();
        let lasts = Duration::from_secs_f64(round.seconds);
        let mut record = RoundRecord::default();
        let mut waiting = self.begin(hosts, round, &mut record);
        while !self.interrupt.load(Relaxed) && began.elapsed() < lasts + late {
            // If hosts are missing the round still takes its full time: they may reconnect in it.
            let is_due = record.missed.is_empty() || began.elapsed() >= lasts;
            if waiting.is_empty() && is_due {
                break;
            }
            tick(record.measured.len());
            let Some((place, measured)) = self.receive() else {
                continue;
            };
            if !waiting.contains(&place) {
                record.late.extend(measured.map(|measured| Measurement {
                    host: place,
                    targets: measured.targets,
                    round: Some(measured.number),
                }));
                continue;
            }
            let gave = match (measured, &self.entrants[place].state) {
                (Some(measured), _) if measured.number == round.number => {
                    let targets = measured.targets;
                    record.measured.push(Measurement {
                        host: place,
                        targets,
                        round: None,
                    });
                    true
                }
                (_, State::Away(why)) => {
                    record.missed.push(absent(place, why));
                    true
                }
                (_, State::Gone) => {
                    record.gone.push(self.entrants[place].missed_host(place));
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
        // The order of the answers is not part of the measurement.
        record.measured.sort_by_key(|measurement| measurement.host);
        record.late.sort_by_key(|measurement| measurement.host);
        record
    }

    /// Sends a round to these hosts. Returns those that now measure it.
    fn begin(
        &mut self,
        hosts: &[usize],
        round: Round,
        record: &mut RoundRecord,
    ) -> BTreeSet<usize> {
        let mut waiting = BTreeSet::new();
        for place in hosts {
            let Some(entrant) = self.entrants.get_mut(*place) else {
                continue;
            };
            match &entrant.state {
                State::Ready => {
                    // If its thread has ended, an event has reported that.
                    let sent = entrant.notice.as_ref().map(|notice| notice.send(round));
                    if matches!(sent, Some(Ok(()))) {
                        entrant.state = State::Busy;
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
                State::Gone => record.gone.push(entrant.missed_host(*place)),
            }
        }
        waiting
    }

    /// Ends the race for a host, which no longer takes part.
    pub(super) fn release(&mut self, place: usize) {
        if let Some(entrant) = self.entrants.get_mut(place) {
            entrant.release();
        }
    }

    /// Ends the race on all hosts.
    pub(super) fn end(&mut self) {
        self.entrants.iter_mut().for_each(Entrant::release);
    }

    /// Processes all pending events, such as hosts that were lost while others were measured.
    pub(super) fn receive_uninterrupted(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.handle_event(event);
        }
    }

    /// Processes an event of a host, if one arrives within a short time. Returns the host's index, and its measured
    /// round, if that is the event.
    fn receive(&mut self) -> Option<(usize, Option<HostRound>)> {
        match self.events.recv_timeout(POLL) {
            Ok(event) => self.handle_event(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(POLL);
                None
            }
        }
    }

    /// Processes an event of a host.
    fn handle_event(
        &mut self,
        (place, event): (usize, HostEvent),
    ) -> Option<(usize, Option<HostRound>)> {
        let entrant = self.entrants.get_mut(place)?;
        if entrant.state == State::Gone && !matches!(event, HostEvent::Gone(..)) {
            return None;
        }
        let mut measured = None;
        match event {
            HostEvent::Known(host_run, boot, own_id) => {
                (entrant.host_run, entrant.boot, entrant.own_id) = (*host_run, boot, own_id);
                // Until it reports its targets; the race may be over before.
                entrant.may_be_other = !entrant.targets.is_empty();
            }
            HostEvent::Ready(targets) => match changed_targets(&entrant.targets, &targets) {
                Some(why) => {
                    entrant.host_run.outcome = HostOutcome::Failed;
                    entrant.host_run.why = Some(why);
                    entrant.may_be_other = true;
                    entrant.withdraw();
                }
                None => {
                    entrant.targets = targets;
                    entrant.may_be_other = false;
                    entrant.state = State::Ready;
                }
            },
            HostEvent::Measured(round) => {
                entrant.state = State::Ready;
                measured = Some(round);
            }
            HostEvent::Away(why) => entrant.state = State::Away(why),
            HostEvent::Gone(host_run, may_be_other) => {
                entrant.may_be_other |= may_be_other;
                // A host that was too late for the start keeps that reason.
                if entrant.host_run.why.is_none() {
                    entrant.host_run = *host_run;
                }
                entrant.withdraw();
            }
        }
        Some((place, measured))
    }
}

/// Reason why the targets of a host after a loss differ from the first ones, as a sentence; `None` if they are the
/// same, or these are the first.
fn changed_targets(first: &[TargetFacts], now: &[TargetFacts]) -> Option<String> {
    let is_same = |(first, now): (&TargetFacts, &TargetFacts)| {
        let known = (&first.path, &first.serial, first.size_bytes);
        // A disk with a serial number may change its name.
        known == (&now.path, &now.serial, now.size_bytes)
            && first.overwritten.as_ref().map(|one| &one.seen)
                == now.overwritten.as_ref().map(|one| &one.seen)
            && (now.serial.is_some() || first.device == now.device)
    };
    let all = || first.iter().zip(now);
    if first.is_empty() || (first.len() == now.len() && all().all(is_same)) {
        return None;
    }
    let other = all()
        .find(|both| !is_same(*both))
        .map(|(first, _)| &first.path);
    Some(match other {
        Some(path) => format!("{path} is another disk than at the start of the race."),
        None => "the measured device is not the same as at the start of the race.".to_owned(),
    })
}

impl Entrant<'_> {
    /// The host as a missed one, with the reason.
    fn missed_host(&self, place: usize) -> MissedHost {
        absent(place, self.host_run.why.as_deref().unwrap_or_default())
    }

    fn withdraw(&mut self) {
        self.state = State::Gone;
        self.release();
    }

    /// Ends the race for the host: it gets no more rounds, and its thread ends.
    fn release(&mut self) {
        self.notice = None;
        self.over.store(true, Relaxed);
    }
}

fn absent(host: usize, why: &str) -> MissedHost {
    MissedHost {
        host,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(path: &str, serial: Option<&str>, device: &str) -> TargetFacts {
        TargetFacts {
            path: path.to_owned(),
            serial: serial.map(str::to_owned),
            device: Some(device.to_owned()),
            ..TargetFacts::default()
        }
    }

    #[test]
    fn another_disk_under_the_same_path_is_noticed() {
        let first = [
            disk("/a", Some("vol-1"), "nvme1n1"),
            disk("/b", None, "vdb"),
        ];
        assert_eq!(changed_targets(&[], &first), None);
        let renamed = [disk("/a", Some("vol-1"), "nvme2n1"), first[1].clone()];
        assert_eq!(changed_targets(&first, &renamed), None);
        let other = [disk("/a", Some("vol-2"), "nvme1n1"), first[1].clone()];
        assert!(
            changed_targets(&first, &other)
                .unwrap()
                .starts_with("/a is another")
        );
        let moved = [first[0].clone(), disk("/b", None, "vdc")];
        assert!(
            changed_targets(&first, &moved)
                .unwrap()
                .starts_with("/b is another")
        );
        assert!(changed_targets(&first, &first[..1]).is_some());
    }

    #[test]
    fn one_that_comes_back_with_another_disk_is_gone_and_known_to_be_so() {
        let (over, interrupt) = ([AtomicBool::new(false)], AtomicBool::new(false));
        let (mut race, (events, _)) = Entrants::new(&[Host::default()], &over, &interrupt);
        events
            .send((
                0,
                HostEvent::Ready(vec![disk("/a", Some("vol-1"), "nvme1n1")]),
            ))
            .unwrap();
        race.receive();
        assert!(!race.entrants[0].may_be_other);
        events
            .send((
                0,
                HostEvent::Ready(vec![disk("/a", Some("vol-2"), "nvme1n1")]),
            ))
            .unwrap();
        race.receive();
        let entrant = &race.entrants[0];
        assert_eq!((&entrant.state, entrant.may_be_other), (&State::Gone, true));
    }

    #[test]
    fn one_that_is_met_again_may_be_another_until_it_is_ready() {
        let (over, interrupt) = ([AtomicBool::new(false)], AtomicBool::new(false));
        let (mut race, (events, _)) = Entrants::new(&[Host::default()], &over, &interrupt);
        let mut hear = |one: HostEvent| {
            events.send((0, one)).unwrap();
            race.receive();
            race.entrants[0].may_be_other
        };
        let known = || {
            let host_run = HostRun::waiting(&Host::default());
            HostEvent::Known(Box::new(host_run), "boot".to_owned(), None)
        };
        let ready = || HostEvent::Ready(vec![disk("/a", Some("vol-1"), "nvme1n1")]);
        assert!(!hear(known()));
        assert!(!hear(ready()));
        assert!(!hear(HostEvent::Away("it was lost".to_owned())));
        assert!(hear(known()));
        assert!(!hear(ready()));
    }

    #[test]
    fn a_host_that_comes_too_late_keeps_its_state() {
        let (over, interrupt) = ([AtomicBool::new(false)], AtomicBool::new(false));
        let (mut race, (events, _)) = Entrants::new(&[Host::default()], &over, &interrupt);
        race.gather(Duration::ZERO, &mut |_| {});
        assert!(over[0].load(Relaxed), "its thread does not hear of it");
        let late = HostRun::waiting(&Host::default());
        let known = HostEvent::Known(Box::new(late), "b".to_owned(), None);
        events.send((0, known)).unwrap();
        events.send((0, HostEvent::Ready(Vec::new()))).unwrap();
        assert!(race.receive().is_none() && race.receive().is_none());
        let entrant = &race.entrants[0];
        assert_eq!(
            (&entrant.state, entrant.host_run.outcome),
            (&State::Gone, HostOutcome::Failed)
        );
        assert!(
            entrant
                .host_run
                .why
                .as_ref()
                .unwrap()
                .contains("was not ready")
        );
    }
}
