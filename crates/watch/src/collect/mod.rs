//! The collector, which reads the kernel's counters and makes samples from the differences between readings.

mod arrays;
mod clock;
mod device_registry;
mod host;
mod processes;
mod processors;
mod rates;
mod requests;
#[cfg(test)]
mod tests;
mod vendor;

use std::time::Duration;

use linux::diskstats::AllCounters;
use linux::pulse::SizedReader;
use linux::tracefs::TracefsError;
use linux::{Root, machine};
use record::Nanos;
use record::sample::{DeviceSample, Sample, SampleSource, SourceKind};

use arrays::Arrays;
use clock::{ClockReading, Timeline};
use device_registry::{DeviceReading, DeviceRegistry};
use host::Host;
use requests::Requests;
use vendor::Vendor;

/// Minimum interval: some counters have a resolution of a millisecond.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Source of samples, from the kernel's counters.
pub(crate) struct Collector {
    root: Root,
    counters: AllCounters,
    sized: Option<SizedReader>,
    timeline: Timeline,
    registry: DeviceRegistry,
    arrays: Arrays,
    host: Host,
    vendor: Vendor,
    /// Tracer of requests, with the names of the devices to trace; empty for all.
    requests: Option<(Requests, Vec<String>)>,
    notes: Vec<String>,
}

impl Collector {
    /// Opens the counters of the host under `root`. `vendor_period` is the interval at which the volumes' own
    /// statistics are read, at most once a second.
    ///
    /// # Errors
    /// When the kernel does not show its counters.
    pub(crate) fn new(root: &Root, vendor_period: Duration) -> linux::Result<Collector> {
        let counters = AllCounters::open(root)?;
        let mut notes = Vec::new();
        Ok(Collector {
            root: root.clone(),
            counters,
            sized: SizedReader::open(root).ok(),
            timeline: Timeline::default(),
            registry: DeviceRegistry::new(root),
            arrays: Arrays::open(root),
            host: Host::open(root, &mut notes),
            vendor: Vendor::new(vendor_period.max(Duration::from_secs(1))),
            requests: None,
            notes,
        })
    }

    /// Traces the requests of the devices with these names and of those that they lie on, or of all devices where none
    /// is named.
    ///
    /// # Errors
    /// When the kernel refuses tracing.
    pub(crate) fn trace_requests(&mut self, names: &[String]) -> Result<(), TracefsError> {
        let requests = Requests::start(&self.root)?;
        self.requests = Some((requests, names.to_vec()));
        Ok(())
    }

    /// A sample of the time since the last call. `None` at the first call, and when no time has passed.
    ///
    /// # Errors
    /// When the counters cannot be read any more.
    pub(crate) fn sample(&mut self) -> linux::Result<Option<Sample>> {
        self.sample_at(ClockReading::now())
    }

    fn sample_at(&mut self, now: ClockReading) -> linux::Result<Option<Sample>> {
        let Some(interval) = self.timeline.advance(now, MIN_INTERVAL.into()) else {
            return Ok(None);
        };
        self.registry.begin(interval.at);
        let mut found = Vec::with_capacity(self.registry.len());
        for line in self.counters.read()? {
            found.push(self.registry.observe(&line));
        }
        let sized = self.sized.as_mut().and_then(|file| file.read().ok());
        let mut removed = self.registry.end_reading(sized.as_ref());
        let arrays_changed = self.arrays.poll();
        let is_due = self.registry.is_due(now.monotonic, arrays_changed);
        if is_due {
            self.registry.refresh(&self.root, &mut self.notes);
            self.arrays.refresh(&self.root, self.registry.devices());
            self.vendor
                .watch(&self.root, self.registry.devices_of_vendors());
        }
        removed.extend(self.registry.take_replaced());
        self.arrays
            .keep_fresh(now.monotonic, &self.root, self.registry.devices());
        let host = self.host.poll(interval.length, &mut self.notes);
        let seconds = interval.length.as_secs_f64();
        let mut devices: Vec<(u32, DeviceSample)> = found
            .iter()
            .filter_map(|seen| self.device(seen, seconds))
            .collect();
        devices.sort_by_key(|(rank, _)| *rank);
        let mut sample = Sample {
            at: interval.at,
            length: interval.length,
            gap: interval.gap,
            host,
            devices: devices.into_iter().map(|(_, sample)| sample).collect(),
            removed,
        };
        self.vendor.add_to(&mut sample.devices, &mut self.notes);
        if let Some((requests, names)) = &mut self.requests {
            let devices = self.registry.devices();
            let traced = match is_due {
                true => requests.trace(&self.root, devices, &sample, names),
                false => Ok(()),
            };
            if let Err(error) = traced {
                let note = format!("Requests of devices that came are not timed: {error}.");
                self.notes.push(note);
            }
            requests.add_to(&mut sample, &mut self.notes);
        }
        Ok((interval.length > Nanos(0)).then_some(sample))
    }

    fn device(&self, seen: &DeviceReading, seconds: f64) -> Option<(u32, DeviceSample)> {
        let (rank, device) = self.registry.device(seen)?;
        let mut sample = rates::sample(device, seen, seconds);
        sample.array = self.arrays.sample(&sample.device.name, &self.registry);
        Some((rank, sample))
    }

    /// Takes the notes on files that could not be read; each is returned once.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// True if statistics pages of volumes are read, which needs a capability each time.
    pub(crate) fn reads_vendor_pages(&self) -> bool {
        !self.registry.devices_of_vendors().is_empty()
    }

    /// Facts about the host as the source of samples.
    pub(crate) fn source(&self) -> SampleSource {
        let facts = machine::facts(&self.root, None, None);
        SampleSource {
            kind: SourceKind::Live,
            hostname: Some(facts.hostname).filter(|name| !name.is_empty()),
            kernel: Some(facts.kernel).filter(|kernel| !kernel.is_empty()),
            cpus: (facts.cores > 0).then_some(facts.cores),
        }
    }
}
