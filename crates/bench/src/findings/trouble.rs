//! Findings about disturbances: stalls, and the host's own limits.

use record::{Finding, FindingCode, Phase, ProgramPause, Run, Severity, Window};

use super::finding::finding;
use ui::format::{number, percent};
use ui::units::duration;

/// Minimum length of a stall, in seconds.
const STALL_S: f64 = 0.9;
/// Share of idle time of the I/O threads below which they are the limit themselves.
const MIN_IDLE_SHARE: f64 = 0.05;
/// Share of the processors' time above which the hypervisor distorts the figures.
const MAX_STEAL_SHARE: f64 = 0.05;

/// The finding that requests were in flight and none completed for a while.
pub(super) fn stall(phase: &Phase) -> Option<Finding> {
    let silences = silences(phase);
    let text = match silences.first() {
        Some(first) => format!(
            "For {} of {} no request completed, with {} requests waiting; the first time {} \
             after the phase began.",
            duration(silences.iter().map(|silence| silence.seconds).sum()),
            duration(phase.seconds),
            first.waiting,
            duration(first.t_s),
        ),
        None if late_seconds(phase) >= STALL_S => format!(
            "When the time was up, the last requests took another {} to complete, {} longer than \
             so many take at the rate of the phase.",
            duration(phase.drain_seconds),
            duration(late_seconds(phase)),
        ),
        None => return None,
    };
    Some(finding(
        FindingCode::Stall,
        Severity::Warn,
        Some(phase),
        text,
    ))
}

/// Seconds by which the last requests took longer to complete than their number explains at the rate of the phase.
fn late_seconds(phase: &Phase) -> f64 {
    let ops: u64 = phase.windows.iter().map(Window::ops).sum();
    let waiting = phase.windows.last().map_or(0, |window| window.in_flight);
    let waiting = waiting.min(phase.workload.in_flight()) as f64;
    let due = match ops {
        0 => 0.0,
        _ => waiting * phase.seconds / ops as f64,
    };
    let end = phase.seconds + phase.drain_seconds;
    phase.drain_seconds - due - gap_seconds(phase, phase.seconds, end)
}

/// The finding that the program did not run for a part of the time, or that the hypervisor gave its time to others.
pub(super) fn gap(phase: &Phase) -> Option<Finding> {
    let end = phase.seconds + phase.drain_seconds;
    let of_phase = |gap: &&ProgramPause| gap.t_s < end;
    let gaps: Vec<&ProgramPause> = phase.surroundings.gaps.iter().filter(of_phase).collect();
    let stolen = phase.surroundings.stolen_fraction;
    let text = match gaps.first() {
        Some(first) => format!(
            "This program itself did not run for {} of {}, the first time {} after the phase \
             began: it, or its virtual machine, was stopped or got no processor. What the disk did \
             then is not known, and the figures hold that time. Measure again.",
            duration(gaps.iter().map(|gap| gap.seconds).sum()),
            duration(phase.seconds),
            duration(first.t_s),
        ),
        None if stolen > MAX_STEAL_SHARE => format!(
            "The hypervisor gave {} of the processors' time to other guests (steal): the figures \
             are of a host that did not run all of the time. Measure again, or on another \
             instance.",
            percent(stolen)
        ),
        None => return None,
    };
    Some(finding(FindingCode::Gap, Severity::Warn, Some(phase), text))
}

/// Seconds between `from` and `until` (seconds of the phase) in which the program did not run.
fn gap_seconds(phase: &Phase, from: f64, until: f64) -> f64 {
    let overlap =
        |gap: &ProgramPause| ((gap.t_s + gap.seconds).min(until) - gap.t_s.max(from)).max(0.0);
    phase.surroundings.gaps.iter().map(overlap).sum()
}

/// Seconds in which a phase could be measured: without stalls of the disk and pauses of the program.
pub(super) fn answering_seconds(phase: &Phase) -> f64 {
    phase.seconds - silent_seconds(phase) - gap_seconds(phase, 0.0, phase.seconds)
}

/// Total length of the stalls of a phase, in seconds.
pub(super) fn silent_seconds(phase: &Phase) -> f64 {
    let silences = silences(phase);
    silences.iter().map(|silence| silence.seconds).sum()
}

/// A time in which no request completed.
struct Silence {
    t_s: f64,
    seconds: f64,
    /// Requests in flight during it.
    waiting: u64,
}

/// Periods without completions, with requests in flight, that are long enough for a stall. They are found by slices: a
/// period of nearly two windows may leave neither window empty.
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
            // The number in flight is known at the end of a window. A closed loop always has the same number in
            // flight; in an open loop there may have been none until then.
            let known = index == last || !open_loop;
            if let Some(silence) = silences.last_mut() {
                silence.seconds += window.slice_seconds;
                let waiting = if known { window.in_flight } else { 0 };
                silence.waiting = silence.waiting.max(waiting);
            }
        }
    }
    // A period in which the program itself did not run does not count as the disk's.
    for silence in &mut silences {
        let end = silence.t_s + silence.seconds;
        silence.seconds -= gap_seconds(phase, silence.t_s, end);
    }
    // The tolerance is for the rounding error of adding up tenths.
    silences.retain(|silence| silence.seconds >= STALL_S - 1e-6 && silence.waiting > 0);
    silences
}

/// Reads, writes, syncs and trims that completed in each complete slice of a window.
fn answers_by_slice(window: &Window) -> Vec<u64> {
    let mut sums = vec![0; window.complete_slices()];
    let flows = [&window.read, &window.write, &window.sync, &window.trim];
    for flow in flows.into_iter().flatten() {
        for (sum, slice) in sums.iter_mut().zip(&flow.slices) {
            *sum += slice.ops;
        }
    }
    sums
}

/// The finding that the engine had no idle time, or all processors were busy.
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
    let text = if idle < MIN_IDLE_SHARE {
        format!(
            "The I/O threads waited for the disk for only {} of the time: the figure is this \
             host's, and the disk may do more.{}",
            percent(idle),
            match phase.workload.calls() {
                None => " Give more --threads.",
                Some(_) => "",
            }
        )
    } else if used > cores * (1.0 - MIN_IDLE_SHARE) {
        format!(
            "{} of {} processors were busy with this run: the figure is this host's, and the disk \
             may do more.",
            number(used),
            run.machine.cores.max(1),
        )
    } else {
        return None;
    };
    Some(finding(
        FindingCode::CpuBound,
        Severity::Warn,
        Some(phase),
        text,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{self, TestRun};
    use super::*;

    fn codes(run: &Run) -> Vec<(FindingCode, Severity)> {
        test_run::codes(run)
    }

    #[test]
    fn windows_without_an_answer_are_a_stall() {
        let run = TestRun::steady(1000.0).stalled(3..5).run();
        let conclusion = test_run::conclude(&run);
        let stall = conclusion
            .findings
            .iter()
            .find(|f| f.code == FindingCode::Stall);
        let text = &stall.unwrap().text;
        assert!(text.contains("For 2.00 s of 8.00 s"), "{text}");
        assert!(
            !codes(&run)
                .iter()
                .any(|(code, _)| *code == FindingCode::Unsteady)
        );
        // Nothing in flight is idleness, not a stall: an open loop between two arrivals.
        let mut run = run;
        run.phases[0]
            .windows
            .iter_mut()
            .for_each(|w| w.in_flight = 0);
        assert!(
            !codes(&run)
                .iter()
                .any(|(code, _)| *code == FindingCode::Stall)
        );
    }

    #[test]
    fn a_stall_that_leaves_no_window_empty_is_found_and_timed() {
        let silent = |from: usize, until: usize| {
            let mut run = TestRun::steady(1000.0).run();
            for slice in from..until {
                let window = &mut run.phases[0].windows[slice / 10];
                window.read.as_mut().unwrap().slices[slice % 10] = record::Slice::default();
            }
            run
        };
        let text = |run: &Run| stall(&run.phases[0]).map(|finding| finding.text);
        let found = text(&silent(25, 43)).unwrap();
        assert!(found.contains("For 1.80 s of 8.00 s"), "{found}");
        assert!(
            found.contains("20 requests waiting; the first time 2.50 s"),
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
        let mut run = TestRun::steady(1000.0).run();
        run.phases[0].drain_seconds = 31.0;
        assert_eq!(codes(&run), [(FindingCode::Stall, Severity::Warn)]);
        run.phases[0].drain_seconds = 0.5;
        assert_eq!(codes(&run), []);
    }

    /// Findings of a phase that was silent from 2.0 to 4.5 s and in which the program paused then.
    fn silent_beside(pause: Option<(f64, f64)>) -> Vec<FindingCode> {
        let mut run = TestRun::steady(1000.0).run();
        let phase = &mut run.phases[0];
        for slice in 20..45 {
            let window = &mut phase.windows[slice / 10];
            window.read.as_mut().unwrap().slices[slice % 10] = record::Slice::default();
        }
        phase.surroundings.gaps = pause
            .map(|(t_s, seconds)| ProgramPause { t_s, seconds })
            .into_iter()
            .collect();
        let found = codes(&run).into_iter().map(|(code, _)| code);
        // The interval is wide in any case.
        found.filter(|code| *code != FindingCode::Short).collect()
    }

    #[test]
    fn a_time_in_which_the_program_did_not_run_is_no_stall_of_the_disk() {
        assert_eq!(silent_beside(None), [FindingCode::Stall]);
        assert_eq!(silent_beside(Some((1.97, 2.49))), [FindingCode::Gap]);
        // A short pause does not excuse a long period without completions.
        assert_eq!(
            silent_beside(Some((2.0, 0.6))),
            [FindingCode::Stall, FindingCode::Gap]
        );
        let mut run = TestRun::steady(1000.0).run();
        run.phases[0].drain_seconds = 2.6;
        run.phases[0].surroundings.gaps = vec![ProgramPause {
            t_s: 7.9,
            seconds: 2.5,
        }];
        assert_eq!(codes(&run), [(FindingCode::Gap, Severity::Warn)]);
    }

    #[test]
    fn time_that_the_hypervisor_takes_is_named() {
        let mut run = TestRun::steady(1000.0).run();
        run.phases[0].surroundings.stolen_fraction = 0.02;
        assert_eq!(codes(&run), []);
        run.phases[0].surroundings.stolen_fraction = 0.2;
        assert_eq!(codes(&run), [(FindingCode::Gap, Severity::Warn)]);
        assert!(test_run::conclude(&run).findings[0].text.contains("20 %"));
    }

    #[test]
    fn requests_that_wait_their_turn_at_the_end_are_no_stall() {
        // 20 in flight at 10 a second take 2 s.
        let mut run = TestRun::capped(10.0).run();
        run.phases[0].drain_seconds = 2.1;
        let stalls = |run: &Run| {
            codes(run)
                .iter()
                .any(|(code, _)| *code == FindingCode::Stall)
        };
        assert!(!stalls(&run));
        run.phases[0].drain_seconds = 3.1;
        assert!(stalls(&run));
    }

    #[test]
    fn workers_without_idle_time_are_the_limit() {
        let run = TestRun::steady(1000.0).idle(0.01).run();
        assert_eq!(codes(&run), [(FindingCode::CpuBound, Severity::Warn)]);
        let run = TestRun::steady(1000.0).idle(0.30).run();
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn many_idle_threads_on_busy_processors_are_the_limit_too() {
        let mut run = TestRun::steady(1000.0).run();
        run.machine.cores = 2;
        run.phases[0].cpu.user_s = 15.9;
        assert_eq!(codes(&run), [(FindingCode::CpuBound, Severity::Warn)]);
        run.phases[0].cpu.user_s = 8.0;
        assert_eq!(codes(&run), []);
    }
}
