//! A check that what was written is what is read: writes are made so that each can be judged by itself, and are
//! read back after some of them or at the end. A job that only reads judges what it finds.

mod block;
mod history;

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use record::{Verified, Verify, Workload};
use rustix::io::{Errno, pread};

use crate::buffers::Buffers;
use crate::places::in_file;
use block::Layout;
use history::{History, Written};

pub(crate) use block::HEADER;

/// More threads than this do not read back faster.
const READERS: usize = 16;

/// The check of a phase, which all of its workers share.
pub(crate) struct Verifier<'a> {
    files: &'a [&'a File],
    layout: Layout,
    rules: Verify,
    /// A job that only reads judges all that it reads.
    judges_reads: bool,
    largest: usize,
    readers: usize,
    history: Mutex<History>,
    result: Mutex<Verified>,
}

impl<'a> Verifier<'a> {
    /// The check that `workload` asks for, of its `files`.
    pub(crate) fn of(workload: &Workload, files: &'a [&'a File]) -> Option<Verifier<'a>> {
        let rules = workload.details.as_ref()?.verify.clone()?;
        Some(Verifier {
            files,
            layout: Layout::of(&rules),
            judges_reads: !workload.writes(),
            largest: workload.largest_block().0 as usize,
            readers: (workload.in_flight() as usize).clamp(1, READERS),
            rules,
            history: Mutex::default(),
            result: Mutex::default(),
        })
    }

    /// A write goes out with `data`, which is made to be judged by.
    pub(crate) fn writes(&self, place: u64, data: &mut [u8]) {
        let keeps = self.rules.reads_back || self.rules.backlog > 0;
        let number = self.history().issue(place, data.len() as u64, keeps);
        self.layout.fill(data, place, number);
    }

    /// A write came back.
    pub(crate) fn wrote(&self, place: u64) {
        self.history().came_back(place, self.rules.backlog > 0);
    }

    /// A write failed, and is not read back.
    pub(crate) fn failed(&self, place: u64) {
        self.history().failed(place);
    }

    /// True if what is read is judged.
    pub(crate) fn judges_reads(&self) -> bool {
        self.judges_reads
    }

    /// Judges what was read at `place`.
    pub(crate) fn read(&self, place: u64, data: &[u8]) {
        let judged = self.layout.judge(data, place, None);
        self.count(place, judged.map_err(|difference| difference.to_string()));
    }

    /// Number of writes after which they are read back; 0 never.
    pub(crate) fn backlog(&self) -> u32 {
        self.rules.backlog
    }

    /// Reads back what was written since the last time.
    pub(crate) fn read_pending(&self, interrupt: &AtomicBool) {
        let pending = self.history().take_pending();
        self.read_back(&pending, interrupt);
    }

    /// Reads back all that was written, where the job asks for it. Nothing is in flight any more.
    pub(crate) fn read_all(&self, interrupt: &AtomicBool) {
        if self.rules.reads_back && !self.judges_reads && !self.is_fatal() {
            let all = self.history().all();
            self.read_back(&all, interrupt);
        }
    }

    /// True if a failure ends the phase, and there was one.
    pub(crate) fn is_fatal(&self) -> bool {
        self.rules.fatal && self.result().failed > 0
    }

    /// All that was found.
    pub(crate) fn verified(&self) -> Verified {
        Verified {
            unjudged: self.history().unjudged,
            ..self.result().clone()
        }
    }

    fn read_back(&self, writes: &[Written], interrupt: &AtomicBool) {
        let next = AtomicUsize::new(0);
        let reader = || {
            let mut buffers = match Buffers::one_each(self.largest, 1) {
                Ok(buffers) => buffers,
                Err(error) => {
                    self.count(
                        0,
                        Err(format!("there is no memory to read it back: {error}")),
                    );
                    return;
                }
            };
            while let Some(write) = writes.get(next.fetch_add(1, Relaxed)) {
                if interrupt.load(Relaxed) || self.is_fatal() {
                    return;
                }
                let data = &mut buffers.slice(0)[..write.bytes as usize];
                self.judge(write, data);
            }
        };
        match self.readers.min(writes.len()) {
            0 => {}
            1 => reader(),
            readers => thread::scope(|scope| {
                (0..readers).for_each(|_| {
                    scope.spawn(reader);
                });
            }),
        }
    }

    /// Reads one write back and judges it. What was written over meanwhile is not judged.
    fn judge(&self, write: &Written, data: &mut [u8]) {
        let number = self.rules.in_sequence.then_some(write.number);
        let judged = match self.read_at(write.place, data) {
            Ok(()) => self
                .layout
                .judge(data, write.place, number)
                .map_err(|difference| difference.to_string()),
            Err(why) => Err(why),
        };
        if judged.is_ok() || self.history().is_last(write) {
            self.count(write.place, judged);
        }
    }

    fn read_at(&self, place: u64, data: &mut [u8]) -> Result<(), String> {
        let (file, offset) = in_file(place);
        let fd = self.files[file as usize].as_fd();
        loop {
            return match pread(fd, &mut *data, offset) {
                Err(Errno::INTR) => continue,
                Err(error) => Err(format!("it cannot be read: {error}")),
                Ok(read) if read < data.len() => Err(format!("only {read} bytes of it are there")),
                Ok(_) => Ok(()),
            };
        }
    }

    fn count(&self, place: u64, judged: Result<(), String>) {
        let mut result = self.result();
        result.requests += 1;
        if let Err(difference) = judged {
            result.failed += 1;
            let (file, offset) = in_file(place);
            let file = match self.files.len() {
                1 => String::new(),
                _ => format!(" of file {}", file + 1),
            };
            result
                .first
                .get_or_insert_with(|| format!("at byte {offset}{file}: {difference}"));
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn result(&self) -> MutexGuard<'_, Verified> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
