//! Reasons for which a worker of a closed loop issues nothing although it could.

use crate::depth_search::Search;
use crate::flow::FlowTurn;
use crate::thinking::Thinking;

/// All reasons of a worker.
#[derive(Clone, Default)]
pub(crate) struct Restraint {
    pub thinking: Option<Thinking>,
    pub flow: Option<FlowTurn>,
    pub search: Option<Search>,
    pub backlog: Option<Backlog>,
}

/// Writes that are to be read back before others go out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    every: u32,
    written: u32,
}

impl Backlog {
    /// Reads back after so many writes.
    pub(crate) fn new(every: u32) -> Backlog {
        Backlog { every, written: 0 }
    }
}

impl Restraint {
    /// The restraint, if there is any reason for one.
    pub(crate) fn some(self) -> Option<Box<Restraint>> {
        let any = self.thinking.is_some()
            || self.flow.is_some()
            || self.search.is_some()
            || self.backlog.is_some();
        any.then(|| Box::new(self))
    }

    /// True if nothing may be issued at `now`, with `in_flight` out.
    pub(crate) fn holds(&mut self, now: u64, in_flight: usize) -> bool {
        self.thinking.as_mut().is_some_and(|it| it.holds(now))
            || self.reads_back_next()
            || (self.search.as_mut()).is_some_and(|it| it.holds(now, in_flight))
            || self.flow.as_mut().is_some_and(|it| it.holds(now))
    }

    /// A request was issued.
    pub(crate) fn issued(&self) {
        if let Some(flow) = &self.flow {
            flow.issued();
        }
    }

    /// A request came back at `now` after `latency`, after which `in_flight` are out. `writes` says that it
    /// wrote, and `syncs` that it is a sync.
    pub(crate) fn came_back(&mut self, now: u64, latency: u64, in_flight: usize, kind: Kind) {
        if let Some(thinking) = &mut self.thinking {
            thinking.came_back(kind != Kind::Sync, now, in_flight);
        }
        if let Some(search) = &mut self.search
            && kind != Kind::Sync
        {
            search.came_back(now, latency);
        }
        if let Some(backlog) = &mut self.backlog {
            backlog.written += u32::from(kind == Kind::Write);
        }
    }

    /// True if writes must be read back before another request goes out.
    pub(crate) fn reads_back_next(&self) -> bool {
        (self.backlog.as_ref()).is_some_and(|backlog| backlog.written >= backlog.every)
    }

    /// The writes so far were read back.
    pub(crate) fn was_read_back(&mut self) {
        if let Some(backlog) = &mut self.backlog {
            backlog.written = 0;
        }
    }

    /// When a pause ends that is under way.
    pub(crate) fn ends(&self) -> Option<u64> {
        let thinking = self.thinking.and_then(|thinking| thinking.ends());
        let flow = self.flow.as_ref().and_then(FlowTurn::ends);
        thinking.into_iter().chain(flow).min()
    }

    /// True if a search has found what it looked for, and the phase ends with that.
    pub(crate) fn is_over(&self) -> bool {
        self.search.is_some_and(|search| search.is_over())
    }

    /// The most in flight that kept the latency, once it is found.
    pub(crate) fn depth(&self) -> Option<u32> {
        self.search.and_then(|search| search.found())
    }
}

/// Kind of a request that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Sync,
}
