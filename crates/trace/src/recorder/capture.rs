//! Capture of requests from the kernel's tracepoints.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::block::DevNum;
use linux::tracefs::{CHECKED, Instance, Page, Readers, Tracefs, TracefsError, now, read_directly};
use record::{Bytes, Nanos};

use super::decoder::{Decoder, Tracepoint};
use super::target::Target;
use crate::args::RecordArgs;
use crate::event::{Event, Step};
use crate::io::{Caveats, Described, Device, DeviceIndex, Io, NameIndex, Op};
use crate::names::Names;
use crate::order::Reorder;
use crate::pair::{Pairing, Traced};

/// Size of a processor's buffer at first, and at most. It grows while events come faster than they are read.
const SMALLEST_BUFFER: Bytes = Bytes::mib(4);
const LARGEST_BUFFER: Bytes = Bytes::mib(64);
/// Time after which an event of any processor is surely in its buffer.
const SETTLED: Nanos = Nanos(2_000_000);
/// Time that the read of the check may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reason for which nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum CaptureError {
    /// The kernel does not let us trace.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// The buffers cannot be read.
    #[error("the kernel's trace buffers could not be read: {0}")]
    Read(#[from] io::Error),
    /// The device cannot be read.
    #[error("{0} could not be read to check the recorder: {1}")]
    Check(String, io::Error),
    /// A request that was made is not among the events.
    #[error(
        "a read of {0} was made, and no event tells of it: the kernel gives this device another number in its events, \
         or none"
    )]
    Unseen(String),
}

/// Requests as the kernel tells them.
pub(super) struct Capture {
    readers: Readers,
    // Behind the readers, which keep it from being removed.
    instance: Instance,
    decoders: HashMap<u16, Decoder>,
    devices: HashMap<u32, DeviceIndex>,
    order: Reorder<Event>,
    pairing: Pairing,
    names: Names,
    with_names: bool,
    pids: Pids,
    buffer: Bytes,
    begun: Nanos,
    /// Events that had been lost when the recording began.
    lost_before: u64,
    lost: u64,
}

/// Threads of the processes whose I/O is recorded.
struct Pids {
    root: Root,
    processes: Vec<u32>,
    threads: HashSet<u32>,
}

impl Pids {
    fn refresh(&mut self) {
        for process in &self.processes {
            self.threads.insert(*process);
            let tasks = self.root.proc.join(process.to_string()).join("task");
            for task in fs::read_dir(tasks).into_iter().flatten().flatten() {
                let name = task.file_name();
                let thread = name.to_str().and_then(|name| name.parse::<u32>().ok());
                self.threads.extend(thread);
            }
        }
    }
}

/// The kernel's own form of a device's number (MKDEV).
fn kernel_number(number: DevNum) -> u32 {
    number.major << 20 | number.minor
}

/// A filter that lets these devices through.
fn filter(devices: impl Iterator<Item = DevNum>) -> Option<String> {
    let terms: Vec<String> = devices
        .map(|number| format!("dev == {}", kernel_number(number)))
        .collect();
    (!terms.is_empty()).then(|| terms.join(" || "))
}

impl Capture {
    /// Begins to trace, and checks by a read of each device that its events come.
    pub(super) fn start(
        root: &Root,
        targets: &[Target],
        args: &RecordArgs,
    ) -> Result<Capture, CaptureError> {
        let instance = Instance::create(root, Tracefs::open(root)?)?;
        let buffer = args.buffer.map_or(SMALLEST_BUFFER, |size| size.0);
        instance.set_buffer(buffer.0.div_ceil(1024))?;
        let mut devices = HashMap::new();
        let mut pairing = Pairing::default();
        for (index, target) in targets.iter().enumerate() {
            let index = DeviceIndex(index as u16);
            pairing.set_traced(index, target.traced);
            let numbers = target.partitions.iter().chain([&target.device.number]);
            devices.extend(numbers.map(|number| (kernel_number(*number), index)));
        }
        let decoders = enable(&instance, targets)?;
        let mut capture = Capture {
            readers: instance.readers()?,
            instance,
            decoders,
            devices,
            order: Reorder::default(),
            pairing,
            names: Names::default(),
            with_names: args.comm,
            pids: Pids {
                root: root.clone(),
                processes: args.pid.clone(),
                threads: HashSet::new(),
            },
            buffer,
            begun: Nanos(u64::MAX),
            lost_before: 0,
            lost: 0,
        };
        for (index, target) in targets.iter().enumerate() {
            capture.check(DeviceIndex(index as u16), target)?;
        }
        Ok(capture)
    }

    /// Reads a block of a device and waits for the events of that.
    fn check(&mut self, index: DeviceIndex, target: &Target) -> Result<(), CaptureError> {
        let node = target.device.node();
        let blocks = target.device.size.0 / CHECKED as u64;
        let offset = blocks / 3 * CHECKED as u64;
        let since = now();
        read_directly(&node, offset)
            .map_err(|error| CaptureError::Check(node.display().to_string(), error))?;
        let is_it = |event: &Event| {
            let is_done = matches!(event.step, Step::Completed { .. });
            let is_it = event.device == index && event.op == Op::Read && event.time >= since;
            is_it && is_done && event.offset.0 == offset
        };
        let given_up = Instant::now() + PATIENCE;
        loop {
            self.collect()?;
            if self.order.iter().any(is_it) {
                return Ok(());
            }
            if Instant::now() > given_up {
                return Err(CaptureError::Unseen(node.display().to_string()));
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// The trace begins now.
    pub(super) fn begin(&mut self) {
        self.begun = now();
        self.lost_before = self.instance.losses().0;
    }

    /// Takes over the events that are there, and pairs those that are settled.
    pub(super) fn poll(&mut self) -> io::Result<()> {
        let settled = now() - SETTLED;
        self.collect()?;
        self.pair(settled);
        Ok(())
    }

    /// Ends tracing and pairs the rest.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.instance.stop().map_err(io::Error::other)?;
        self.collect()?;
        self.pair(Nanos(u64::MAX));
        self.pairing.end();
        Ok(())
    }

    fn collect(&mut self) -> io::Result<()> {
        self.pids.refresh();
        let Capture {
            readers,
            decoders,
            devices,
            order,
            names,
            pids,
            ..
        } = self;
        let with_names = self.with_names;
        let pages = readers.read(|page| {
            for raw in Page::new(page).into_iter().flatten() {
                let id = raw.bytes.first_chunk().map(|id| u16::from_ne_bytes(*id));
                let decoder = id.and_then(|id| decoders.get(&id));
                let Some(decoded) = decoder.and_then(|decoder| decoder.decode(raw)) else {
                    continue;
                };
                let Some(device) = devices.get(&decoded.device) else {
                    continue;
                };
                let of_them = pids.processes.is_empty() || pids.threads.contains(&decoded.thread);
                let named = (with_names || !pids.processes.is_empty()) && of_them;
                let comm = decoded.comm.filter(|_| named);
                order.push(Event {
                    device: *device,
                    process: comm.map(|comm| names.number(&comm)),
                    ..decoded.event
                });
            }
        })?;
        self.follow_the_rate(pages);
        self.lost = self.instance.losses().0;
        Ok(())
    }

    /// Doubles the buffers where a quarter of one was full.
    fn follow_the_rate(&mut self, pages: usize) {
        let read = (pages as u64).saturating_mul(4096);
        if read > self.buffer.0 / 4 && self.buffer < LARGEST_BUFFER {
            let doubled = Bytes(self.buffer.0 * 2);
            if self.instance.set_buffer(doubled.0.div_ceil(1024)).is_ok() {
                self.buffer = doubled;
            }
        }
    }

    fn pair(&mut self, settled: Nanos) {
        while self.order.peek().is_some_and(|event| event.time <= settled) {
            if let Some(event) = self.order.pop() {
                self.pairing.push(event);
            }
        }
    }

    /// The next request that is complete, with times since the recording began.
    pub(super) fn pop(&mut self) -> Option<Io> {
        loop {
            let io = self.pairing.pop()?;
            if io.issued < self.begun {
                // Of the check, or of before: what these left behind is no fault of the trace.
                self.pairing.ambiguous = 0;
                continue;
            }
            if !self.pids.processes.is_empty() && io.process.is_none() {
                continue;
            }
            let since = |time: Nanos| time - self.begun;
            return Some(Io {
                queued: io.queued.map(since),
                issued: since(io.issued),
                completed: io.completed.map(since),
                ..io
            });
        }
    }

    pub(super) fn caveats(&self) -> Caveats {
        Caveats {
            lost: self.lost.saturating_sub(self.lost_before),
            ambiguous: self.pairing.ambiguous,
            ..Caveats::default()
        }
    }

    /// Size of each processor's buffer.
    pub(super) fn buffer(&self) -> Bytes {
        self.buffer
    }
}

/// Lets the kernel tell the events of the devices.
fn enable(instance: &Instance, targets: &[Target]) -> Result<HashMap<u16, Decoder>, CaptureError> {
    let of = |traced: Traced| {
        let targets = targets.iter().filter(move |target| target.traced == traced);
        targets.map(|target| target.device.number)
    };
    let own = targets.iter().map(|target| target.device.number);
    let partitions = targets
        .iter()
        .flat_map(|target| target.partitions.iter().copied());
    let requests = filter(of(Traced::Requests));
    let mut decoders = HashMap::new();
    // Completions come first, so that no issue is seen whose completion is not.
    for (tracepoint, filter) in [
        (Tracepoint::BioComplete, filter(of(Traced::Bios))),
        (Tracepoint::Complete, requests.clone()),
        (Tracepoint::Requeue, requests.clone()),
        (Tracepoint::Issue, requests),
        (Tracepoint::Queue, filter(own.chain(partitions))),
    ] {
        if let Some(filter) = filter {
            let decoder = Decoder::new(instance, tracepoint)?;
            decoders.insert(decoder.id, decoder);
            instance.enable(tracepoint.name(), &filter)?;
        }
    }
    Ok(decoders)
}

/// Names of a recording: of processes by the capture, of files by itself.
pub(super) struct Named {
    pub(super) devices: Vec<Device>,
    pub(super) names: Names,
}

/// Numbers of files' names begin here; those of processes' are below.
const FILES: u32 = 1 << 24;

impl Named {
    pub(super) fn new(devices: Vec<Device>) -> Named {
        Named {
            devices,
            names: Names::default(),
        }
    }

    pub(super) fn with<'a>(&'a self, capture: &'a Capture) -> NamedBy<'a> {
        NamedBy(self, capture)
    }

    /// Number of a file's name.
    pub(super) fn file(&mut self, name: &str) -> NameIndex {
        NameIndex(self.names.number(name).0 + FILES)
    }
}

/// Names of both.
pub(super) struct NamedBy<'a>(&'a Named, &'a Capture);

impl Described for NamedBy<'_> {
    fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    fn name(&self, index: NameIndex) -> Option<&str> {
        match index.0.checked_sub(FILES) {
            Some(file) => self.0.names.name(NameIndex(file)),
            None => self.1.names.name(index),
        }
    }
}
