//! Samples of a recording.

use super::Sample;

/// An interval of a recording: a sample, or the mean of several.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedInterval {
    /// The sample; if samples were thinned out, the mean over their time.
    pub sample: Sample,
    /// Spread of the samples that were thinned out to this one; `None` for a single sample.
    pub spread: Option<Box<Spread>>,
}

/// Minimum and maximum of samples that were thinned out to one.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Minimum of each figure.
    pub least: Sample,
    /// Maximum of each figure.
    pub most: Sample,
    /// Number of samples.
    pub samples: u64,
}

impl RecordedInterval {
    /// A single sample, not thinned out.
    pub fn taken(sample: Sample) -> RecordedInterval {
        RecordedInterval {
            sample,
            spread: None,
        }
    }

    /// Minimum of each figure.
    pub fn least(&self) -> &Sample {
        self.spread
            .as_ref()
            .map_or(&self.sample, |spread| &spread.least)
    }

    /// Maximum of each figure.
    pub fn most(&self) -> &Sample {
        self.spread
            .as_ref()
            .map_or(&self.sample, |spread| &spread.most)
    }

    /// Number of samples that were thinned out to this one.
    pub fn samples(&self) -> u64 {
        self.spread.as_ref().map_or(1, |spread| spread.samples)
    }
}
