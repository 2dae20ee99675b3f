//! Lays out the test file: written fully, with data that does not compress unless the arguments request it, and
//! synced.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use engine::{Control, Engine, EngineError, IoInterface, Job, Observer};
use record::{Bytes, Contents, Nanos, Pattern, Window, Workload};

use super::contents;
use super::progress::Progress;
use super::target::Prepared;
use super::testfile;

/// Time for laying out a file of a size that was not requested, in seconds.
const TIMEOUT_S: f64 = 15.0;
/// Interval at which the written part is polled.
const POLL: Nanos = Nanos(250_000_000);
/// Time limit of the phase that lays out: longer than any.
const NO_DEADLINE: Nanos = Nanos::from_secs(365 * 24 * 3600);

/// Size and data of a test file.
pub(crate) struct Layout<'a> {
    /// Size of the file, a whole number of MiB.
    pub most: Bytes,
    /// True if the size was requested, so that it is written whatever time it takes.
    pub fixed: bool,
    /// Data of the file; `None` is random.
    pub contents: Option<&'a Contents>,
}

/// Lays the test file out and sets the target's size to what was written.
///
/// # Errors
/// When there is no room, or a write fails.
pub(crate) fn lay_out(
    engine: &dyn Engine,
    prepared: &mut Prepared,
    layout: &Layout<'_>,
    seed: u64,
    interrupt: &AtomicBool,
    progress: &mut Progress,
) -> Result<(), EngineError> {
    prepared.target.size = fill(engine, &prepared.file, layout, seed, interrupt, progress)?;
    Ok(())
}

/// Writes a file fully, up to its size, and returns the size that was written.
///
/// # Errors
/// When there is no room, or a write fails.
pub(crate) fn fill(
    engine: &dyn Engine,
    file: &File,
    layout: &Layout<'_>,
    seed: u64,
    interrupt: &AtomicBool,
    progress: &mut Progress,
) -> Result<Bytes, EngineError> {
    let Layout { most, fixed, .. } = *layout;
    // Allocated first: writes that extend a file are made one after another (ext4 holds its inode
    // lock for them), and a disk that is full is found now.
    testfile::reserve(file, most).map_err(EngineError::Setup)?;
    let workload = workload(layout);
    let mut watch = Watch {
        written: Bytes(0),
        most,
        fixed,
        progress,
    };
    watch.progress.begin("lay out", TIMEOUT_S);
    let job = Job {
        name: "lay out",
        file,
        span: most,
        workload: &workload,
        interface: IoInterface::Auto,
        window: POLL,
        seed,
        interrupt,
    };
    let phase = engine.run(&job, &mut watch)?;
    progress.end();
    // All issued writes have completed, and they were issued in order: the file is written without gaps up to here.
    let blocks = phase.write.map_or(0, |write| write.latency.count());
    let written = Bytes(blocks * workload.block.0).min(most);
    let cut = file.set_len(written.0);
    cut.and_then(|()| file.sync_all())
        .map_err(EngineError::Setup)?;
    Ok(written)
}

fn workload(layout: &Layout<'_>) -> Workload {
    let mut workload = Workload {
        pattern: Pattern::Sequential,
        read_fraction: 0.0,
        block: Bytes::MIB,
        depth: 8,
        sync_at_end: true,
        longest: NO_DEADLINE,
        ops: Some(layout.most.0 / Bytes::MIB.0),
        ..Workload::default()
    };
    if let Some(data) = layout.contents {
        contents::set(&mut workload, data);
    }
    workload
}

/// Stops when enough was written for the time it took.
struct Watch<'a> {
    written: Bytes,
    most: Bytes,
    fixed: bool,
    progress: &'a mut Progress,
}

impl Observer for Watch<'_> {
    fn window(&mut self, window: &mut Window) -> Control {
        self.written += window.write.as_ref().map_or(Bytes(0), |flow| flow.bytes());
        let took = window.t_s + window.seconds;
        let timeout = if self.fixed { f64::INFINITY } else { TIMEOUT_S };
        self.progress
            .laid_out(self.written, self.most, took, timeout);
        let enough = !self.fixed && took >= TIMEOUT_S && self.written >= testfile::MIN_SIZE;
        if enough {
            Control::StopPrecise
        } else {
            Control::Continue
        }
    }
}
