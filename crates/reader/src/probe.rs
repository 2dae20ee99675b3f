//! Probes: single direct reads of a device, at random offsets and times, like those of a database.
//!
//! The device is opened only for the duration of a read, so that an array can be stopped. The times are random because
//! md's check proceeds in steps: probes at equal intervals would always hit the same part of a step.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use record::Bytes;
use record::random::SplitMix64;
use rustix::fs::OFlags;

/// Bytes that a probe reads: a page, the minimum read of databases.
pub const PROBE_BYTES: u32 = 4096;
/// [`PROBE_BYTES`] as the length of a buffer.
const LENGTH: usize = PROBE_BYTES as usize;
/// Interval at which the need for probes is polled.
const POLL: Duration = Duration::from_millis(20);

/// Results of probes since the last poll.
#[derive(Debug, Default)]
struct ProbeResults {
    took: Vec<f64>,
    /// Start of the outstanding probe.
    waits: Option<Instant>,
}

#[derive(Debug)]
struct Shared {
    /// Mean time between two probes, in microseconds; zero for no probes.
    gap_us: AtomicU64,
    over: AtomicBool,
    shown: Mutex<ProbeResults>,
}

/// Probes of an interval.
#[derive(Debug, Default)]
pub struct Probes {
    /// Latencies of completed probes, in seconds.
    pub latencies_s: Vec<f64>,
    /// Time for which an outstanding probe has waited, in seconds.
    pub waiting_s: f64,
}

impl Probes {
    /// Bytes of completed probes.
    pub fn completed_bytes(&self) -> u64 {
        self.latencies_s.len() as u64 * u64::from(PROBE_BYTES)
    }

    /// Bytes of the outstanding probe.
    pub fn in_flight_bytes(&self) -> u64 {
        match self.waiting_s > 0.0 {
            true => u64::from(PROBE_BYTES),
            false => 0,
        }
    }
}

/// Probes a device on a thread of its own, which ends when this is dropped, unless a probe hangs.
#[derive(Debug)]
pub struct Prober {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    /// Starts a prober that does not probe yet.
    ///
    /// # Errors
    /// When the thread cannot be created.
    pub fn start(node: PathBuf, size: Bytes) -> std::io::Result<Prober> {
        let shared = Arc::new(Shared {
            gap_us: AtomicU64::new(0),
            over: AtomicBool::new(false),
            shown: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || own.run(&node, size))?;
        Ok(Prober {
            shared,
            thread: Some(thread),
        })
    }

    /// Sets the mean time between two probes, in seconds; `None` for no probes.
    pub fn set_gap(&self, gap_s: Option<f64>) {
        let gap_us = gap_s.map_or(0, |gap_s| ((gap_s * 1e6) as u64).max(1));
        self.shared.gap_us.store(gap_us, Relaxed);
    }

    /// The probes since the last call.
    pub fn take(&self) -> Probes {
        let mut shown = self.shared.shown();
        let waits = shown
            .waits
            .map_or(0.0, |since| since.elapsed().as_secs_f64());
        Probes {
            latencies_s: std::mem::take(&mut shown.took),
            waiting_s: waits,
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.shared.over.store(true, Relaxed);
        let is_stuck = self
            .shared
            .shown()
            .waits
            .is_some_and(|since| since.elapsed() > POLL * 50);
        if let Some(thread) = self.thread.take()
            && !is_stuck
        {
            // The thread returns no result.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn shown(&self) -> MutexGuard<'_, ProbeResults> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, node: &PathBuf, size: Bytes) {
        let seed = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut random = SplitMix64::new(seed.as_nanos() as u64);
        let places = (size.0 / u64::from(PROBE_BYTES)).max(1);
        let mut space = vec![0_u8; 2 * LENGTH];
        let start = space.as_ptr().align_offset(LENGTH);

        while !self.over.load(Relaxed) {
            let gap_us = self.gap_us.load(Relaxed);
            if gap_us == 0 {
                sleep(POLL);
                continue;
            }
            // From half the mean time to one and a half times.
            sleep(Duration::from_micros(gap_us / 2 + random.below(gap_us)));
            let Some(buffer) = space.get_mut(start..start + LENGTH) else {
                return;
            };
            let opened = File::options()
                .read(true)
                .custom_flags(OFlags::DIRECT.bits() as i32)
                .open(node);
            // An array that is being stopped is not an error.
            let Ok(file) = opened else { continue };
            let began = Instant::now();
            self.shown().waits = Some(began);
            let read = std::os::unix::fs::FileExt::read_at(
                &file,
                buffer,
                random.below(places) * u64::from(PROBE_BYTES),
            );
            let mut shown = self.shown();
            shown.waits = None;
            // An unreadable block is not reported here: md's check finds it.
            if read.is_ok() {
                shown.took.push(began.elapsed().as_secs_f64());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_probes_when_it_is_wanted_and_ends_with_its_owner() {
        // A file stands in for an array; not every file system has direct I/O.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = folder.path().join("array");
        std::fs::write(&file, vec![7_u8; 1 << 20]).unwrap();
        let direct = File::options()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(&file);
        let prober = Prober::start(file, Bytes::mib(1)).unwrap();
        sleep(Duration::from_millis(100));
        assert_eq!(prober.take().latencies_s.len(), 0);
        prober.set_gap(Some(0.01));
        if direct.is_err() {
            return;
        }
        let (mut seen, began) = (0, Instant::now());
        while seen <= 3 {
            assert!(began.elapsed() < Duration::from_secs(600), "{seen}");
            sleep(Duration::from_millis(50));
            seen += prober.take().latencies_s.len();
        }
    }
}
