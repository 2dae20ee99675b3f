//! Combines repeated sightings to events.

use record::Nanos;
use record::sample::SampleTime;

use super::event::{ChangeKind, EventChange, EventFigure, WatchEvent};
use super::rule::Sighting;
use super::rules::EventCode;

/// Interval at which a lasting event is reported.
const UPDATE: Nanos = Nanos::from_secs(60);

/// A lasting event.
struct Entry {
    event: WatchEvent,
    /// Last time at which its cause was seen.
    seen: SampleTime,
    /// Last time at which it was reported.
    reported: Nanos,
}

/// The lasting events.
#[derive(Default)]
pub(super) struct EventTracker {
    entries: Vec<Entry>,
    last_id: u64,
}

impl EventTracker {
    /// Adds a present sighting, which begins a new event or continues one.
    pub(super) fn enter(
        &mut self,
        code: EventCode,
        sighting: Sighting,
        now: SampleTime,
    ) -> Option<EventChange> {
        let same = |entry: &&mut Entry| {
            entry.event.code == code && entry.event.subject == sighting.subject
        };
        if let Some(entry) = self.entries.iter_mut().find(same) {
            return entry.go_on(sighting, now);
        }
        self.last_id += 1;
        let event = WatchEvent {
            id: self.last_id,
            code,
            severity: sighting.severity,
            subject: sighting.subject,
            name: sighting.name,
            began: sighting.began,
            ended: None,
            text: sighting.text,
            advice: sighting.advice.to_owned(),
            figures: figures(&sighting.figures),
        };
        self.entries.push(Entry {
            event: event.clone(),
            seen: now,
            reported: now.elapsed,
        });
        Some(EventChange {
            kind: ChangeKind::Opened,
            event,
        })
    }

    /// Adds a sighting of a single moment: an event that ends as it begins.
    pub(super) fn note(
        &mut self,
        code: EventCode,
        sighting: Sighting,
        now: SampleTime,
    ) -> Option<EventChange> {
        let mut change = self.enter(code, sighting, now)?;
        let id = change.event.id;
        self.entries.retain(|entry| entry.event.id != id);
        change.event.ended = Some(now);
        Some(change)
    }

    /// Ends the events of a kind whose cause was not seen for longer than `grace_period`.
    pub(super) fn close_unseen(
        &mut self,
        code: EventCode,
        grace_period: Nanos,
        now: SampleTime,
    ) -> Vec<EventChange> {
        let is_over = |entry: &Entry| {
            entry.event.code == code && now.elapsed - entry.seen.elapsed > grace_period
        };
        self.close(is_over)
    }

    /// Ends all events when no sample follows the one at `last`. Events seen in that sample are unfinished: a rule
    /// runs once a second.
    pub(super) fn finish(&mut self, last: SampleTime) -> Vec<EventChange> {
        let mut changes =
            self.close(|entry| last.elapsed - entry.seen.elapsed >= Nanos::from_secs(1));
        changes.extend(self.entries.drain(..).map(|entry| EventChange {
            kind: ChangeKind::Unfinished,
            event: entry.event,
        }));
        changes
    }

    fn close(&mut self, is_over: impl Fn(&Entry) -> bool) -> Vec<EventChange> {
        let over = self.entries.extract_if(.., |entry| is_over(entry));
        over.map(|entry| EventChange {
            kind: ChangeKind::Closed,
            event: WatchEvent {
                ended: Some(entry.seen),
                ..entry.event
            },
        })
        .collect()
    }

    /// The lasting events, the oldest first.
    pub(super) fn open(&self) -> impl Iterator<Item = &WatchEvent> {
        self.entries.iter().map(|entry| &entry.event)
    }
}

impl Entry {
    fn go_on(&mut self, sighting: Sighting, now: SampleTime) -> Option<EventChange> {
        let is_worse = sighting.severity > self.event.severity;
        self.seen = now;
        self.event.severity = self.event.severity.max(sighting.severity);
        self.event.text = sighting.text;
        self.event.advice.clear();
        self.event.advice.push_str(sighting.advice);
        self.event.figures = figures(&sighting.figures);
        if !is_worse && now.elapsed - self.reported < UPDATE {
            return None;
        }
        self.reported = now.elapsed;
        Some(EventChange {
            kind: ChangeKind::Updated,
            event: self.event.clone(),
        })
    }
}

fn figures(pairs: &[(&'static str, f64)]) -> Vec<EventFigure> {
    pairs
        .iter()
        .map(|(key, value)| EventFigure {
            key: (*key).to_owned(),
            value: *value,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Severity, Subject};

    fn at(seconds: u64) -> SampleTime {
        SampleTime {
            wall: None,
            elapsed: Nanos::from_secs(seconds),
        }
    }

    fn sighting(severity: Severity) -> Sighting {
        Sighting {
            subject: Subject::Host,
            name: "host".to_owned(),
            severity,
            began: at(1),
            text: String::new(),
            advice: "",
            figures: Vec::new(),
        }
    }

    #[test]
    fn an_event_begins_once_and_ends_once() {
        let mut tracker = EventTracker::default();
        let code = EventCode::Writeback;
        let opened = tracker
            .enter(code, sighting(Severity::Note), at(3))
            .unwrap();
        assert_eq!(opened.kind, ChangeKind::Opened);
        for second in 4..63 {
            assert!(
                tracker
                    .enter(code, sighting(Severity::Note), at(second))
                    .is_none()
            );
            assert!(
                tracker
                    .close_unseen(code, Nanos::from_secs(10), at(second))
                    .is_empty()
            );
        }
        let updated = tracker
            .enter(code, sighting(Severity::Note), at(63))
            .unwrap();
        assert_eq!(updated.kind, ChangeKind::Updated);
        let worse = tracker
            .enter(code, sighting(Severity::Warn), at(64))
            .unwrap();
        assert_eq!(worse.event.severity, Severity::Warn);
        assert!(
            tracker
                .close_unseen(code, Nanos::from_secs(10), at(74))
                .is_empty()
        );
        assert!(
            tracker
                .close_unseen(EventCode::Cold, Nanos(0), at(75))
                .is_empty()
        );
        let closed = tracker.close_unseen(code, Nanos::from_secs(10), at(75));
        assert_eq!(closed.len(), 1);
        let event = &closed[0].event;
        assert_eq!((event.began, event.ended), (at(1), Some(at(64))));
        assert_eq!(tracker.open().count(), 0);
        let again = tracker
            .enter(code, sighting(Severity::Note), at(76))
            .unwrap();
        assert_eq!((again.kind, again.event.id), (ChangeKind::Opened, 2));
        // A cause seen in the last sample is not over when the samples end.
        let last = tracker.finish(at(76));
        assert_eq!(
            (last[0].kind, last[0].event.ended),
            (ChangeKind::Unfinished, None)
        );
        tracker.enter(code, sighting(Severity::Note), at(77));
        let last = tracker.finish(at(78));
        assert_eq!(
            (last[0].kind, last[0].event.ended),
            (ChangeKind::Closed, Some(at(77)))
        );
    }
}
