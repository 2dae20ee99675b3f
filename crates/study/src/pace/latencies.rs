//! The last latencies of the foreground.

use std::collections::VecDeque;

/// The last latencies, in seconds: at most `MOST`.
#[derive(Clone, Debug, Default)]
pub(super) struct LastLatencies<const MOST: usize> {
    latencies_s: VecDeque<f64>,
}

impl<const MOST: usize> LastLatencies<MOST> {
    pub(super) fn take(&mut self, latencies_s: &[f64]) {
        self.latencies_s.extend(latencies_s);
        while self.latencies_s.len() > MOST {
            self.latencies_s.pop_front();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.latencies_s.len()
    }

    pub(super) fn mean_s(&self) -> Option<f64> {
        let sum: f64 = self.latencies_s.iter().sum();
        (!self.latencies_s.is_empty()).then(|| sum / self.latencies_s.len() as f64)
    }

    /// The 99th percentile, in seconds; `None` of fewer than two.
    pub(super) fn p99_s(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.latencies_s.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let above = (sorted.len() / 100).max(1);
        let at = sorted.len().checked_sub(1 + above)?;
        sorted.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_give_way() {
        let mut last = LastLatencies::<3>::default();
        assert_eq!((last.mean_s(), last.p99_s()), (None, None));
        last.take(&[9.0]);
        assert_eq!((last.mean_s(), last.p99_s()), (Some(9.0), None));
        last.take(&[1.0, 3.0, 2.0]);
        assert_eq!(
            (last.len(), last.mean_s(), last.p99_s()),
            (3, Some(2.0), Some(2.0))
        );
    }

    #[test]
    fn one_in_a_hundred_exceeds_the_p99() {
        let mut last = LastLatencies::<400>::default();
        let latencies: Vec<f64> = (1..=400).map(f64::from).collect();
        last.take(&latencies);
        assert_eq!(last.p99_s(), Some(396.0));
    }
}
