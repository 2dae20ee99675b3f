//! A heartbeat during a measurement, which detects times in which the program did not run, as when it or its virtual
//! machine is stopped. It makes no I/O, so that an unresponsive disk does not delay it.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two beats.
const PERIOD: Duration = Duration::from_millis(50);
/// Minimum delay of a beat that counts as a pause of the program. A busy processor delays a thread by less.
const STOPPED_DELAY: Duration = Duration::from_millis(450);

/// A time in which the program did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Time of the last beat before it.
    pub from: Instant,
    /// Time until the next beat, minus the normal period.
    pub length: Duration,
}

/// State of the heartbeat: the last beat, and the pauses so far.
#[derive(Debug)]
struct HeartbeatState {
    last: Instant,
    pauses: Vec<Pause>,
}

impl HeartbeatState {
    fn beat(&mut self, now: Instant) {
        let late = now
            .saturating_duration_since(self.last)
            .saturating_sub(PERIOD);
        if late > STOPPED_DELAY {
            self.pauses.push(Pause {
                from: self.last,
                length: late,
            });
        }
        self.last = now;
    }
}

/// A thread that detects pauses until it is stopped. If the thread cannot be started, no pauses are reported.
#[derive(Debug)]
pub struct Heartbeat {
    beating: Option<(Sender<()>, JoinHandle<Vec<Pause>>)>,
}

impl Heartbeat {
    /// Starts the thread.
    pub fn start() -> Heartbeat {
        let (ended, end) = channel();
        let mut beats = HeartbeatState {
            last: Instant::now(),
            pauses: Vec::new(),
        };
        let thread = thread::Builder::new()
            .name("heartbeat".to_owned())
            .stack_size(64 << 10)
            .spawn(move || {
                while end.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    beats.beat(Instant::now());
                }
                // The end may be within a pause.
                beats.beat(Instant::now());
                beats.pauses
            });
        Heartbeat {
            beating: thread.ok().map(|thread| (ended, thread)),
        }
    }

    /// Stops the thread, and returns the pauses in order.
    pub fn stop(self) -> Vec<Pause> {
        let Some((ended, thread)) = self.beating else {
            return Vec::new();
        };
        drop(ended);
        thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_that_comes_late_ends_a_pause() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut beats = HeartbeatState {
            last: start,
            pauses: Vec::new(),
        };
        // A busy host: late, but not stopped.
        for millis in [50, 100, 180, 480, 530, 3080, 3130] {
            beats.beat(at(millis));
        }
        let pause = Pause {
            from: at(530),
            length: Duration::from_millis(2500),
        };
        assert_eq!(beats.pauses, [pause]);
    }

    #[test]
    fn the_thread_ends_when_it_is_stopped_or_dropped() {
        drop(Heartbeat::start().stop());
        drop(Heartbeat::start());
    }
}
