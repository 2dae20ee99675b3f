//! Figures of the host as a whole: pressure, load, memory, network, and errors from the kernel's log.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use linux::pulse::{
    self, DirectionCounts, GroupReader, KernelLog, MemoryReader, NetReader, PolledFile,
    PressureReader, StallTimes, load,
};
use linux::{Root, remedy};
use record::Nanos;
use record::sample::{
    BytesPerSecond, DeviceNumber, Fraction, GroupLimit, HostSample, InterfaceSample, KernelError,
    LimitKind, Load, Memory, NetFlow, PerSecond, Pressure, PressureLine,
};

use super::processors::Processors;

/// Readers of the kernel's files; `None` for those that do not exist.
pub(super) struct Host {
    pressure: Option<PressureReader>,
    before: Option<[Duration; 2]>,
    load: Option<PolledFile>,
    memory: Option<MemoryReader>,
    processors: Option<Processors>,
    network: Option<NetReader>,
    interfaces: HashMap<Arc<str>, (DirectionCounts, DirectionCounts)>,
    log: Option<KernelLog>,
    groups: GroupReader,
    limits: HashMap<LimitKey, pulse::GroupLimit>,
}

/// Key of a limit: its group, its device, and its kind.
type LimitKey = (Arc<str>, DeviceNumber, LimitKind);

impl Host {
    /// Opens the existing files. The reason why one cannot be opened is added to the notes.
    pub(super) fn open(root: &Root, notes: &mut Vec<String>) -> Host {
        let mut missing = |what: &str, error: linux::Error| {
            notes.push(match &error {
                linux::Error::Read { path, source }
                    if source.kind() == io::ErrorKind::PermissionDenied =>
                {
                    let (path, remedy) = (path.display(), remedy::as_root());
                    format!("{what} not shown, as this user may not read {path}; {remedy}")
                }
                _ => format!("{what} not shown: {error}"),
            });
        };
        Host {
            pressure: PressureReader::open(root)
                .map_err(|error| missing("How long programs wait for disks (PSI) is", error))
                .ok(),
            before: None,
            load: PolledFile::open(&root.proc.join("loadavg"))
                .map_err(|error| missing("The load is", error))
                .ok(),
            memory: MemoryReader::open(root)
                .map_err(|error| missing("Memory that waits to be written is", error))
                .ok(),
            processors: Processors::open(root),
            network: NetReader::open(root)
                .map_err(|error| missing("Network interfaces are", error))
                .ok(),
            interfaces: HashMap::new(),
            log: KernelLog::open(root)
                .map_err(|error| missing("Errors from the kernel's log are", error))
                .ok(),
            groups: GroupReader::new(root),
            limits: HashMap::new(),
        }
    }

    /// Reads the host's figures of an interval. The figures of a file that can no longer be read are left out.
    pub(super) fn poll(&mut self, length: Nanos, notes: &mut Vec<String>) -> HostSample {
        let seconds = length.as_secs_f64();
        HostSample {
            pressure: self.pressure(seconds),
            load: self.load(),
            memory: self.memory(),
            cpu: self.processors.as_mut().and_then(Processors::poll),
            interfaces: self.interfaces(seconds),
            errors: self.errors(notes),
            limits: self.limits(seconds),
            processes: Vec::new(),
            tracing: None,
        }
    }

    /// The limits of control groups, with their use since the last poll.
    fn limits(&mut self, seconds: f64) -> Vec<GroupLimit> {
        let limits = self.groups.read();
        let mut now = HashMap::with_capacity(limits.len());
        let mut samples = Vec::with_capacity(limits.len());
        for one in limits {
            let key = (Arc::clone(&one.group), one.device, one.kind);
            let before = self.limits.get(&key).filter(|_| seconds > 0.0);
            let used = before.and_then(|before| one.used.checked_sub(before.used));
            let waited = before.and_then(|before| one.pressure?.checked_sub(before.pressure?));
            samples.push(GroupLimit {
                group: Arc::clone(&one.group),
                device: one.device,
                kind: one.kind,
                limit: one.limit as f64,
                used: used.map(|used| used as f64 / seconds),
                // The file is read a little later than the clock.
                pressure: waited.map(|waited| Fraction((waited.as_secs_f64() / seconds).min(1.0))),
            });
            now.insert(key, one);
        }
        self.limits = now;
        samples
    }

    fn pressure(&mut self, seconds: f64) -> Option<Pressure> {
        let counts = self.pressure.as_mut()?.read().ok()?;
        let totals = [
            counts.some.total,
            counts.full.map(|full| full.total).unwrap_or_default(),
        ];
        let before = self.before.replace(totals).filter(|_| seconds > 0.0);
        let line = |stalled: StallTimes, which: usize| {
            let more = before.and_then(|before| stalled.total.checked_sub(before[which]));
            let share = |percent: f64| Fraction(percent / 100.0);
            PressureLine {
                // The file is read a little later than the clock.
                stalled: more.map(|more| Fraction((more.as_secs_f64() / seconds).min(1.0))),
                avg10: share(stalled.avg10),
                avg60: share(stalled.avg60),
                avg300: share(stalled.avg300),
            }
        };
        Some(Pressure {
            some: line(counts.some, 0),
            full: counts.full.map(|full| line(full, 1)),
        })
    }

    fn load(&mut self) -> Option<Load> {
        let [one, five, fifteen] = load(self.load.as_mut()?.read().ok()?)?;
        Some(Load { one, five, fifteen })
    }

    fn memory(&mut self) -> Option<Memory> {
        let reader = self.memory.as_mut()?;
        let counts = reader.read().ok()?;
        let bytes = |pages: Option<u64>| pages.map(|pages| reader.bytes(pages));
        Some(Memory {
            available: bytes(counts.available),
            dirty: bytes(counts.dirty),
            writeback: bytes(counts.writeback),
            limit: bytes(counts.limit),
            background_limit: bytes(counts.background_limit),
        })
    }

    /// The interfaces that existed in the last interval too.
    fn interfaces(&mut self, seconds: f64) -> Vec<InterfaceSample> {
        let Some(interfaces) = self.network.as_mut().and_then(|file| file.read().ok()) else {
            return Vec::new();
        };
        let mut samples = Vec::new();
        let mut now = HashMap::with_capacity(self.interfaces.len());
        for interface in interfaces {
            let known = self.interfaces.get_key_value(interface.name);
            let name = known.map_or_else(|| interface.name.into(), |(name, _)| Arc::clone(name));
            let moved = known.and_then(|(_, (received, transmitted))| {
                let received = interface.received.since(received)?;
                Some((received, interface.transmitted.since(transmitted)?))
            });
            if let Some((received, transmitted)) = moved.filter(|_| seconds > 0.0) {
                samples.push(InterfaceSample {
                    name: Arc::clone(&name),
                    rx: flow(received, seconds),
                    tx: flow(transmitted, seconds),
                });
            }
            now.insert(name, (interface.received, interface.transmitted));
        }
        self.interfaces = now;
        samples
    }

    fn errors(&mut self, notes: &mut Vec<String>) -> Vec<KernelError> {
        let Some(log) = &mut self.log else {
            return Vec::new();
        };
        log.read().unwrap_or_else(|error| {
            notes.push(format!(
                "The kernel's log cannot be read any more, and its errors are not shown: {error}"
            ));
            self.log = None;
            Vec::new()
        })
    }
}

fn flow(passed: DirectionCounts, seconds: f64) -> NetFlow {
    let each = |count: u64| PerSecond(count as f64 / seconds);
    NetFlow {
        bytes: BytesPerSecond(passed.bytes as f64 / seconds),
        packets: each(passed.packets),
        errors: each(passed.errors),
        drops: each(passed.drops),
    }
}
