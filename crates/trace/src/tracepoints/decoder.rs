//! Decodes events of the block layer's tracepoints by the format descriptions of the kernel.

use record::{Bytes, Nanos};

use linux::tracefs::{EventFormat, Field, Instance, RawEvent, TracefsError};

use crate::event::{Event, RequestStep, of_rwbs};
use crate::io::{DeviceIndex, Op};

const SECTOR: u64 = 512;

/// A tracepoint of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracepoint {
    Queue,
    Issue,
    Requeue,
    Complete,
    BioComplete,
}

impl Tracepoint {
    pub(super) const ALL: [Tracepoint; 5] = [
        Tracepoint::Queue,
        Tracepoint::Issue,
        Tracepoint::Requeue,
        Tracepoint::Complete,
        Tracepoint::BioComplete,
    ];

    /// Name of the tracepoint below `events`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tracepoint::Queue => "block/block_bio_queue",
            Tracepoint::Issue => "block/block_rq_issue",
            Tracepoint::Requeue => "block/block_rq_requeue",
            Tracepoint::Complete => "block/block_rq_complete",
            Tracepoint::BioComplete => "block/block_bio_complete",
        }
    }
}

/// Decoder of a tracepoint's events.
#[derive(Debug)]
pub(super) struct Decoder {
    tracepoint: Tracepoint,
    pub(super) id: u16,
    pid: Field,
    device: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    error: Option<Field>,
    comm: Option<Field>,
}

/// A decoded event, whose device and process are not looked up yet.
#[derive(Debug)]
pub(crate) struct DecodedEvent<'a> {
    pub(crate) event: Event,
    /// Device number in the kernel's encoding (MKDEV).
    pub(crate) device: u32,
    pub(crate) thread: u32,
    pub(crate) comm: Option<std::borrow::Cow<'a, str>>,
}

impl Decoder {
    pub(super) fn new(
        instance: &Instance,
        tracepoint: Tracepoint,
    ) -> Result<Decoder, TracefsError> {
        let format = instance.format(tracepoint.name())?;
        Decoder::of(tracepoint, &format).ok_or_else(|| TracefsError::Format {
            path: tracepoint.name().into(),
            detail: "the event has no dev, sector, nr_sector or rwbs".to_owned(),
        })
    }

    fn of(tracepoint: Tracepoint, format: &EventFormat) -> Option<Decoder> {
        Some(Decoder {
            tracepoint,
            id: format.id,
            pid: format.field("common_pid")?,
            device: format.field("dev")?,
            sector: format.field("sector")?,
            sectors: format.field("nr_sector")?,
            rwbs: format.field("rwbs")?,
            error: format.field("error"),
            comm: format.field("comm"),
        })
    }

    /// True for the completion of a bio, which is a part of a request if the device has requests.
    pub(super) fn is_bio_completion(&self) -> bool {
        self.tracepoint == Tracepoint::BioComplete
    }

    /// Decodes an event; `None` if its request transfers no user data.
    pub(super) fn decode<'a>(&self, raw: RawEvent<'a>) -> Option<DecodedEvent<'a>> {
        let bytes = raw.bytes;
        let length = Bytes(self.sectors.number(bytes)?.saturating_mul(SECTOR));
        let rwbs = self.rwbs.text(bytes)?;
        let kind = of_rwbs(&rwbs, length)?;
        let sector = self.sector.number(bytes)?;
        // Pass-through commands have no sector. Neither has the kernel's own flush request.
        if sector == u64::MAX && kind.op != Op::Flush {
            return None;
        }
        let failed = self
            .error
            .and_then(|error| error.number(bytes))
            .is_some_and(|error| error != 0);
        Some(DecodedEvent {
            event: Event {
                time: Nanos(raw.time),
                device: DeviceIndex(0),
                step: match self.tracepoint {
                    Tracepoint::Queue => RequestStep::Queued,
                    Tracepoint::Issue => RequestStep::Issued,
                    Tracepoint::Requeue => RequestStep::Requeued,
                    Tracepoint::Complete | Tracepoint::BioComplete => {
                        RequestStep::Completed { failed }
                    }
                },
                op: kind.op,
                fua: kind.fua,
                flush_first: kind.flush_first,
                marked_write: kind.marked_write,
                offset: Bytes(sector.saturating_mul(SECTOR)),
                length,
                process: None,
                thread: None,
            },
            device: self.device.number(bytes)? as u32,
            thread: self.pid.number(bytes)? as u32,
            comm: self.comm.and_then(|comm| comm.text(bytes)),
        })
    }
}

#[cfg(test)]
mod tests;
