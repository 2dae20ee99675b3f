//! One entrant measured once.

/// A measurement of an entrant in a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The entrant's index, from 0.
    pub entrant: usize,
    /// Index of the block, from 0.
    pub block: usize,
    /// Measured value, of which more is better, in any unit; give the inverse of a latency. One that is not
    /// positive and finite says that the measurement failed. Where a cell is given more than once, the last
    /// that did not fail counts.
    pub value: f64,
    /// The 95 % half width of this measurement as a share of the value; `None` if unknown.
    pub half_width: Option<f64>,
}
