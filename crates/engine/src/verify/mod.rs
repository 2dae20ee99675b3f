//! Verification of written data: each write is filled so that it can be verified by itself, and is read back after a
//! number of writes or at the end. A job that only reads verifies everything that it reads.

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
use crate::positions::in_file;
use block::Layout;
use history::{History, WriteRecord};

pub(crate) use block::HEADER;

/// Maximum number of threads that read back.
const MAX_READERS: usize = 16;

/// The verifier of a phase, which all of its workers share.
pub(crate) struct Verifier<'a> {
    files: &'a [&'a File],
    layout: Layout,
    rules: Verify,
    /// True for a job that only reads, which verifies all reads.
    checks_reads: bool,
    largest: usize,
    readers: usize,
    history: Mutex<History>,
    result: Mutex<Verified>,
}

impl<'a> Verifier<'a> {
    /// The verifier of `workload` on its `files`; `None` if it verifies nothing.
    pub(crate) fn of(workload: &Workload, files: &'a [&'a File]) -> Option<Verifier<'a>> {
        let rules = workload.details.as_ref()?.verify.clone()?;
        Some(Verifier {
            files,
            layout: Layout::of(&rules),
            checks_reads: !workload.writes(),
            largest: workload.largest_block().0 as usize,
            readers: (workload.in_flight() as usize).clamp(1, MAX_READERS),
            rules,
            history: Mutex::default(),
            result: Mutex::default(),
        })
    }

    /// Fills the data of the write that is issued next.
    pub(crate) fn prepare_write(&self, position: u64, data: &mut [u8]) {
        let keeps = self.rules.reads_back || self.rules.backlog > 0;
        let number = self.history().issue(position, data.len() as u64, keeps);
        self.layout.fill(data, position, number);
    }

    /// Processes a completed write.
    pub(crate) fn write_completed(&self, position: u64) {
        self.history().completed(position, self.rules.backlog > 0);
    }

    /// Processes a failed write, which is not read back.
    pub(crate) fn write_failed(&self, position: u64) {
        self.history().failed(position);
    }

    /// True if the data of reads is checked.
    pub(crate) fn checks_reads(&self) -> bool {
        self.checks_reads
    }

    /// Checks data that was read at `position`.
    pub(crate) fn check_read(&self, position: u64, data: &[u8]) {
        let checked = self.layout.check(data, position, None);
        self.count(position, checked.map_err(|mismatch| mismatch.to_string()));
    }

    /// Number of writes after which they are read back; 0 for never.
    pub(crate) fn backlog(&self) -> u32 {
        self.rules.backlog
    }

    /// Reads back the writes since the last call.
    pub(crate) fn read_pending(&self, interrupt: &AtomicBool) {
        let pending = self.history().take_pending();
        self.read_back(&pending, interrupt);
    }

    /// Reads back all writes that were not read back yet, after the last one has completed, if the job requests it.
    pub(crate) fn read_all(&self, interrupt: &AtomicBool) {
        if self.rules.reads_back && !self.checks_reads && !self.is_fatal() {
            let all = self.history().all();
            self.read_back(&all, interrupt);
        }
    }

    /// True if a check has failed and this ends the phase.
    pub(crate) fn is_fatal(&self) -> bool {
        self.rules.fatal && self.result().failed > 0
    }

    /// Counts of all checks.
    pub(crate) fn verified(&self) -> Verified {
        Verified {
            unjudged: self.history().unjudged,
            ..self.result().clone()
        }
    }

    fn read_back(&self, writes: &[WriteRecord], interrupt: &AtomicBool) {
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
                self.check(write, data);
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

    /// Reads a write back and verifies it, unless it was overwritten meanwhile.
    fn check(&self, write: &WriteRecord, data: &mut [u8]) {
        let number = self.rules.in_sequence.then_some(write.number);
        let checked = match self.read_at(write.position, data) {
            Ok(()) => self
                .layout
                .check(data, write.position, number)
                .map_err(|mismatch| mismatch.to_string()),
            Err(why) => Err(why),
        };
        let is_last = self.history().was_read_back(write);
        if checked.is_ok() || is_last {
            self.count(write.position, checked);
        }
    }

    fn read_at(&self, position: u64, data: &mut [u8]) -> Result<(), String> {
        let (file, offset) = in_file(position);
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

    fn count(&self, position: u64, checked: Result<(), String>) {
        let mut result = self.result();
        result.requests += 1;
        if let Err(mismatch) = checked {
            result.failed += 1;
            let (file, offset) = in_file(position);
            let file = match self.files.len() {
                1 => String::new(),
                _ => format!(" of file {}", file + 1),
            };
            result
                .first
                .get_or_insert_with(|| format!("at byte {offset}{file}: {mismatch}"));
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn result(&self) -> MutexGuard<'_, Verified> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
