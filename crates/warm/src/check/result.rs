//! Result of the check of a volume.

use record::Bytes;
use study::cold::forecast::Forecast;
use study::cold::sample::Sample;
use study::interval::Interval;

/// Result of the check of a volume.
pub(super) struct VolumeCheck {
    pub(super) device: String,
    pub(super) size: Bytes,
    pub(super) places: usize,
    pub(super) failed: usize,
    pub(super) is_warmed: bool,
    pub(super) sample: Sample,
    /// Rate of warm blocks, in bytes a second, while those of all volumes are read.
    pub(super) warm_rate: Option<Interval>,
    /// Duration of warming; `None` where no block is seen to be cold.
    pub(super) forecast: Option<Forecast>,
}

/// Longest time until all cold volumes are warm, in seconds. `None` where none is cold, and where one's is
/// unknown.
pub(super) fn longest(all: &[VolumeCheck]) -> Option<f64> {
    let cold = all.iter().filter(|one| one.is_cold());
    let each: Option<Vec<f64>> = cold.map(|one| Some(one.forecast?.high)).collect();
    each?.into_iter().reduce(f64::max)
}

/// True if the first reads of a sample were as slow as those of a cold volume.
pub(super) fn is_cold(sample: &Sample) -> bool {
    // The share may be none for all that is known of a busy disk.
    sample.differs && sample.cold.low > 0.0
}

impl VolumeCheck {
    pub(super) fn is_cold(&self) -> bool {
        is_cold(&self.sample)
    }
}
