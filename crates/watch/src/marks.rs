//! Recent marks, for the screen of a watch that is not recorded. They are read on a separate thread, since the ledger
//! may lie on a disk that hangs.

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
/// Interval at which the ledger is polled for a change. An unchanged ledger costs a few system calls; a changed one, as
/// always beside a recorder, is opened, read and closed.
const PERIOD: Duration = Duration::from_secs(5);

/// Reader of the recent marks of a ledger.
pub(super) struct LateMarks {
    found: Arc<Mutex<Vec<Mark>>>,
    /// Ends the thread when it is dropped. No other thread waits for its end: it may hang with the ledger's disk, and
    /// the kernel ends the process only when the disk answers.
    _end: Sender<Infallible>,
}

impl LateMarks {
    /// Begins to poll. `None` where the path of the ledger is not known or no thread can be started: marks are
    /// optional.
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
