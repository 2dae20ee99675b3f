//! Repeated replays of the first part of a trace on one target, so that rounds and hosts can be compared.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use engine::{Engine, IoInterface};
use record::{Nanos, Phase, Replay, ReplaySettings, TargetKind};
use replay::{Disk, PlayError, Survey};
use trace::{Caveats, Header, Io, NameIndex, ReadError, TraceReader};

use super::{REPLAY, ReadyTrace, lay_out_for_trace};
use crate::measure::Watch;
use crate::phase_plan::{PhasePlan, base};
use crate::phases::inspect_content;
use crate::progress::Progress;
use crate::target::Prepared;
use ui::exit::Failure;

/// The trace, and the settings of its replay.
pub(crate) struct TraceRounds {
    file: PathBuf,
    settings: ReplaySettings,
    device: Option<String>,
    writes: bool,
    /// The survey of the part that was replayed last, and its length.
    part: Option<(Nanos, Survey)>,
}

impl TraceRounds {
    /// Prepares the only target of a trace.
    ///
    /// # Errors
    /// Refused, with several targets; failed midway, where the test file cannot be laid out.
    pub(crate) fn prepare(
        ready: ReadyTrace,
        device: Option<String>,
        engine: &dyn Engine,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> Result<(Prepared, TraceRounds), Failure> {
        let mut prepared = ready.prepared.into_iter();
        let (Some(mut target), None) = (prepared.next(), prepared.next()) else {
            return Err(Failure::refused("a trace is replayed on one target"));
        };
        if target.target.kind == TargetKind::Directory {
            let progress = &mut Progress::new(false);
            lay_out_for_trace(engine, &mut target, seed, interrupt, progress)?;
        }
        inspect_content(&mut target, &[])?;
        let rounds = TraceRounds {
            file: ready.file,
            settings: ready.settings,
            device,
            writes: ready.survey.writes > 0 && !ready.settings.reads_only,
            part: None,
        };
        Ok((target, rounds))
    }

    /// True if the trace writes.
    pub(crate) fn writes(&self) -> bool {
        self.writes
    }

    /// Replays the first part of the trace, of the given length.
    ///
    /// # Errors
    /// As [`replay::play`].
    pub(crate) fn measure(
        &mut self,
        target: &Prepared,
        seconds: f64,
        interface: IoInterface,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> Result<(Phase, Replay), PlayError> {
        let length = Nanos((seconds * self.settings.speed * 1e9) as u64);
        let open = || -> Result<Box<dyn TraceReader>, ReadError> {
            Ok(Box::new(FirstPart {
                reader: trace::open(&self.file)?,
                length,
                end: None,
            }))
        };
        let survey = match self.part.take() {
            Some((before, survey)) if before == length => survey,
            _ => {
                let (name, device) = (self.file.display().to_string(), self.device.as_deref());
                replay::survey(&open, &name, device, self.settings.map, interrupt)?
            }
        };
        let disk = Disk {
            file: &target.file,
            path: &target.target.path,
            size: target.target.size,
            alignment: target.alignment,
        };
        let progress = Progress::new(false);
        let mut watch = Watch::new(&PhasePlan::new(REPLAY, base()), &target.counters, &progress);
        let played = replay::play(
            &engine::DiskEngine,
            &open,
            &survey,
            &[disk],
            self.settings,
            interface,
            seed,
            interrupt,
            &mut watch,
        );
        self.part = Some((length, survey));
        let mut played = played?;
        if let Some(error) = played.failed {
            return Err(error.into());
        }
        watch.finish(&mut played.phase);
        Ok((played.phase, played.replay))
    }
}

/// The first part of a trace, up to a time of issue.
struct FirstPart {
    reader: Box<dyn TraceReader>,
    length: Nanos,
    end: Option<Nanos>,
}

impl Iterator for FirstPart {
    type Item = Result<Io, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.reader.next()?;
        let Ok(io) = &next else {
            return Some(next);
        };
        let end = *self.end.get_or_insert(io.issued + self.length);
        (io.issued <= end).then_some(next)
    }
}

impl TraceReader for FirstPart {
    fn header(&self) -> &Header {
        self.reader.header()
    }

    fn name(&self, index: NameIndex) -> Option<&str> {
        self.reader.name(index)
    }

    fn caveats(&self) -> Caveats {
        self.reader.caveats()
    }
}
