//! The world of a driver on a real host.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use linux::Root;
use linux::diskstats::{Counter, DiskStats};
use linux::md::sync::{Action, Knob, Look, Sectors, Sync};
use record::Nanos;

use super::drive::{At, Order, World};
use super::felt::Seen;
use super::probe::Prober;
use super::target::Target;

/// One array of this host.
pub(crate) struct OnHost<'a> {
    sync: &'a Sync,
    began: Instant,
    counter: Option<Counter>,
    before: Option<DiskStats>,
    /// What the kernel has counted beyond our own probes, as far as it was not told yet; below zero
    /// when probes came back that it had not counted.
    beyond: i64,
    members: Vec<Counter>,
    prober: Option<Prober>,
    interrupt: &'a AtomicBool,
    ends: Option<Timestamp>,
    stands: &'a mut dyn FnMut(&At),
}

impl<'a> OnHost<'a> {
    /// The array `target`, until `interrupt` or the time `ends`. `stands` is told how it stands.
    pub(crate) fn new(
        target: &'a Target,
        root: &Root,
        interrupt: &'a AtomicBool,
        ends: Option<Timestamp>,
        stands: &'a mut dyn FnMut(&At),
    ) -> OnHost<'a> {
        let counter = target
            .device
            .is_counted(root)
            .then(|| Counter::open(root, &target.device).ok())
            .flatten();
        let members = target.members.iter();
        OnHost {
            sync: &target.sync,
            began: Instant::now(),
            before: counter.as_ref().and_then(|counter| counter.read().ok()),
            counter,
            beyond: 0,
            members: members
                .filter_map(|member| Counter::open(root, member).ok())
                .collect(),
            prober: Prober::start(root.locate(&target.device.node()), target.device.size).ok(),
            interrupt,
            ends,
            stands,
        }
    }

    /// The requests that the kernel has counted since the last time, and the seconds that they took.
    fn counted(&mut self) -> Option<(u64, f64)> {
        let now = self.counter.as_ref()?.read().ok()?;
        let before = self.before.replace(now)?;
        let counts = now.since(&before)?;
        let ms = |before: u64, now: u64| u64::from((now as u32).wrapping_sub(before as u32));
        let took = ms(before.read_ms, now.read_ms) + ms(before.write_ms, now.write_ms);
        Some((counts.reads + counts.writes, took as f64 / 1e3))
    }
}

impl World for OnHost<'_> {
    fn now(&mut self) -> Nanos {
        Nanos::from(self.began.elapsed())
    }

    fn rest(&mut self, span: Nanos) {
        sleep(Duration::from_nanos(span.0));
    }

    fn look(&mut self) -> linux::Result<Look> {
        self.sync.look()
    }

    fn live(&mut self) -> Option<Sectors> {
        self.sync.live()
    }

    fn knob(&mut self, knob: Knob) -> Option<String> {
        self.sync.knob(knob)
    }

    fn turn(&mut self, knob: Knob, text: &str) -> linux::Result<()> {
        self.sync.turn(knob, text)
    }

    fn act(&mut self, action: Action) -> linux::Result<()> {
        self.sync.act(action)
    }

    fn is_there(&mut self) -> bool {
        self.sync.is_there()
    }

    fn seen(&mut self, probing: bool) -> Seen {
        let (probes, waiting) = self.prober.as_ref().map_or((Vec::new(), 0.0), |prober| {
            prober.want(probing);
            prober.take()
        });
        let counted = self.counted();
        let others = counted.map(|(requests, _)| {
            let own = i64::try_from(probes.len()).unwrap_or(i64::MAX);
            let requests = i64::try_from(requests).unwrap_or(i64::MAX);
            self.beyond = self.beyond.saturating_add(requests.saturating_sub(own));
            let others = u64::try_from(self.beyond).unwrap_or(0);
            self.beyond = self.beyond.min(0);
            others
        });
        Seen {
            probes,
            waiting,
            others,
            counted,
        }
    }

    fn are_idle(&mut self) -> bool {
        let in_flight = |member: &Counter| member.read().map_or(0, |stats| stats.in_flight);
        self.members.iter().all(|member| in_flight(member) == 0)
    }

    fn order(&mut self) -> Option<Order> {
        if self.interrupt.load(Relaxed) {
            return Some(Order::Interrupted);
        }
        let is_over = self.ends.is_some_and(|ends| Timestamp::now() >= ends);
        is_over.then_some(Order::TimeUp)
    }

    fn stands(&mut self, at: &At) {
        (self.stands)(at);
    }
}
