//! Updates that wait for the screen.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::drive::IntervalSource;
use super::model::{KeyEffect, Model};
use super::update::Update;

/// Maximum number of updates that wait for a screen that hangs.
const MAX_UPDATES: usize = 300;

/// Queue of updates from the sampling thread to the screen's thread.
pub(super) struct Inbox {
    updates: Mutex<VecDeque<Update>>,
    bell: UnixStream,
    ear: UnixStream,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Inbox> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok(Inbox {
            updates: Mutex::default(),
            bell,
            ear,
        })
    }

    /// Adds an update. Where too many wait, the oldest interval is dropped, and its changes of findings are added to
    /// the next one. Notes are few, and are kept.
    pub(super) fn put(&self, update: Update) {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        updates.push_back(update);
        let is_frame = |update: &Update| matches!(update, Update::Frame(..));
        if updates.len() > MAX_UPDATES
            && let Some(oldest) = updates.iter().position(is_frame)
            && let Some(Update::Frame(_, mut found)) = updates.remove(oldest)
        {
            let frames = updates.iter_mut().find_map(|update| match update {
                Update::Frame(_, changes) => Some(changes),
                Update::Note(_) | Update::Recording(_) | Update::Marks(_) => None,
            });
            if let Some(changes) = frames {
                found.append(changes);
                *changes = found;
            }
        }
        drop(updates);
        self.wake();
    }

    /// Wakes the screen.
    pub(super) fn wake(&self) {
        // If the socket is full, it already wakes the screen.
        let _ = (&self.bell).write(&[0]);
    }

    fn take(&self) -> VecDeque<Update> {
        let mut rest = [0; 64];
        while matches!((&self.ear).read(&mut rest), Ok(count) if count > 0) {}
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut updates)
    }
}

/// Source of live samples.
pub(super) struct Live {
    inbox: Arc<Inbox>,
}

impl Live {
    pub(super) fn new(inbox: Arc<Inbox>) -> Live {
        Live { inbox }
    }
}

impl IntervalSource for Live {
    fn update(&mut self, model: &mut Model) -> (bool, Option<Duration>) {
        let updates = self.inbox.take();
        let is_new = !updates.is_empty();
        updates.into_iter().for_each(|update| model.take(update));
        (is_new, None)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inbox.ear.as_fd())
    }

    fn apply(&mut self, _effect: KeyEffect, _model: &mut Model) {}
}

#[cfg(test)]
mod tests {
    use record::sample::Sample;
    use record::{Severity, Subject};
    use study::watch::{ChangeKind, EventChange};
    use study::watch::{EventCode, WatchEvent};

    use super::super::frame::Frame;
    use super::*;

    #[test]
    fn a_screen_that_takes_nothing_costs_bounded_memory_and_loses_no_finding() {
        let inbox = Inbox::new().unwrap();
        let frame = Arc::new(Frame::of(&Sample::default(), None));
        inbox.put(Update::Note("What.".to_owned()));
        for id in 0..1000 {
            let event = WatchEvent {
                id,
                code: EventCode::Stalled,
                severity: Severity::Warn,
                subject: Subject::Host,
                name: String::new(),
                began: Default::default(),
                ended: None,
                text: String::new(),
                advice: String::new(),
                figures: Vec::new(),
            };
            let kind = ChangeKind::Opened;
            let change = EventChange { kind, event };
            inbox.put(Update::Frame(Arc::clone(&frame), vec![change]));
        }
        let updates = inbox.take();
        assert_eq!(updates.len(), MAX_UPDATES);
        assert!(matches!(updates[0], Update::Note(_)));
        let ids = updates.iter().flat_map(|update| match update {
            Update::Frame(_, changes) => changes.iter().map(|change| change.event.id).collect(),
            Update::Note(_) | Update::Recording(_) | Update::Marks(_) => Vec::new(),
        });
        assert!(ids.eq(0..1000));
        assert!(inbox.take().is_empty());
    }
}
