//! Load over time, in slices that become wider as the replay becomes longer.

use record::LoadSlice;

/// Maximum number of slices; beyond it, adjacent pairs are joined.
const MAX_SLICES: usize = 1024;
/// Initial width of a slice, in nanoseconds.
const FIRST_SLICE_NANOS: u64 = 20_000_000;

/// Sums of a slice; I/Os in flight are summed as nanoseconds in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub due: u64,
    pub recorded_ios: u64,
    pub recorded_bytes: u64,
    pub recorded_time: u64,
    pub replayed_ios: u64,
    pub replayed_time: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.due += other.due;
        self.recorded_ios += other.recorded_ios;
        self.recorded_bytes += other.recorded_bytes;
        self.recorded_time += other.recorded_time;
        self.replayed_ios += other.replayed_ios;
        self.replayed_time += other.replayed_time;
    }
}

/// The load.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    width: u64,
    slices: Vec<Sums>,
}

impl Curve {
    pub(crate) fn new() -> Curve {
        Curve {
            width: FIRST_SLICE_NANOS,
            slices: Vec::new(),
        }
    }

    /// The slice of a time since the start, in nanoseconds.
    pub(crate) fn at(&mut self, time: u64) -> &mut Sums {
        while time / self.width >= MAX_SLICES as u64 {
            self.join();
        }
        let index = (time / self.width) as usize;
        if self.slices.len() <= index {
            self.slices.resize(index + 1, Sums::default());
        }
        &mut self.slices[index]
    }

    /// Adds the time from `from` to `to`, slice by slice.
    pub(crate) fn span(&mut self, from: u64, to: u64, add: impl Fn(&mut Sums, u64)) {
        let mut from = from;
        while from < to {
            // Widens the slices until they cover the whole span.
            self.at(to - 1);
            let end = (from / self.width + 1) * self.width;
            let part = end.min(to) - from;
            add(self.at(from), part);
            from += part;
        }
    }

    fn join(&mut self) {
        self.width *= 2;
        self.slices = self
            .slices
            .chunks(2)
            .map(|pair| {
                let mut sum = pair[0];
                if let Some(second) = pair.get(1) {
                    sum.add(second);
                }
                sum
            })
            .collect();
    }

    /// Width of a slice in seconds, and the slices.
    pub(crate) fn finish(&self) -> (f64, Vec<LoadSlice>) {
        let width = self.width as f64;
        let slice = |sums: &Sums| LoadSlice {
            due: sums.due,
            recorded_ios: sums.recorded_ios,
            recorded_bytes: sums.recorded_bytes,
            recorded_in_flight: sums.recorded_time as f64 / width,
            replayed_ios: sums.replayed_ios,
            replayed_in_flight: sums.replayed_time as f64 / width,
        };
        (width / 1e9, self.slices.iter().map(slice).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_slices_are_joined() {
        let mut curve = Curve::new();
        let hour = 3600 * 1_000_000_000_u64;
        for second in 0..3600 {
            let from = second * 1_000_000_000;
            curve.at(from).due += 1;
            curve.span(from, from + 500_000_000, |sums, time| {
                sums.replayed_time += time
            });
        }
        let (seconds, slices) = curve.finish();
        assert!(slices.len() <= MAX_SLICES && seconds * slices.len() as f64 >= 3600.0);
        assert_eq!(slices.iter().map(|slice| slice.due).sum::<u64>(), 3600);
        let busy: f64 = slices
            .iter()
            .map(|slice| slice.replayed_in_flight * seconds)
            .sum();
        assert!((busy - 1800.0).abs() < 1e-6, "{busy}");
        assert!(curve.width < hour);
    }
}
