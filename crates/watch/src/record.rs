//! Recording of samples and events in the ledger, on a separate thread: the ledger may lie on a disk that hangs, and
//! the watch must not wait for it.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SendError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use ledger::{Error, Ledger, Mark, RecordedEvent, Recording, Retention};
use record::Nanos;
use record::sample::{Sample, SampleSource, SampleTime};
use study::watch::{ChangeKind, EventChange};

use crate::args_record::RecordArgs;
use job::process::ProcessIdentity;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

use super::marks::RECENT_AGE;
use super::report::with_hosts;

/// Length of a batch. A kill loses the samples since the last batch: at most this time and an interval.
const BATCH: Nanos = Nanos::from_secs(5);
/// Maximum number of batches that wait for a ledger whose disk hangs: five minutes. Further ones are lost.
const MAX_PENDING_SAMPLES: usize = 60;
/// Maximum length of the samples that wait for a ledger that responds but cannot be written.
const MAX_PENDING_TIME: Nanos = Nanos::from_secs(300);
/// Maximum wait of a watch for a ledger that does not respond.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which old data is thinned out.
const THIN_EVERY: Duration = Duration::from_secs(600);
/// Minimum of the size limit of recordings: less does not hold an hour of a few disks.
const MIN_SIZE_LIMIT: record::Bytes = record::Bytes::mib(4);
/// Folder of the machine's id.
const ETC: &str = "/etc";

/// Limits of a recording, if one is requested.
///
/// # Errors
/// Refused where they leave no room.
pub(super) fn keep(args: &RecordArgs) -> Result<Option<Retention>, Failure> {
    if !args.record {
        return Ok(None);
    }
    let mut keep = Retention::default();
    if let Some(limit) = args.record_limit {
        keep.limit = limit.0;
    }
    if keep.limit < MIN_SIZE_LIMIT {
        return Err(Failure::refused(format!(
            "--record-limit {} is too little room for a recording; give it {MIN_SIZE_LIMIT} or more",
            keep.limit
        )));
    }
    Ok(Some(keep))
}

/// Recorder of samples and events in the ledger.
pub(super) struct Recorder {
    batches: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
    notices: Arc<Notices>,
    batch: Batch,
    /// Time at which each event was found.
    found: HashMap<u64, SampleTime>,
    begun: SampleTime,
    is_losing: bool,
}

/// Data of one row of the ledger.
#[derive(Default)]
struct Batch {
    samples: Vec<Sample>,
    events: Vec<RecordedEvent>,
}

/// Messages from the thread that writes, and whether its last write succeeded.
#[derive(Default)]
struct Notices {
    sentences: Mutex<VecDeque<String>>,
    is_writing: AtomicBool,
    /// Recent marks of the ledger.
    marks: Mutex<Vec<Mark>>,
}

impl Notices {
    fn add(&self, sentence: String) {
        let mut notices = self
            .sentences
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        notices.push_back(sentence);
    }

    fn take(&self) -> Vec<String> {
        let mut notices = self
            .sentences
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        notices.drain(..).collect()
    }
}

impl Recorder {
    /// Begins to record, if that is requested. A ledger that cannot be written now is reported, and tried again with
    /// each batch; the watch continues.
    ///
    /// # Errors
    /// When another process records this host there, or the file is not a ledger.
    pub(super) fn start(
        keep: Option<Retention>,
        source: &SampleSource,
        context: &Context,
    ) -> Result<Option<Recorder>, Failure> {
        let Some(keep) = keep else {
            return Ok(None);
        };
        let notices = Arc::new(Notices::default());
        let writer = Writer {
            path: context.ledger_path()?,
            identity: ProcessIdentity::of_process(&context.root, Path::new(ETC)).refused()?,
            source: source.clone(),
            open: None,
            keep,
            notices: Arc::clone(&notices),
            failing: false,
            waiting: Batch::default(),
        };
        let (batches, arriving) = sync_channel(MAX_PENDING_SAMPLES);
        // Without a buffer: a successful send means that the result was received, and an error that nobody waits for
        // it.
        let (begun, first) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || writer.work(&arriving, &begun))
            .context("no thread could be started for the recording")
            .refused()?;
        match first.recv_timeout(TIMEOUT) {
            Ok(begun) => begun.refused()?,
            Err(_) => notices.add(
                "The ledger does not respond yet: recording begins when it does, and samples wait \
                 in memory until then."
                    .to_owned(),
            ),
        }
        Ok(Some(Recorder {
            batches: Some(batches),
            thread: Some(thread),
            notices,
            batch: Batch::default(),
            found: HashMap::new(),
            begun: SampleTime::default(),
            is_losing: false,
        }))
    }

    /// Adds a sample and the changes of findings in it.
    pub(super) fn observe(&mut self, sample: &Sample, changes: &[EventChange]) {
        for change in changes {
            let id = change.event.id;
            let found = *self.found.entry(id).or_insert(sample.at);
            if change.kind == ChangeKind::Closed {
                self.found.remove(&id);
            }
            self.batch.events.push(RecordedEvent {
                event: change.event.clone(),
                found,
            });
        }
        self.batch.samples.push(sample.clone());
        if is_over(sample.at.elapsed - self.begun.elapsed, sample.length) {
            self.begun = sample.at;
            self.hand_over();
        }
    }

    /// True if samples are being recorded, as far as that is known.
    pub(super) fn is_writing(&self) -> bool {
        self.notices.is_writing.load(Relaxed) && !self.is_losing
    }

    /// The recent marks, as of the last batch.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let marks = self.notices.marks.lock();
        marks.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Errors since the last call.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        self.notices.take()
    }

    fn hand_over(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let Some(batches) = &self.batches else {
            return;
        };
        match batches.try_send(batch) {
            Ok(()) => self.is_losing = false,
            // The thread has ended, and has reported why.
            Err(TrySendError::Disconnected(_)) => {}
            // Events are few, and are kept until the queue has room.
            Err(TrySendError::Full(lost)) => {
                self.batch.events = lost.events;
                if !self.is_losing {
                    self.notices.add(
                        "The ledger's disk has not responded for minutes: samples are not recorded \
                         until it does."
                            .to_owned(),
                    );
                }
                self.is_losing = true;
            }
        }
    }
}

impl Drop for Recorder {
    /// Sends the remaining data and waits until they are written, however the watch ends.
    fn drop(&mut self) {
        self.hand_over();
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported by its own hook.
            let _ = thread.join();
        }
        for sentence in self.notices.take() {
            ui::context::notice(&sentence);
        }
    }
}

/// True if the ledger is valid, and only cannot be written at the moment.
fn is_of_the_disk(error: &ledger::Error) -> bool {
    use Error::{Busy, Full, ReadOnly, Sqlite, Unreachable, Unsettled};
    matches!(
        error,
        Busy { .. }
            | Full { .. }
            | ReadOnly { .. }
            | Sqlite { .. }
            | Unreachable { .. }
            | Unsettled { .. }
    )
}

/// State of the thread that writes.
struct Writer {
    path: PathBuf,
    identity: ProcessIdentity,
    source: SampleSource,
    /// Ledger and recording; `None` until the ledger was opened and the recording begun.
    open: Option<(Ledger, Recording)>,
    keep: Retention,
    notices: Arc<Notices>,
    /// True if the ledger could not be written at the last try.
    failing: bool,
    /// Data that is not written yet.
    waiting: Batch,
}

impl Writer {
    /// Writes batches as they arrive, until the channel is closed. `begun` receives the result of the first write.
    fn work(mut self, arriving: &Receiver<Batch>, begun: &SyncSender<ledger::Result<()>>) {
        let first = self.write();
        let is_hopeless = first.is_err();
        match begun.send(first) {
            Ok(()) if is_hopeless => return,
            Ok(()) => {}
            // The caller no longer waits for the result.
            Err(SendError(Err(error))) => return self.report_the_end(&error),
            Err(SendError(Ok(()))) if self.open.is_some() => {
                self.notices
                    .add("The ledger answers; recording has begun.".to_owned());
            }
            Err(SendError(Ok(()))) => {}
        }
        self.thin_out();
        let mut thinned = Instant::now();
        for batch in arriving {
            self.wait_with(batch);
            if let Err(error) = self.write() {
                return self.report_the_end(&error);
            }
            if thinned.elapsed() >= THIN_EVERY {
                self.thin_out();
                thinned = Instant::now();
            }
        }
        self.end();
    }

    /// Adds a batch to the waiting data. Where these are already five minutes long, the batch's samples are dropped and
    /// its events are kept: events are few, and their ends would be missed.
    fn wait_with(&mut self, batch: Batch) {
        self.waiting.events.extend(batch.events);
        let lengths = self.waiting.samples.iter().map(|one| one.length);
        if lengths.fold(Nanos(0), |a, b| a + b) < MAX_PENDING_TIME {
            self.waiting.samples.extend(batch.samples);
        }
    }

    /// Writes the waiting data, after beginning the recording if that was not possible before. Data that could not be
    /// written keep waiting.
    ///
    /// # Errors
    /// Permanent errors: another process records this host, or the file is not a ledger.
    fn write(&mut self) -> ledger::Result<()> {
        let written = match self.try_to_write() {
            Err(Error::NoSuchRecording { .. }) => {
                self.open = None;
                self.notices.add(
                    "The recording was removed from the ledger; samples from now on go into another one."
                        .to_owned(),
                );
                self.try_to_write()
            }
            written => written,
        };
        match written {
            Err(error) if !is_of_the_disk(&error) => Err(error),
            written => {
                self.report_outcome(&written);
                Ok(())
            }
        }
    }

    fn try_to_write(&mut self) -> ledger::Result<()> {
        let (ledger, recording) = match &mut self.open {
            Some(open) => open,
            none => {
                let mut ledger = Ledger::open(self.path.clone())?;
                let liveness = |owner: &ledger::Owner| self.identity.liveness(owner);
                let recording =
                    ledger.begin_recording(self.identity.owner(), &self.source, liveness)?;
                none.insert((ledger, recording))
            }
        };
        if self.waiting.samples.is_empty() && self.waiting.events.is_empty() {
            return Ok(());
        }
        ledger.record(recording, &self.waiting.samples, &self.waiting.events)?;
        self.waiting = Batch::default();
        // Where they cannot be read, other notices report why.
        let now = Timestamp::now();
        if let Ok(marks) = ledger.marks(now - RECENT_AGE, Timestamp::MAX) {
            let marks = with_hosts(marks, &self.identity.owner().host);
            *self
                .notices
                .marks
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = marks;
        }
        Ok(())
    }

    fn thin_out(&self) {
        if let Some((ledger, _)) = &self.open {
            // It is repeated later; if the ledger cannot be written at all, the next batch reports it.
            let _ = ledger.thin_out(&self.keep, Timestamp::now());
        }
    }

    /// Ends the recording, and reports lost samples.
    fn end(mut self) {
        if !self.waiting.samples.is_empty() {
            self.notices.add(format!(
                "The last samples are not recorded: {} of them.",
                self.waiting.samples.len()
            ));
        }
        if let Some((ledger, recording)) = &mut self.open {
            let ended = ledger.end_recording(recording);
            if let Err(error) = ended
                && !self.failing
            {
                self.notices.add(format!(
                    "All samples are recorded, but not the end of the recording: {error}."
                ));
            }
        }
    }

    /// Reports why nothing more is recorded.
    fn report_the_end(&self, error: &Error) {
        self.notices.is_writing.store(false, Relaxed);
        self.notices.add(format!("Nothing is recorded: {error}."));
    }

    /// Reports the first failure, and the end of the failures.
    fn report_outcome(&mut self, outcome: &ledger::Result<()>) {
        self.notices.is_writing.store(outcome.is_ok(), Relaxed);
        match outcome {
            Err(error) if !self.failing => {
                self.failing = true;
                self.notices.add(format!(
                    "Nothing is recorded at the moment: {error}. Watching continues; recording \
                     resumes as soon as possible."
                ));
            }
            Ok(()) if self.failing => {
                self.failing = false;
                self.notices.add("Recording goes on.".to_owned());
            }
            _ => {}
        }
    }
}

/// True if a batch that lasted this long, with intervals of this length, is handed over. A batch ends at the interval
/// nearest to [`BATCH`], so that one which ends slightly early does not delay it: batches then have equally many
/// samples, which compress well. The tolerance is slightly more than half an interval, since two and a half intervals
/// of 2 s are exactly a batch.
fn is_over(lasted: Nanos, interval: Nanos) -> bool {
    lasted + Nanos(interval.0 * 9 / 16) >= BATCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_alike_though_no_interval_is_exact() {
        let ms = 1_000_000;
        for (interval, count) in [(100, 50), (1000, 5), (1428, 3), (2000, 2), (3333, 1)] {
            for early in [-10_i64, 0, 10] {
                let lasted = |count: i64| Nanos(((count * interval - early) * ms) as u64);
                let interval = Nanos((interval * ms) as u64);
                let first = (1..).find(|&count| is_over(lasted(count), interval));
                assert_eq!(first, Some(count), "{interval} {early}");
            }
        }
    }
}
