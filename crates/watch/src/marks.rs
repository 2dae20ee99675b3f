//! Recent marks, for a screen whose watch is not recorded. They are read on a thread of its own: the ledger may lie
//! on the very disk that is in trouble.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ledger::{Mark, MarkReader};

use ui::context::Context;

use super::report::with_hosts;

/// Age up to which a mark is recent.
pub(super) const RECENT_AGE: SignedDuration = SignedDuration::from_mins(20);
/// Interval at which the ledger is polled for a change. Where it has not changed, that costs a few calls
/// to the kernel; where it has, as always beside a recorder, it is opened, read and closed.
const PERIOD: Duration = Duration::from_secs(5);

/// Reader of the recent marks of a ledger.
pub(super) struct LateMarks {
    found: Arc<Mutex<Vec<Mark>>>,
    /// Ends the thread when it is dropped. No other thread waits for that: the thread may hang with the ledger's
    /// disk, and the kernel ends the process no sooner than that lets it go.
    _end: Sender<Infallible>,
}

impl LateMarks {
    /// Begins to poll. `None` where there is no place for a ledger, or no thread: a watch can do without marks.
    pub(super) fn begin(host: Option<&str>, context: &Context) -> Option<LateMarks> {
        let reader = MarkReader::new(context.ledger_path().ok()?);
        let host = host.unwrap_or_default().to_owned();
        let found = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = channel();
        let shown = Arc::clone(&found);
        thread::Builder::new()
            .name("marks".to_owned())
            .spawn(move || poll(reader, &host, &shown, &ended))
            .ok()?;
        Some(LateMarks { found, _end: end })
    }

    /// The recent marks, as of the last poll.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let found = self.found.lock();
        found.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn poll(
    mut reader: MarkReader,
    host: &str,
    found: &Mutex<Vec<Mark>>,
    ended: &Receiver<Infallible>,
) {
    loop {
        // A ledger that cannot be read is reported by the commands that need it.
        if let Ok(Some(marks)) = reader.poll(Timestamp::now() - RECENT_AGE) {
            let marks = with_hosts(marks, host);
            *found.lock().unwrap_or_else(PoisonError::into_inner) = marks;
        }
        match ended.recv_timeout(PERIOD) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(never) => match never {},
        }
    }
}
