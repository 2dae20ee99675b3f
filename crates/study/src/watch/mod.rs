//! Findings about the disks of a host, from moment to moment: samples in, events out.
//!
//! A [`Watch`] is given one sample after the other, of any length: live, replayed from a recording, or read from a
//! log. Each rule observes the last seconds or minutes and reports its present sightings; the [`event_tracker`]
//! combines these sightings to events, each with one start and one end.
//!
//! The crate's proofs measure the rules' error rates on simulated hosts.

mod event;
mod event_tracker;
mod format;
mod history;
mod members;
mod page;
mod plateaus;
mod rule;
mod rules;
#[cfg(test)]
pub(crate) mod simulated;
mod single_report;
#[cfg(test)]
mod tests;

use record::Subject;
use record::sample::{Gap, Sample, SampleTime};

pub use event::{ChangeKind, EventChange, EventFigure, WatchEvent};
use event_tracker::EventTracker;
use history::DeviceHistory;
pub use rule::Settings;
use rule::{Devices, Rule, RuleInput};
pub use rules::EventCode;
pub(crate) use rules::FindingMeaning;

/// The watch of a host.
pub struct Watch {
    rules: Vec<(EventCode, Box<dyn Rule + Send>)>,
    /// The requested devices; empty for all.
    names: Vec<String>,
    history: DeviceHistory,
    tracker: EventTracker,
    /// The moment of the last sample.
    last: SampleTime,
    /// Findings of the last sample that had no predecessor.
    alone: Vec<(EventCode, Subject)>,
}

impl Watch {
    /// A watch without any sample yet.
    pub fn new(settings: Settings) -> Watch {
        Watch {
            rules: rules::all(&settings),
            names: settings.names,
            history: DeviceHistory::default(),
            tracker: EventTracker::default(),
            last: SampleTime::default(),
            alone: Vec::new(),
        }
    }

    /// Examines a sample, and returns the events that began, changed or ended. Samples must be in order of time.
    pub fn observe(&mut self, sample: &Sample) -> Vec<EventChange> {
        if let Some(Gap::Suspended(_) | Gap::Unseen(_)) = sample.gap {
            self.history.clear();
            for (_, rule) in &mut self.rules {
                rule.forget();
            }
        }
        self.last = sample.at;
        let is_point = self.history.take(sample);
        let now = RuleInput {
            sample,
            history: &self.history,
            devices: Devices::of(sample, &self.names),
        };
        let mut changes = Vec::new();
        let mut seen = Vec::new();
        for (code, rule) in &mut self.rules {
            if is_point || rule.is_instant() {
                rule.observe(&now, &mut seen);
                for sighting in seen.drain(..) {
                    changes.extend(self.tracker.enter(*code, sighting, sample.at));
                }
            }
            changes.extend(
                self.tracker
                    .close_unseen(*code, rule.grace_period(), sample.at),
            );
        }
        changes
    }

    /// Examines a sample without a predecessor or successor in its run, as in a log with one report. Its findings
    /// begin and end with it, and are not repeated if the run before had them too.
    pub fn see_alone(&mut self, sample: &Sample) -> Vec<EventChange> {
        let mut changes = Vec::new();
        let mut seen = Vec::new();
        for (code, sighting) in single_report::observe(sample, &self.names) {
            let key = (code, sighting.subject);
            if !self.alone.contains(&key) {
                changes.extend(self.tracker.note(code, sighting, sample.at));
            }
            seen.push(key);
        }
        self.alone = seen;
        changes
    }

    /// Ends all events at the end of the log.
    pub fn finish(&mut self) -> Vec<EventChange> {
        self.tracker.finish(self.last)
    }

    /// The events that last now, the oldest first.
    pub fn open(&self) -> impl Iterator<Item = &WatchEvent> {
        self.tracker.open()
    }
}
