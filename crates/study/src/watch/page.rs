//! Latest statistics pages of the volumes.

use std::collections::{HashMap, VecDeque};

use record::Nanos;
use record::sample::{DeviceId, Sample, SampleTime, TimeOverLimits, VendorPage};

/// Time for which pages are examined, and minimum number of pages, if these are longer.
const WINDOW: Nanos = Nanos::from_secs(10);
const LENGTHS: u64 = 3;
/// Minimum share of a page's time over a cap from which the page counts.
const SHARE: f64 = 0.05;
/// Minimum number of pages that exceed the share: a single short burst fills only one.
const PAGES: usize = 2;

/// Content of one page.
#[derive(Clone, Copy, Debug)]
struct PageContent {
    page: VendorPage,
    at: SampleTime,
    length: Nanos,
    /// Shares of the page's time over the caps on operations and on bytes.
    ops: f64,
    bytes: f64,
}

/// Shares of the time in which a volume was over its caps.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeOverCap {
    /// Vendor of the page.
    pub(super) page: VendorPage,
    /// Share of the time over the cap on operations.
    pub(super) ops: f64,
    /// Share of the time over the cap on bytes.
    pub(super) bytes: f64,
    /// Start.
    pub(super) began: SampleTime,
}

/// The pages of the last seconds.
#[derive(Default)]
pub(super) struct Pages {
    pages: HashMap<DeviceId, VecDeque<PageContent>>,
}

impl Pages {
    /// Adds the times of a sample's pages over one pair of caps, on operations and on bytes.
    pub(super) fn take(&mut self, sample: &Sample, caps: fn(&TimeOverLimits) -> (Nanos, Nanos)) {
        for device in &sample.devices {
            let Some(page) = &device.vendor else {
                continue;
            };
            let (ops, bytes) = caps(&page.exceeded);
            self.pages
                .entry(device.device.id)
                .or_default()
                .push_back(PageContent {
                    page: page.page,
                    at: sample.at,
                    length: page.length,
                    ops: page.share(ops),
                    bytes: page.share(bytes),
                });
        }
        let is_old = |page: &PageContent| {
            let window = WINDOW.0.max(page.length.0.saturating_mul(LENGTHS));
            (sample.at.elapsed - page.at.elapsed).0 > window
        };
        self.pages.retain(|_, pages| {
            while pages.front().is_some_and(is_old) {
                pages.pop_front();
            }
            !pages.is_empty()
        });
    }

    /// True if a page of the volume was seen recently, so that nothing needs to be concluded from its counters.
    pub(super) fn has(&self, id: DeviceId) -> bool {
        self.pages.contains_key(&id)
    }

    /// Shares of the time in which a volume was recently over its caps; `None` if it was not.
    pub(super) fn over(&self, id: DeviceId) -> Option<TimeOverCap> {
        let pages = self.pages.get(&id)?;
        let is_over = |page: &&PageContent| page.ops.max(page.bytes) >= SHARE;
        let over: Vec<&PageContent> = pages.iter().filter(is_over).collect();
        let first = over.first().filter(|_| over.len() >= PAGES)?;
        let mean = |share: fn(&PageContent) -> f64| {
            over.iter().map(|page| share(page)).sum::<f64>() / over.len() as f64
        };
        Some(TimeOverCap {
            page: first.page,
            ops: mean(|page| page.ops),
            bytes: mean(|page| page.bytes),
            began: first.at.before(first.length),
        })
    }

    /// Forgets all pages.
    pub(super) fn forget(&mut self) {
        self.pages.clear();
    }
}
