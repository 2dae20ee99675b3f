//! The host's own figures as rows of tables, and back.

use std::sync::Arc;

use record::Bytes;
use record::sample::{
    BytesPerSecond, CpuShares, Fraction, HostSample, InterfaceSample, Load, Memory, NetFlow,
    PerSecond, Pressure, PressureLine,
};

use super::table::{ColumnUnit, Row};

/// Number of the host's figures: eight of pressure, three of load, five of memory, six of the processors.
pub(super) const FIGURES: usize = 22;
/// Number of an interface's figures: bytes, packets, errors and drops, received and sent.
pub(super) const NET_FIGURES: usize = 8;

const FULL: usize = 4;
const LOAD: usize = 8;
const MEMORY: usize = 11;
const CPU: usize = 16;

/// Unit of shares: a millionth, or finer.
const SHARE: ColumnUnit = ColumnUnit {
    coarse: 1e-6,
    fine: 1e-9,
};
/// Unit of figures that the kernel prints with two digits after the point.
const HUNDREDTHS: ColumnUnit = ColumnUnit {
    coarse: 0.01,
    fine: 0.000_1,
};
const PAGES: ColumnUnit = ColumnUnit {
    coarse: 4096.0,
    fine: 1.0,
};
const COUNT: ColumnUnit = ColumnUnit {
    coarse: 1.0,
    fine: 1.0 / 1024.0,
};

/// The units of the host's figures.
pub(super) const UNITS: [ColumnUnit; FIGURES] = units();

const fn units() -> [ColumnUnit; FIGURES] {
    let mut units = [SHARE; FIGURES];
    let mut at = LOAD;
    while at < MEMORY {
        units[at] = HUNDREDTHS;
        at += 1;
    }
    while at < CPU {
        units[at] = PAGES;
        at += 1;
    }
    units
}

/// The units of an interface's figures.
pub(super) const NET_UNITS: [ColumnUnit; NET_FIGURES] = [COUNT; NET_FIGURES];

/// The host's figures; `None` for a figure that is not known.
pub(super) fn figures(host: &HostSample) -> [Option<f64>; FIGURES] {
    let mut figures = [None; FIGURES];
    let mut put = |at: usize, line: &PressureLine| {
        figures[at] = line.stalled.map(|share| share.0);
        figures[at + 1] = Some(line.avg10.0);
        figures[at + 2] = Some(line.avg60.0);
        figures[at + 3] = Some(line.avg300.0);
    };
    if let Some(pressure) = &host.pressure {
        put(0, &pressure.some);
        if let Some(full) = &pressure.full {
            put(FULL, full);
        }
    }
    if let Some(load) = &host.load {
        figures[LOAD] = Some(load.one);
        figures[LOAD + 1] = Some(load.five);
        figures[LOAD + 2] = Some(load.fifteen);
    }
    if let Some(memory) = &host.memory {
        let known = [
            memory.available,
            memory.dirty,
            memory.writeback,
            memory.limit,
            memory.background_limit,
        ];
        for (nth, bytes) in known.into_iter().enumerate() {
            figures[MEMORY + nth] = bytes.map(|bytes| bytes.0 as f64);
        }
    }
    if let Some(cpu) = &host.cpu {
        let shares = [
            cpu.user, cpu.nice, cpu.system, cpu.iowait, cpu.steal, cpu.idle,
        ];
        for (nth, share) in shares.into_iter().enumerate() {
            figures[CPU + nth] = Some(share.0);
        }
    }
    figures
}

/// Builds the host's sample from its figures, without interfaces and errors.
pub(super) fn host(figures: &[Option<f64>; FIGURES]) -> HostSample {
    let line = |at: usize| {
        Some(PressureLine {
            stalled: figures[at].map(Fraction),
            avg10: Fraction(figures[at + 1]?),
            avg60: Fraction(figures[at + 2]?),
            avg300: Fraction(figures[at + 3]?),
        })
    };
    let load = || {
        Some(Load {
            one: figures[LOAD]?,
            five: figures[LOAD + 1]?,
            fifteen: figures[LOAD + 2]?,
        })
    };
    let bytes = |nth: usize| figures[MEMORY + nth].map(|bytes| Bytes(bytes.round() as u64));
    let memory = figures[MEMORY..CPU].iter().any(Option::is_some);
    let cpu = || {
        Some(CpuShares {
            user: Fraction(figures[CPU]?),
            nice: Fraction(figures[CPU + 1]?),
            system: Fraction(figures[CPU + 2]?),
            iowait: Fraction(figures[CPU + 3]?),
            steal: Fraction(figures[CPU + 4]?),
            idle: Fraction(figures[CPU + 5]?),
        })
    };
    HostSample {
        pressure: line(0).map(|some| Pressure {
            some,
            full: line(FULL),
        }),
        load: load(),
        memory: memory.then(|| Memory {
            available: bytes(0),
            dirty: bytes(1),
            writeback: bytes(2),
            limit: bytes(3),
            background_limit: bytes(4),
        }),
        cpu: cpu(),
        interfaces: Vec::new(),
        limits: Vec::new(),
        errors: Vec::new(),
        processes: Vec::new(),
        tracing: None,
    }
}

/// The row of figures.
pub(super) fn row<const N: usize>(figures: &[Option<f64>; N]) -> Row<N> {
    let mut row = Row::default();
    for (at, figure) in figures.iter().enumerate() {
        row.set(at, *figure);
    }
    row
}

/// The figures of a row.
pub(super) fn unrow<const N: usize>(row: &Row<N>) -> [Option<f64>; N] {
    std::array::from_fn(|at| row.get(at))
}

/// Traffic of an interface in an interval of `seconds`: rates times the length.
pub(super) fn net_figures(interface: &InterfaceSample, seconds: f64) -> [Option<f64>; NET_FIGURES] {
    let (rx, tx) = (&interface.rx, &interface.tx);
    [
        rx.bytes.0,
        rx.packets.0,
        rx.errors.0,
        rx.drops.0,
        tx.bytes.0,
        tx.packets.0,
        tx.errors.0,
        tx.drops.0,
    ]
    .map(|rate| Some(rate * seconds))
}

/// Builds an interface's sample from its figures.
pub(super) fn interface(
    name: Arc<str>,
    figures: &[Option<f64>; NET_FIGURES],
    seconds: f64,
) -> InterfaceSample {
    let rate = |at: usize| figures[at].unwrap_or(0.0) / seconds;
    let flow = |at: usize| NetFlow {
        bytes: BytesPerSecond(rate(at)),
        packets: PerSecond(rate(at + 1)),
        errors: PerSecond(rate(at + 2)),
        drops: PerSecond(rate(at + 3)),
    };
    InterfaceSample {
        name,
        rx: flow(0),
        tx: flow(4),
    }
}
