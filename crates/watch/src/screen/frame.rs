//! Samples in a compact form, so that many minutes of many devices can be kept to go back to.

use std::mem::size_of;
use std::sync::Arc;

use record::sample::{
    ArraySample, Device, DeviceId, DeviceSample, Flow, FlowKind, Gap, HostSample, LatencySample,
    Sample, SampleTime, VendorSample,
};
use record::{Bytes, Nanos};

/// Memory of a device's figures in bytes, with reference counts and the allocator's overhead.
const KEPT: usize = size_of::<DeviceFigures>() + 32;

/// A figure in four bytes; NaN where it is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactFigure(f32);

impl CompactFigure {
    fn of(value: Option<f64>) -> CompactFigure {
        CompactFigure(value.map_or(f32::NAN, |value| value as f32))
    }

    /// The figure, where it is known.
    pub(crate) fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then(|| f64::from(self.0))
    }

    /// True if the figure is known and above zero.
    fn is_positive(self) -> bool {
        self.0 > 0.0
    }
}

impl PartialEq for CompactFigure {
    /// Compares two figures. Two unknown figures are equal.
    fn eq(&self, other: &CompactFigure) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

/// Rates of the requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    /// Requests a second.
    pub iops: CompactFigure,
    /// Bytes a second.
    pub bytes: CompactFigure,
    /// Merges a second.
    pub merged: CompactFigure,
    /// Mean latency, in seconds.
    pub wait: CompactFigure,
    /// Mean size of a request, in bytes.
    pub size: CompactFigure,
}

impl Rates {
    fn of(flow: &Flow) -> Rates {
        Rates {
            iops: CompactFigure::of(flow.iops.map(|iops| iops.0)),
            bytes: CompactFigure::of(flow.bytes.map(|bytes| bytes.0)),
            merged: CompactFigure::of(flow.merged.map(|merged| merged.0)),
            wait: CompactFigure::of(flow.wait.map(Nanos::as_secs_f64)),
            size: CompactFigure::of(flow.size.map(|Bytes(size)| size as f64)),
        }
    }
}

/// A device in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DeviceFigures {
    /// Reads, writes, discards and flushes, in the order of [`FlowKind::ALL`].
    flows: [Rates; 4],
    /// Reads, writes and discards together.
    pub all: Rates,
    /// Requests in flight when the interval ended.
    pub in_flight: CompactFigure,
    /// Requests in flight on average.
    pub mean_in_flight: CompactFigure,
    /// Share of the time with requests in flight, from 0 to 1.
    pub busy: CompactFigure,
}

impl DeviceFigures {
    fn of(sample: &DeviceSample) -> DeviceFigures {
        DeviceFigures {
            flows: FlowKind::ALL.map(|kind| Rates::of(sample.flow(kind))),
            all: Rates::of(&sample.all),
            in_flight: CompactFigure::of(sample.in_flight.map(|count| count as f64)),
            mean_in_flight: CompactFigure::of(sample.mean_in_flight),
            busy: CompactFigure::of(sample.busy.map(|busy| busy.0)),
        }
    }

    /// The requests of one kind.
    pub(crate) fn flow(&self, kind: FlowKind) -> &Rates {
        let [read, write, discard, flush] = &self.flows;
        match kind {
            FlowKind::Read => read,
            FlowKind::Write => write,
            FlowKind::Discard => discard,
            FlowKind::Flush => flush,
        }
    }

    /// Requests in flight: at the end of the interval, or else on average.
    pub(crate) fn flight(&self) -> Option<f64> {
        self.in_flight.get().or(self.mean_in_flight.get())
    }

    /// True if the device completed requests, or has some in flight.
    pub(crate) fn is_active(&self) -> bool {
        let moves = |rates: &Rates| rates.iops.is_positive();
        moves(&self.all)
            || self.flows.iter().any(moves)
            || self.in_flight.is_positive()
            || self.mean_in_flight.is_positive()
    }
}

/// A device in an interval.
#[derive(Clone, Debug)]
pub(crate) struct DeviceRow {
    /// Device that the row shows.
    pub device: Arc<Device>,
    /// Figures of the device, shared with the previous frame where they are equal, as for an idle device.
    pub figures: Arc<DeviceFigures>,
    /// An array's own state.
    pub array: Option<Arc<ArraySample>>,
    /// The vendor's page.
    pub vendor: Option<Arc<VendorSample>>,
    /// Latencies of its requests, if they are traced.
    pub latency: Option<Arc<LatencySample>>,
}

/// A sample in the screen's compact form.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// End of the interval.
    pub at: SampleTime,
    /// Length of the interval.
    pub length: Nanos,
    /// Gap between this interval and the previous one.
    pub gap: Option<Gap>,
    /// The host's own figures.
    pub host: HostSample,
    /// The devices, in the order of the sample.
    pub rows: Vec<DeviceRow>,
    /// Memory of the frame in bytes, without parts that it shares with the previous frame.
    pub weight: usize,
}

impl Frame {
    /// The frame of a sample. Unchanged parts are shared with the previous frame.
    pub(crate) fn of(sample: &Sample, before: Option<&Frame>) -> Frame {
        let host = &sample.host;
        let mut weight = size_of::<Frame>()
            + size_of_val(host.interfaces.as_slice())
            + host
                .errors
                .iter()
                .map(|error| 96 + error.text.len())
                .sum::<usize>()
            + 192 * host.processes.len();
        let row = |(index, device): (usize, &DeviceSample)| {
            let id = device.device.id;
            let before = before.and_then(|frame| frame.rows.get(index));
            let before = before.filter(|row| row.device.id == id);
            let figures = DeviceFigures::of(device);
            let figures = match before.filter(|row| *row.figures == figures) {
                Some(row) => Arc::clone(&row.figures),
                None => {
                    weight += KEPT;
                    Arc::new(figures)
                }
            };
            let array = device.array.as_ref().map(|state| {
                let same = before.and_then(|row| row.array.as_ref());
                same.filter(|before| before.as_ref() == state)
                    .map_or_else(|| Arc::new(state.clone()), Arc::clone)
            });
            let vendor = device.vendor.clone().map(Arc::new);
            weight += size_of::<DeviceRow>();
            weight += vendor.as_ref().map_or(0, |page| page_weight(page));
            let latency = device.latency.clone();
            weight += latency.as_ref().map_or(0, |latency| latency.weight());
            weight += array.as_ref().map_or(0, |state| 128 * state.members.len());
            DeviceRow {
                device: Arc::clone(&device.device),
                figures,
                array,
                vendor,
                latency,
            }
        };
        let rows = sample.devices.iter().enumerate().map(row).collect();
        Frame {
            at: sample.at,
            length: sample.length,
            gap: sample.gap,
            host: host.clone(),
            rows,
            weight,
        }
    }

    /// The row of a device. `place` is its index in another frame, which is tried first.
    pub(crate) fn row(&self, id: DeviceId, place: usize) -> Option<&DeviceRow> {
        let is_it = |row: &&DeviceRow| row.device.id == id;
        let there = self.rows.get(place).filter(is_it);
        there.or_else(|| self.rows.iter().find(is_it))
    }
}

fn page_weight(page: &VendorSample) -> usize {
    size_of::<VendorSample>()
        + size_of_val(page.read_latency.as_slice())
        + size_of_val(page.write_latency.as_slice())
}

#[cfg(test)]
mod tests {
    use record::sample::PerSecond;

    use super::*;

    fn sample(iops: [f64; 2]) -> Sample {
        let device = |id: u32, iops: f64| {
            let device = Device::by_name(DeviceId(id), &format!("vd{id}"), SampleTime::default());
            let mut sample = DeviceSample::unknown(Arc::new(device));
            sample.read.iops = Some(PerSecond(iops));
            sample
        };
        Sample {
            devices: vec![device(0, iops[0]), device(1, iops[1])],
            ..Sample::default()
        }
    }

    #[test]
    fn equal_rows_are_kept_once() {
        let first = Frame::of(&sample([0.0, 5.0]), None);
        let second = Frame::of(&sample([0.0, 6.0]), Some(&first));
        assert!(Arc::ptr_eq(&first.rows[0].figures, &second.rows[0].figures));
        assert!(!Arc::ptr_eq(
            &first.rows[1].figures,
            &second.rows[1].figures
        ));
        assert_eq!(first.weight - second.weight, KEPT);
    }

    #[test]
    fn unknown_figures_stay_so_and_are_not_zero() {
        let frame = Frame::of(&sample([0.0, 5.0]), None);
        let figures = &frame.rows[0].figures;
        assert_eq!(figures.flow(FlowKind::Read).iops.get(), Some(0.0));
        assert_eq!(figures.flow(FlowKind::Write).iops.get(), None);
        assert!(!figures.is_active());
        assert!(frame.rows[1].figures.is_active());
    }

    #[test]
    fn a_device_is_found_wherever_it_stands() {
        let frame = Frame::of(&sample([0.0, 5.0]), None);
        for place in [0, 1, 7] {
            let found = frame.row(DeviceId(1), place).unwrap();
            assert_eq!(found.device.name, "vd1");
        }
        assert!(frame.row(DeviceId(2), 0).is_none());
    }
}
