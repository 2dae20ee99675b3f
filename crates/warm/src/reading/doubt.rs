//! Detection of a device that fails all requests. The kernel may list a controller that no longer answers until
//! somebody removes it; the data on it is not lost, and its ranges must not be marked as unreadable.

use std::ops::Range;

use record::{Bytes, Nanos, Ranges};

use super::probes::page_at;

/// Number of consecutive failures after which the device is tested. It is doubled after each test that the device
/// answers, since a disk with large bad areas causes many such series.
const MAX_FAILURES: u32 = 64;
/// Maximum number of times that [`MAX_FAILURES`] is doubled.
const MAX_DOUBLINGS: u32 = 4;
/// Number of pages that are requested to test the device.
const TEST_PAGES: u64 = 8;
/// Pause before the test pages: a controller may be in a reset, and a device that is being removed fails its requests
/// before it disappears from the kernel's list.
const TEST_DELAY: Nanos = Nanos(1_000_000_000);

/// State of the detection.
#[derive(Debug, Default)]
pub(super) struct DeviceDoubt {
    /// Number of requests that failed since the last success.
    failures: u32,
    /// Ranges that were marked as unreadable since the last success.
    suspect: Ranges,
    /// Number of tests that the device answered.
    answers: u32,
    requested: Option<SuspectPages>,
    is_silent: bool,
}

/// A test of the device: pages that are requested.
#[derive(Debug)]
struct SuspectPages {
    not_before: Nanos,
    pages: Vec<Range<u64>>,
    in_flight: u32,
    has_answered: bool,
}

impl DeviceDoubt {
    /// Notes a request that succeeded.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        if !self.suspect.is_empty() {
            self.suspect = Ranges::new();
        }
        if let Some(requested) = &mut self.requested {
            requested.has_answered = true;
            requested.pages.clear();
        }
        self.conclude();
    }

    /// Notes a request that failed.
    pub(super) fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Notes a range that was marked as unreadable.
    pub(super) fn note_unreadable(&mut self, range: Range<u64>) {
        self.suspect.insert(range);
    }

    /// Begins a test after enough consecutive failures, with pages of the ranges that were read before, or of the whole
    /// volume where nothing was read.
    pub(super) fn poll(&mut self, now: Nanos, done: &Ranges, size: Bytes) {
        let enough = MAX_FAILURES << self.answers.min(MAX_DOUBLINGS);
        if self.requested.is_some() || self.is_silent || self.failures < enough {
            return;
        }
        let all = Ranges::all(size);
        let places = if done.is_empty() { &all } else { done };
        let total = places.total().0;
        let pages =
            (0..TEST_PAGES).filter_map(|number| page_at(places, total / TEST_PAGES * number));
        self.requested = Some(SuspectPages {
            not_before: now + TEST_DELAY,
            pages: pages.collect(),
            in_flight: 0,
            has_answered: false,
        });
    }

    /// True while the device is being tested: no other request is made then.
    pub(super) fn is_open(&self) -> bool {
        self.requested.is_some()
    }

    /// The next test page to request.
    pub(super) fn next_page(&mut self, now: Nanos) -> Option<Range<u64>> {
        let requested = self
            .requested
            .as_mut()
            .filter(|one| now >= one.not_before)?;
        let page = requested.pages.pop()?;
        requested.in_flight += 1;
        Some(page)
    }

    /// Notes the result of a test page.
    pub(super) fn note_completed(&mut self, is_good: bool) {
        if let Some(requested) = &mut self.requested {
            requested.in_flight = requested.in_flight.saturating_sub(1);
        }
        if is_good {
            self.succeeded();
        } else {
            self.conclude();
        }
    }

    fn conclude(&mut self) {
        let is_over =
            |requested: &mut SuspectPages| requested.pages.is_empty() && requested.in_flight == 0;
        let Some(requested) = self.requested.take_if(is_over) else {
            return;
        };
        if requested.has_answered {
            self.answers += 1;
            self.failures = 0;
        } else {
            self.is_silent = true;
        }
    }

    /// True if the device no longer answers any request.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Takes the ranges that were marked as unreadable since the device's last answer.
    pub(super) fn take_suspect_ranges(&mut self) -> Ranges {
        std::mem::take(&mut self.suspect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reader::PROBE_BYTES;

    const PAGE: u64 = PROBE_BYTES as u64;

    fn requested(doubt: &mut DeviceDoubt, now: Nanos) -> Vec<Range<u64>> {
        std::iter::from_fn(|| doubt.next_page(now)).collect()
    }

    #[test]
    fn a_device_is_silent_only_when_no_page_anywhere_comes() {
        let size = Bytes(800 * PAGE);
        let mut doubt = DeviceDoubt::default();
        let row = |doubt: &mut DeviceDoubt, failures: u32| {
            (0..failures).for_each(|_| doubt.failed());
            doubt.poll(Nanos(0), &Ranges::new(), size);
            doubt.is_open()
        };
        assert!(!row(&mut doubt, MAX_FAILURES - 1));
        assert!(row(&mut doubt, 1));
        assert!(
            requested(&mut doubt, Nanos(0)).is_empty(),
            "it is given time"
        );
        let pages = requested(&mut doubt, TEST_DELAY);
        let starts: Vec<u64> = pages.iter().rev().map(|page| page.start / PAGE).collect();
        assert_eq!(starts, [0, 100, 200, 300, 400, 500, 600, 700]);
        doubt.note_completed(false);
        doubt.note_completed(true);
        (0..6).for_each(|_| doubt.note_completed(false));
        assert!(!doubt.is_open() && !doubt.is_silent());
        // Twice as many have to fail now, and a success in between begins a new series.
        assert!(!row(&mut doubt, 2 * MAX_FAILURES - 1));
        doubt.succeeded();
        assert!(!row(&mut doubt, 1));
        doubt.note_unreadable(0..PAGE);
        assert!(row(&mut doubt, 2 * MAX_FAILURES));
        for _ in requested(&mut doubt, TEST_DELAY) {
            assert!(!doubt.is_silent());
            doubt.note_completed(false);
        }
        assert!(doubt.is_silent());
        assert_eq!(doubt.take_suspect_ranges(), Ranges::from(0..PAGE));
    }

    #[test]
    fn pages_that_were_read_are_requested_again_and_a_late_answer_is_one() {
        let done = Ranges::from(16 * PAGE..32 * PAGE);
        let mut doubt = DeviceDoubt::default();
        (0..MAX_FAILURES).for_each(|_| doubt.failed());
        doubt.poll(Nanos(0), &done, Bytes(800 * PAGE));
        let page = doubt.next_page(TEST_DELAY).unwrap();
        assert_eq!(page, 30 * PAGE..31 * PAGE);
        doubt.succeeded();
        assert_eq!(doubt.next_page(TEST_DELAY), None, "one answer is enough");
        doubt.note_completed(false);
        assert!(!doubt.is_open() && !doubt.is_silent());
    }
}
