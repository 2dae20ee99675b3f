//! One line of figures.

use std::sync::Arc;

use record::sample::{BytesPerSecond, Device, DeviceSample, Flow, Fraction, PerSecond};
use record::{Bytes, Nanos};

use super::columns::{Column, Figure, Part};
use super::number::Number;

/// Maximum of any figure per second: a larger one comes from a counter that decreased, whose difference was printed as
/// an unsigned number.
const MAX_FIGURE: f64 = 1e15;

/// Figures of a device in an interval, by part and figure, in this program's units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    flows: [[Option<f64>; Figure::COUNT]; Part::COUNT],
    /// Maximum rounding error of each figure.
    rounded: [[f64; Figure::COUNT]; Part::COUNT],
    pub(crate) in_flight: Option<f64>,
    /// Requests in flight when the interval ended.
    pub(crate) pending: Option<u64>,
    pub(crate) busy: Option<f64>,
    pub(crate) service: Option<f64>,
    /// True if a number is impossible, so that a counter must have been reset.
    pub(crate) reset: bool,
}

impl Figures {
    /// A figure of a part.
    pub(crate) fn get(&self, part: Part, figure: Figure) -> Option<f64> {
        self.flows[part as usize][figure as usize]
    }

    /// Sets a column to a value that was computed, and so not rounded.
    pub(crate) fn put(&mut self, column: Column, value: f64) {
        let number = Number {
            value,
            unit: None,
            decimals: 0,
        };
        self.take(column, number, 0.0);
    }

    /// Sets a column to a printed number. A known figure is kept, since some versions print the same in two units.
    pub(crate) fn set(&mut self, column: Column, number: Number) {
        self.take(column, number, number.rounding());
    }

    /// Sets a column. `rounding` is the maximum rounding error, in the number's unit.
    fn take(&mut self, column: Column, number: Number, rounding: f64) {
        let most = match column {
            // A device cannot be busy for a hundred times the interval.
            Column::Busy => 1e4,
            _ => MAX_FIGURE,
        };
        if !number.value.is_finite() || number.value < 0.0 || number.value > most {
            self.reset |= column != Column::Unknown;
            return;
        }
        let (place, value) = match column {
            Column::Flow(part, figure, factor) => {
                let unit = number.unit.unwrap_or(factor);
                let (part, figure) = (part as usize, figure as usize);
                if self.flows[part][figure].is_none() {
                    self.rounded[part][figure] = rounding * unit;
                }
                (&mut self.flows[part][figure], number.value * unit)
            }
            Column::InFlight => (&mut self.in_flight, number.value),
            Column::Busy => (&mut self.busy, number.value / 100.0),
            Column::Service => (&mut self.service, number.value * 1e6),
            Column::Unknown => return,
        };
        place.get_or_insert(value);
    }

    /// True if both have the same figures, however they were rounded.
    pub(crate) fn agrees_with(&self, other: &Figures) -> bool {
        let unrounded = |figures: &Figures| Figures {
            rounded: Default::default(),
            ..*figures
        };
        unrounded(self) == unrounded(other)
    }

    /// True if a figure is known in both.
    pub(crate) fn overlaps(&self, other: &Figures) -> bool {
        let known = |figures: &Figures| {
            let flows = figures.flows.iter().flatten().map(Option::is_some);
            let rest = [figures.in_flight, figures.busy, figures.service];
            flows
                .chain(rest.map(|figure| figure.is_some()))
                .collect::<Vec<_>>()
        };
        known(self)
            .into_iter()
            .zip(known(other))
            .any(|(a, b)| a && b)
    }

    /// Adds the figures of another line about the same device.
    pub(crate) fn join(&mut self, other: &Figures) {
        let rounded = self.rounded.iter_mut().flatten();
        let mine = self.flows.iter_mut().flatten().zip(rounded);
        let rounded = other.rounded.iter().flatten();
        let theirs = other.flows.iter().flatten().zip(rounded);
        for (mine, theirs) in mine.zip(theirs) {
            if mine.0.is_none() {
                (*mine.0, *mine.1) = (*theirs.0, *theirs.1);
            }
        }
        self.in_flight = self.in_flight.or(other.in_flight);
        self.pending = self.pending.or(other.pending);
        self.busy = self.busy.or(other.busy);
        self.service = self.service.or(other.service);
        self.reset |= other.reset;
    }

    /// True if all known figures are zero, and at least one is known.
    pub(crate) fn is_idle(&self) -> bool {
        let rest = [self.in_flight, self.busy];
        let mut known = self
            .flows
            .iter()
            .flatten()
            .chain(&rest)
            .flatten()
            .peekable();
        known.peek().is_some() && !self.reset && known.all(|figure| *figure == 0.0)
    }

    /// True if the device was busy all the time and completed nothing. A driver may count bytes and not requests.
    pub(crate) fn hangs(&self) -> bool {
        let of = |figure: Figure| {
            self.flows
                .iter()
                .filter_map(move |part| part[figure as usize])
        };
        let is_busy = self.busy.is_some_and(|busy| busy >= 0.98);
        let is_known = of(Figure::Iops).next().is_some();
        let mut done = of(Figure::Iops).chain(of(Figure::Bytes));
        is_busy && is_known && done.all(|rate| rate == 0.0)
    }

    /// Length of the interval in seconds, from a report that prints both rates and amounts. Only amounts that give it
    /// to within a percent are used.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let parts = [Part::Read, Part::Write, Part::Discard, Part::Changed];
        parts
            .into_iter()
            .filter_map(|part| {
                let rate = self.get(part, Figure::Bytes)?;
                let moved = self.get(part, Figure::Moved)?;
                (rate > 0.0 && moved >= 100.0 * 1024.0).then_some((moved, moved / rate))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, seconds)| seconds)
            .filter(|seconds| (0.05..1e10).contains(seconds))
    }

    /// The sample with these figures.
    pub(crate) fn sample(&self, device: Arc<Device>) -> DeviceSample {
        let mut sample = DeviceSample::unknown(device);
        if self.reset {
            sample.reset = true;
            return sample;
        }
        sample.read = self.flow(Part::Read);
        sample.write = self.flow(Part::Write);
        sample.discard = self.flow(Part::Discard);
        sample.flush = self.flow(Part::Flush);
        sample.all = self.flow(Part::All);
        sample.mean_in_flight = self.in_flight;
        sample.in_flight = self.pending;
        sample.busy = self.busy.map(Fraction);
        let stated = sample.all;
        sample.sum_up();
        self.correct_sum(&mut sample.all, &stated);
        sample.all.size = stated
            .size
            .or_else(|| self.mean_size_of_all([&sample.read, &sample.write, &sample.discard]));
        let all = &mut sample.all;
        if all.iops == Some(PerSecond(0.0)) {
            all.wait = all.wait.filter(|wait| wait.0 > 0);
            all.size = all.size.filter(|size| size.0 > 0);
        }
        sample
    }

    fn flow(&self, part: Part) -> Flow {
        let iops = self.get(part, Figure::Iops);
        let bytes = self.get(part, Figure::Bytes);
        let wait = self.get(part, Figure::Wait);
        let size = self.get(part, Figure::Size);
        // A mean over no requests is printed as zero. If less than one request in a hundred seconds completed, its
        // rate is printed as zero, but not its time.
        let some = |mean: f64| iops.is_none_or(|iops| iops > 0.0) || mean > 0.0;
        let computed = || {
            mean_size(
                self.sum(&[part], Figure::Bytes)?,
                self.sum(&[part], Figure::Iops)?,
            )
        };
        Flow {
            iops: iops.map(PerSecond),
            bytes: bytes.map(BytesPerSecond),
            merged: self.get(part, Figure::Merged).map(PerSecond),
            wait: wait
                .filter(|wait| some(*wait))
                .map(|wait| Nanos(wait.round() as u64)),
            size: size
                .filter(|size| some(*size))
                .or_else(computed)
                .map(|size| Bytes(size.round() as u64)),
        }
    }

    /// Corrects the sum over all requests: if figures of a kind are unknown, by the figures that iostat prints for all
    /// requests, and by the printed sum of writes and discards.
    fn correct_sum(&self, all: &mut Flow, stated: &Flow) {
        if let Some(changed) = self.get(Part::Changed, Figure::Bytes) {
            let read = self.get(Part::Read, Figure::Bytes).unwrap_or_default();
            all.bytes = Some(BytesPerSecond(read + changed));
        }
        all.wait = stated.wait.or(all.wait);
    }

    /// Mean size of all requests, for which there is no column: from the sizes of each kind, or from the bytes
    /// transferred.
    fn mean_size_of_all(&self, parts: [&Flow; 3]) -> Option<Bytes> {
        let (mut iops, mut bytes, mut is_known) = (0.0, 0.0, true);
        for flow in parts.into_iter().filter(|flow| flow.is_active()) {
            let count = flow.iops.map_or(0.0, |iops| iops.0);
            iops += count;
            bytes += count * flow.size.map_or(0.0, |size| size.0 as f64);
            is_known &= flow.size.is_some();
        }
        if is_known && iops > 0.0 {
            return Some(Bytes((bytes / iops).round() as u64));
        }
        let moved = match self.get(Part::Changed, Figure::Bytes) {
            Some(_) => self.sum(&[Part::Read, Part::Changed], Figure::Bytes),
            None => self.sum_of_all(Figure::Bytes),
        };
        mean_size(moved?, self.sum_of_all(Figure::Iops)?).map(|size| Bytes(size.round() as u64))
    }

    /// A figure of reads, writes and discards together.
    fn sum_of_all(&self, figure: Figure) -> Option<PrintedFigure> {
        self.sum(&[Part::Read, Part::Write, Part::Discard], figure)
            .or_else(|| self.sum(&[Part::All], figure))
    }

    /// The sum of a figure over those of some parts that are known.
    fn sum(&self, parts: &[Part], figure: Figure) -> Option<PrintedFigure> {
        let known = parts.iter().filter_map(|&part| {
            Some(PrintedFigure {
                value: self.get(part, figure)?,
                rounded: self.rounded[part as usize][figure as usize],
            })
        });
        known.reduce(|sum, one| PrintedFigure {
            value: sum.value + one.value,
            rounded: sum.rounded + one.rounded,
        })
    }
}

/// A figure, and its maximum rounding error.
#[derive(Clone, Copy)]
struct PrintedFigure {
    value: f64,
    rounded: f64,
}

/// Maximum relative error of a quotient of figures: 0.00 MB/s at 0.5 requests per second does not mean requests of zero
/// bytes.
const MAX_RELATIVE_ERROR: f64 = 0.1;

/// The mean size of requests in bytes; `None` if the figures are not precise enough.
fn mean_size(bytes: PrintedFigure, iops: PrintedFigure) -> Option<f64> {
    let is_precise = iops.value > 0.0
        && iops.rounded / iops.value + bytes.rounded / bytes.value.max(f64::MIN_POSITIVE)
            <= MAX_RELATIVE_ERROR;
    is_precise.then(|| bytes.value / iops.value)
}

#[cfg(test)]
mod tests {
    use super::super::number::number;
    use super::*;

    #[test]
    fn a_number_that_cannot_be_means_that_a_counter_went_back() {
        for text in [
            "18446744073709551615.00",
            "-3.20",
            "nan",
            "1000000000000000000000000000000",
        ] {
            let mut figures = Figures::default();
            figures.set(Column::by_name("r/s"), number("5.00").unwrap());
            figures.set(Column::by_name("rkB/s"), number(text).unwrap());
            assert!(figures.reset, "{text}");
        }
    }

    #[test]
    fn the_interval_follows_from_rates_and_amounts() {
        let mut figures = Figures::default();
        for (name, text) in [
            ("kB_read/s", "60.00"),
            ("kB_wrtn/s", "1928.00"),
            ("kB_read", "600"),
            ("kB_wrtn", "19280"),
        ] {
            figures.set(Column::by_name(name), number(text).unwrap());
        }
        assert_eq!(figures.seconds(), Some(10.0));
        assert_eq!(Figures::default().seconds(), None);
    }
}
