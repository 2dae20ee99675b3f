//! One entrant measured once.

/// A measurement of an entrant in a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The entrant's index, from 0.
    pub entrant: usize,
    /// Index of the block, from 0.
    pub block: usize,
    /// Measured value in any unit; a larger one is better, so give the inverse of a latency. A value that is not
    /// positive and finite means that the measurement failed. If a cell is given more than once, the last one that did
    /// not fail counts.
    pub value: f64,
    /// The 95 % half width of this measurement as a share of the value; `None` if unknown.
    pub half_width: Option<f64>,
}
