//! List of findings, from which the screen can show their state at any time.

use std::collections::VecDeque;

use record::sample::DeviceId;
use record::{Nanos, Severity, Subject};
use study::watch::WatchEvent;
use study::watch::{ChangeKind, EventChange};

/// Maximum number of findings that are kept.
const MAX_FINDINGS: usize = 500;

/// A finding, with the times at which it was opened and closed.
#[derive(Clone, Debug)]
struct Entry {
    event: WatchEvent,
    /// Time at which it was found, which is later than the start of its cause.
    opened: Nanos,
    /// Time at which it was found to be over.
    closed: Option<Nanos>,
}

impl Entry {
    fn was_open(&self, time: Nanos) -> bool {
        self.opened <= time && self.closed.is_none_or(|closed| closed > time)
    }
}

/// The findings of this watch, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct FindingList {
    entries: VecDeque<Entry>,
}

impl FindingList {
    /// Adds changes of findings at the time `now`.
    pub(crate) fn take(&mut self, changes: Vec<EventChange>, now: Nanos) {
        for EventChange { kind, event } in changes {
            let known = self.entries.iter_mut().rev();
            let mut known = known.filter(|entry| entry.event.id == event.id);
            let closed = matches!(kind, ChangeKind::Closed | ChangeKind::Unfinished).then_some(now);
            match known.next() {
                Some(entry) => {
                    entry.event = event;
                    entry.closed = closed;
                }
                None => self.entries.push_back(Entry {
                    event,
                    opened: now,
                    closed,
                }),
            }
        }
        while self.entries.len() > MAX_FINDINGS {
            // Ended findings are dropped before open ones, even if those are older.
            let over = self.entries.iter().position(|entry| entry.closed.is_some());
            self.entries.remove(over.unwrap_or(0));
        }
    }

    /// Findings that are open at a time: warnings first, and the newest first.
    pub(crate) fn open(&self, time: Nanos) -> Vec<&WatchEvent> {
        let open = self.entries.iter().rev();
        let open = open.filter(|entry| entry.was_open(time));
        let mut open: Vec<&WatchEvent> = open.map(|entry| &entry.event).collect();
        open.sort_by_key(|event| event.severity == Severity::Note);
        open
    }

    /// Findings that are over at a time, the last that ended first.
    pub(crate) fn ended_by(&self, time: Nanos) -> Vec<&WatchEvent> {
        let closed = |entry: &Entry| entry.closed.filter(|closed| *closed <= time);
        let over = self.entries.iter();
        let mut over: Vec<_> = over
            .filter_map(|entry| Some((closed(entry)?, &entry.event)))
            .collect();
        over.sort_by_key(|(closed, _)| std::cmp::Reverse(*closed));
        over.into_iter().map(|(_, event)| event).collect()
    }

    /// Highest severity of the findings that were open on a device at a time; `None` where none was.
    pub(crate) fn mark(&self, device: DeviceId, time: Nanos) -> Option<Severity> {
        let subject = Subject::Device(device);
        let open = self.entries.iter().filter(|entry| entry.was_open(time));
        let on_it = open.filter(|entry| entry.event.subject == subject);
        on_it
            .map(|entry| entry.event.severity)
            .max_by_key(|severity| *severity != Severity::Note)
    }
}

#[cfg(test)]
mod tests {
    use record::sample::SampleTime;
    use study::watch::EventCode;

    use super::*;

    fn change(kind: ChangeKind, id: u64, severity: Severity) -> EventChange {
        EventChange {
            kind,
            event: WatchEvent {
                id,
                code: EventCode::Stalled,
                severity,
                subject: Subject::Device(DeviceId(7)),
                name: "vda".to_owned(),
                began: SampleTime::default(),
                ended: None,
                text: String::new(),
                advice: String::new(),
                figures: Vec::new(),
            },
        }
    }

    fn ids(events: Vec<&WatchEvent>) -> Vec<u64> {
        events.iter().map(|event| event.id).collect()
    }

    #[test]
    fn it_stands_as_it_stood_then() {
        let mut found = FindingList::default();
        let second = Nanos::from_secs;
        found.take(
            vec![change(ChangeKind::Opened, 1, Severity::Warn)],
            second(5),
        );
        found.take(
            vec![change(ChangeKind::Opened, 2, Severity::Note)],
            second(6),
        );
        found.take(
            vec![change(ChangeKind::Updated, 1, Severity::Warn)],
            second(7),
        );
        found.take(
            vec![change(ChangeKind::Closed, 1, Severity::Warn)],
            second(9),
        );
        assert_eq!(ids(found.open(second(4))), [0; 0]);
        assert_eq!(ids(found.open(second(6))), [1, 2]);
        assert_eq!(ids(found.ended_by(second(8))), [0; 0]);
        assert_eq!(ids(found.open(second(9))), [2]);
        assert_eq!(ids(found.ended_by(second(9))), [1]);
        assert_eq!(found.mark(DeviceId(7), second(8)), Some(Severity::Warn));
        assert_eq!(found.mark(DeviceId(7), second(9)), Some(Severity::Note));
        assert_eq!(found.mark(DeviceId(8), second(9)), None);
    }

    #[test]
    fn lasting_findings_are_not_forgotten_for_those_that_are_over() {
        let mut found = FindingList::default();
        found.take(
            vec![change(ChangeKind::Opened, 1, Severity::Warn)],
            Nanos(0),
        );
        for id in 2..2000 {
            found.take(
                vec![change(ChangeKind::Opened, id, Severity::Warn)],
                Nanos(id),
            );
            found.take(
                vec![change(ChangeKind::Closed, id, Severity::Warn)],
                Nanos(id),
            );
        }
        assert_eq!(ids(found.open(Nanos(9999))), [1]);
        assert_eq!(found.ended_by(Nanos(9999)).len(), MAX_FINDINGS - 1);
    }
}
