//! One host in a race, on a separate thread: the host is connected to, prepared, sent each round, and reconnected
//! after a loss.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use crate::connection::machines::{MachineRegistry, facts};
use crate::connection::pool::ConnectionLimit;
use crate::connection::session::{AgentSession, Incoming};
use crate::connection::{ConnectionError, Transport};
use crate::host_line::check::with;
use crate::hosts::Host;
use crate::protocol::rounds::{HostRound, Round, RoundMessage, TargetFacts};
use crate::protocol::{FromAgent, ToAgent, VerbRequest};
use crate::store::HostRun;

/// Interval at which a round to measure is polled for.
const POLL: Duration = Duration::from_millis(50);
/// Time for the measuring process to end normally: it has a file to close.
const STOP_GRACE: Duration = Duration::from_secs(20);
/// Additional time for the agent to report that.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Silence after which a host is not waited for at the end.
const SILENCE_LIMIT: Duration = Duration::from_secs(4);
/// Pause after a loss before the host is reconnected to: the agent has ended its work by then.
const RETRY_DELAY: Duration = Duration::from_secs(12);

/// State that all hosts share.
pub(super) struct RunnerContext<'a> {
    /// The transport to the hosts.
    pub transport: &'a dyn Transport,
    /// The run of the fleet.
    pub fleet: &'a str,
    /// Measuring verb and its arguments.
    pub args: &'a [String],
    /// Limits the number of hosts that are connected to at the same time.
    pub limit: &'a ConnectionLimit,
    /// The connected machines.
    pub met: &'a MachineRegistry,
    /// Pause after a loss before a host is reconnected to.
    pub after_loss: Duration,
}

impl RunnerContext<'_> {
    /// Default pause after a loss before a host is reconnected to.
    pub(super) const RETRY_DELAY: Duration = RETRY_DELAY;
}

/// Event from a host's thread.
pub(super) enum HostEvent {
    /// Facts about the host: its state, its boot id, and the instance id from its metadata service.
    Known(Box<HostRun>, String, Option<String>),
    /// The host is prepared.
    Ready(Vec<TargetFacts>),
    /// The host has measured a round.
    Measured(HostRound),
    /// The host is unreachable for this reason, and is retried.
    Away(String),
    /// The host has left the race: its result, and true if it was not ready again after a loss, so that it may be
    /// another machine, or have other disks.
    Gone(Box<HostRun>, bool),
}

/// Reason why a session ended early.
enum ConversationEnd {
    /// The connection failed.
    ConnectionError(ConnectionError),
    /// The measuring verb has ended by itself; the state of the host.
    Itself(Box<HostRun>),
}

impl From<ConnectionError> for ConversationEnd {
    fn from(trouble: ConnectionError) -> ConversationEnd {
        ConversationEnd::ConnectionError(trouble)
    }
}

/// A host, and its known state.
pub(super) struct HostRunner<'a> {
    running: &'a RunnerContext<'a>,
    host: &'a Host,
    /// Channel of the host's rounds; the race is over when it ends.
    rounds: Receiver<Round>,
    /// Set once the race is over for it.
    over: &'a AtomicBool,
    host_run: HostRun,
    /// Boot id at the first connection.
    boot: Option<String>,
    /// Options that bind it to the disks that it has reported to overwrite.
    bound: Vec<String>,
    /// True once it was ready.
    was_ready: bool,
    /// True if it was ready since the last connection.
    is_ready: bool,
}

impl<'a> HostRunner<'a> {
    /// A host without a connection yet.
    pub(super) fn new(
        running: &'a RunnerContext<'a>,
        host: &'a Host,
        rounds: Receiver<Round>,
        over: &'a AtomicBool,
    ) -> HostRunner<'a> {
        HostRunner {
            running,
            host,
            rounds,
            over,
            host_run: HostRun::waiting(host),
            boot: None,
            bound: Vec::new(),
            was_ready: false,
            is_ready: false,
        }
    }

    /// Takes part until the race is over, or the host has left it.
    pub(super) fn run(mut self, place: usize, to: &Sender<(usize, HostEvent)>) {
        // If the receiver is gone, the race is about to end.
        let notice = |events: HostEvent| {
            let _ = to.send((place, events));
        };
        loop {
            let trouble = match self.exchange_messages(&notice) {
                Ok(()) => return,
                Err(ConversationEnd::Itself(host_run)) => {
                    return notice(HostEvent::Gone(host_run, self.may_be_other()));
                }
                Err(ConversationEnd::ConnectionError(trouble)) => trouble,
            };
            // Its earlier result stays.
            if self.was_ready && matches!(trouble, ConnectionError::Interrupted) {
                return;
            }
            let may_come_back = self.was_ready
                && matches!(
                    trouble,
                    ConnectionError::Lost(_) | ConnectionError::Unreached(_)
                );
            if !may_come_back {
                self.host_run.set_failure(&trouble);
                let may_be_other = self.may_be_other();
                return notice(HostEvent::Gone(Box::new(self.host_run), may_be_other));
            }
            notice(HostEvent::Away(trouble.to_string()));
            if !self.wait_before_retry() {
                return;
            }
        }
    }

    /// True if it is not certain to be the machine that was ready.
    fn may_be_other(&self) -> bool {
        self.was_ready && !self.is_ready
    }

    /// Waits until the host may be retried; true while the race continues.
    fn wait_before_retry(&self) -> bool {
        let until = Instant::now() + self.running.after_loss;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.over.load(Relaxed) {
                return false;
            }
            match self.rounds.recv_timeout(left.min(POLL)) {
                // That round is missed.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Exchanges messages with the agent until the race is over.
    fn exchange_messages(&mut self, notice: &dyn Fn(HostEvent)) -> Result<(), ConversationEnd> {
        let running = self.running;
        self.is_ready = false;
        let open = || AgentSession::open(running.transport, self.host, self.over);
        let opened = running.limit.pass(self.over, open);
        let mut session = opened.ok_or(ConnectionError::Interrupted)??;
        self.identify_host(&mut session, notice)?;
        // Nothing is laid out on a host for which the race is over.
        if self.over.load(Relaxed) {
            session.end();
            return Err(ConnectionError::Interrupted.into());
        }
        session.send(&ToAgent::Begin(VerbRequest {
            fleet: running.fleet.to_owned(),
            host: self.host.name.clone(),
            args: with(running.args, &self.bound),
            program: false,
        }))?;
        loop {
            match self.rounds.try_recv() {
                Ok(round) => session.send(&ToAgent::Round(round))?,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return self.stop(session),
            }
            match session.receive(POLL)? {
                Incoming::Message(FromAgent::Round(RoundMessage::Ready(targets))) => {
                    if !self.was_ready {
                        self.bound = targets.iter().flat_map(TargetFacts::binding).collect();
                    }
                    (self.was_ready, self.is_ready) = (true, true);
                    notice(HostEvent::Ready(targets));
                }
                Incoming::Message(FromAgent::Round(RoundMessage::Measured(round))) => {
                    notice(HostEvent::Measured(round));
                }
                Incoming::Message(FromAgent::Ended(ended)) => {
                    self.host_run.take(&ended);
                    session.end();
                    return Err(ConversationEnd::Itself(Box::new(self.host_run.clone())));
                }
                Incoming::Message(FromAgent::Failed(why)) => {
                    let why = format!("{}: {why}.", self.host.name);
                    return Err(ConnectionError::Unfit(why).into());
                }
                Incoming::Message(FromAgent::Busy(why)) => {
                    let why = format!("{}: {why}.", self.host.name);
                    return Err(ConnectionError::Busy(why).into());
                }
                Incoming::Interrupt => return self.stop(session),
                Incoming::Message(_) | Incoming::Timeout => {}
            }
        }
    }

    /// Determines which host it is.
    fn identify_host(
        &mut self,
        session: &mut AgentSession<'_>,
        notice: &dyn Fn(HostEvent),
    ) -> Result<(), ConnectionError> {
        let Some((facts, ahead)) = facts(session)? else {
            // Without that, another machine or another boot would not be noticed.
            return Err(if self.over.load(Relaxed) {
                ConnectionError::Interrupted
            } else {
                ConnectionError::Lost(format!("{} did not identify its host.", self.host.name))
            });
        };
        if self
            .boot
            .as_ref()
            .is_some_and(|before| *before != facts.boot)
        {
            return Err(ConnectionError::Unfit(format!(
                "{} was rebooted during the race.",
                self.host.name
            )));
        }
        self.boot = Some(facts.boot.clone());
        self.host_run.clock_ahead_s = Some(ahead);
        let known = self.host_run.take_facts(&facts);
        let met = known.and_then(|()| self.running.met.identify_host(&facts, self.host));
        let left = session.left().len();
        if left > 0 && !self.was_ready && met.is_ok() {
            self.host_run.notes.push(format!(
                "it has kept {left} answers of earlier runs, which the next 'fleet run' collects."
            ));
        }
        let own_id = facts.cloud.and_then(|cloud| cloud.instance_id);
        // Also for a host that cannot take part: it may be on the same machine as another.
        notice(HostEvent::Known(
            Box::new(self.host_run.clone()),
            facts.boot,
            own_id,
        ));
        met
    }

    /// Ends the measuring verb normally.
    fn stop(&self, mut session: AgentSession<'_>) -> Result<(), ConversationEnd> {
        session.send(&ToAgent::Stop {
            grace_ms: STOP_GRACE.as_millis() as u64,
        })?;
        let until = Instant::now() + STOP_GRACE + STOP_TIMEOUT;
        while Instant::now() < until {
            if let Incoming::Message(FromAgent::Ended(_)) = session.receive_uninterrupted(POLL)? {
                session.end();
                return Ok(());
            }
            // The controller is gone, and the agent ends by itself.
            if session.since_last_message() > SILENCE_LIMIT {
                return Ok(());
            }
        }
        Ok(())
    }
}
