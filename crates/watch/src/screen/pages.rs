//! The vendor's own word on a volume.

use std::sync::Arc;

use record::Nanos;
use record::sample::{DeviceId, VendorSample};

use super::history::History;

/// Pages come once a second at most; one that is older than this says nothing of now.
const FRESH: Nanos = Nanos::from_secs(5);

/// Share of the time in which the load of a volume exceeded its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeOverCaps {
    /// Beyond the volume's own operations or bytes a second.
    pub volume: f64,
    /// Beyond those of the instance.
    pub instance: f64,
}

impl TimeOverCaps {
    /// Caps of a page.
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
