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
    pub(super) is_being_warmed: bool,
    pub(super) sample: Sample,
    /// Rate of warm blocks, in bytes a second, while warm blocks of all volumes are read at once.
    pub(super) warm_rate: Option<Interval>,
    /// Duration of warming; `None` where no block is seen to be cold.
    pub(super) forecast: Option<Forecast>,
}

/// Upper bound of the time until all cold volumes are warm, in seconds. `None` where no volume is cold, and where the
/// forecast of a cold volume is unknown.
pub(super) fn longest(all: &[VolumeCheck]) -> Option<f64> {
    let cold = all.iter().filter(|one| one.is_cold());
    let each: Option<Vec<f64>> = cold.map(|one| Some(one.forecast?.high)).collect();
    each?.into_iter().reduce(f64::max)
}

/// True if the first reads of a sample were slower than the warm ones beyond chance, and the lower bound of the cold
/// share is above zero.
pub(super) fn is_cold(sample: &Sample) -> bool {
    // On a busy disk the share's lower bound may be zero although the reads differ.
    sample.differs && sample.cold.low > 0.0
}

impl VolumeCheck {
    pub(super) fn is_cold(&self) -> bool {
        is_cold(&self.sample)
    }
}
