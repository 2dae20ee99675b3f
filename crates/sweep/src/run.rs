//! The sweep itself: block after block, layout after layout, until the race is over. Its state is saved before and
//! after each change.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use engine::Engine;
use job::OwnedJob;
use ledger::Ledger;
use linux::block::{DeviceNumber, Devices};
use linux::{Root, md};

use super::built_layout::BuiltLayout;
use super::checkpoint::Checkpoint;
use super::decide::{decide, next_layouts};
use super::layout::Layout;
use super::measure::measure;
use super::order::order;
use super::probe::probe;
use super::progress::LayoutProgress;
use super::record::{Cell, CellOutcome, RaceBlock, SweepRecord};
use super::testbed::Testbed;
use array::programs::Programs;
use array::steps::UndoResult;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure, sentence};

/// Attempts to claim a device again: udev and others may open it for a moment after a change.
const CLAIM_ATTEMPTS: u32 = 10;

/// Time between two attempts.
const CLAIM_RETRY_INTERVAL: Duration = Duration::from_millis(300);

/// A running sweep.
pub(crate) struct Sweep<'a> {
    /// State of the sweep.
    pub checkpoint: Checkpoint,
    /// The job, in which states are saved.
    pub job: OwnedJob<Checkpoint>,
    /// The devices.
    pub testbed: Testbed,
    /// The programs of the host.
    pub programs: &'a mut dyn Programs,
    /// Context of every command.
    pub context: &'a mut Context,
    /// Engine of the I/O.
    pub engine: &'a dyn Engine,
    /// Set by a signal handler.
    pub interrupt: &'a AtomicBool,
    /// Time of this start.
    pub began: Instant,
    /// Seconds of earlier starts.
    pub ran_before_s: f64,
}

/// Reason why a sweep ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepEnd {
    /// All measurements are done.
    Over,
    /// A signal ended the sweep.
    Interrupted,
}

impl Sweep<'_> {
    /// Runs the sweep from its current state to the end.
    ///
    /// # Errors
    /// When the ledger cannot be written, a layout cannot be taken down, or a device is gone.
    pub(crate) fn run(&mut self) -> Result<SweepEnd, Failure> {
        self.probe()?;
        while !self.interrupt.load(Relaxed) {
            match self.next() {
                Some((block, layout)) => self.cell(block, layout)?,
                None if self.begin_block()? => {}
                None => return Ok(SweepEnd::Over),
            }
        }
        Ok(SweepEnd::Interrupted)
    }

    fn record(&self) -> &SweepRecord {
        &self.checkpoint.record
    }

    fn probe(&mut self) -> Result<(), Failure> {
        if self.record().probe.is_some() || !self.record().cells.is_empty() {
            return Ok(());
        }
        self.context
            .notice("disksmith: measuring each volume alone, and then all at once.");
        match probe(
            &self.record().settings,
            &self.testbed,
            self.engine,
            self.interrupt,
        ) {
            Ok(found) => self.checkpoint.record.probe = found,
            // The layouts will show whether the failure matters.
            Err(error) => self.context.notice(&format!(
                "disksmith: the volumes were not measured by themselves: {}",
                sentence(&error)
            )),
        }
        self.save()
    }

    /// The next layout of the current block.
    fn next(&self) -> Option<(usize, usize)> {
        let record = self.record();
        let at = record.blocks.len().checked_sub(1)?;
        let done = |layout: usize| {
            let mut cells = record.cells.iter();
            cells.any(|cell| cell.block == at && cell.layout == layout)
        };
        let order = &record.blocks.get(at)?.order;
        let next = order.iter().copied().find(|&layout| !done(layout))?;
        Some((at, next))
    }

    /// Begins another block, if layouts are still undecided. After the last, the baseline is measured once more.
    fn begin_block(&mut self) -> Result<bool, Failure> {
        let record = self.record();
        let closed = record.blocks.last().is_some_and(|b| b.wanted.is_empty());
        if closed {
            return Ok(false);
        }
        let at = record.blocks.len();
        let decision = decide(record);
        let wanted = if decision.over || at >= record.settings.blocks {
            Vec::new()
        } else {
            next_layouts(record, &decision)
        };
        if wanted.is_empty() && self.baseline_has_failed() {
            return Ok(false);
        }
        let order = order(&wanted, record.baseline, at, record.settings.seed);
        self.checkpoint
            .record
            .blocks
            .push(RaceBlock { wanted, order });
        self.save()?;
        Ok(true)
    }

    fn baseline_has_failed(&self) -> bool {
        let record = self.record();
        let mut cells = record.cells.iter().rev();
        cells
            .find(|cell| cell.layout == record.baseline)
            .is_some_and(|cell| matches!(cell.outcome, CellOutcome::Failed(_)))
    }

    /// Builds one layout, measures it, and takes it down.
    fn cell(&mut self, block: usize, layout: usize) -> Result<(), Failure> {
        let Some(wanted) = self.record().layouts.get(layout).cloned() else {
            return Err(Failure::Midway(anyhow!(
                "the sweep has no layout {layout}; its record is damaged"
            )));
        };
        let progress = LayoutProgress::of(self.record(), block, layout);
        self.context.notice(&progress.start_line());
        let (began, began_s) = (Instant::now(), self.ran_s());
        let underway = self
            .testbed
            .choose(&wanted, &self.checkpoint.mount(), self.programs)
            .midway()?;
        self.checkpoint.underway = Some(underway.clone());
        self.save()?;
        let measured = self.build_and_measure(block, &wanted, &underway);
        let saved = measured.and_then(|measured| {
            let Some((outcome, measured_s)) = measured else {
                return Ok(());
            };
            let baseline = layout == self.record().baseline;
            self.checkpoint.record.cells.push(Cell {
                block,
                layout,
                baseline,
                began_s,
                measured_s,
                took_s: began.elapsed().as_secs_f64(),
                outcome,
            });
            self.save()
        });
        // The layout is taken down after an error, too.
        let down = self.take_down(&underway);
        saved?;
        down?;
        self.context
            .notice(&progress.done(self.record(), began.elapsed()));
        Ok(())
    }

    /// Builds and measures a layout. Returns its result and the duration of the measurement; `None` after a signal.
    fn build_and_measure(
        &mut self,
        block: usize,
        layout: &Layout,
        underway: &BuiltLayout,
    ) -> Result<Option<(CellOutcome, f64)>, Failure> {
        let built = self
            .testbed
            .build(layout, underway, self.programs, self.interrupt);
        match built {
            Ok(device) => self.measured(block, underway, device),
            Err(_) if self.interrupt.load(Relaxed) => Ok(None),
            Err(error) => Ok(Some((
                CellOutcome::Failed(format!("it could not be built: {}", sentence(&error))),
                0.0,
            ))),
        }
    }

    /// Measures the mounted layout.
    fn measured(
        &mut self,
        block: usize,
        underway: &BuiltLayout,
        device: DeviceNumber,
    ) -> Result<Option<(CellOutcome, f64)>, Failure> {
        let settings = self.checkpoint.record.settings.clone();
        let measured = measure(
            &settings,
            &underway.mount,
            block,
            self.context,
            self.engine,
            self.job.store_mut().ledger_mut(),
            self.interrupt,
        )?;
        let Some(measured) = measured else {
            return Ok(None);
        };
        let outcome = match lost_member(&self.context.root, device) {
            Some(why) => CellOutcome::Failed(why),
            None => measured.outcome,
        };
        Ok(Some((outcome, measured.seconds)))
    }

    /// Takes a layout down and claims its members again.
    fn take_down(&mut self, underway: &BuiltLayout) -> Result<(), Failure> {
        let arrays = self.record().has_arrays();
        let undone = self.testbed.take_down(underway, arrays, self.programs);
        let left: Vec<&str> = undone.iter().filter_map(UndoResult::left).collect();
        if !left.is_empty() {
            return Err(Failure::Midway(anyhow!(
                "a layout could not be taken down. Left: {}. When that is fixed, the same command \
                 takes down the rest and continues",
                left.join("; ")
            )));
        }
        let mut claimed = self.testbed.claim_again();
        for _ in 1..CLAIM_ATTEMPTS {
            if claimed.is_ok() {
                break;
            }
            thread::sleep(CLAIM_RETRY_INTERVAL);
            claimed = self.testbed.claim_again();
        }
        claimed.map_err(|why| {
            Failure::Midway(anyhow!(
                "the sweep cannot continue: {why}\nNothing is left assembled. When that is fixed, \
                 the same command continues where this stopped"
            ))
        })?;
        self.checkpoint.underway = None;
        self.save()
    }

    fn ran_s(&self) -> f64 {
        self.ran_before_s + self.began.elapsed().as_secs_f64()
    }

    /// Saves the state.
    fn save(&mut self) -> Result<(), Failure> {
        self.checkpoint.record.ran_s = self.ran_s();
        self.job.save(&self.checkpoint).midway()
    }

    /// Ends the sweep, and saves it as finished.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn finish(mut self) -> Result<(SweepRecord, Ledger), Failure> {
        self.checkpoint.record.ran_s = self.ran_s();
        let store = self.job.finish(&self.checkpoint).midway()?;
        Ok((self.checkpoint.record, store.into_ledger()))
    }
}

/// The error of an array that has lost a member during the measurement.
fn lost_member(root: &Root, number: DeviceNumber) -> Option<String> {
    let devices = Devices::read(root).ok()?;
    let arrays = md::arrays(root, &devices).ok()?;
    let array = arrays.iter().find(|array| array.number == number)?;
    let missing = array.degraded.filter(|&missing| missing > 0)?;
    Some(format!(
        "{missing} of its members failed while it was measured; the kernel's log has the details"
    ))
}
