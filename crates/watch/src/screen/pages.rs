//! Time over the caps of a volume, from the vendor's statistics page.

use std::sync::Arc;

use record::Nanos;
use record::sample::{DeviceId, VendorSample};

use super::history::History;

/// Age above which a page is out of date; pages are read at most once a second.
const FRESH: Nanos = Nanos::from_secs(5);

/// Share of the time in which the load of a volume exceeded its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeOverCaps {
    /// Share of the time over the volume's own IOPS or throughput.
    pub volume: f64,
    /// Share of the time over those of the instance.
    pub instance: f64,
}

impl TimeOverCaps {
    /// Shares from a statistics page.
    pub(crate) fn of(page: &VendorSample) -> TimeOverCaps {
        let exceeded = &page.exceeded;
        let share = |time: Option<Nanos>| time.map_or(0.0, |time| page.share(time));
        TimeOverCaps {
            volume: page
                .share(exceeded.volume_iops)
                .max(page.share(exceeded.volume_bytes)),
            instance: share(exceeded.instance_iops).max(share(exceeded.instance_bytes)),
        }
    }
}

/// The last page of a device up to a frame.
pub(crate) fn page(
    history: &History,
    number: u64,
    (id, place): (DeviceId, usize),
) -> Option<&Arc<VendorSample>> {
    let mut frames = history.back(number, FRESH);
    frames.find_map(|frame| frame.row(id, place)?.vendor.as_ref())
}
