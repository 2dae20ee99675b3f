//! A disk as a cause: latency that rose without more I/O to explain it.

use crate::watch::{EventCode, FindingMeaning};

use super::inputs::{DiskLayer, Observations, ObservedDisk, Windows, pairs, part};
use super::{LEVEL, MIN_CHANGE_RATIO};
use crate::shift::{Shift, StepEffect, shift, shift_at_equal_load};

/// Minimum change of a disk's latency that counts: I/O with another mix differs by some percent anyway.
const MIN_AWAIT_RATIO: f64 = 1.2;

/// Evidence about one disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskEvidence {
    /// Name of the disk.
    pub name: String,
    /// Change of its latency.
    pub latency: Shift,
    /// Change of its IOPS.
    pub iops: Shift,
    /// Change of its I/Os per request of the service.
    pub per_request: Option<Shift>,
    /// Change of its latency at equal IOPS, on logarithms; `None` where the IOPS do not overlap.
    pub at_equal_iops: Option<StepEffect>,
    /// Codes of the findings that began after the moment.
    pub began: Vec<EventCode>,
    /// Share of the time in which it was busy after the moment, 0 to 1.
    pub busy: f64,
    /// Disk latency of all I/O of one request in milliseconds: before, after.
    pub per_request_ms: (f64, f64),
    /// Position of the disk in a stack of devices.
    pub layer: DiskLayer,
}

impl DiskEvidence {
    /// Compares the disk's series; `None` if there are too few data.
    pub(crate) fn new(
        observed: &Observations,
        disk: &ObservedDisk,
        windows: &Windows,
    ) -> Option<Self> {
        let (before, after) = (&windows.before, &windows.after);
        let change = |values: &[f64]| shift(part(values, before), part(values, after));
        let ios = disk.iops.iter().map(|iops| iops * observed.slot_s);
        let requests = observed.service.requests.iter();
        let per_request: Vec<f64> = ios
            .zip(requests)
            .map(|(ios, requests)| ios / requests)
            .collect();
        let began = disk.findings.iter().filter(|finding| {
            let open = |window: &std::ops::Range<usize>| {
                finding.slots.start < window.end && window.start < finding.slots.end
            };
            open(after) && !open(before)
        });
        let io_time = |window: &std::ops::Range<usize>| {
            mean_product(part(&per_request, window), part(&disk.await_ms, window))
        };
        Some(Self {
            name: disk.name.clone(),
            latency: change(&disk.await_ms)?,
            iops: change(&disk.iops)?,
            per_request: change(&per_request),
            at_equal_iops: shift_at_equal_load(
                &pairs(&disk.iops, &disk.await_ms, before),
                &pairs(&disk.iops, &disk.await_ms, after),
            ),
            began: began.map(|finding| finding.code).collect(),
            busy: crate::noise::mean(part(&disk.busy, after)),
            per_request_ms: (io_time(before), io_time(after)),
            layer: disk.layer,
        })
    }

    /// True if the disk itself changed in a way that moves response times in `direction`.
    pub(crate) fn changed(&self, direction: f64) -> bool {
        let more_io = self.iops.shows(LEVEL, MIN_CHANGE_RATIO) && self.iops.size() > 0.0;
        let own = |code: &EventCode| match code.finding_meaning() {
            FindingMeaning::Changed => true,
            FindingMeaning::AtALimit => !more_io,
            FindingMeaning::HowItIsUsed => false,
        };
        if direction > 0.0 && self.began.iter().any(own) {
            return true;
        }
        // Its latency is that of the disks below, of which the slower one is named.
        if self.layer.lies_on_others {
            return false;
        }
        let moved = |effect: StepEffect| {
            effect.p <= LEVEL && effect.size * direction >= MIN_AWAIT_RATIO.ln()
        };
        let latency =
            self.latency.shows(LEVEL, MIN_AWAIT_RATIO) && self.latency.size() * direction > 0.0;
        let by_io = self.iops.shows(LEVEL, MIN_CHANGE_RATIO) && self.iops.size() * direction > 0.0;
        latency && self.at_equal_iops.map_or(!by_io, moved)
    }

    /// True if a request makes clearly more I/O than before (less, for a negative direction).
    pub(crate) fn demand_moved(&self, direction: f64) -> bool {
        let moved =
            |shift: &Shift| shift.shows(LEVEL, MIN_AWAIT_RATIO) && shift.size() * direction > 0.0;
        !self.layer.carries_others && self.per_request.as_ref().is_some_and(moved)
    }
}

/// Mean of the products of two series where both are finite.
fn mean_product(a: &[f64], b: &[f64]) -> f64 {
    let products = a.iter().zip(b).map(|(a, b)| a * b);
    let finite: Vec<f64> = products.filter(|x| x.is_finite()).collect();
    crate::noise::mean(&finite)
}
