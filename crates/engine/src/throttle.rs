//! Throttling of a worker: think time, shares between jobs, a search for the depth, reading back.

use crate::depth_search::Search;
use crate::flow::FlowHandle;
use crate::think_pause::ThinkPause;

/// Throttling of a worker.
#[derive(Clone, Default)]
pub(crate) struct Throttle {
    pub think_pause: Option<ThinkPause>,
    pub flow: Option<FlowHandle>,
    pub search: Option<Search>,
    pub backlog: Option<Backlog>,
}

/// Writes that are read back before further requests are issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    every: u32,
    written: u32,
}

impl Backlog {
    /// A backlog that is read back after this number of writes.
    pub(crate) fn new(every: u32) -> Backlog {
        Backlog { every, written: 0 }
    }
}

impl Throttle {
    /// The throttle; `None` if it has no part.
    pub(crate) fn if_any(self) -> Option<Box<Throttle>> {
        let any = self.think_pause.is_some()
            || self.flow.is_some()
            || self.search.is_some()
            || self.backlog.is_some();
        any.then(|| Box::new(self))
    }

    /// True if nothing may be issued at `now`, with `in_flight` requests in flight.
    pub(crate) fn is_blocked(&mut self, now: u64, in_flight: usize) -> bool {
        self.think_pause
            .as_mut()
            .is_some_and(|it| it.is_blocked(now))
            || self.reads_back_next()
            || (self.search.as_mut()).is_some_and(|it| it.is_blocked(now, in_flight))
            || self.flow.as_mut().is_some_and(|it| it.is_blocked(now))
    }

    /// Counts a request that was issued at `now`; `is_full` if it filled the depth.
    pub(crate) fn issued(&mut self, now: u64, is_full: bool) {
        if let Some(think_pause) = &mut self.think_pause {
            think_pause.issued(now, is_full);
        }
        if let Some(flow) = &self.flow {
            flow.issued();
        }
    }

    /// Counts a request that completed at `now` after `latency`, which leaves `in_flight` requests in flight. Returns
    /// the length of a pause that begins and postpones the due times of a rate.
    pub(crate) fn completed(
        &mut self,
        now: u64,
        latency: u64,
        in_flight: usize,
        kind: Kind,
    ) -> Option<u64> {
        let pause = (self.think_pause.as_mut())
            .and_then(|think_pause| think_pause.completed(kind != Kind::Sync, now, in_flight));
        if let Some(search) = &mut self.search
            && kind != Kind::Sync
        {
            search.completed(now, latency);
        }
        if let Some(backlog) = &mut self.backlog {
            backlog.written += u32::from(kind == Kind::Write);
        }
        pause
    }

    /// True if writes must be read back before another request is issued.
    pub(crate) fn reads_back_next(&self) -> bool {
        (self.backlog.as_ref()).is_some_and(|backlog| backlog.written >= backlog.every)
    }

    /// Empties the backlog after it was read back.
    pub(crate) fn was_read_back(&mut self) {
        if let Some(backlog) = &mut self.backlog {
            backlog.written = 0;
        }
    }

    /// Time from which the latency of a request that was due at `due` counts.
    pub(crate) fn counts_from(&self, due: u64) -> u64 {
        (self.think_pause).map_or(due, |think_pause| think_pause.counts_from(due))
    }

    /// End of the current pause.
    pub(crate) fn resumes_at(&self) -> Option<u64> {
        let think_pause = self
            .think_pause
            .and_then(|think_pause| think_pause.resumes_at());
        let flow = self.flow.as_ref().and_then(FlowHandle::resumes_at);
        think_pause.into_iter().chain(flow).min()
    }

    /// True if a search has ended that ends the phase.
    pub(crate) fn is_over(&self) -> bool {
        self.search.is_some_and(|search| search.is_over())
    }

    /// The result of the search for the depth, once it has ended.
    pub(crate) fn depth(&self) -> Option<u32> {
        self.search.and_then(|search| search.found())
    }
}

/// Kind of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Sync,
}
