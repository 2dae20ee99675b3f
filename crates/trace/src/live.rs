//! Requests at their completion, for a live view of a host's disks.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use linux::Root;
use linux::block::{DeviceNumber, Devices};
use linux::tracefs::TracefsError;
use record::Nanos;

use crate::io::{DeviceIndex, Io, NameIndex, Op};
use crate::pair::Pairing;
use crate::tracepoints::{BufferSize, TracedDevice, Tracepoints, traced};

/// Maximum number of thread names kept.
const MAX_THREADS: usize = 65_536;

/// A request that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveCompletion {
    /// The device: a disk, an array or a volume.
    pub device: DeviceNumber,
    /// Operation of the request.
    pub op: Op,
    /// Time from issue to completion; on a device without requests, such as md and dm, from the queueing of the bio.
    pub time: Nanos,
    /// Thread that issued it.
    pub thread: Option<u32>,
}

/// Live capture of the requests of a host's devices.
pub struct Live {
    tracepoints: Tracepoints,
    pairing: Pairing,
    devices: Vec<DeviceNumber>,
    threads: HashMap<u32, Arc<str>>,
}

impl Live {
    /// A capture that traces nothing yet.
    ///
    /// # Errors
    /// When the kernel does not permit tracing.
    pub fn open(root: &Root) -> Result<Live, TracefsError> {
        Ok(Live {
            tracepoints: Tracepoints::open(root, BufferSize::ForRate(0.0))?,
            pairing: Pairing::by_completion(),
            devices: Vec::new(),
            threads: HashMap::new(),
        })
    }

    /// Traces from now on the devices of the host that `wanted` names; `None` for all devices.
    ///
    /// # Errors
    /// When the kernel rejects the filter.
    pub fn trace(
        &mut self,
        root: &Root,
        devices: &Devices,
        wanted: Option<&HashSet<DeviceNumber>>,
    ) -> Result<(), TracefsError> {
        let mut all = Vec::new();
        for device in devices.iter() {
            let whole = device.partition_of().unwrap_or(device.number);
            if wanted.is_some_and(|wanted| !wanted.contains(&whole)) {
                continue;
            }
            let Some(disk) = devices.get(whole) else {
                continue;
            };
            let known = self.devices.iter().position(|known| *known == whole);
            let index = known.unwrap_or_else(|| {
                self.devices.push(whole);
                self.devices.len() - 1
            });
            let index = DeviceIndex(index as u16);
            let traced = traced(root, disk);
            self.pairing.set_traced(index, traced);
            all.push(TracedDevice {
                number: device.number,
                index,
                traced,
            });
        }
        self.tracepoints.trace(&all, false)
    }

    /// Passes each request that completed since the last call to `each`.
    ///
    /// # Errors
    /// When the kernel's buffers cannot be read.
    pub fn poll(&mut self, mut each: impl FnMut(LiveCompletion)) -> io::Result<()> {
        let settled = Tracepoints::settled();
        let Live {
            tracepoints,
            threads,
            ..
        } = self;
        tracepoints.collect(|decoded| {
            let name = decoded.comm.as_deref()?;
            if threads.len() >= MAX_THREADS {
                threads.clear();
            }
            let known = threads.get(&decoded.thread);
            if known.is_none_or(|known| **known != *name) {
                threads.insert(decoded.thread, name.into());
            }
            Some(NameIndex(decoded.thread))
        })?;
        while self.tracepoints.pair(settled, &mut self.pairing) {
            while let Some(io) = self.pairing.pop() {
                if let Some(completed) = completed(&self.devices, &io) {
                    each(completed);
                }
            }
        }
        Ok(())
    }

    /// Name of a thread that issued a request.
    pub fn thread(&self, thread: u32) -> Option<Arc<str>> {
        self.threads.get(&thread).map(Arc::clone)
    }

    /// Number of events that the kernel has lost so far.
    pub fn lost(&self) -> u64 {
        self.tracepoints.lost()
    }
}

fn completed(devices: &[DeviceNumber], io: &Io) -> Option<LiveCompletion> {
    Some(LiveCompletion {
        device: *devices.get(usize::from(io.device.0))?,
        op: io.op,
        time: io.completed? - io.issued,
        thread: io.process.map(|NameIndex(thread)| thread),
    })
}
