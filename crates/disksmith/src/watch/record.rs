//! Keeps what is seen in the ledger, on a thread of its own: the ledger may lie on the very disk that
//! is in trouble, and the watch should not wait with it.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use ledger::{Keep, Ledger, Noted, Recording};
use record::Nanos;
use record::sample::{Moment, Sample, Source};
use study::watch::{Change, ChangeKind};

use crate::cli::RecordArgs;
use crate::context::Context;
use crate::failure::{Failure, Standing as _};
use crate::longwork::Here;

/// A kill loses what was seen since the last batch: this, and an interval.
const BATCH: Nanos = Nanos::from_secs(5);
/// So many batches wait for a ledger whose disk hangs: five minutes. Then the newest are lost.
const MOST_WAITING: usize = 60;
/// What is old is thinned out so often.
const THIN_EVERY: Duration = Duration::from_secs(600);
/// Less room than this does not hold an hour of a few disks.
const LEAST: record::Bytes = record::Bytes::mib(4);
/// Where the machine's id is.
const ETC: &str = "/etc";

/// What is seen, on its way into the ledger.
pub(super) struct Recorder {
    batches: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
    said: Arc<Said>,
    batch: Batch,
    /// When each event was found.
    found: HashMap<u64, Moment>,
    begun: Moment,
    is_losing: bool,
}

/// What becomes one row of the ledger.
#[derive(Default)]
struct Batch {
    samples: Vec<Sample>,
    events: Vec<Noted>,
}

/// Sentences from the thread that writes.
#[derive(Default)]
struct Said(Mutex<VecDeque<String>>);

impl Said {
    fn say(&self, sentence: String) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_back(sentence);
    }

    fn take(&self) -> Vec<String> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.drain(..).collect()
    }
}

impl Recorder {
    /// Begins to record, where that is asked for. A ledger that cannot be written is said, and
    /// nothing is recorded: who watches, wants to see.
    ///
    /// # Errors
    /// When another process records this host there, or the file is no ledger.
    pub(super) fn start(
        args: &RecordArgs,
        source: &Source,
        context: &Context,
    ) -> Result<Option<Recorder>, Failure> {
        if !args.record {
            return Ok(None);
        }
        let mut keep = Keep::default();
        if let Some(limit) = args.record_limit {
            keep.limit = limit.0;
        }
        if keep.limit < LEAST {
            return Err(Failure::refused(format!(
                "--record-limit {} is too little room for a recording; give it {LEAST} or more",
                keep.limit
            )));
        }
        let here = Here::of_process(&context.root, Path::new(ETC)).refused()?;
        let path = context.ledger_path()?;
        let begun = Ledger::open(path).and_then(|mut ledger| {
            let standing = |owner: &ledger::Owner| here.standing(owner);
            let recording = ledger.begin_recording(here.owner(), source, standing)?;
            Ok((ledger, recording))
        });
        let (ledger, recording) = match begun {
            Ok(begun) => begun,
            Err(error) if is_of_the_disk(&error) => {
                context.tell(&format!("Nothing is recorded: {error}."));
                return Ok(None);
            }
            Err(error) => return Err(error).refused(),
        };
        let said = Arc::new(Said::default());
        let (batches, arriving) = sync_channel(MOST_WAITING);
        let writer = Writer {
            ledger,
            recording,
            keep,
            said: Arc::clone(&said),
            failing: false,
        };
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || writer.write_all(&arriving))
            .context("no thread could be started for the recording")
            .refused()?;
        Ok(Some(Recorder {
            batches: Some(batches),
            thread: Some(thread),
            said,
            batch: Batch::default(),
            found: HashMap::new(),
            begun: Moment::default(),
            is_losing: false,
        }))
    }

    /// Takes a sample, and what was found in it.
    pub(super) fn see(&mut self, sample: &Sample, changes: &[Change]) {
        for change in changes {
            let id = change.event.id;
            let found = *self.found.entry(id).or_insert(sample.at);
            if change.kind == ChangeKind::Closed {
                self.found.remove(&id);
            }
            self.batch.events.push(Noted {
                event: change.event.clone(),
                found,
            });
        }
        self.batch.samples.push(sample.clone());
        if sample.at.elapsed - self.begun.elapsed >= BATCH {
            self.begun = sample.at;
            self.hand_over();
        }
    }

    /// What went wrong since it was last asked.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        self.said.take()
    }

    fn hand_over(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let Some(batches) = &self.batches else {
            return;
        };
        match batches.try_send(batch) {
            Ok(()) => self.is_losing = false,
            // Events are few, and are kept until there is room.
            Err(TrySendError::Full(lost) | TrySendError::Disconnected(lost)) => {
                self.batch.events = lost.events;
                if !self.is_losing {
                    self.said.say(
                        "The ledger's disk has not answered for minutes: what is seen now is not \
                         recorded until it does."
                            .to_owned(),
                    );
                }
                self.is_losing = true;
            }
        }
    }
}

impl Drop for Recorder {
    /// Keeps what is left and waits until it is written, however the watch ends.
    fn drop(&mut self) {
        self.hand_over();
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // What it has to say of a panic, it has said.
            let _ = thread.join();
        }
        for sentence in self.said.take() {
            crate::context::tell(&sentence);
        }
    }
}

/// Whether the ledger is in order, and only cannot be written just now.
fn is_of_the_disk(error: &ledger::Error) -> bool {
    use ledger::Error::{Busy, Full, ReadOnly, Sqlite, Unreachable, Unsettled};
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

/// The thread's part.
struct Writer {
    ledger: Ledger,
    recording: Recording,
    keep: Keep,
    said: Arc<Said>,
    /// Whether the last batch could not be written.
    failing: bool,
}

impl Writer {
    fn write_all(mut self, arriving: &Receiver<Batch>) {
        self.thin_out();
        let mut thinned = Instant::now();
        // What a failure has left of the events: they must not be lost with their batch.
        let mut events: Vec<Noted> = Vec::new();
        for batch in arriving {
            events.extend(batch.events);
            let written = self
                .ledger
                .record(&mut self.recording, batch.samples, &events);
            self.judge(&written);
            if written.is_ok() {
                events.clear();
            }
            if thinned.elapsed() >= THIN_EVERY {
                self.thin_out();
                thinned = Instant::now();
            }
        }
        let ended = self.ledger.end_recording(&self.recording);
        self.judge(&ended);
    }

    fn thin_out(&mut self) {
        let thinned = self.ledger.thin_out(&self.keep, Timestamp::now());
        self.judge(&thinned);
    }

    /// Says a failure once, and when it is over.
    fn judge(&mut self, outcome: &ledger::Result<()>) {
        match outcome {
            Err(error) if !self.failing => {
                self.failing = true;
                self.said.say(format!(
                    "What is seen is not recorded just now: {error}. Watching goes on, and \
                     recording as soon as it can."
                ));
            }
            Ok(()) if self.failing => {
                self.failing = false;
                self.said.say("Recording goes on.".to_owned());
            }
            _ => {}
        }
    }
}
