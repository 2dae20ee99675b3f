//! A verb on one host, from the connection to its end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::book::Book;
use super::outcome::HostRun;
use crate::fleet::hosts::Host;
use crate::fleet::link::{Transport, Trouble};
use crate::fleet::session::{Heard, Session};
use crate::fleet::talk::{Ended, Facts, FromAgent, Order, ToAgent};

/// How long the agent may take to say what the host is: it asks the cloud.
const FACTS: Duration = Duration::from_secs(20);
/// How long it may take to say an answer that it has kept.
const COLLECT: Duration = Duration::from_secs(30);
/// How long a verb that was told to end may take: the agent kills it before.
const STOP: Duration = Duration::from_secs(8);
/// A verb may take for ever; this is how long one look for its end lasts.
const LONG: Duration = Duration::from_secs(3600);
/// How long after a loss the host is tried once more, to collect what it had: the agent has ended
/// its work by then.
const AFTER_LOSS: Duration = Duration::from_secs(12);

/// What is to be done on each host.
pub(super) struct Ordered<'a> {
    /// The way to the hosts.
    pub transport: &'a dyn Transport,
    /// The run of the fleet.
    pub fleet: &'a str,
    /// The verb and its arguments.
    pub args: &'a [String],
    /// Whether the user wants the end.
    pub interrupt: &'a AtomicBool,
    /// Where what comes of it is put.
    pub book: &'a Book,
}

impl Ordered<'_> {
    /// Does it on a host, and puts down what came of it.
    pub(super) fn do_on(&self, at: usize, host: &Host) -> HostRun {
        let mut came = HostRun::waiting(host);
        match self.converse(at, host, &mut came) {
            Ok(()) => return came,
            Err(Trouble::Lost(why)) => {
                came.take_trouble(&Trouble::Lost(why));
                self.book.put(at, came.clone(), Vec::new());
                self.collect_after_loss(host, &mut came);
                return came;
            }
            Err(trouble) => came.take_trouble(&trouble),
        }
        self.book.put(at, came.clone(), Vec::new());
        came
    }

    fn converse(&self, at: usize, host: &Host, came: &mut HostRun) -> Result<(), Trouble> {
        let mut session = Session::open(self.transport, host, self.interrupt)?;
        if let Some((facts, ahead)) = facts(&mut session)? {
            know(came, &facts, ahead);
        }
        for ended in self.collect(&mut session)? {
            came.collected.push(ended.order.fleet);
        }
        if self.interrupt.load(Relaxed) {
            session.end();
            return Err(Trouble::Interrupted);
        }
        session.say(&ToAgent::Run(Order {
            fleet: self.fleet.to_owned(),
            host: host.name.clone(),
            args: self.args.to_vec(),
        }))?;
        let ended = wait(&mut session, host)?;
        came.take(&ended);
        if self.book.put(at, came.clone(), ended.runs) {
            // Where it does not hear that, the answer is collected once more, and is the same.
            let _ = session.say(&ToAgent::Forget(ended.name));
        }
        session.end();
        Ok(())
    }

    /// Collects what the host has kept.
    fn collect(&self, session: &mut Session<'_>) -> Result<Vec<Ended>, Trouble> {
        let mut collected = Vec::new();
        for name in session.left().to_vec() {
            session.say(&ToAgent::Collect(name.clone()))?;
            let until = Instant::now() + COLLECT;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                match session.hear_out(left)? {
                    Heard::Said(FromAgent::Kept(ended)) if ended.name == name => {
                        if self.book.put_collected((*ended).clone()) {
                            session.say(&ToAgent::Forget(name))?;
                        }
                        collected.push(*ended);
                        break;
                    }
                    // It was damaged, or somebody else was quicker.
                    Heard::Said(FromAgent::Failed(_)) => break,
                    _ => {}
                }
            }
        }
        Ok(collected)
    }

    /// Tries once more to reach a host that was lost, for what it had until then.
    fn collect_after_loss(&self, host: &Host, came: &mut HostRun) {
        let until = Instant::now() + AFTER_LOSS;
        while Instant::now() < until {
            if self.interrupt.load(Relaxed) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let collected =
            Session::open(self.transport, host, self.interrupt).and_then(|mut session| {
                let collected = self.collect(&mut session)?;
                session.end();
                Ok(collected)
            });
        let own = |ended: &&Ended| ended.order.fleet == self.fleet;
        if let Ok(collected) = collected
            && let Some(ended) = collected.iter().find(own)
        {
            came.take(ended);
        }
    }
}

/// What the host is, and by how many seconds its clock is ahead.
fn facts(session: &mut Session<'_>) -> Result<Option<(Facts, f64)>, Trouble> {
    let asked = now_ms();
    session.say(&ToAgent::Facts)?;
    let until = Instant::now() + FACTS;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        match session.hear(left)? {
            Heard::Said(FromAgent::Facts(facts)) => {
                // It looks at its clock last, so that the answer's way is what is between.
                let own = f64::midpoint(asked as f64, now_ms() as f64);
                let ahead = (facts.clock_ms as f64 - own) / 1e3;
                return Ok(Some((*facts, ahead)));
            }
            Heard::Interrupt => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// What the source did not say, the host's cloud may.
fn know(came: &mut HostRun, facts: &Facts, ahead: f64) {
    came.clock_ahead_s = Some(ahead);
    if let Some(cloud) = &facts.cloud {
        came.zone = came.zone.take().or_else(|| cloud.zone.clone());
        came.kind = came.kind.take().or_else(|| cloud.instance_type.clone());
        came.id = came.id.take().or_else(|| cloud.instance_id.clone());
    }
}

/// Waits for the verb's end, which the user may bring about.
fn wait(session: &mut Session<'_>, host: &Host) -> Result<Ended, Trouble> {
    let mut stopped: Option<Instant> = None;
    loop {
        let heard = match stopped {
            None => session.hear(LONG)?,
            Some(_) => session.hear_out(Duration::from_secs(1))?,
        };
        match heard {
            Heard::Said(FromAgent::Ended(ended)) => return Ok(*ended),
            Heard::Said(FromAgent::Failed(why)) => {
                return Err(Trouble::Unfit(format!("{}: {why}.", host.name)));
            }
            Heard::Said(_) | Heard::Nothing => {}
            Heard::Interrupt => {
                session.say(&ToAgent::Stop)?;
                stopped = Some(Instant::now());
            }
        }
        if stopped.is_some_and(|since| since.elapsed() > STOP) {
            return Err(Trouble::Lost(format!(
                "{} did not say that it has ended.",
                host.name
            )));
        }
    }
}
