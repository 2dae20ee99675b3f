//! Computes the figures of an interval from two readings of a device's counters.

use super::columns::{Column, Figure, Part};
use super::row::Figures;

/// The kinds of requests that the kernel counts.
pub(crate) const PARTS: [Part; 4] = [Part::Read, Part::Write, Part::Discard, Part::Flush];

/// Totals of one kind of requests since the device was added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlowCounters {
    pub(crate) requests: Option<f64>,
    pub(crate) merged: Option<f64>,
    pub(crate) bytes: Option<f64>,
    /// Sum of the requests' times in seconds.
    pub(crate) seconds: Option<f64>,
}

/// Totals of a device since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    /// Counters of each kind of request, in the order of [`PARTS`].
    pub(crate) flows: [FlowCounters; PARTS.len()],
    /// Time in which any request was in flight, in seconds.
    pub(crate) busy: Option<f64>,
    /// Sum over all requests of the time in flight, in seconds.
    pub(crate) weighted: Option<f64>,
    /// Requests in flight when the counters were read.
    pub(crate) in_flight: Option<u64>,
}

impl Counters {
    /// Figures of the interval of `seconds` since an earlier reading; unknown if a counter decreased.
    pub(crate) fn since(&self, before: &Counters, seconds: f64) -> Figures {
        let mut figures = Figures::default();
        let mut waited = None;
        for (nth, part) in PARTS.into_iter().enumerate() {
            let (now, old) = (&self.flows[nth], &before.flows[nth]);
            let mut put = |figure, value: Option<f64>| {
                if let Some(value) = value {
                    figures.put(Column::Flow(part, figure, 1.0), value);
                }
            };
            let requests = difference(now.requests, old.requests);
            let took = difference(now.seconds, old.seconds);
            let rate = |total: Option<f64>| total.map(|total| total / seconds);
            put(Figure::Iops, rate(requests));
            put(Figure::Bytes, rate(difference(now.bytes, old.bytes)));
            put(Figure::Merged, rate(difference(now.merged, old.merged)));
            let some = requests.filter(|requests| *requests > 0.0);
            put(
                Figure::Wait,
                took.zip(some).map(|(took, requests)| took * 1e9 / requests),
            );
            waited = took.map_or(waited, |took| Some(waited.unwrap_or_default() + took));
        }
        // The sum of the requests' times equals the mean number in flight times the interval.
        let weighted = difference(self.weighted, before.weighted).or(waited);
        if let Some(weighted) = weighted {
            figures.put(Column::InFlight, weighted / seconds);
        }
        if let Some(busy) = difference(self.busy, before.busy) {
            // The counters' clock and the readings' clock differ slightly.
            figures.put(Column::Busy, (busy / seconds * 100.0).min(100.0));
        }
        figures.pending = self.in_flight;
        figures
    }
}

/// Increase of a counter.
fn difference(now: Option<f64>, before: Option<f64>) -> Option<f64> {
    Some(now? - before?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(requests: f64, seconds: f64, busy: f64) -> Counters {
        let mut counters = Counters {
            busy: Some(busy),
            in_flight: Some(3),
            ..Counters::default()
        };
        counters.flows[0] = FlowCounters {
            requests: Some(requests),
            merged: None,
            bytes: Some(requests * 4096.0),
            seconds: Some(seconds),
        };
        counters
    }

    #[test]
    fn figures_are_differences_over_the_interval() {
        let figures = reading(1100.0, 12.0, 9.0).since(&reading(100.0, 2.0, 4.0), 10.0);
        assert_eq!(figures.get(Part::Read, Figure::Iops), Some(100.0));
        assert_eq!(figures.get(Part::Read, Figure::Bytes), Some(409_600.0));
        assert_eq!(figures.get(Part::Read, Figure::Wait), Some(1e7));
        assert_eq!(figures.get(Part::Read, Figure::Merged), None);
        assert_eq!(figures.get(Part::Write, Figure::Iops), None);
        assert_eq!(figures.in_flight, Some(1.0));
        assert_eq!(figures.busy, Some(0.5));
        assert_eq!(figures.pending, Some(3));
    }

    #[test]
    fn a_counter_that_went_back_leaves_the_interval_unknown() {
        assert!(
            reading(5.0, 0.1, 0.1)
                .since(&reading(100.0, 2.0, 4.0), 10.0)
                .reset
        );
        assert!(
            !reading(5.0, 0.1, 0.1)
                .since(&reading(5.0, 0.1, 0.1), 10.0)
                .reset
        );
    }
}
