//! Captures requests from the kernel's tracepoints.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::tracefs::{CHECKED, TracefsError, now, read_directly};
use record::{Bytes, Nanos};

use super::target::Target;
use crate::args::RecordArgs;
use crate::event::{Event, RequestStep};
use crate::io::{Caveats, Described, Device, DeviceIndex, Io, NameIndex, Op};
use crate::names::Names;
use crate::pair::Pairing;
use crate::tracepoints::{BufferBounds, BufferSize, TracedDevice, Tracepoints};

/// Timeout of the test read.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reason why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum CaptureError {
    /// The kernel does not permit tracing.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// The buffers cannot be read.
    #[error("the kernel's trace buffers could not be read: {0}")]
    Read(#[from] io::Error),
    /// The device cannot be read.
    #[error("{0} could not be read to check the recorder: {1}")]
    Check(String, io::Error),
    /// The test read is not among the events.
    #[error(
        "a read of {0} was made, and no event is of it: the kernel gives this device another number in its events, \
         or none"
    )]
    Unseen(String),
}

/// Capture of the requests that the kernel reports.
pub(super) struct Capture {
    tracepoints: Tracepoints,
    pairing: Pairing,
    names: Names,
    with_names: bool,
    pids: Pids,
    begun: Nanos,
    /// Number of events that had been lost when the recording began.
    lost_before: u64,
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

impl Capture {
    /// Begins to trace, and verifies with a test read on each device that its events arrive.
    pub(super) fn start(
        root: &Root,
        targets: &[Target],
        args: &RecordArgs,
        buffer: BufferSize,
    ) -> Result<Capture, CaptureError> {
        let mut tracepoints = Tracepoints::open(root, buffer)?;
        let mut pairing = Pairing::default();
        let mut wanted = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            let index = DeviceIndex(index as u16);
            pairing.set_traced(index, target.traced);
            let numbers = target.partitions.iter().chain([&target.device.number]);
            wanted.extend(numbers.map(|number| TracedDevice {
                number: *number,
                index,
                traced: target.traced,
            }));
        }
        tracepoints.trace(&wanted, true)?;
        let mut capture = Capture {
            tracepoints,
            pairing,
            names: Names::default(),
            with_names: args.comm,
            pids: Pids {
                root: root.clone(),
                processes: args.pid.clone(),
                threads: HashSet::new(),
            },
            begun: Nanos(u64::MAX),
            lost_before: 0,
        };
        for (index, target) in targets.iter().enumerate() {
            capture.check(DeviceIndex(index as u16), target)?;
        }
        Ok(capture)
    }

    /// Reads a block of a device, and waits for the events of this read.
    fn check(&mut self, index: DeviceIndex, target: &Target) -> Result<(), CaptureError> {
        let node = target.device.node();
        let blocks = target.device.size.0 / CHECKED as u64;
        let offset = blocks / 3 * CHECKED as u64;
        let since = now();
        read_directly(&node, offset)
            .map_err(|error| CaptureError::Check(node.display().to_string(), error))?;
        let is_it = |event: &Event| {
            let is_done = matches!(event.step, RequestStep::Completed { .. });
            let is_it = event.device == index && event.op == Op::Read && event.time >= since;
            is_it && is_done && event.end() == offset + CHECKED as u64
        };
        let given_up = Instant::now() + TIMEOUT;
        loop {
            self.collect()?;
            if self.tracepoints.held().any(is_it) {
                return Ok(());
            }
            if Instant::now() > given_up {
                return Err(CaptureError::Unseen(node.display().to_string()));
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Sets the start of the trace to now.
    pub(super) fn begin(&mut self) {
        self.begun = now();
        self.tracepoints.count_lost();
        self.lost_before = self.tracepoints.lost();
    }

    /// Reads the available events, and pairs those whose order is certain.
    pub(super) fn poll(&mut self) -> io::Result<()> {
        let settled = Tracepoints::settled();
        self.collect()?;
        self.pair(settled);
        Ok(())
    }

    /// Ends tracing and pairs the rest.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.tracepoints.stop()?;
        self.collect()?;
        self.tracepoints.count_lost();
        self.pair(Nanos(u64::MAX));
        self.pairing.end();
        Ok(())
    }

    fn collect(&mut self) -> io::Result<()> {
        self.pids.refresh();
        let Capture {
            tracepoints,
            names,
            pids,
            with_names,
            ..
        } = self;
        tracepoints.collect(|decoded| {
            let of_them = pids.processes.is_empty() || pids.threads.contains(&decoded.thread);
            let named = (*with_names || !pids.processes.is_empty()) && of_them;
            let comm = decoded.comm.as_deref().filter(|_| named);
            comm.map(|comm| names.number(comm))
        })
    }

    fn pair(&mut self, settled: Nanos) {
        while self.tracepoints.pair(settled, &mut self.pairing) {}
    }

    /// The next complete request, with times since the recording began.
    pub(super) fn pop(&mut self) -> Option<Io> {
        loop {
            let io = self.pairing.pop()?;
            if io.issued < self.begun {
                // Requests of the test read, or from before the recording, do not make the trace ambiguous.
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
            lost: self.tracepoints.lost().saturating_sub(self.lost_before),
            ambiguous: self.pairing.ambiguous,
            ..Caveats::default()
        }
    }

    /// Size of each processor's buffer.
    pub(super) fn buffer(&self) -> Bytes {
        self.tracepoints.buffer()
    }

    /// Bounds of the buffer size.
    pub(super) fn bounds(&self) -> BufferBounds {
        self.tracepoints.bounds()
    }
}

/// Names of a recording's devices and files; the capture has the names of processes.
pub(super) struct RecordingNames {
    pub(super) devices: Vec<Device>,
    pub(super) names: Names,
}

/// First index of file names; those of process names are below.
const FILES: u32 = 1 << 24;

impl RecordingNames {
    pub(super) fn new(devices: Vec<Device>) -> RecordingNames {
        RecordingNames {
            devices,
            names: Names::default(),
        }
    }

    pub(super) fn with<'a>(&'a self, capture: &'a Capture) -> NamedBy<'a> {
        NamedBy(self, capture)
    }

    /// Index of a file's name.
    pub(super) fn file(&mut self, name: &str) -> NameIndex {
        NameIndex(self.names.number(name).0 + FILES)
    }
}

/// Names of files and of processes.
pub(super) struct NamedBy<'a>(&'a RecordingNames, &'a Capture);

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
