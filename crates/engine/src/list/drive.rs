//! The loop that keeps a list's requests in flight and times them, over any [`Submitter`].

use std::sync::atomic::Ordering::Relaxed;

use record::Nanos;

use crate::job::EngineError;
use crate::list::submitter::{SlotCompletion, Submitter};
use crate::list::{
    BufferMode, CompletedRequest, EndReason, Errno, List, Next, Op, Request, RequestError,
    RequestSource,
};

/// Interval at which the depth and the interrupt are checked while nothing completes.
const POLL_INTERVAL: Nanos = Nanos(10_000_000);
/// Minimum wait. Without it a source that waits for a time in the past would be called in a busy loop.
const MIN_WAIT: Nanos = Nanos(100_000);
/// Maximum busy wait: a longer wait sleeps. For a shorter one, sleeping and waking would take longer than the wait.
const MAX_BUSY_WAIT: Nanos = Nanos(10_000);

/// Limits of a request.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Alignment of offset and length in each file, in bytes.
    pub alignments: Vec<u32>,
    /// Memory that requests use.
    pub memory: BufferMode,
    /// Largest length, in bytes.
    pub largest: u64,
}

impl Limits {
    /// Checks a request.
    ///
    /// # Errors
    /// An error with the limit that it exceeds.
    fn check(&self, request: &Request) -> Result<(), EngineError> {
        let Request { offset, len, .. } = *request;
        // A discard uses no memory, and may have any length.
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
struct InFlight {
    request: Request,
    began: Nanos,
}

/// Runs a list over `submitter`, and returns the reason why it ended. Nothing is in flight then, unless the submitter
/// itself failed.
///
/// # Errors
/// When a request exceeds the limits, or the submitter fails.
pub(super) fn drive(
    list: &List<'_>,
    limits: Limits,
    submitter: &mut impl Submitter,
    source: &mut dyn RequestSource,
) -> Result<EndReason, EngineError> {
    let mut drive = Drive {
        list,
        limits,
        submitter,
        source,
        slots: vec![None; list.max_in_flight as usize],
        idle: (0..list.max_in_flight).rev().collect(),
        not_before: None,
        completions: Vec::with_capacity(list.max_in_flight as usize),
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
    submitter: &'a mut W,
    source: &'a mut dyn RequestSource,
    slots: Vec<Option<InFlight>>,
    /// Slots without a request. The slot used last is reused first, so that as little memory as possible is touched.
    idle: Vec<u32>,
    /// Time until which the source waits; `None` if only a completion is waited for.
    not_before: Option<Nanos>,
    completions: Vec<SlotCompletion>,
}

impl<W: Submitter> Drive<'_, W> {
    fn until_end(&mut self) -> Result<EndReason, EngineError> {
        loop {
            if self.issue()? {
                return Ok(EndReason::Complete);
            }
            if self.is_interrupted() {
                return Ok(EndReason::Interrupted);
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

    /// True if the source's depth permits another request.
    fn has_room(&self) -> bool {
        self.in_flight() < self.source.depth() as usize
    }

    /// Issues the source's requests up to its depth. Returns true at the end of the source.
    fn issue(&mut self) -> Result<bool, EngineError> {
        while !self.is_interrupted() && self.has_room() {
            let now = self.submitter.now();
            if self.not_before.is_some_and(|until| now < until) {
                return Ok(false);
            }
            self.not_before = None;
            let Some(slot) = self.idle.last().copied() else {
                return Ok(false);
            };
            match self.source.next(now) {
                Next::Request(request) => {
                    self.limits.check(&request)?;
                    self.idle.pop();
                    self.start(slot, request);
                }
                Next::Wait(until) => {
                    self.not_before = Some(match until > now {
                        true => until,
                        false => now + MIN_WAIT,
                    });
                    return Ok(false);
                }
                Next::End => return Ok(true),
            }
        }
        Ok(false)
    }

    fn start(&mut self, slot: u32, request: Request) {
        let began = self.submitter.now();
        self.slots[slot as usize] = Some(InFlight { request, began });
        self.submitter.push(slot, &request);
    }

    /// Waits until a request completes, the source's wait is over, or the depth must be checked again.
    fn wait(&mut self) -> Result<(), EngineError> {
        let now = self.submitter.now();
        let poll = now + POLL_INTERVAL;
        // If the time has already passed, it is no longer waited for.
        let wake_at = match self.not_before {
            Some(until) if self.has_room() => poll.min(until),
            _ => poll,
        };
        if wake_at <= now + MAX_BUSY_WAIT {
            self.submitter.submit(wake_at)?;
        } else {
            self.submitter.submit_and_wait(wake_at)?;
        }
        let mut completions = std::mem::take(&mut self.completions);
        self.submitter.reap(&mut completions);
        for completion in completions.drain(..) {
            self.notify(completion);
        }
        self.completions = completions;
        Ok(())
    }

    /// Passes a completed request to the source.
    fn notify(&mut self, completion: SlotCompletion) {
        let Some(InFlight { request, began }) = self.slots[completion.slot as usize].take() else {
            return;
        };
        self.idle.push(completion.slot);
        self.not_before = None;
        let done = CompletedRequest {
            request,
            began,
            // Saturating: readings of the counter on two processors may differ by a few ticks.
            latency: completion.at - began,
            result: outcome(completion.result, &request),
        };
        self.source.done(self.submitter.now(), done);
    }

    /// Waits for all requests in flight to complete.
    fn drain(&mut self) -> Result<(), EngineError> {
        self.not_before = None;
        while self.in_flight() > 0 {
            self.wait()?;
        }
        Ok(())
    }
}

/// Result of a request, from the kernel's return value.
fn outcome(result: i32, request: &Request) -> Result<(), RequestError> {
    match u32::try_from(result) {
        Err(_) => Err(RequestError::Kernel(Errno::from_raw_os_error(-result))),
        Ok(_) if matches!(request.op, Op::Flush | Op::Discard) => Ok(()),
        Ok(moved) if moved == request.len => Ok(()),
        Ok(moved) => Err(RequestError::Short { moved }),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::job::IoInterface;
    use record::Bytes;

    /// A submitter whose clock takes time for each reading, as on a real host. Requests complete at the next wait.
    #[derive(Default)]
    struct SlowClock {
        now: Cell<Nanos>,
        queued: Vec<u32>,
    }

    const READING: Nanos = Nanos(4_000);

    impl Submitter for SlowClock {
        fn now(&self) -> Nanos {
            self.now.set(self.now.get() + READING);
            self.now.get()
        }

        fn push(&mut self, slot: u32, _: &Request) {
            self.queued.push(slot);
        }

        fn submit(&mut self, _: Nanos) -> Result<(), EngineError> {
            Ok(())
        }

        fn submit_and_wait(&mut self, wake_at: Nanos) -> Result<(), EngineError> {
            if self.queued.is_empty() {
                self.now.set(self.now.get().max(wake_at));
            }
            Ok(())
        }

        fn reap(&mut self, into: &mut Vec<SlotCompletion>) {
            let at = self.now.get();
            let completed = self.queued.drain(..).map(|slot| SlotCompletion {
                slot,
                result: 0,
                at,
            });
            into.extend(completed);
        }
    }

    /// A source with a read every millisecond, which records the delay of each call.
    #[derive(Default)]
    struct EachMillisecond {
        lead: Nanos,
        due: Nanos,
        late: Vec<Nanos>,
    }

    impl RequestSource for EachMillisecond {
        fn depth(&self) -> u32 {
            1
        }

        fn next(&mut self, now: Nanos) -> Next {
            if self.late.len() == 20 {
                return Next::End;
            }
            if now + self.lead < self.due {
                return Next::Wait(self.due - self.lead);
            }
            if now < self.due {
                return Next::Wait(self.due);
            }
            self.late.push(now - self.due);
            self.due += Nanos(1_000_000);
            Next::Request(Request::read(0, 4096, 0))
        }

        fn done(&mut self, _: Nanos, _: CompletedRequest) {}
    }

    #[test]
    fn a_time_that_comes_while_a_wait_is_begun_is_not_missed() {
        for lead in (0..30_000).step_by(1_000) {
            let file = File::open("/dev/null").unwrap();
            let list = List {
                files: &[&file],
                memory: BufferMode::Reads,
                max_in_flight: 1,
                largest: Bytes(4096),
                interface: IoInterface::Auto,
                interrupt: &AtomicBool::new(false),
            };
            let limits = Limits {
                alignments: vec![512],
                memory: BufferMode::Reads,
                largest: 4096,
            };
            let mut source = EachMillisecond {
                lead: Nanos(lead),
                ..EachMillisecond::default()
            };
            let ended = drive(&list, limits, &mut SlowClock::default(), &mut source).unwrap();
            assert_eq!(ended, EndReason::Complete);
            let latest = source.late.iter().max().copied();
            assert!(latest <= Some(Nanos(20_000)), "{lead}: {:?}", source.late);
        }
    }
}
