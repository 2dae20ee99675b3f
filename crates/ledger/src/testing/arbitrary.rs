//! Runs of every shape, for property tests.

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use record::*;

/// Any figure that is a number, from the least subnormal to the largest.
fn figure() -> BoxedStrategy<f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    (POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO).boxed()
}

fn text() -> BoxedStrategy<String> {
    ".{0,12}".boxed()
}

fn histogram() -> impl Strategy<Value = Histogram> {
    vec((any::<u64>(), 0..64_u32, 1..1_000_000_u64), 0..12).prop_map(|values| {
        let mut histogram = Histogram::new();
        for (value, shift, count) in values {
            histogram.record_many(value >> shift, count);
        }
        histogram
    })
}

prop_compose! {
    fn window_flow()(
        slices in vec((any::<u64>(), any::<u64>()), 0..4),
        latency in histogram(),
    ) -> WindowFlow {
        let slices = slices.into_iter().map(|(ops, bytes)| Slice { ops, bytes }).collect();
        WindowFlow { slices, latency }
    }
}

prop_compose! {
    fn window()(
        (t_s, seconds, slice_seconds, idle_fraction) in (figure(), figure(), figure(), figure()),
        (read, write) in (of(window_flow()), of(window_flow())),
        (sync, commit, trim) in (of(window_flow()), of(window_flow()), of(window_flow())),
        in_flight in any::<u64>(),
        counts in of(any::<[u64; 6]>()),
    ) -> Window {
        let device = counts.map(|[reads, read_bytes, writes, write_bytes, flushes, busy_ms]| {
            DeviceCounts { reads, read_bytes, writes, write_bytes, flushes, busy_ms }
        });
        Window {
            t_s, seconds, slice_seconds, read, write, sync, commit, trim, in_flight, idle_fraction, device,
        }
    }
}

prop_compose! {
    fn workload()(
        pattern in select(vec![Pattern::Random, Pattern::Sequential]),
        (read_fraction, precision, rate_per_s) in (figure(), figure(), of(figure())),
        (threads, depth, sync_every) in any::<(u32, u32, u32)>(),
        (block, longest, shortest) in any::<(u64, u64, u64)>(),
        (span, ops, sync_at_end) in any::<(Option<u64>, Option<u64>, bool)>(),
    ) -> Workload {
        Workload {
            pattern,
            read_fraction,
            block: Bytes(block),
            threads,
            depth,
            rate_per_s,
            span: span.map(Bytes),
            sync_every,
            sync_at_end,
            longest: Nanos(longest),
            shortest: Nanos(shortest),
            precision,
            ops,
            details: None,
        }
    }
}

prop_compose! {
    fn flow()(
        (ops, bytes) in any::<(u64, u64)>(),
        latency in histogram(),
        service in of(histogram()),
    ) -> Flow {
        Flow { ops, bytes, latency, service }
    }
}

prop_compose! {
    fn surroundings()(
        gaps in vec((figure(), figure()), 0..3),
        stolen_fraction in figure(),
        reads in of(any::<u64>()),
    ) -> HostConditions {
        HostConditions {
            gaps: gaps.into_iter().map(|(t_s, seconds)| ProgramPause { t_s, seconds }).collect(),
            stolen_fraction,
            after: reads.map(|reads| DeviceCounts { reads, ..DeviceCounts::default() }),
        }
    }
}

prop_compose! {
    fn phase()(
        (name, detail) in (text(), text()),
        workload in workload(),
        kind in select(vec![
            EngineKind::Uring, EngineKind::Sync, EngineKind::Scripted, EngineKind::Imported,
        ]),
        clock in select(vec![ClockKind::Tsc, ClockKind::Monotonic]),
        stopped in select(vec![StopReason::Precise, StopReason::Time, StopReason::Ops, StopReason::Signal, StopReason::Rule]),
        (began_s, seconds, drain_seconds) in (figure(), figure(), figure()),
        (user_s, system_s) in (figure(), figure()),
        (read, write, sync) in (of(flow()), of(flow()), of(flow())),
        (commit, trim) in (of(flow()), of(flow())),
        (thread_ops, thread_seconds) in (vec(any::<u64>(), 0..4), vec(figure(), 0..4)),
        windows in vec(window(), 0..3),
        surroundings in surroundings(),
    ) -> Phase {
        Phase {
            name,
            workload,
            engine: EngineUsed { kind, clock, detail },
            began_s,
            seconds,
            drain_seconds,
            stopped,
            read,
            write,
            sync,
            commit,
            trim,
            thread_ops,
            thread_seconds,
            cpu: CpuTime { user_s, system_s },
            windows,
            surroundings,
            outcome: record::JobFileResults::default(),
        }
    }
}

fn cache() -> impl Strategy<Value = Cache> {
    let kind = prop_oneof![
        Just(CacheKind::PageCache),
        Just(CacheKind::Memory),
        text().prop_map(CacheKind::FileSystem),
        text().prop_map(CacheKind::FasterDisk),
    ];
    (text(), kind).prop_map(|(layer, kind)| Cache { layer, kind })
}

prop_compose! {
    fn target()(
        path in text(),
        kind in select(vec![TargetKind::Directory, TargetKind::File, TargetKind::Block]),
        (device, model, serial) in (of(text()), of(text()), of(text())),
        disks in vec(text(), 0..3),
        size in any::<u64>(),
        unwritten_fraction in of(figure()),
        zero_fraction in of(figure()),
        (direct, in_memory) in any::<(bool, bool)>(),
        caches in vec(cache(), 0..3),
    ) -> Target {
        let size = Bytes(size);
        Target { path, kind, device, disks, model, serial, size, unwritten_fraction, zero_fraction, direct, in_memory, caches }
    }
}

prop_compose! {
    fn machine()(
        (hostname, kernel, arch, cpu) in (text(), text(), text(), text()),
        (cores, memory, limit) in any::<(u32, u64, Option<u64>)>(),
        filesystem in of((text(), text(), text())),
        (scheduler, write_cache) in (of(text()), of(text())),
        (read_ahead, rotational) in any::<(Option<u64>, Option<bool>)>(),
        cloud in of((text(), of(text()), of(text()), of(text()))),
    ) -> Machine {
        Machine {
            hostname,
            kernel,
            arch,
            cpu,
            cores,
            memory: Bytes(memory),
            memory_limit: limit.map(Bytes),
            filesystem: filesystem.map(|(kind, mount_point, options)| {
                FilesystemFacts { kind, mount_point, options }
            }),
            scheduler,
            read_ahead: read_ahead.map(Bytes),
            rotational,
            write_cache,
            cloud: cloud.map(|(provider, instance_type, zone, instance_id)| {
                Cloud { provider, instance_type, zone, instance_id }
            }),
        }
    }
}

prop_compose! {
    /// Any run.
    pub(crate) fn run()(
        nanoseconds in -2_000_000_000_000_000_000..9_000_000_000_000_000_000_i128,
        entropy in any::<u64>(),
        (disksmith, suite) in (text(), text()),
        (command, notes) in (vec(text(), 0..4), vec(text(), 0..4)),
        tool in of(text()),
        target in target(),
        machine in machine(),
        phases in vec(phase(), 0..3),
        (interrupted, p99_target) in any::<(bool, Option<u64>)>(),
    ) -> Run {
        let started = Timestamp::from_nanosecond(nanoseconds).unwrap();
        Run {
            id: RunId::new(started, entropy),
            started,
            disksmith,
            command,
            origin: tool.map_or(Origin::Measured, |tool| Origin::Imported { tool }),
            target,
            machine,
            suite,
            p99_target: p99_target.map(Nanos),
            replay: None,
            phases,
            notes,
            interrupted,
        }
    }
}
