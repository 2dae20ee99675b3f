//! Latencies of single requests, and the I/O of each process. A separate thread reads the kernel's events between two
//! samples, so that the kernel's buffers can be small.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linux::Root;
use linux::block::{DeviceNumber, Devices};
use linux::tracefs::{TracefsError, thread_cpu_time};
use record::sample::{FlowKind, LatencySample, Sample, TracingSample};
use record::{Histogram, Nanos};
use trace::Op;
use trace::live::{Live, LiveCompletion};

use super::processes::Processes;

/// Interval between polls of the kernel's buffers.
const INTERVAL: Duration = Duration::from_millis(50);

/// Tracer of the requests of the watched devices.
pub(super) struct Requests {
    taken: Arc<Mutex<IntervalRequests>>,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
    processes: Processes,
    /// Number of events that were lost before this interval.
    lost: u64,
}

/// Requests since the last sample.
struct IntervalRequests {
    live: Live,
    times: HashMap<DeviceNumber, [Histogram; 4]>,
    /// Number of requests by the thread that issued them.
    threads: HashMap<u32, u64>,
    requests: u64,
    cpu: Nanos,
    failed: Option<io::Error>,
}

impl IntervalRequests {
    /// Reads the events that have arrived.
    fn poll(&mut self) {
        if self.failed.is_some() {
            return;
        }
        let began = thread_cpu_time();
        let IntervalRequests {
            live,
            times,
            threads,
            requests,
            ..
        } = self;
        let polled = live.poll(|completed: LiveCompletion| {
            let kinds = times.entry(completed.device).or_default();
            if let Some(kind) = kinds.get_mut(place(completed.op)) {
                kind.record(completed.time.0);
            }
            if let Some(thread) = completed.thread {
                *threads.entry(thread).or_default() += 1;
            }
            *requests += 1;
        });
        self.failed = polled.err();
        self.cpu += thread_cpu_time() - began;
    }
}

/// Index of an operation in [`FlowKind::ALL`].
fn place(op: Op) -> usize {
    let kind = match op {
        Op::Read => FlowKind::Read,
        Op::Write => FlowKind::Write,
        Op::Discard => FlowKind::Discard,
        Op::Flush => FlowKind::Flush,
    };
    let mut all = FlowKind::ALL.iter();
    all.position(|one| *one == kind).unwrap_or(0)
}

impl Requests {
    /// Starts the tracing. [`trace`](Requests::trace) sets the devices.
    pub(super) fn start(root: &Root) -> Result<Requests, TracefsError> {
        let taken = Arc::new(Mutex::new(IntervalRequests {
            live: Live::open(root)?,
            times: HashMap::new(),
            threads: HashMap::new(),
            requests: 0,
            cpu: Nanos(0),
            failed: None,
        }));
        let (end, ended) = channel();
        let shared = Arc::clone(&taken);
        let thread = thread::Builder::new().name("requests".to_owned());
        // Without a thread, events are read only at each sample.
        let thread = thread.spawn(move || take_over(&shared, &ended)).ok();
        Ok(Requests {
            taken,
            thread: thread.map(|thread| (end, thread)),
            processes: Processes::new(root),
            lost: 0,
        })
    }

    fn taken(&self) -> MutexGuard<'_, IntervalRequests> {
        // After a panic of the holder, the counts are valid but incomplete.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the devices to trace: those with these names and those that they lie on, or all where none is named.
    pub(super) fn trace(
        &self,
        root: &Root,
        devices: &Devices,
        sample: &Sample,
        names: &[String],
    ) -> Result<(), TracefsError> {
        let ids = sample.wanted(names);
        let named = sample.devices.iter();
        let named = named.filter(|one| ids.contains(&one.device.id));
        let numbers: HashSet<DeviceNumber> = named.filter_map(|one| one.device.number).collect();
        let wanted = (!names.is_empty()).then_some(&numbers);
        self.taken().live.trace(root, devices, wanted)
    }

    /// Adds the requests since the last sample to a sample.
    pub(super) fn add_to(&mut self, sample: &mut Sample, notes: &mut Vec<String>) {
        let shared = Arc::clone(&self.taken);
        let mut taken = shared.lock().unwrap_or_else(PoisonError::into_inner);
        taken.poll();
        if let Some(error) = taken.failed.take() {
            notes.push(format!(
                "The kernel's trace buffers could not be read ({error}); some requests are missing."
            ));
        }
        for device in &mut sample.devices {
            let number = device.device.number;
            let times = number.and_then(|number| taken.times.get_mut(&number));
            let times = times.filter(|kinds| kinds.iter().any(|kind| !kind.is_empty()));
            if let Some(times) = times {
                device.latency = Some(Arc::new(LatencySample::of(times)));
                times.iter_mut().for_each(Histogram::clear);
            }
        }
        let began = thread_cpu_time();
        let threads = std::mem::take(&mut taken.threads);
        let name = |thread: u32| taken.live.thread(thread);
        let (processes, over) = self.processes.poll(threads, sample.at.elapsed, name);
        sample.host.processes = processes;
        let lost = taken.live.lost();
        sample.host.tracing = Some(TracingSample {
            cpu: std::mem::take(&mut taken.cpu) + (thread_cpu_time() - began),
            requests: std::mem::take(&mut taken.requests),
            lost: lost.saturating_sub(self.lost),
            over,
        });
        self.lost = lost;
    }
}

impl Drop for Requests {
    /// Ends the thread, and with it the kernel's tracing instance.
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

fn take_over(taken: &Mutex<IntervalRequests>, ended: &Receiver<()>) {
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        taken.lock().unwrap_or_else(PoisonError::into_inner).poll();
    }
}
