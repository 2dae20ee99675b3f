//! The simulated service of `study`'s own proof, as events and a recording. Each run has a tag, a host and a time of its
//! own, and quiet windows at the same hours of three earlier days.

#[path = "../../crates/study/src/verdict/scenario.rs"]
mod simulated;

use std::ops::Range;

use record::random::SplitMix64;
use simulated::{Event, Service};
pub(crate) use simulated::{SCENARIOS, Scenario};
use study::watch::EventCode;

use super::world::{DiskMinute, Minute};

/// A minute of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) service: Minute,
    pub(crate) disk: DiskMinute,
    pub(crate) evictions: f64,
}

/// Minutes of a run, of which those from `moment` on are changed.
pub(crate) fn play(
    events: &[Event],
    minutes: Range<i64>,
    moment: i64,
    rng: &mut SplitMix64,
) -> Vec<Slot> {
    let mut simulated = Service::default();
    let found = events.iter().find_map(code).filter(|_| rng.uniform() < 0.7);
    let mut slot = |number: i64| {
        let lasting = if number >= moment { events } else { &[] };
        let minute = simulated.next(number, lasting, rng);
        let is_found = number >= moment.saturating_add(2);
        Slot {
            service: Minute {
                requests: (minute.rate * 60.0).round(),
                p50_ms: 0.7 * minute.mean_ms * (0.02 * rng.normal()).exp(),
                tail: 6.0 * (0.05 * rng.normal()).exp() * if minute.has_stalls { 2.0 } else { 1.0 },
            },
            disk: DiskMinute {
                iops: minute.iops * (0.01 * rng.normal()).exp(),
                await_ms: minute.io_ms,
                busy: minute.busy,
                finding: found.filter(|_| is_found),
            },
            evictions: minute.evictions * (0.3 * rng.normal()).exp(),
        }
    };
    minutes.map(&mut slot).collect()
}

/// The code of the finding that an event has.
fn code(event: &Event) -> Option<EventCode> {
    match event {
        Event::Cap(_) => Some(EventCode::VolumeCap),
        Event::Stalls => Some(EventCode::Stalled),
        Event::Scrub(_) => Some(EventCode::ScrubHurts),
        _ => None,
    }
}
