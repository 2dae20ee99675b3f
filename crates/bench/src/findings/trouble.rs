//! What got in the way: stalls, and the host's own limits.

use record::{Code, Finding, Phase, Run, Severity, Window};

use super::finding;
use ui::words::{number, percent};

/// A time in which nothing came back is a stall when it is at least this long, in seconds.
const STALL_S: f64 = 0.9;
/// Workers that wait for less than this share of the time are the limit themselves.
const IDLE: f64 = 0.05;
/// Requests were in flight, and none came back for a while.
pub(super) fn stall(phase: &Phase) -> Option<Finding> {
    let silences = silences(phase);
    let text = match silences.first() {
        Some(first) => format!(
            "For {} of {} s nothing came back, with {} requests waiting; the first time {} s \
             after the phase began.",
            seconds(silences.iter().map(|silence| silence.seconds).sum()),
            number(phase.seconds),
            first.waiting,
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

/// For how long nothing came back in all, counting only what is long enough for a stall.
pub(super) fn silent_seconds(phase: &Phase) -> f64 {
    let silences = silences(phase);
    silences.iter().map(|silence| silence.seconds).sum()
}

/// A time in which nothing came back.
struct Silence {
    t_s: f64,
    seconds: f64,
    /// Requests that were waiting for it to end.
    waiting: u64,
}

/// The silences that are long enough, and in which something was waited for. They are told by
/// slices: one of nearly two windows may leave none of them empty.
fn silences(phase: &Phase) -> Vec<Silence> {
    let open_loop = phase.workload.rate_per_s.is_some();
    let mut silences: Vec<Silence> = Vec::new();
    let mut silent = false;
    for window in &phase.windows {
        let slices = answers_by_slice(window);
        let last = slices.len().saturating_sub(1);
        for (index, answers) in slices.into_iter().enumerate() {
            if answers > 0 {
                silent = false;
                continue;
            }
            if !silent {
                silences.push(Silence {
                    t_s: window.t_s + index as f64 * window.slice_seconds,
                    seconds: 0.0,
                    waiting: 0,
                });
                silent = true;
            }
            // What waits is known at a window's end. A closed loop always has as many in flight;
            // in an open one there may have been none until then.
            let known = index == last || !open_loop;
            if let Some(silence) = silences.last_mut() {
                silence.seconds += window.slice_seconds;
                let waiting = if known { window.in_flight } else { 0 };
                silence.waiting = silence.waiting.max(waiting);
            }
        }
    }
    // The little less makes up for adding up tenths.
    silences.retain(|silence| silence.seconds >= STALL_S - 1e-6 && silence.waiting > 0);
    silences
}

/// Reads, writes and syncs that came back in each complete slice of a window.
fn answers_by_slice(window: &Window) -> Vec<u64> {
    let mut sums = vec![0; window.complete_slices()];
    let flows = [&window.read, &window.write, &window.sync];
    for flow in flows.into_iter().flatten() {
        for (sum, slice) in sums.iter_mut().zip(&flow.slices) {
            *sum += slice.ops;
        }
    }
    sums
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
    let text = if idle < IDLE {
        format!(
            "The I/O threads waited for the disk for only {} of the time: the figure is this \
             host's, and the disk may do more.{}",
            percent(idle),
            match phase.workload.calls() {
                None => " Give more --threads.",
                Some(_) => "",
            }
        )
    } else if used > cores * (1.0 - IDLE) {
        format!(
            "{} of {} processors were busy with this run: the figure is this host's, and the disk \
             may do more.",
            number(used),
            run.machine.cores.max(1),
        )
    } else {
        return None;
    };
    Some(finding(Code::CpuBound, Severity::Warn, Some(phase), text))
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
    fn a_stall_that_leaves_no_window_empty_is_found_and_timed() {
        let silent = |from: usize, until: usize| {
            let mut run = Made::steady(1000.0).run();
            for slice in from..until {
                let window = &mut run.phases[0].windows[slice / 10];
                window.read.as_mut().unwrap().slices[slice % 10] = record::Slice::default();
            }
            run
        };
        let text = |run: &Run| stall(&run.phases[0]).map(|finding| finding.text);
        let found = text(&silent(25, 43)).unwrap();
        assert!(found.contains("For 1.8 s of 8.0 s"), "{found}");
        assert!(
            found.contains("20 requests waiting; the first time 2.5 s"),
            "{found}"
        );
        assert!(text(&silent(21, 30)).is_some());
        assert_eq!(text(&silent(25, 33)), None);
        // In an open loop, it is seen at a window's end whether anything was waiting.
        let mut run = silent(20, 29);
        run.phases[0].workload.rate_per_s = Some(1000.0);
        assert_eq!(text(&run), None);
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
}
