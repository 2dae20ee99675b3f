//! Collects the block layer's events from the kernel's tracepoints.

mod buffer;
mod decoder;

use std::collections::{HashMap, VecDeque};
use std::io;

use linux::Root;
use linux::block::{Device, DeviceNumber};
use linux::tracefs::{Instance, Readers, TracePage, Tracefs, TracefsError, now};
use record::{Bytes, Nanos};

use crate::event::Event;
use crate::io::{DeviceIndex, NameIndex};
use crate::order::Reorder;
use crate::pair::{IoLayer, Pairing};
pub(crate) use buffer::{BufferBounds, BufferSize, MAX_READ_INTERVAL, option_for};
use decoder::Decoder;
pub(crate) use decoder::{DecodedEvent, Tracepoint};

/// Time after which an event is certainly in its processor's buffer.
const BUFFER_DELAY: Nanos = Nanos(2_000_000);
/// Maximum length of a filter: the kernel accepts less than a page.
const MAX_FILTER_BYTES: usize = 4000;

/// A device whose events are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TracedDevice {
    /// Number of the device, or of a partition, whose bios carry the partition's number.
    pub(crate) number: DeviceNumber,
    pub(crate) index: DeviceIndex,
    pub(crate) traced: IoLayer,
}

/// Tracepoints of the block layer in an instance of their own.
pub(crate) struct Tracepoints {
    readers: Readers,
    // Declared after the readers: while they are open, the instance cannot be removed.
    instance: Instance,
    decoders: HashMap<u16, Decoder>,
    devices: HashMap<u32, (DeviceIndex, IoLayer)>,
    order: Reorder<Event>,
    buffer: Bytes,
    bounds: BufferBounds,
    lost: u64,
    /// Times up to which events were lost.
    gaps: VecDeque<Nanos>,
}

impl Tracepoints {
    /// An instance that traces nothing yet.
    ///
    /// The size of the buffers is set only here: while the kernel changes it, it records no events and does not count
    /// them as lost (since 6.1.68 and 6.7).
    pub(crate) fn open(root: &Root, buffer: BufferSize) -> Result<Tracepoints, TracefsError> {
        let instance = Instance::create(root, Tracefs::open(root)?)?;
        let readers = instance.readers()?;
        let bounds = BufferBounds::of(root, readers.processors());
        let buffer = buffer.bytes(bounds);
        instance.set_buffer(buffer.0.div_ceil(1024))?;
        let mut decoders = HashMap::new();
        for tracepoint in Tracepoint::ALL {
            let decoder = Decoder::new(&instance, tracepoint)?;
            decoders.insert(decoder.id, decoder);
        }
        Ok(Tracepoints {
            readers,
            instance,
            decoders,
            devices: HashMap::new(),
            order: Reorder::default(),
            buffer,
            bounds,
            lost: 0,
            gaps: VecDeque::new(),
        })
    }

    /// Traces these devices from now on; with `queue` also the queueing of their bios.
    pub(crate) fn trace(
        &mut self,
        wanted: &[TracedDevice],
        queue: bool,
    ) -> Result<(), TracefsError> {
        let of = |traced: IoLayer| {
            let wanted = wanted.iter().filter(move |one| one.traced == traced);
            filter(wanted.map(|one| one.number))
        };
        let queued = match queue {
            true => filter(wanted.iter().map(|one| one.number)),
            false => of(IoLayer::Bios),
        };
        self.devices = wanted
            .iter()
            .map(|one| (kernel_number(one.number), (one.index, one.traced)))
            .collect();
        // Completions are enabled first, so that every issue that is seen has its completion.
        for (tracepoint, filter) in [
            (Tracepoint::BioComplete, of(IoLayer::Bios)),
            (Tracepoint::Complete, of(IoLayer::Requests)),
            (Tracepoint::Requeue, of(IoLayer::Requests)),
            (Tracepoint::Issue, of(IoLayer::Requests)),
            (Tracepoint::Queue, queued),
        ] {
            match filter {
                Some(filter) => self.instance.enable(tracepoint.name(), &filter)?,
                None => self.instance.disable(tracepoint.name())?,
            }
        }
        Ok(())
    }

    /// Reads the available events; `process` returns the index of a process's name.
    pub(crate) fn collect(
        &mut self,
        mut process: impl FnMut(&DecodedEvent<'_>) -> Option<NameIndex>,
    ) -> io::Result<()> {
        let Tracepoints {
            readers,
            decoders,
            devices,
            order,
            ..
        } = self;
        // Events that arrive during this call are left for the next one: the call must end under any load.
        let began = now();
        let most = readers.read(|page| {
            let mut last = Nanos(0);
            for raw in TracePage::new(page).into_iter().flatten() {
                last = Nanos(raw.time);
                let id = raw.bytes.first_chunk().map(|id| u16::from_ne_bytes(*id));
                let Some(decoder) = id.and_then(|id| decoders.get(&id)) else {
                    continue;
                };
                let Some(decoded) = decoder.decode(raw) else {
                    continue;
                };
                let Some((device, traced)) = devices.get(&decoded.device) else {
                    continue;
                };
                // Without a filter, bios of devices with requests are reported too.
                if decoder.is_bio_completion() && *traced == IoLayer::Requests {
                    continue;
                }
                order.push(Event {
                    device: *device,
                    process: process(&decoded),
                    thread: Some(decoded.thread),
                    ..decoded.event
                });
            }
            last < began
        })?;
        // A buffer loses events when it is full. This read, or the next one, then takes half of it or more.
        if most >= self.buffer.0 / 2 {
            self.count_lost();
        }
        Ok(())
    }

    /// Updates the number of lost events. Reading the kernel's counters of all processors takes a while.
    pub(crate) fn count_lost(&mut self) {
        let lost = self.instance.losses().0;
        if lost > self.lost {
            self.lost = lost;
            self.gaps.push_back(now());
        }
    }

    /// Time before which all events are in their buffers, so that the next collection has them.
    pub(crate) fn settled() -> Nanos {
        now() - BUFFER_DELAY
    }

    /// Passes the next event up to this time to `pairing`; false if there is none.
    pub(crate) fn pair(&mut self, until: Nanos, pairing: &mut Pairing) -> bool {
        let next = self.order.peek().map(|event| event.time);
        let next = next.filter(|time| *time <= until);
        let before = next.unwrap_or(until);
        while self.gaps.front().is_some_and(|gap| *gap <= before) {
            self.gaps.pop_front();
            pairing.give_up();
        }
        pairing.advance(before);
        let event = next.and_then(|_| self.order.pop());
        if let Some(event) = event {
            pairing.push(event);
        }
        event.is_some()
    }

    /// Events that were collected, in any order.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Event> {
        self.order.iter()
    }

    /// Ends tracing; events in the buffers stay.
    pub(crate) fn stop(&self) -> io::Result<()> {
        self.instance.stop().map_err(io::Error::other)
    }

    /// Number of events that were lost, at the last count.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Size of each processor's buffer.
    pub(crate) fn buffer(&self) -> Bytes {
        self.buffer
    }

    /// Bounds of the buffer size.
    pub(crate) fn bounds(&self) -> BufferBounds {
        self.bounds
    }
}

/// Layer whose events report a device's I/O: devices without hardware queues, such as md and dm, take bios and have no
/// requests.
pub(crate) fn traced(root: &Root, device: &Device) -> IoLayer {
    let queues = root.sys.join("class/block").join(device.sysfs_name());
    match queues.join("mq").exists() {
        true => IoLayer::Requests,
        false => IoLayer::Bios,
    }
}

/// A device number in the kernel's encoding (MKDEV).
fn kernel_number(number: DeviceNumber) -> u32 {
    number.major << 20 | number.minor
}

/// A filter for these devices; `None` if there are none. If the filter would be too long for the kernel, it passes all
/// devices.
fn filter(devices: impl Iterator<Item = DeviceNumber>) -> Option<String> {
    let terms: Vec<String> = devices
        .map(|number| format!("dev == {}", kernel_number(number)))
        .collect();
    let filter = terms.join(" || ");
    match filter.len() {
        0 => None,
        1..MAX_FILTER_BYTES => Some(filter),
        // The kernel's word for no filter.
        _ => Some("0".to_owned()),
    }
}
