//! Values over time, in a bounded number of slices, which become wider as the trace becomes longer.

use record::Nanos;

/// Maximum number of slices.
pub(crate) const MAX_SLICES: usize = 512;
/// Initial width of a slice.
const MIN_SLICE_WIDTH: Nanos = Nanos(100_000_000);

/// Values of adjacent slices that can be merged.
pub(crate) trait Merge: Default {
    /// Merges the value of the next slice into this one.
    fn merge(&mut self, later: &Self);
}

/// Slices of time.
#[derive(Debug)]
pub(crate) struct Series<T> {
    width: Nanos,
    slices: Vec<T>,
}

impl<T> Default for Series<T> {
    fn default() -> Series<T> {
        Series {
            width: MIN_SLICE_WIDTH,
            slices: Vec::new(),
        }
    }
}

impl<T: Merge> Series<T> {
    /// The slice of a time.
    pub(crate) fn at(&mut self, time: Nanos) -> &mut T {
        while time.0 / self.width.0 >= MAX_SLICES as u64 {
            self.merge_pairs();
        }
        let at = (time.0 / self.width.0) as usize;
        if at >= self.slices.len() {
            self.slices.resize_with(at + 1, T::default);
        }
        &mut self.slices[at]
    }

    fn merge_pairs(&mut self) {
        self.width = Nanos(self.width.0.saturating_mul(2));
        let mut halved = Vec::with_capacity(self.slices.len() / 2 + 1);
        let mut slices = std::mem::take(&mut self.slices).into_iter();
        while let Some(mut first) = slices.next() {
            if let Some(second) = slices.next() {
                first.merge(&second);
            }
            halved.push(first);
        }
        self.slices = halved;
    }

    /// The slices, mutable.
    pub(super) fn slices_mut(&mut self) -> &mut [T] {
        &mut self.slices
    }

    /// Width of a slice.
    pub(crate) fn width(&self) -> Nanos {
        self.width
    }

    /// The slices, from the start of the trace.
    pub(crate) fn slices(&self) -> &[T] {
        &self.slices
    }
}
