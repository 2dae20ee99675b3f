//! Views of runs and sweeps: one file a form. Views only view: nothing here measures or decides.

pub(crate) mod answer;
pub mod html;
pub(crate) mod imported;
pub mod json;
#[cfg(any(test, feature = "testing"))]
pub mod sample;
pub(crate) mod text;

use record::{DeviceCounts, Phase};

/// The kernel's counts on the disks below over a phase, and its seconds. `None` where any window has no
/// count.
pub(crate) fn device_totals(phase: &Phase) -> Option<(DeviceCounts, f64)> {
    let mut total = DeviceCounts::default();
    let mut seconds = 0.0;
    for window in &phase.windows {
        let counts = window.device?;
        total.reads += counts.reads;
        total.read_bytes += counts.read_bytes;
        total.writes += counts.writes;
        total.write_bytes += counts.write_bytes;
        total.flushes += counts.flushes;
        total.busy_ms += counts.busy_ms;
        seconds += window.seconds;
    }
    (seconds > 0.0).then_some((total, seconds))
}
