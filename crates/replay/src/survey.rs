//! The first pass over a trace.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use record::{Bytes, OffsetMap, ReplayedTrace};
use trace::{DeviceIndex, Op, ReadError, WriteCache};

use crate::map::TouchedUnits;
use crate::source::{Opener, arrival};

/// Number of I/Os between two polls for an interrupt.
const POLL: u64 = 1 << 16;

/// A device of a trace.
#[derive(Clone, Debug)]
pub struct SurveyedDevice {
    /// Number of the device in the trace.
    pub index: DeviceIndex,
    /// Name of the device.
    pub name: String,
    /// Size of the device, if the trace has it.
    pub size: Option<Bytes>,
    /// Number of its I/Os.
    pub ios: u64,
    /// True if the trace writes to it.
    is_written: bool,
    /// Highest end offset of a read or a write.
    pub reach: Bytes,
    /// The parts that are read or written, if the offset map needs them.
    pub(crate) touched: Option<TouchedUnits>,
}

impl SurveyedDevice {
    /// Total bytes of the accessed parts.
    pub fn footprint(&self) -> Option<Bytes> {
        self.touched
            .as_ref()
            .map(|touched| Bytes(touched.footprint()))
    }
}

/// Properties of a trace, found in the first pass.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Description of the trace, for the replay's record.
    pub trace: ReplayedTrace,
    /// Devices with I/Os, in the order in which the trace names them.
    pub devices: Vec<SurveyedDevice>,
    /// Arrival of the first I/O.
    pub(crate) first: u64,
    /// Bytes of the longest read or write.
    pub(crate) longest: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes, flushes and discards.
    pub writes: u64,
    /// Number of discards.
    pub discards: u64,
}

/// Reads a trace once. If `device` is given, only its I/Os are counted.
///
/// # Errors
/// When the trace cannot be read.
pub fn survey(
    open: &Opener<'_>,
    path: &str,
    device: Option<&str>,
    map: OffsetMap,
    interrupt: &AtomicBool,
) -> Result<Survey, ReadError> {
    let mut reader = open()?;
    let mut survey = Survey {
        trace: ReplayedTrace::default(),
        devices: Vec::new(),
        first: u64::MAX,
        longest: 0,
        reads: 0,
        writes: 0,
        discards: 0,
    };
    let (mut last, mut seen) = (0, 0_u64);
    let mut has_written_names = false;
    // By device number in the trace: index in the list; `Some(None)` is a device that is not counted.
    let mut places: Vec<Option<Option<usize>>> = Vec::new();
    while let Some(io) = reader.next() {
        let io = io?;
        seen += 1;
        if seen.is_multiple_of(POLL) && interrupt.load(Relaxed) {
            break;
        }
        let index = usize::from(io.device.0);
        if places.len() <= index {
            places.resize(index + 1, None);
        }
        let place = *places[index].get_or_insert_with(|| {
            let known = reader.header().devices.get(index);
            let name = known.map_or_else(|| index.to_string(), |known| known.name.clone());
            let counts = device.is_none_or(|wanted| wanted == name);
            counts.then(|| {
                survey.devices.push(SurveyedDevice {
                    index: io.device,
                    name,
                    size: known.and_then(|known| known.size),
                    ios: 0,
                    is_written: false,
                    reach: Bytes(0),
                    touched: (map == OffsetMap::Compact).then(TouchedUnits::default),
                });
                survey.devices.len() - 1
            })
        });
        let Some(device) = place.and_then(|place| survey.devices.get_mut(place)) else {
            continue;
        };
        let came = arrival(&io);
        survey.first = survey.first.min(came);
        last = last.max(came);
        device.ios += 1;
        match io.op {
            Op::Read => survey.reads += 1,
            Op::Write | Op::Flush | Op::Discard => survey.writes += 1,
        }
        survey.discards += u64::from(io.op == Op::Discard);
        if io.op == Op::Write {
            device.is_written = true;
            has_written_names |= io.file.is_some();
        }
        if matches!(io.op, Op::Read | Op::Write) && io.length.0 > 0 {
            let end = io.offset.0.saturating_add(io.length.0);
            device.reach = device.reach.max(Bytes(end));
            survey.longest = survey.longest.max(io.length.0);
            if let Some(touched) = &mut device.touched {
                touched.add(io.offset.0, end);
            }
        }
    }
    let (header, caveats) = (reader.header(), reader.caveats());
    survey.devices.sort_by_key(|device| device.index);
    survey.first = survey.first.min(last);
    let is_through = |device: &SurveyedDevice| {
        let known = header.devices.get(usize::from(device.index.0));
        known.and_then(|known| known.write_cache) == Some(WriteCache::Through)
    };
    let mut written = survey.devices.iter().filter(|device| device.is_written);
    let has_written_through = written.any(is_through);
    survey.trace = ReplayedTrace {
        path: path.to_owned(),
        format: header.format.to_owned(),
        ios: survey.devices.iter().map(|device| device.ios).sum(),
        seconds: (last - survey.first) as f64 / 1e9,
        lost: caveats.lost,
        ambiguous: caveats.ambiguous,
        cut_off: caveats.cut_off,
        has_completions: header.has_completions,
        has_flushes: header.has_flushes,
        has_written_through,
        has_written_names,
    };
    Ok(survey)
}
