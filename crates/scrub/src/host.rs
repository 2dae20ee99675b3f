//! The control of an array by a driver, on a real host.

use std::ops::Range;
use std::thread::sleep;
use std::time::{Duration, Instant};

use job::{Stop, StopCause};
use linux::Root;
use linux::block::{Device, Devices};
use linux::diskstats::Counter;
use linux::md::sync::{Sectors, Sync, SyncState, Tunable};
use record::Nanos;
use record::sample::SyncAction;

use super::compare::{Comparer, ComparisonResult};
use super::drive::{ArrayControl, PendingWork, PendingWorkDetector, ScrubProgress};
use super::foreground::Foreground;
use super::foreground::ForegroundSample;
use super::target::Target;

/// An array of this host.
pub(crate) struct HostArray<'a> {
    sync: &'a Sync,
    waiting: PendingWorkDetector,
    began: Instant,
    members: Vec<Counter>,
    foreground: Foreground,
    array: &'a Device,
    root: &'a Root,
    comparer: Reader,
    stop: Stop<'a>,
    stands: &'a mut dyn FnMut(&ScrubProgress) -> bool,
}

impl<'a> HostArray<'a> {
    /// Control of the array `target`; `stop` gives the reason to stop early. `stands` receives the progress, and
    /// returns true if the ledger is being written to the array.
    pub(crate) fn new(
        target: &'a Target,
        root: &'a Root,
        stop: Stop<'a>,
        stands: &'a mut dyn FnMut(&ScrubProgress) -> bool,
    ) -> HostArray<'a> {
        let members = target.members.iter();
        HostArray {
            sync: &target.sync,
            waiting: PendingWorkDetector::before(&target.sync),
            began: Instant::now(),
            members: members
                .filter_map(|member| Counter::open(root, member).ok())
                .collect(),
            foreground: Foreground::of(&target.device, root)
                .with_shared_disks(&target.shared, root),
            array: &target.device,
            root,
            comparer: Reader::Unknown,
            stop,
            stands,
        }
    }
}

/// State of the direct comparison of the members.
enum Reader {
    /// It was not tried yet.
    Unknown,
    Reads(Comparer),
    /// The members cannot be read directly: only md checks.
    Nobody,
}

impl Reader {
    fn start(root: &Root, array: &Device) -> Reader {
        let devices = Devices::read(root).ok();
        let comparer = devices.and_then(|devices| Comparer::start(root, &devices, array).ok());
        comparer.map_or(Reader::Nobody, Reader::Reads)
    }

    fn comparer(&self) -> Option<&Comparer> {
        match self {
            Reader::Reads(comparer) => Some(comparer),
            Reader::Unknown | Reader::Nobody => None,
        }
    }
}

impl ArrayControl for HostArray<'_> {
    fn now(&mut self) -> Nanos {
        Nanos::from(self.began.elapsed())
    }

    fn rest(&mut self, span: Nanos) {
        sleep(Duration::from_nanos(span.0));
    }

    fn sync_state(&mut self) -> linux::Result<SyncState> {
        self.sync.state()
    }

    fn live(&mut self) -> Option<Sectors> {
        self.sync.live()
    }

    fn tunable(&mut self, tunable: Tunable) -> Option<String> {
        self.sync.tunable(tunable)
    }

    fn turn(&mut self, tunable: Tunable, text: &str) -> linux::Result<()> {
        self.sync.turn(tunable, text)
    }

    fn write_sync_action(&mut self, action: SyncAction) -> linux::Result<()> {
        self.sync.write_sync_action(action)
    }

    fn waits(&mut self) -> Option<PendingWork> {
        self.waiting.now()
    }

    fn is_there(&mut self) -> bool {
        self.sync.is_there()
    }

    fn foreground_sample(&mut self, probing: Option<f64>) -> ForegroundSample {
        self.foreground.foreground_sample(probing, || None)
    }

    fn can_compare(&mut self) -> bool {
        if matches!(self.comparer, Reader::Unknown) {
            self.comparer = Reader::start(self.root, self.array);
        }
        self.comparer.comparer().is_some()
    }

    fn compare(&mut self, step: &Range<Sectors>, spacing: Option<Nanos>) -> bool {
        let comparer = self.comparer.comparer();
        comparer.is_some_and(|comparer| comparer.begin(step, spacing))
    }

    fn compared(&mut self, step: &Range<Sectors>) -> Option<ComparisonResult> {
        self.comparer.comparer()?.try_result(step)
    }

    fn in_flight(&mut self) -> u64 {
        let in_flight = |member: &Counter| member.read().map_or(0, |stats| stats.in_flight);
        self.members.iter().map(in_flight).sum()
    }

    fn stop_cause(&mut self) -> Option<StopCause> {
        self.stop.cause()
    }

    fn take_progress(&mut self, at: &ScrubProgress) {
        if (self.stands)(at) {
            self.foreground.commits();
        }
    }
}
