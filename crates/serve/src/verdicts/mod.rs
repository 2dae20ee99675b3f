//! Verdicts: moments of a tag's response times, and what changed at each.
//!
//! Moments are markers, and changes found without a marker. Each is judged from the slots around it, from the same
//! hours of earlier days, and from the disks and other series of these slots ([`study::verdict`]).

mod document;
mod moments;
mod sentences;

use std::collections::HashMap;
use std::sync::Mutex;

use study::verdict::{self, Conclusion, Moment, Observations, Windows};
use tally::level::{RollUpLevel, Seconds};
use tally::query::Selection;

use crate::axis::{Axis, timestamp};
use crate::documents::{Marker, Verdict, Verdicts};
use crate::sources::Sources;
use crate::sources::pool::lock;
use moments::{FoundChange, Search};

/// Number of slots that are compared on either side of a moment.
const WIDTH: usize = 40;
/// Number of earlier days whose same hours are examined.
const EARLIER_DAYS: i64 = 7;
/// Length of a day in seconds.
const DAY: Seconds = 86_400;
/// Maximum number of disks that a verdict examines, the busiest first.
const MAX_DISKS: usize = 32;
/// Maximum span of verdicts in seconds.
pub(crate) const MAX_SPAN: Seconds = 7 * DAY;
/// Time after its end, in seconds, at which a slot counts as complete; later data are rare.
const SLOT_DELAY: Seconds = 30;
/// Maximum number of cached verdicts.
const MAX_CACHED_VERDICTS: usize = 2000;

/// Subject of a verdict: tag, span and host.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The tag; `None` takes the busiest.
    pub(crate) selection: Option<Selection>,
    /// Start of the span.
    pub(crate) from: Seconds,
    /// End of the span.
    pub(crate) to: Seconds,
    /// Only this host's disks.
    pub(crate) host: Option<String>,
}

/// Everything that a verdict depends on once its slots are complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    selection: String,
    host: Option<String>,
    at: Seconds,
    marker: Option<(i64, String)>,
    before: (Seconds, Seconds),
    after: (Seconds, Seconds),
}

/// Judges moments, and caches the verdicts.
pub(crate) struct Engine {
    slot_s: i64,
    search: Search,
    known: Mutex<HashMap<Key, Option<Verdict>>>,
}

/// A moment of a span, and the slots around it.
struct JudgedMoment {
    moment: Moment,
    marker: Option<Marker>,
    windows: Windows,
}

impl Engine {
    /// An engine with slots of this length.
    pub(crate) fn new(slot_s: i64) -> Engine {
        Engine {
            slot_s,
            search: Search::default(),
            known: Mutex::new(HashMap::new()),
        }
    }

    /// Answers a question as of a moment.
    pub(crate) fn verdicts(
        &self,
        sources: &Sources,
        question: &Question,
        now: Seconds,
    ) -> Verdicts {
        let tags = sources.tags(now);
        let selection = sources.selection_or_busiest(question.selection.as_ref(), &tags);
        // If a source fails there are no verdicts; the state of the source reports the error.
        let judge = |selection| self.judge_span(sources, selection, question, now);
        let verdicts = selection.as_ref().map(judge).and_then(Result::ok);
        Verdicts {
            from: timestamp(question.from),
            to: timestamp(question.to),
            slot_s: self.slot_s,
            selection: selection.map(|selection| crate::sources::service::written(&selection.0)),
            tags,
            sources: sources.states(),
            verdicts: verdicts.unwrap_or_default(),
        }
    }

    fn judge_span(
        &self,
        sources: &Sources,
        selection: &Selection,
        question: &Question,
        now: Seconds,
    ) -> anyhow::Result<Vec<Verdict>> {
        let margin = WIDTH as i64 * self.slot_s;
        let complete = now - SLOT_DELAY;
        let complete = complete - complete.rem_euclid(self.slot_s);
        let axis = Axis::uniform(
            question.from - margin,
            (question.to + margin).min(complete),
            self.slot_s,
        );
        let rows =
            sources
                .stores
                .rows_by(selection, RollUpLevel::Minute, &[(axis.from(), axis.to())])?;
        let service = rows.figures(&axis).evidence();
        let name = crate::sources::service::written(&selection.0);
        let mut found = self.search.changes(&name, &axis, &service);
        let markers = sources.markers(timestamp(axis.from()), timestamp(axis.to() + margin))?;
        // A change that its verdict does not confirm is dropped. It must not limit the windows of its neighbours, so
        // these are judged again.
        let (places, judged) = loop {
            let places = places(&axis, &markers, &found);
            let judged: Vec<Option<Verdict>> = places
                .iter()
                .map(|place| {
                    self.remembered(&axis, place, &name, question, || {
                        self.judge(sources, selection, question, &axis, place)
                    })
                })
                .collect::<anyhow::Result<_>>()?;
            let unconfirmed = places.iter().zip(&judged);
            let unconfirmed: Vec<usize> = unconfirmed
                .filter(|(_, verdict)| verdict.is_none())
                .map(|(place, _)| place.moment.slot)
                .collect();
            if unconfirmed.is_empty() {
                break (places, judged);
            }
            found.retain(|found| !unconfirmed.contains(&found.slot));
        };
        let wanted = question.from as f64..question.to as f64;
        let is_wanted = |place: &JudgedMoment| {
            let at = place.marker.as_ref().map_or_else(
                || axis.starts()[place.moment.slot] as f64,
                |marker| crate::axis::seconds(marker.time),
            );
            wanted.contains(&at)
        };
        let pairs = places.iter().zip(judged).rev();
        let verdicts = pairs.filter(|(place, _)| is_wanted(place));
        Ok(verdicts.filter_map(|(_, verdict)| verdict).collect())
    }

    /// A verdict of before, where all that it depends on is as it was.
    fn remembered(
        &self,
        axis: &Axis,
        place: &JudgedMoment,
        selection: &str,
        question: &Question,
        judge: impl FnOnce() -> anyhow::Result<Option<Verdict>>,
    ) -> anyhow::Result<Option<Verdict>> {
        let start = |slot: usize| axis.starts().get(slot).copied().unwrap_or(axis.to());
        let span = |range: &std::ops::Range<usize>| (start(range.start), start(range.end));
        let key = Key {
            selection: selection.to_owned(),
            host: question.host.clone(),
            at: start(place.moment.slot),
            marker: place
                .marker
                .as_ref()
                .map(|marker| (marker.id, marker.text.clone())),
            before: span(&place.windows.before),
            after: span(&place.windows.after),
        };
        if let Some(verdict) = lock(&self.known).get(&key) {
            return Ok(verdict.clone());
        }
        let verdict = judge()?;
        let mut known = lock(&self.known);
        if known.len() >= MAX_CACHED_VERDICTS {
            known.clear();
        }
        known.insert(key, verdict.clone());
        Ok(verdict)
    }

    /// Judges one moment; `None` for a change without a marker that is none.
    fn judge(
        &self,
        sources: &Sources,
        selection: &Selection,
        question: &Question,
        axis: &Axis,
        place: &JudgedMoment,
    ) -> anyhow::Result<Option<Verdict>> {
        let first = place.windows.before.start;
        let last = place.windows.after.end.max(place.moment.slot);
        let start = |slot: usize| axis.starts().get(slot).copied().unwrap_or(axis.to());
        let today = (start(first), start(last));
        let days = (1..=EARLIER_DAYS)
            .rev()
            .map(|day| (today.0 - day * DAY, today.1 - day * DAY));
        let spans: Vec<(Seconds, Seconds)> = days.chain(std::iter::once(today)).collect();
        let axes: Vec<Axis> = spans
            .iter()
            .map(|(from, to)| Axis::uniform(*from, *to, self.slot_s))
            .collect();
        let joined = Axis::joined(&axes);
        let rows = sources
            .stores
            .rows_by(selection, RollUpLevel::Minute, &spans)?;
        let service = rows.figures(&joined).evidence();
        let length = last - first;
        let offset = length * EARLIER_DAYS as usize;
        let today = &axes[EARLIER_DAYS as usize];
        let (disks, series) = sources.evidence(today, question.host.as_deref(), MAX_DISKS);
        let observed = Observations {
            slot_s: self.slot_s as f64,
            disks: disks
                .into_iter()
                .map(|disk| shifted(disk, offset))
                .collect(),
            series: series
                .into_iter()
                .map(|(name, values)| verdict::NamedSeries {
                    name,
                    values: padded(values, offset),
                })
                .collect(),
            service,
        };
        let within = |range: &std::ops::Range<usize>, day: usize| {
            range.start - first + day * length..range.end - first + day * length
        };
        let (before, after) = (&place.windows.before, &place.windows.after);
        let is_recorded = |day: &usize| {
            let slots = within(before, *day).start..within(after, *day).end;
            observed.service.requests[slots]
                .iter()
                .any(|count| *count > 0.0)
        };
        let days = (0..EARLIER_DAYS as usize).rev().take_while(is_recorded);
        let windows = Windows {
            days: days
                .map(|day| (within(before, day), within(after, day)))
                .collect(),
            before: within(before, EARLIER_DAYS as usize),
            after: within(after, EARLIER_DAYS as usize),
        };
        let moment = Moment {
            slot: place.moment.slot - first + offset,
            marked: place.moment.marked,
        };
        let verdict = verdict::judge(&observed, moment, &windows);
        if !place.moment.marked && is_nothing(&verdict) {
            return Ok(None);
        }
        let view = document::View {
            observed: &observed,
            windows: &windows,
            axis: &joined,
            marker: place.marker.as_ref(),
            at: start(place.moment.slot),
        };
        Ok(Some(view.document(&verdict)))
    }
}

/// True if no figure of response times shows a change.
fn is_nothing(verdict: &verdict::CauseVerdict) -> bool {
    verdict.conclusion == Conclusion::NothingChanged
        || (verdict.conclusion == Conclusion::NotEnoughData
            && !verdict
                .changes
                .first()
                .is_some_and(|(_, shift)| sentences::shows(shift)))
}

/// A disk's series behind so many slots of which nothing is known.
fn shifted(disk: verdict::ObservedDisk, by: usize) -> verdict::ObservedDisk {
    let shift = |finding: verdict::DiskFinding| verdict::DiskFinding {
        slots: finding.slots.start + by..finding.slots.end.saturating_add(by),
        ..finding
    };
    verdict::ObservedDisk {
        iops: padded(disk.iops, by),
        await_ms: padded(disk.await_ms, by),
        busy: padded(disk.busy, by),
        findings: disk.findings.into_iter().map(shift).collect(),
        ..disk
    }
}

fn padded(values: Vec<f64>, by: usize) -> Vec<f64> {
    std::iter::repeat_n(f64::NAN, by).chain(values).collect()
}

/// Moments in order of time: markers, and changes that no marker explains; each with the slots up to its neighbours.
fn places(axis: &Axis, markers: &[Marker], found: &[FoundChange]) -> Vec<JudgedMoment> {
    let mut moments: Vec<(usize, Option<Marker>)> = markers
        .iter()
        .filter_map(|marker| {
            let slot = axis.slot(crate::axis::seconds(marker.time));
            slot.map(|slot| (slot, Some(marker.clone())))
        })
        .collect();
    let marked: Vec<usize> = moments.iter().map(|(slot, _)| *slot).collect();
    let changes = found.iter().map(|found| found.slot);
    moments.extend(
        changes
            .filter(|slot| !marked.iter().any(|marked| moments::is_one(*marked, *slot)))
            .map(|slot| (slot, None)),
    );
    moments.sort_by_key(|(slot, marker)| (*slot, marker.is_none()));
    let slots: Vec<usize> = moments.iter().map(|(slot, _)| *slot).collect();
    moments
        .into_iter()
        .enumerate()
        .map(|(nth, (slot, marker))| {
            let before = slots[..nth].iter().rev().find(|other| **other < slot);
            let after = slots[nth..].iter().find(|other| **other > slot);
            let bounds = before.map_or(0, |slot| slot + 1)..after.copied().unwrap_or(axis.len());
            JudgedMoment {
                moment: Moment {
                    slot,
                    marked: marker.is_some(),
                },
                windows: Windows::around(slot, WIDTH, axis.len(), 0, bounds),
                marker,
            }
        })
        .collect()
}
