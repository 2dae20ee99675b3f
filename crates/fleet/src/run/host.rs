//! A verb on one host, from the connection to its end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::host_line::check::with;
use crate::hosts::Host;
use crate::store::HostRun;
use crate::store::answers::AnswerStore;
use domain::values::Span;

use crate::connection::machines::{MachineRegistry, facts};
use crate::connection::session::{AgentSession, Incoming};
use crate::connection::{ConnectionError, Transport};
use crate::protocol::{EndedVerb, FromAgent, ToAgent, VerbRequest};

/// Time limit for the agent to send a kept answer.
const COLLECT: Duration = Duration::from_secs(30);
/// Time limit for the report that the verb has ended, in addition to the verb's own time to undo its changes: the
/// agent kills it before.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);
/// Maximum length of one wait for the end of a verb, which may take longer.
const MAX_WAIT: Duration = Duration::from_secs(3600);
/// Pause after a loss before the host is reconnected to once, to collect its answer: the agent has ended its work by
/// then.
const RETRY_DELAY: Duration = Duration::from_secs(12);

/// Work for each host.
pub(crate) struct VerbRunner<'a> {
    /// The transport to the hosts.
    pub transport: &'a dyn Transport,
    /// The run of the fleet.
    pub fleet: &'a str,
    /// The verb and its arguments, or a program's.
    pub args: &'a [String],
    /// True if `args` are a program of the hosts and not a verb.
    pub program: bool,
    /// Additional options of the verb for each host, by its index.
    pub own: &'a [Vec<String>],
    /// Set by a signal.
    pub interrupt: &'a AtomicBool,
    /// Time limits of the verb.
    pub limits: TimeLimits,
    /// The hosts that were lost, with the times: they are retried once when no other host is waiting.
    pub lost: Mutex<Vec<(usize, Instant)>>,
    /// The connected machines.
    pub met: MachineRegistry,
    /// Store of the results.
    pub answers: &'a AnswerStore,
}

/// Time limits of a verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimits {
    /// Run time after which it is ended; `None` without a limit.
    pub verb: Option<Duration>,
    /// Additional time to undo its changes, before it is killed.
    pub grace: Duration,
}

impl TimeLimits {
    /// No limit on the run time. A verb has as long to end as after a Ctrl-C on the host itself in most cases: it
    /// takes arrays apart, and unmounts file systems with dirty data.
    pub(crate) const NONE: TimeLimits = TimeLimits {
        verb: None,
        grace: Duration::from_secs(60),
    };

    /// The time limits with the user's limit for a verb, if any.
    pub(crate) fn of_verb(limit: Option<Span>) -> TimeLimits {
        TimeLimits {
            verb: limit.map(|limit| Duration::from_nanos(limit.0.0)),
            ..TimeLimits::NONE
        }
    }
}

impl VerbRunner<'_> {
    /// Runs the verb on a host, and records the result.
    pub(crate) fn run_on(&self, at: usize, host: &Host) -> HostRun {
        let mut host_run = HostRun::waiting(host);
        match self.run_and_collect(at, host, &mut host_run) {
            Ok(()) => return host_run,
            Err(ConnectionError::Lost(why)) => {
                host_run.set_failure(&ConnectionError::Lost(why));
                self.answers
                    .put(at, host_run.clone(), Vec::new(), &mut || {});
                let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
                lost.push((at, Instant::now()));
                return host_run;
            }
            Err(trouble) => host_run.set_failure(&trouble),
        }
        self.answers
            .put(at, host_run.clone(), Vec::new(), &mut || {});
        host_run
    }

    fn run_and_collect(
        &self,
        at: usize,
        host: &Host,
        host_run: &mut HostRun,
    ) -> Result<(), ConnectionError> {
        let mut session = AgentSession::open(self.transport, host, self.interrupt)?;
        if let Some((facts, ahead)) = facts(&mut session)? {
            host_run.clock_ahead_s = Some(ahead);
            host_run.take_facts(&facts)?;
            self.met.identify_host(&facts, host)?;
        }
        let (collected, unread) = self.collect(&mut session)?;
        let fleets = collected.into_iter().map(|ended| ended.order.fleet);
        host_run.collected.extend(fleets);
        host_run.notes.extend(unread);
        if self.interrupt.load(Relaxed) {
            session.end();
            return Err(ConnectionError::Interrupted);
        }
        session.send(&ToAgent::Run(VerbRequest {
            fleet: self.fleet.to_owned(),
            host: host.name.clone(),
            args: words_of(self.args, self.own, at),
            program: self.program,
        }))?;
        let (ended, is_late) = wait(&mut session, host, self.limits)?;
        host_run.take(&ended);
        if let Some(limit) = self.limits.verb.filter(|_| is_late) {
            host_run.why = Some(format!("it was ended after {} s.", limit.as_secs_f64()));
        }
        let beat = &mut || session.send_alive();
        if self.answers.put(at, host_run.clone(), ended.runs, beat) {
            // If this message is lost, the answer is collected again, and is the same.
            let _ = session.send(&ToAgent::Forget(ended.name));
        }
        session.end();
        Ok(())
    }

    /// Collects the answers that the host has kept, and returns sentences about those that cannot be collected.
    fn collect(
        &self,
        session: &mut AgentSession<'_>,
    ) -> Result<(Vec<EndedVerb>, Vec<String>), ConnectionError> {
        let mut collected = Vec::new();
        let mut unread = Vec::new();
        for name in session.left().to_vec() {
            session.send(&ToAgent::Collect(name.clone()))?;
            let until = Instant::now() + COLLECT;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                match session.receive_uninterrupted(left)? {
                    Incoming::Message(FromAgent::Kept(ended)) if ended.name == name => {
                        let beat = &mut || session.send_alive();
                        if self.answers.put_collected((*ended).clone(), beat) {
                            session.send(&ToAgent::Forget(name))?;
                        }
                        collected.push(*ended);
                        break;
                    }
                    // It cannot be read, or another process collected it first.
                    Incoming::Message(FromAgent::Failed(why)) => {
                        unread.push(format!("{why}."));
                        break;
                    }
                    _ => {}
                }
            }
        }
        Ok((collected, unread))
    }

    /// Reconnects once to a lost host, to collect its answer for the store.
    pub(crate) fn collect_after_loss(&self, host: &Host, lost: Instant) {
        let until = lost + RETRY_DELAY;
        while Instant::now() < until {
            if self.interrupt.load(Relaxed) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        // If it is still unreachable, the next 'fleet run' collects it.
        let opened = AgentSession::open(self.transport, host, self.interrupt);
        let _ = opened.and_then(|mut session| {
            self.collect(&mut session)?;
            session.end();
            Ok(())
        });
    }
}

/// The verb and its arguments for the host with this index, with its own options.
fn words_of(args: &[String], own: &[Vec<String>], at: usize) -> Vec<String> {
    with(args, own.get(at).map_or(&[][..], Vec::as_slice))
}

/// Waits for the verb's end, possibly after an interrupt or its time limit. True if the limit ended it.
fn wait(
    session: &mut AgentSession<'_>,
    host: &Host,
    limits: TimeLimits,
) -> Result<(EndedVerb, bool), ConnectionError> {
    let began = Instant::now();
    let mut stopped: Option<Instant> = None;
    let mut is_late = false;
    loop {
        let left = limits.verb.map_or(MAX_WAIT, |limit| {
            limit.saturating_sub(began.elapsed()).min(MAX_WAIT)
        });
        let incoming = match stopped {
            None => session.receive(left)?,
            Some(_) => session.receive_uninterrupted(Duration::from_secs(1))?,
        };
        let is_wanted = match incoming {
            Incoming::Message(FromAgent::Ended(ended)) => return Ok((*ended, is_late)),
            Incoming::Message(FromAgent::Failed(why)) => {
                return Err(ConnectionError::Unfit(format!("{}: {why}.", host.name)));
            }
            Incoming::Message(FromAgent::Busy(why)) => {
                return Err(ConnectionError::Busy(format!("{}: {why}.", host.name)));
            }
            Incoming::Message(_) | Incoming::Timeout => {
                let is_over = limits.verb.is_some_and(|limit| began.elapsed() >= limit);
                is_late |= is_over && stopped.is_none();
                is_late && stopped.is_none()
            }
            Incoming::Interrupt => true,
        };
        if is_wanted {
            session.send(&ToAgent::Stop {
                grace_ms: limits.grace.as_millis() as u64,
            })?;
            stopped = Some(Instant::now());
        }
        if stopped.is_some_and(|since| since.elapsed() > limits.grace + STOP_TIMEOUT) {
            return Err(ConnectionError::Lost(format!(
                "{} was told to end and did not report that it has; it may wait for a disk that \
                 does not respond.",
                host.name
            )));
        }
    }
}

#[cfg(test)]
mod tests;
