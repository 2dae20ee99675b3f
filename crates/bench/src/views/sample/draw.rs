//! Draws the phases of a sample run: levels, bursts, stalls and log-normal latencies.

pub use record::random::SplitMix64 as Random;
use record::{
    Bytes, ClockKind, CpuTime, DeviceCounts, Direction, EngineKind, EngineUsed, Flow, Histogram,
    HostConditions, Nanos, Pattern, Phase, Slice, StopReason, Window, WindowFlow, Workload,
};

/// Slices in a window.
const SLICES: u32 = 10;

/// A phase of the sample.
pub(super) struct Plan {
    name: &'static str,
    pattern: Pattern,
    read_fraction: f64,
    block: Bytes,
    depth: u32,
    pub(super) seconds: f64,
    /// Requests a second.
    rate: f64,
    /// The median latency in nanoseconds.
    median: f64,
    sync_every: u32,
}

pub(super) fn plans() -> [Plan; 7] {
    use Pattern::{Random, Sequential};
    let plan = |name, pattern, read_fraction, block, depth, seconds, rate, median| Plan {
        name,
        pattern,
        read_fraction,
        block,
        depth,
        seconds,
        rate,
        median,
        sync_every: 0,
    };
    [
        plan("seek", Random, 1.0, Bytes::kib(4), 1, 4.0, 1_900.0, 480e3),
        plan(
            "page-read",
            Random,
            1.0,
            Bytes::kib(16),
            20,
            8.0,
            5_900.0,
            3.1e6,
        ),
        plan(
            "page-write",
            Random,
            0.0,
            Bytes::kib(16),
            20,
            8.0,
            3_000.0,
            6.4e6,
        ),
        plan(
            "page-mixed",
            Random,
            0.7,
            Bytes::kib(16),
            20,
            8.0,
            4_100.0,
            4.6e6,
        ),
        Plan {
            sync_every: 1,
            ..plan(
                "log-append",
                Sequential,
                0.0,
                Bytes::kib(4),
                1,
                6.0,
                640.0,
                1.4e6,
            )
        },
        plan("scan", Sequential, 1.0, Bytes::MIB, 8, 5.0, 247.0, 31e6),
        plan("load", Sequential, 0.0, Bytes::MIB, 8, 5.5, 180.0, 43e6),
    ]
}

/// Speed of the volume `at` seconds into a phase, as a share of its level: `page-write` runs out of burst credit
/// halfway, and `page-mixed` stalls once.
fn level(plan: &Plan, at: f64) -> f64 {
    match plan.name {
        "page-write" if at > 4.5 => 0.45,
        "page-mixed" if (5.0..5.8).contains(&at) => 0.02,
        _ => 1.0,
    }
}

/// A direction while its phase is drawn.
struct Draw {
    direction: Direction,
    share: f64,
    factor: f64,
}

fn draws(plan: &Plan) -> Vec<Draw> {
    let draw = |direction, share, factor| Draw {
        direction,
        share,
        factor,
    };
    if plan.sync_every > 0 {
        return vec![
            draw(Direction::Write, 1.0, 0.2),
            draw(Direction::Sync, 1.0, 0.8),
            draw(Direction::Commit, 1.0, 1.0),
        ];
    }
    let mut draws = Vec::new();
    if plan.read_fraction > 0.0 {
        draws.push(draw(Direction::Read, plan.read_fraction, 1.0));
    }
    if plan.read_fraction < 1.0 {
        draws.push(draw(Direction::Write, 1.0 - plan.read_fraction, 1.3));
    }
    draws
}

fn window_flow(
    plan: &Plan,
    draw: &Draw,
    speed: f64,
    t_s: f64,
    seconds: f64,
    random: &mut Random,
) -> WindowFlow {
    let mut flow = WindowFlow::default();
    let slice_seconds = 1.0 / f64::from(SLICES);
    for slice in 0..(seconds / slice_seconds).round() as u32 {
        let now = level(plan, t_s + f64::from(slice) * slice_seconds);
        let expected = plan.rate * speed * draw.share * now * slice_seconds;
        let ops = (expected * (1.0 + 0.05 * random.normal())).round().max(0.0) as u64;
        for _ in 0..ops {
            // One request in two hundred takes six times as long, as on a real volume.
            let tail = if random.uniform() < 0.005 { 6.0 } else { 1.0 };
            let spread = (0.22 * random.normal()).exp();
            let nanos = plan.median * draw.factor * tail * spread / (speed * now.max(0.05));
            flow.latency.record(nanos.max(1.0) as u64);
        }
        let bytes = match draw.direction {
            Direction::Read | Direction::Write | Direction::Trim => ops * plan.block.0,
            Direction::Sync | Direction::Commit => 0,
        };
        flow.slices.push(Slice { ops, bytes });
    }
    flow
}

pub(super) fn phase(plan: &Plan, began_s: f64, speed: f64, random: &mut Random) -> Phase {
    let mut windows = Vec::new();
    let mut totals: Vec<(Direction, Flow)> = Vec::new();
    let mut t_s = 0.0;
    while t_s + 0.05 < plan.seconds {
        let seconds = (plan.seconds - t_s).min(1.0);
        let mut window = Window {
            t_s,
            seconds,
            slice_seconds: 1.0 / f64::from(SLICES),
            in_flight: u64::from(plan.depth),
            idle_fraction: 0.8,
            ..Window::default()
        };
        let mut device = DeviceCounts {
            busy_ms: (seconds * 1e3) as u64,
            ..DeviceCounts::default()
        };
        for draw in draws(plan) {
            let flow = window_flow(plan, &draw, speed, t_s, seconds, random);
            let (ops, bytes) = (flow.ops(), flow.bytes().0);
            // The kernel splits requests above 256 KiB, as many drivers do.
            let pieces = ops * plan.block.0.div_ceil(256 << 10);
            match draw.direction {
                Direction::Read => (device.reads, device.read_bytes) = (pieces, bytes),
                Direction::Write => (device.writes, device.write_bytes) = (pieces, bytes),
                Direction::Sync => device.flushes = ops,
                Direction::Commit | Direction::Trim => {}
            }
            add(&mut totals, draw.direction, &flow);
            *window.flow_mut(draw.direction) = Some(flow);
        }
        window.device = Some(device);
        windows.push(window);
        t_s += seconds;
    }
    let total = |wanted| {
        let found = totals.iter().find(|(direction, _)| *direction == wanted);
        found.map(|(_, flow)| flow.clone())
    };
    Phase {
        name: plan.name.to_owned(),
        workload: Workload {
            pattern: plan.pattern,
            read_fraction: plan.read_fraction,
            block: plan.block,
            threads: 1,
            depth: plan.depth,
            rate_per_s: None,
            span: Some(Bytes::gib(4)),
            sync_every: plan.sync_every,
            sync_at_end: plan.name == "load",
            longest: Nanos::from_secs(8),
            shortest: Nanos::from_secs(3),
            precision: 0.03,
            ops: None,
            details: None,
        },
        engine: EngineUsed {
            kind: EngineKind::Uring,
            clock: ClockKind::Tsc,
            detail: String::new(),
        },
        began_s,
        seconds: plan.seconds,
        drain_seconds: 0.004,
        stopped: if plan.seconds < 8.0 {
            StopReason::Precise
        } else {
            StopReason::Time
        },
        read: total(Direction::Read),
        write: total(Direction::Write),
        sync: total(Direction::Sync),
        commit: total(Direction::Commit),
        trim: None,
        thread_ops: vec![windows.iter().map(Window::ops).sum()],
        thread_seconds: Vec::new(),
        cpu: CpuTime {
            user_s: 0.02 * plan.seconds,
            system_s: 0.11 * plan.seconds,
        },
        windows,
        surroundings: HostConditions::default(),
        outcome: record::JobFileResults::default(),
    }
}

fn add(totals: &mut Vec<(Direction, Flow)>, direction: Direction, part: &WindowFlow) {
    if !totals.iter().any(|(known, _)| *known == direction) {
        let empty = Flow {
            ops: 0,
            bytes: 0,
            latency: Histogram::new(),
            service: None,
        };
        totals.push((direction, empty));
    }
    for (known, flow) in totals {
        if *known == direction {
            flow.ops += part.ops();
            flow.bytes += part.bytes().0;
            flow.latency.merge(&part.latency);
        }
    }
}
