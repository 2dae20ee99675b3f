//! What got in the way: stalls, the host's own limits, somebody else's I/O.

use record::{Bytes, Code, Finding, Phase, Run, Severity, Window};

use super::finding;
use crate::render::words::{number, percent};

/// A window in which nothing came back counts as stalled when it is at least this long, in seconds.
const STALL_S: f64 = 0.9;
/// Workers that wait for less than this share of the time are the limit themselves.
const IDLE: f64 = 0.05;
/// The device's excess over what we asked for must be this share of it …
const EXCESS: f64 = 0.10;
/// … and at least this many bytes a second …
const EXCESS_BYTES_PER_S: f64 = (1 << 20) as f64;
/// … or this many requests a second.
const EXCESS_OPS_PER_S: f64 = 50.0;
/// Larger requests than this may be split by the kernel, so their number says nothing.
const NEVER_SPLIT: Bytes = Bytes::kib(64);

/// Requests were in flight, and none came back for a whole window.
pub(super) fn stall(phase: &Phase) -> Option<Finding> {
    let stalled = |window: &&Window| {
        let synced = window.sync.as_ref().map_or(0, |flow| flow.ops());
        window.seconds >= STALL_S && window.in_flight > 0 && window.ops() + synced == 0
    };
    let windows: Vec<&Window> = phase.windows.iter().filter(stalled).collect();
    let text = match windows.first() {
        Some(first) => format!(
            "For {} of {} s nothing came back, with {} requests waiting; the first time {} s \
             after the phase began.",
            seconds(windows.iter().map(|window| window.seconds).sum()),
            number(phase.seconds),
            first.in_flight,
            number(first.t_s),
        ),
        None if phase.drain_seconds >= STALL_S => format!(
            "When the time was up, the last requests took another {} to come back.",
            seconds(phase.drain_seconds)
        ),
        None => return None,
    };
    Some(finding(Code::Stall, Severity::Warn, Some(phase), text))
}

fn seconds(seconds: f64) -> String {
    format!("{} s", number(seconds))
}

/// The engine had no idle time, or all processors were busy.
pub(super) fn cpu_bound(run: &Run, phase: &Phase) -> Option<Finding> {
    if phase.windows.is_empty() || phase.seconds <= 0.0 {
        return None;
    }
    let measured: f64 = phase.windows.iter().map(|window| window.seconds).sum();
    let idle: f64 = phase
        .windows
        .iter()
        .map(|window| window.idle_fraction * window.seconds)
        .sum::<f64>()
        / measured;
    let cores = f64::from(run.machine.cores.max(1));
    let used = (phase.cpu.user_s + phase.cpu.system_s) / phase.seconds;
    if idle >= IDLE && used < cores * (1.0 - IDLE) {
        return None;
    }
    let text = format!(
        "The I/O threads waited for the disk for only {} of the time ({} of {} processors were \
         busy): the figure is this host's, and the disk may do more. Give more --threads.",
        percent(idle),
        number(used),
        run.machine.cores.max(1),
    );
    Some(finding(Code::CpuBound, Severity::Warn, Some(phase), text))
}

/// The device did more than this run asked for.
pub(super) fn foreign_io(run: &Run, phase: &Phase) -> Option<Finding> {
    let measured: f64 = phase.windows.iter().map(|window| window.seconds).sum();
    let devices: Option<Vec<_>> = phase.windows.iter().map(|window| window.device).collect();
    let devices = devices.filter(|devices| !devices.is_empty() && measured > 0.0)?;
    let sum = |of: fn(&record::DeviceCounts) -> u64| devices.iter().map(of).sum::<u64>() as f64;
    let ours = |flow: &Option<record::Flow>| {
        flow.as_ref()
            .map_or((0.0, 0.0), |flow| (flow.ops as f64, flow.bytes as f64))
    };
    let small = phase.workload.block <= NEVER_SPLIT;
    let reads = excess(
        (sum(|d| d.reads), sum(|d| d.read_bytes)),
        ours(&phase.read),
        measured,
        small,
    );
    // An array writes more than it is asked to: mirrors and parity are nobody else's I/O.
    let one_disk = run.target.disks.len() == 1;
    let writes = excess(
        (sum(|d| d.writes), sum(|d| d.write_bytes)),
        ours(&phase.write),
        measured,
        // A sync makes the file system write its journal, in requests of its own.
        small && phase.sync.is_none(),
    )
    .filter(|_| one_disk);
    let parts: Vec<String> = [("read", reads), ("write", writes)]
        .into_iter()
        .filter_map(|(what, excess)| {
            let (ops, bytes) = excess?;
            let mib = number(bytes / (1 << 20) as f64);
            Some(format!("{} {what}s/s ({mib} MiB/s)", number(ops)))
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let text = format!(
        "By the kernel's count, {} did {} that this run did not ask for: somebody else uses it, \
         and the figures are what was left.",
        run.target.disks.join(", "),
        parts.join(" and "),
    );
    Some(finding(Code::ForeignIo, Severity::Warn, Some(phase), text))
}

/// Requests and bytes a second that the device did beyond what was asked, if that matters.
fn excess(
    device: (f64, f64),
    asked: (f64, f64),
    seconds: f64,
    count_requests: bool,
) -> Option<(f64, f64)> {
    let ops = (device.0 - asked.0).max(0.0) / seconds;
    let bytes = (device.1 - asked.1).max(0.0) / seconds;
    let many_bytes = bytes > EXCESS_BYTES_PER_S && bytes * seconds > asked.1 * EXCESS;
    let many_ops = count_requests && ops > EXCESS_OPS_PER_S && ops * seconds > asked.0 * EXCESS;
    (many_bytes || many_ops).then_some((ops, bytes))
}

#[cfg(test)]
mod tests {
    use super::super::made::{self, Made};
    use super::*;

    fn codes(run: &Run) -> Vec<(Code, Severity)> {
        made::codes(run)
    }

    #[test]
    fn windows_without_an_answer_are_a_stall() {
        let run = Made::steady(1000.0).stalled(3..5).run();
        let conclusion = made::conclude(&run);
        let stall = conclusion.findings.iter().find(|f| f.code == Code::Stall);
        let text = &stall.unwrap().text;
        assert!(text.contains("For 2.0 s of 8.0 s"), "{text}");
        assert!(!codes(&run).iter().any(|(code, _)| *code == Code::Unsteady));
        // Nothing in flight is idleness, not a stall: an open loop between two arrivals.
        let mut run = run;
        run.phases[0]
            .windows
            .iter_mut()
            .for_each(|w| w.in_flight = 0);
        assert!(!codes(&run).iter().any(|(code, _)| *code == Code::Stall));
    }

    #[test]
    fn an_answer_long_after_the_end_is_a_stall() {
        let mut run = Made::steady(1000.0).run();
        run.phases[0].drain_seconds = 31.0;
        assert_eq!(codes(&run), [(Code::Stall, Severity::Warn)]);
        run.phases[0].drain_seconds = 0.5;
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn workers_without_idle_time_are_the_limit() {
        let run = Made::steady(1000.0).idle(0.01).run();
        assert_eq!(codes(&run), [(Code::CpuBound, Severity::Warn)]);
        let run = Made::steady(1000.0).idle(0.30).run();
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn many_idle_threads_on_busy_processors_are_the_limit_too() {
        let mut run = Made::steady(1000.0).run();
        run.machine.cores = 2;
        run.phases[0].cpu.user_s = 15.9;
        assert_eq!(codes(&run), [(Code::CpuBound, Severity::Warn)]);
        run.phases[0].cpu.user_s = 8.0;
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn what_the_device_did_beyond_our_requests_is_foreign() {
        let run = Made::steady(1000.0).device_share(1.3).run();
        assert_eq!(codes(&run), [(Code::ForeignIo, Severity::Warn)]);
        let run = Made::steady(1000.0).device_share(1.04).run();
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn somebody_elses_writes_beside_our_reads_are_foreign() {
        let mut run = Made::steady(1000.0).run();
        for window in &mut run.phases[0].windows {
            let device = window.device.as_mut().unwrap();
            (device.writes, device.write_bytes) = (300, 300 * 4096);
        }
        assert_eq!(codes(&run), [(Code::ForeignIo, Severity::Warn)]);
        // On an array that may be anything: parity, mirrors, a resync.
        run.target.disks.push("nvme2n1".to_owned());
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn split_requests_are_not_foreign() {
        let mut run = Made::steady(100.0).block(Bytes::MIB).run();
        for window in &mut run.phases[0].windows {
            window.device.as_mut().unwrap().reads *= 4;
        }
        assert_eq!(codes(&run), []);
    }
}
