//! The last frames, as many as a limit on memory allows.

use std::collections::VecDeque;
use std::sync::Arc;

use record::Nanos;
use record::sample::{DeviceId, FlowKind};

use super::frame::{DeviceRow, Frame};

/// Memory that frames may always use, in bytes: about ten minutes of 64 busy disks at one frame a second.
const ROOM: usize = 6 << 20;
/// Span of frames that are kept beyond [`ROOM`], for the sparklines of more disks.
const SPAN: Nanos = Nanos::from_secs(120);
/// Maximum memory of frames, in bytes, except for the last [`MIN_FRAMES`].
const MAX_BYTES: usize = 48 << 20;
/// Minimum number of frames, however large they are.
const MIN_FRAMES: usize = 4;

/// Frames in order of time. Each has a constant number, counted from 0.
#[derive(Debug, Default)]
pub(crate) struct History {
    frames: VecDeque<Arc<Frame>>,
    first: u64,
    weight: usize,
}

impl History {
    /// Adds a frame, and drops old ones.
    pub(crate) fn push(&mut self, frame: Arc<Frame>) {
        self.weight += frame.weight;
        self.frames.push_back(frame);
        while self.is_too_heavy() {
            if let Some(gone) = self.frames.pop_front() {
                self.weight -= gone.weight;
                self.first += 1;
            }
        }
    }

    fn is_too_heavy(&self) -> bool {
        let (Some(first), Some(last)) = (self.frames.front(), self.frames.back()) else {
            return false;
        };
        let is_old = last.at.elapsed - first.at.elapsed > SPAN;
        self.frames.len() > MIN_FRAMES && self.weight > if is_old { ROOM } else { MAX_BYTES }
    }

    /// The frame with this number.
    pub(crate) fn get(&self, number: u64) -> Option<&Arc<Frame>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.frames.get(index)
    }

    /// The number of the oldest frame.
    pub(crate) fn oldest(&self) -> Option<u64> {
        (!self.frames.is_empty()).then_some(self.first)
    }

    /// The number of the newest frame.
    pub(crate) fn newest(&self) -> Option<u64> {
        Some(self.oldest()? + self.frames.len() as u64 - 1)
    }

    /// The number of the last frame that ended by this time, or else of the oldest.
    pub(crate) fn at(&self, time: Nanos) -> Option<u64> {
        let before = self
            .frames
            .partition_point(|frame| frame.at.elapsed <= time);
        Some(self.oldest()? + before.saturating_sub(1) as u64)
    }

    /// The frames up to a number, the newest first, that ended within `span` before it.
    pub(crate) fn back(&self, number: u64, span: Nanos) -> impl Iterator<Item = &Arc<Frame>> {
        let end = self.get(number).map_or(Nanos(0), |frame| frame.at.elapsed);
        let count = number
            .checked_sub(self.first)
            .map_or(0, |before| before as usize + 1);
        let frames = self.frames.iter().take(count).rev();
        frames.take_while(move |frame| frame.at.elapsed + span > end)
    }

    /// Means of a figure of a device over the last `span`, in `count` parts of equal length, the oldest first; `None`
    /// for parts without a known value. The parts begin at multiples of their length, so that a sparkline moves
    /// steadily instead of flickering.
    pub(crate) fn trace(
        &self,
        (id, place): (DeviceId, usize),
        number: u64,
        span: Nanos,
        count: usize,
        figure: impl Fn(&DeviceRow) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0.0); count];
        let Some(last) = self.get(number).filter(|_| count > 0) else {
            return vec![None; count];
        };
        let (begin, part) = parts(last, span, count);
        for frame in self.back(number, span + frame_slack(part)) {
            let Some(value) = frame.row(id, place).and_then(&figure) else {
                continue;
            };
            let until = frame.at.elapsed.as_secs_f64() - begin;
            let from = until - frame.length.as_secs_f64();
            let first = (from / part).floor().max(0.0) as usize;
            for (index, sum) in sums.iter_mut().enumerate().skip(first) {
                let start = index as f64 * part;
                let overlap = (until.min(start + part) - from.max(start)).max(0.0);
                if start >= until {
                    break;
                }
                sum.0 += value * overlap;
                sum.1 += overlap;
            }
        }
        // A part of which very little is known would flicker.
        let mean = |(sum, time): (f64, f64)| (time > part / 1000.0).then(|| sum / time);
        sums.into_iter().map(mean).collect()
    }

    /// Index of the part of a [`trace`](History::trace) that contains the time `before` the frame with this number.
    pub(crate) fn part(
        &self,
        number: u64,
        span: Nanos,
        count: usize,
        before: Nanos,
    ) -> Option<usize> {
        let last = self.get(number).filter(|_| count > 0)?;
        let (begin, part) = parts(last, span, count);
        let place = (last.at.elapsed.as_secs_f64() - before.as_secs_f64() - begin) / part;
        (place >= 0.0).then_some((place as usize).min(count - 1))
    }

    /// Mean latency of a device's requests of one kind over the last `span`, in seconds, and their number a second.
    pub(crate) fn wait(
        &self,
        (id, place): (DeviceId, usize),
        number: u64,
        span: Nanos,
        kind: FlowKind,
    ) -> Option<(f64, f64)> {
        let (mut ops, mut waited, mut seconds) = (0.0, 0.0, 0.0);
        for frame in self.back(number, span) {
            let length = frame.length.as_secs_f64();
            let Some(row) = frame.row(id, place) else {
                continue;
            };
            let rates = row.figures.flow(kind);
            seconds += length;
            if let (Some(iops), Some(wait)) = (rates.iops.get(), rates.wait.get()) {
                ops += iops * length;
                waited += iops * length * wait;
            }
        }
        (ops > 0.0 && seconds > 0.0).then(|| (waited / ops, ops / seconds))
    }
}

/// Start of the first of `count` parts of a span up to a frame, and length of a part, in seconds. The parts begin at
/// multiples of their length.
fn parts(last: &Frame, span: Nanos, count: usize) -> (f64, f64) {
    let part = span.as_secs_f64() / count as f64;
    let end = (last.at.elapsed.as_secs_f64() / part).ceil() * part;
    (end - span.as_secs_f64(), part)
}

/// Time before the span at which a part may begin.
fn frame_slack(part: f64) -> Nanos {
    Nanos((part * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use record::sample::{Device, DeviceSample, PerSecond, Sample, SampleTime};

    use super::*;

    fn frame(second: u64, iops: f64) -> Arc<Frame> {
        let device = Device::by_name(DeviceId(0), "vda", SampleTime::default());
        let mut device = DeviceSample::unknown(Arc::new(device));
        device.all.iops = Some(PerSecond(iops));
        device.read.iops = Some(PerSecond(iops));
        device.read.wait = Some(Nanos(1_000_000 * second));
        let sample = Sample {
            at: SampleTime {
                wall: None,
                elapsed: Nanos::from_secs(second),
            },
            length: Nanos::from_secs(1),
            devices: vec![device],
            ..Sample::default()
        };
        Arc::new(Frame::of(&sample, None))
    }

    fn iops(row: &DeviceRow) -> Option<f64> {
        row.figures.all.iops.get()
    }

    fn history(seconds: impl Iterator<Item = u64>) -> History {
        let mut history = History::default();
        seconds.for_each(|second| history.push(frame(second, second as f64)));
        history
    }

    /// History of many frames, one a second, of this weight in bytes.
    fn kept(weight: usize) -> History {
        let mut history = History::default();
        for second in 1..=1000 {
            let mut heavy = Frame::clone(&frame(second, 1.0));
            heavy.weight = weight;
            history.push(Arc::new(heavy));
        }
        history
    }

    #[test]
    fn a_bound_on_memory_holds_and_numbers_stay() {
        let history = kept(MAX_BYTES / 10);
        assert_eq!((history.oldest(), history.newest()), (Some(990), Some(999)));
        assert!(history.get(989).is_none());
        assert_eq!(history.get(999).unwrap().at.elapsed, Nanos::from_secs(1000));
    }

    #[test]
    fn two_minutes_are_kept_also_of_many_disks() {
        assert_eq!(kept(ROOM / 500).oldest(), Some(500));
        assert_eq!(kept(ROOM / 100).oldest(), Some(999 - 120));
        assert_eq!(kept(MAX_BYTES).oldest(), Some(1000 - MIN_FRAMES as u64));
    }

    #[test]
    fn a_time_is_found() {
        let history = history(1..=10);
        assert_eq!(history.at(Nanos::from_secs(4)), Some(3));
        assert_eq!(history.at(Nanos(4_900_000_000)), Some(3));
        assert_eq!(history.at(Nanos(0)), Some(0));
        assert_eq!(history.at(Nanos::from_secs(99)), Some(9));
        assert_eq!(History::default().at(Nanos(0)), None);
    }

    #[test]
    fn a_trace_has_means_in_parts_and_nothing_where_nothing_is_known() {
        let history = history((1..=4).chain(7..=8));
        let trace = history.trace((DeviceId(0), 0), 5, Nanos::from_secs(8), 4, iops);
        assert_eq!(trace, [Some(1.5), Some(3.5), None, Some(7.5)]);
        let past = history.trace((DeviceId(0), 0), 3, Nanos::from_secs(4), 4, iops);
        assert_eq!(past, [1.0, 2.0, 3.0, 4.0].map(Some));
        let none = history.trace((DeviceId(9), 0), 5, Nanos::from_secs(8), 2, iops);
        assert_eq!(none, [None, None]);
    }

    #[test]
    fn an_interval_fills_all_the_parts_that_it_lasts() {
        let mut history = History::default();
        let mut long = Frame::clone(&frame(10, 3.0));
        long.length = Nanos::from_secs(10);
        history.push(Arc::new(long));
        let trace = history.trace((DeviceId(0), 0), 0, Nanos::from_secs(20), 4, iops);
        assert_eq!(trace, [None, None, Some(3.0), Some(3.0)]);
    }

    #[test]
    fn a_wait_is_that_of_the_requests_and_not_of_the_seconds() {
        let mut history = History::default();
        history.push(frame(1, 1.0));
        history.push(frame(2, 3.0));
        let span = Nanos::from_secs(10);
        let (wait, iops) = history
            .wait((DeviceId(0), 0), 1, span, FlowKind::Read)
            .unwrap();
        assert!((wait - 0.00175).abs() < 1e-6, "{wait}");
        assert!((iops - 2.0).abs() < 1e-6, "{iops}");
        assert!(
            history
                .wait((DeviceId(0), 0), 1, span, FlowKind::Write)
                .is_none()
        );
    }
}
