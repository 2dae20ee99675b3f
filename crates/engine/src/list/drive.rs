//! The loop that keeps a list's requests in flight and times them, over any way to make them.

use std::sync::atomic::Ordering::Relaxed;

use record::Nanos;

use crate::job::EngineError;
use crate::list::submitter::{Completed, Submitter};
use crate::list::{
    Done, Ended, Errno, List, Memory, Next, Op, Request, RequestError, RequestSource,
};

/// The depth may change and the interrupt come while nothing else happens, so both are examined
/// this often: too rarely to cost a processor, and soon enough for who waits.
const LOOK_AGAIN: Nanos = Nanos(10_000_000);
/// A feed that waits for a time that has passed would otherwise be asked again at once, forever.
const SHORTEST_WAIT: Nanos = Nanos(100_000);
/// A wait that is shorter is spent awake: to sleep and be woken takes longer, and what is due would be late.
const AWAKE: Nanos = Nanos(10_000);

/// Limits that a request must keep to.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Of each file: offset and length are multiples of this many bytes.
    pub alignments: Vec<u32>,
    /// Memory that requests use.
    pub memory: Memory,
    /// The most bytes.
    pub largest: u64,
}

impl Limits {
    /// Checks a request.
    ///
    /// # Errors
    /// Reports what does not fit.
    fn check(&self, request: &Request) -> Result<(), EngineError> {
        let Request { offset, len, .. } = *request;
        // A discard has no memory, and may be as long as it will.
        let largest = match request.op {
            Op::Discard => u64::from(u32::MAX),
            _ => self.largest,
        };
        let Some(alignment) = self.alignments.get(usize::from(request.file)) else {
            return Err(unfit(request, "the list has no such file"));
        };
        let alignment = u64::from(*alignment);
        let problem = if !self.memory.fits(request.op) {
            "the list has no memory for its operation".to_owned()
        } else if request.op == Op::Flush {
            return Ok(());
        } else if len == 0 || u64::from(len) > largest {
            format!("lengths must be from 1 to {largest} bytes")
        } else if !offset.is_multiple_of(alignment) || !u64::from(len).is_multiple_of(alignment) {
            format!("direct I/O on this target wants multiples of {alignment} bytes")
        } else if i64::try_from(offset).is_err() {
            "no target is that large".to_owned()
        } else {
            return Ok(());
        };
        Err(unfit(request, &problem))
    }
}

fn unfit(request: &Request, problem: &str) -> EngineError {
    let Request { offset, len, .. } = request;
    EngineError::Unfit(format!(
        "a request of {len} bytes at byte {offset} cannot be made: {problem}"
    ))
}

/// A request in flight.
#[derive(Clone, Copy)]
struct Flight {
    request: Request,
    began: Nanos,
}

/// Runs a list over `way`, and gives back what ended it. Whatever it returns, nothing is in flight
/// then, unless the way itself failed.
///
/// # Errors
/// When a request does not keep to the limits, or the way fails.
pub(super) fn drive(
    list: &List<'_>,
    limits: Limits,
    way: &mut impl Submitter,
    feed: &mut dyn RequestSource,
) -> Result<Ended, EngineError> {
    let mut drive = Drive {
        list,
        limits,
        way,
        feed,
        slots: vec![None; list.most_in_flight as usize],
        idle: (0..list.most_in_flight).rev().collect(),
        not_before: Nanos(0),
        answers: Vec::with_capacity(list.most_in_flight as usize),
    };
    let ended = drive.until_end();
    if !matches!(ended, Err(EngineError::Ring(_) | EngineError::Setup(_))) {
        drive.drain()?;
    }
    ended
}

struct Drive<'a, W> {
    list: &'a List<'a>,
    limits: Limits,
    way: &'a mut W,
    feed: &'a mut dyn RequestSource,
    slots: Vec<Option<Flight>>,
    /// Slots without a request. The one used last is used first again, so that its memory is
    /// touched again and not another's for the first time.
    idle: Vec<u32>,
    /// The feed wants to wait until then.
    not_before: Nanos,
    answers: Vec<Completed>,
}

impl<W: Submitter> Drive<'_, W> {
    fn until_end(&mut self) -> Result<Ended, EngineError> {
        loop {
            if self.issue()? {
                return Ok(Ended::End);
            }
            if self.is_interrupted() {
                return Ok(Ended::Interrupted);
            }
            self.wait()?;
        }
    }

    fn is_interrupted(&self) -> bool {
        self.list.interrupt.load(Relaxed)
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.idle.len()
    }

    /// Issues what the feed has, up to its depth. Whether that was all.
    fn issue(&mut self) -> Result<bool, EngineError> {
        while !self.is_interrupted() && self.in_flight() < self.feed.depth() as usize {
            let now = self.way.now();
            if now < self.not_before {
                return Ok(false);
            }
            let Some(slot) = self.idle.last().copied() else {
                return Ok(false);
            };
            match self.feed.next(now) {
                Next::Request(request) => {
                    self.limits.check(&request)?;
                    self.idle.pop();
                    self.start(slot, request);
                }
                Next::Wait(until) => {
                    self.not_before = match until > now {
                        true => until,
                        false => now + SHORTEST_WAIT,
                    };
                    return Ok(false);
                }
                Next::End => return Ok(true),
            }
        }
        Ok(false)
    }

    fn start(&mut self, slot: u32, request: Request) {
        let began = self.way.now();
        self.slots[slot as usize] = Some(Flight { request, began });
        self.way.push(slot, &request);
    }

    /// Waits until something comes back, the feed wants to continue, or it is time to look again.
    fn wait(&mut self) -> Result<(), EngineError> {
        let now = self.way.now();
        let mut wake_at = now + LOOK_AGAIN;
        if self.not_before > now {
            wake_at = wake_at.min(self.not_before);
        }
        if wake_at <= now + AWAKE {
            self.way.submit(wake_at)?;
        } else {
            self.way.submit_and_wait(wake_at)?;
        }
        let mut answers = std::mem::take(&mut self.answers);
        self.way.reap(&mut answers);
        for answer in answers.drain(..) {
            self.notify(answer);
        }
        self.answers = answers;
        Ok(())
    }

    /// Tells the feed what came back.
    fn notify(&mut self, answer: Completed) {
        let Some(Flight { request, began }) = self.slots[answer.slot as usize].take() else {
            return;
        };
        self.idle.push(answer.slot);
        self.not_before = Nanos(0);
        let done = Done {
            request,
            began,
            // Saturating: readings of the counter on two processors may be a few ticks apart.
            latency: answer.at - began,
            result: outcome(answer.result, &request),
        };
        self.feed.done(self.way.now(), done);
    }

    /// Waits for what is in flight.
    fn drain(&mut self) -> Result<(), EngineError> {
        while self.in_flight() > 0 {
            self.wait()?;
        }
        Ok(())
    }
}

/// Meaning of the kernel's result.
fn outcome(result: i32, request: &Request) -> Result<(), RequestError> {
    match u32::try_from(result) {
        Err(_) => Err(RequestError::Kernel(Errno::from_raw_os_error(-result))),
        Ok(_) if matches!(request.op, Op::Flush | Op::Discard) => Ok(()),
        Ok(moved) if moved == request.len => Ok(()),
        Ok(moved) => Err(RequestError::Short { moved }),
    }
}
