//! Devices that queue, with a foreground and a background whose rate the controller sets.

use crate::pace::{Allowed, Controller, Foreground, ForegroundDetector, IoCounts, Sample, Targets};
use crate::simulate::Rng;

/// Size of a request of the background, as beside a foreground.
pub(super) const BLOCK: f64 = (64 << 10) as f64;
/// Size of a request of the foreground, and of a probe.
const PAGE: f64 = 4096.0;
/// Interval at which the controller is called, in seconds.
const TICK_S: f64 = 0.02;
/// The background notes that a request has completed up to so much later than the kernel.
const NOTED_S: f64 = 0.000_2;
/// Requests of the background in flight where nothing limits it.
const DEPTH: usize = 8;
/// A request of the background waits for an idle gap of its member so many times as long as it takes.
const GAP: f64 = 25.0;

/// A device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A volume with a cap of requests a second, of which a bucket holds so many seconds; a block costs as many
    /// requests as `per_block`. After `credits` requests the cap is a fifth.
    Capped {
        cap: f64,
        bucket_s: f64,
        per_block: f64,
        credits: f64,
    },
    /// A volume with a cap of requests a second that is kept in slices of so many seconds, as the kernel's blk-throttle
    /// does: what exceeds a slice's share waits for the next one. A block costs as many requests as `per_block`.
    Sliced {
        cap: f64,
        slice_s: f64,
        per_block: f64,
    },
    /// Members, each a queue; a request takes about 1/`iops`, a block as long.
    Array { members: usize, iops: f64 },
}

impl Kind {
    /// Requests of a page a second that it can do.
    fn capacity(self) -> f64 {
        match self {
            Kind::Capped { cap, .. } | Kind::Sliced { cap, .. } => cap,
            Kind::Array { members, iops } => members as f64 * iops,
        }
    }

    /// Bytes a second that it gives to blocks.
    pub(super) fn device_rate(self) -> f64 {
        match self {
            Kind::Capped { cap, per_block, .. } | Kind::Sliced { cap, per_block, .. } => {
                cap / per_block * BLOCK
            }
            Kind::Array { members, iops } => members as f64 * iops * BLOCK,
        }
    }

    fn queues(self) -> usize {
        match self {
            Kind::Capped { .. } | Kind::Sliced { .. } => 1,
            Kind::Array { members, .. } => members,
        }
    }
}

/// A foreground.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// Requests a second at random moments, as a share of what the device can do.
    Open(f64),
    /// Bursts of such load: so many seconds with it, and so many without.
    Bursts(f64, f64, f64),
    /// The same over a day of so many seconds, between a tenth of it and all.
    Diurnal(f64, f64),
    /// Clients that wait for each answer, and then think for so many seconds on average.
    Closed(usize, f64),
}

/// A simulated device with its load, as a row of the proof.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) load: Load,
    /// Standard deviation of the latency's logarithm.
    pub(super) scatter: f64,
    /// Number of times a minute that the host stands still for up to 0.15 s.
    pub(super) stalls: f64,
    /// Share of the requests that take up to 10 ms longer, each by itself.
    pub(super) outliers: f64,
    pub(super) asked: Targets,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub(super) struct PacedRun {
    /// Time at which each request of the foreground was made, and its latency.
    pub(super) made_s: Vec<f64>,
    pub(super) latencies: Vec<f64>,
    /// Bytes a second of the background, for each second.
    pub(super) background: Vec<f64>,
    /// Share of the device that the foreground used.
    pub(super) used: f64,
}

struct Device {
    kind: Kind,
    scatter: f64,
    outliers: f64,
    /// Time at which each queue is empty; of a sliced volume the start of the last slice in use, plus what is used of
    /// it.
    free_s: Vec<f64>,
    credits: f64,
    noise: Rng,
    stalls: Vec<(f64, f64)>,
    used_s: f64,
}

impl Device {
    fn new(case: &Case, seed: u64, seconds: f64) -> Device {
        let credits = match case.kind {
            Kind::Capped { credits, .. } => credits,
            Kind::Sliced { .. } | Kind::Array { .. } => 0.0,
        };
        let mut of_host = Rng::of(seed, 3);
        let number = (case.stalls * seconds / 60.0) as usize;
        let mut stalls: Vec<(f64, f64)> = (0..number)
            .map(|_| {
                let at = seconds * of_host.uniform();
                (at, at + 0.05 + 0.1 * of_host.uniform())
            })
            .collect();
        stalls.sort_by(|a, b| a.0.total_cmp(&b.0));
        Device {
            kind: case.kind,
            scatter: case.scatter,
            outliers: case.outliers,
            free_s: vec![0.0; case.kind.queues()],
            credits,
            noise: Rng::of(seed, 2),
            stalls,
            used_s: 0.0,
        }
    }

    /// Adds a request to a queue at a moment; returns the time of its completion.
    fn serve(&mut self, at: f64, queue: usize, is_block: bool) -> f64 {
        let back = self.serve_in_order(at, queue, is_block);
        if self.outliers > 0.0 && self.noise.uniform() < self.outliers {
            return back + 0.01 * self.noise.uniform();
        }
        back
    }

    /// The same without outliers.
    fn serve_in_order(&mut self, at: f64, queue: usize, is_block: bool) -> f64 {
        let at = match self
            .stalls
            .iter()
            .find(|stall| (stall.0..stall.1).contains(&at))
        {
            Some(stall) => stall.1,
            None => at,
        };
        let scatter =
            (self.scatter * self.noise.normal() - 0.5 * self.scatter * self.scatter).exp();
        match self.kind {
            Kind::Capped {
                cap,
                bucket_s,
                per_block,
                ..
            } => {
                let requests = if is_block { per_block } else { 1.0 };
                let cap = if self.credits > 0.0 { cap } else { 0.2 * cap };
                self.credits -= requests;
                let free = &mut self.free_s[queue];
                *free = free.max(at - bucket_s) + requests / cap;
                if !is_block {
                    self.used_s += requests / cap;
                }
                free.max(at) + 0.001 * scatter
            }
            Kind::Sliced {
                cap,
                slice_s,
                per_block,
            } => {
                let requests = if is_block { per_block } else { 1.0 };
                // `free_s` is the start of the last slice in use, plus the part of it that is used.
                let free = &mut self.free_s[queue];
                let slice = ((*free).max(at) / slice_s).floor();
                let used = (*free - slice * slice_s).max(0.0) + requests / cap;
                *free = slice * slice_s + used;
                if !is_block {
                    self.used_s += requests / cap;
                }
                let slice = if used > slice_s { slice + 1.0 } else { slice };
                at.max(slice * slice_s) + 0.001 * scatter
            }
            Kind::Array { iops, .. } => {
                let free = &mut self.free_s[queue];
                *free = free.max(at) + scatter / iops;
                if !is_block {
                    self.used_s += scatter / iops;
                }
                *free
            }
        }
    }
}

/// Times at which the foreground issues requests.
struct Clients {
    load: Load,
    capacity: f64,
    rng: Rng,
    next_s: Vec<f64>,
}

impl Clients {
    fn new(load: Load, capacity: f64, seed: u64) -> Clients {
        let number = match load {
            Load::Closed(clients, _) => clients,
            _ => 1,
        };
        let mut clients = Clients {
            load,
            capacity,
            rng: Rng::of(seed, 1),
            next_s: vec![0.0; number],
        };
        for at in 0..number {
            clients.next_s[at] = 0.001 * at as f64;
        }
        clients
    }

    fn next(&self) -> Option<(usize, f64)> {
        let least = self.next_s.iter().copied().enumerate();
        least.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// A request was made at a moment, and came back.
    fn note_request(&mut self, client: usize, at: f64, back: f64) {
        let exponential = self.rng.exponential();
        let next = match self.load {
            Load::Open(share) => at + exponential / (share * self.capacity),
            Load::Bursts(share, with_s, without_s) => {
                let next = at + exponential / (share * self.capacity);
                let period = with_s + without_s;
                let into = next % period;
                if into < with_s {
                    next
                } else {
                    next - into + period
                }
            }
            Load::Diurnal(share, day_s) => {
                let phase = (std::f64::consts::TAU * at / day_s).cos();
                let now = share * (0.55 - 0.45 * phase);
                at + exponential / (now * self.capacity)
            }
            Load::Closed(_, think_s) => back + exponential * think_s,
        };
        self.next_s[client] = next;
    }
}

/// Runs a case for so many seconds, with a background or without.
pub(super) fn run(case: &Case, seed: u64, seconds: f64, with_background: bool) -> PacedRun {
    let mut device = Device::new(case, seed, seconds);
    let queues = case.kind.queues();
    let depth = |allowed: &Allowed| depth(allowed).max(queues);
    let mut clients = Clients::new(case.load, case.kind.capacity(), seed);
    let mut place = Rng::of(seed, 4);
    let mut own = Rng::of(seed, 5);
    let mut late = Rng::of(seed, 6);
    let mut controller = Controller::new(case.asked);
    let mut kernel = Kernel::default();
    controller.set_device_rate(case.kind.device_rate());
    if !matches!(case.kind, Kind::Array { .. }) {
        controller.request_takes(BLOCK / case.kind.device_rate());
    }
    let (mut made_s, mut latencies) = (Vec::new(), Vec::new());
    let mut background = vec![0.0; seconds as usize];
    let mut allowed = controller.allowed();
    // Of the background: blocks in flight by when their end is noted, and the time of the next.
    let mut in_flight: Vec<f64> = Vec::new();
    let (mut due_s, mut since_s, mut member) = (0.0, 0.0, 0);
    let mut probe_s = 0.01;
    let mut probe_back: Option<(f64, f64)> = None;
    let mut last_probe_s = 0.0;
    let (mut probes, mut waited, mut moved) = (Vec::new(), 0.0, 0.0);
    let mut fore_until = 0.0_f64;
    let mut tick_s = TICK_S;
    loop {
        let (client, fore_s) = clients.next().unwrap_or((0, f64::INFINITY));
        let back_s = if with_background && allowed != Allowed::Nothing {
            if in_flight.len() >= depth(&allowed) {
                in_flight
                    .iter()
                    .copied()
                    .fold(f64::INFINITY, f64::min)
                    .max(due_s)
            } else {
                due_s
            }
        } else {
            f64::INFINITY
        };
        let ask_s = if with_background && controller.probes() {
            probe_s
        } else {
            f64::INFINITY
        };
        let at = fore_s.min(back_s).min(ask_s).min(tick_s);
        if at >= seconds {
            break;
        }
        in_flight.retain(|back| {
            let is_back = *back <= at;
            if is_back {
                moved += BLOCK;
                background[*back as usize] += BLOCK;
            }
            !is_back
        });
        if at == tick_s {
            let waiting_s = probe_back.map_or(
                0.0,
                |(asked, back)| if back > at { at - asked } else { 0.0 },
            );
            if let Some((asked, back)) = probe_back
                && back <= at
            {
                probes.push(back - asked);
                probe_back = None;
            }
            waited += (fore_until.min(at) - (at - TICK_S)).clamp(0.0, TICK_S);
            let outstanding =
                BLOCK * in_flight.len() as f64 + PAGE * f64::from(u8::from(probe_back.is_some()));
            let own_bytes = moved + PAGE * probes.len() as f64;
            let is_deep = allowed == Allowed::All;
            let mut foreground = kernel.foreground(at, own_bytes, outstanding, is_deep);
            last_probe_s = probes.last().copied().unwrap_or(last_probe_s);
            if queues > 1 {
                foreground.waited_s = waited;
            } else if controller.probes() {
                foreground.waited_s = foreground.requests.unwrap_or(0.0) * last_probe_s;
            }
            allowed = controller.take(&Sample {
                seconds: TICK_S,
                foreground,
                latencies_s: &probes,
                waiting_s,
                timed: None,
                background: moved,
                is_busy: !in_flight.is_empty(),
            });
            (waited, moved) = (0.0, 0.0);
            probes.clear();
            (due_s, probe_s) = (f64::max(due_s, at), f64::max(probe_s, at));
            tick_s += TICK_S;
        } else if at == fore_s {
            let back = device.serve(at, place.below(queues as u64) as usize, false);
            made_s.push(at);
            latencies.push(back - at);
            kernel.completes(back, PAGE);
            fore_until = fore_until.max(back);
            clients.note_request(client, at, back);
        } else if at == ask_s {
            // One at a time.
            if let Some((asked, back)) = probe_back {
                if back > at {
                    probe_s = back;
                    continue;
                }
                probes.push(back - asked);
            }
            let back = device.serve(at, own.below(queues as u64) as usize, false);
            kernel.completes(back, PAGE);
            probe_back = Some((at, back));
            probe_s = back + controller.probe_gap_s().unwrap_or(0.04) * (0.5 + own.uniform());
        } else {
            let Some(wait_s) = pace(&allowed) else {
                continue;
            };
            if in_flight.len() >= depth(&allowed) {
                continue;
            }
            // Each member is read by itself: the next one that is idle, or that has waited for long.
            if let (Kind::Array { iops, .. }, Allowed::Rate(_)) = (case.kind, allowed) {
                let order = (0..queues).map(|step| (member + step) % queues);
                let idle = order.min_by(|a, b| {
                    device.free_s[*a]
                        .max(at)
                        .total_cmp(&device.free_s[*b].max(at))
                });
                member = idle.unwrap_or(0);
                let free = device.free_s[member];
                if free > at && at - since_s < GAP / iops {
                    due_s = free;
                    continue;
                }
            }
            let back = device.serve(at, member, true);
            kernel.completes(back, BLOCK);
            in_flight.push(back + NOTED_S * late.uniform());
            member = (member + 1) % queues;
            due_s = f64::max(since_s + wait_s, at + 1e-5).max(at + 0.5 * wait_s);
            since_s = due_s;
        }
    }
    PacedRun {
        made_s,
        latencies,
        background,
        used: device.used_s / seconds / queues as f64,
    }
}

/// The kernel's counters of the device, and the foreground as the background's own code tells it from them.
#[derive(Default)]
struct Kernel {
    /// Requests that will complete: when, and bytes.
    outstanding: Vec<(f64, f64)>,
    detector: ForegroundDetector,
}

impl Kernel {
    fn completes(&mut self, back_s: f64, bytes: f64) {
        self.outstanding.push((back_s, bytes));
    }

    /// Foreground of the last interval, which has ended now.
    fn foreground(&mut self, now_s: f64, own: f64, in_flight: f64, is_deep: bool) -> Foreground {
        let mut read = 0.0;
        self.outstanding.retain(|(back_s, bytes)| {
            let is_back = *back_s <= now_s;
            if is_back {
                read += bytes;
            }
            !is_back
        });
        let counts = IoCounts {
            read,
            written: 0.0,
            own,
            in_flight,
        };
        self.detector.take(TICK_S, Some(counts), is_deep)
    }
}

/// Requests in flight: with a rate only as many as it takes for one to follow the other.
fn depth(allowed: &Allowed) -> usize {
    match allowed {
        Allowed::All | Allowed::Nothing => DEPTH,
        Allowed::Rate(_) => 2,
    }
}

/// Seconds between two requests.
fn pace(allowed: &Allowed) -> Option<f64> {
    match allowed {
        Allowed::All => Some(0.0),
        Allowed::Rate(rate) => Some(BLOCK / rate),
        Allowed::Nothing => None,
    }
}
