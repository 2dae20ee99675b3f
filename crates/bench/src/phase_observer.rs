//! Disturbances during a phase: pauses of this program, and processor time that the hypervisor gives to other guests.

use std::time::Instant;

use engine::{Heartbeat, Pause};
use linux::Root;
use linux::pulse::ProcessorTime;
use record::{HostConditions, ProgramPause};

/// Observer of these disturbances, from a phase's start to its end.
pub(super) struct PhaseObserver {
    heartbeat: Heartbeat,
    processors: Option<ProcessorTime>,
    /// Start of the phase's first window.
    began: Instant,
}

impl PhaseObserver {
    pub(super) fn begin() -> PhaseObserver {
        PhaseObserver {
            heartbeat: Heartbeat::start(),
            processors: processors(),
            began: Instant::now(),
        }
    }

    /// Sets the start of the measured time: the workers have begun, or their ramp is over.
    pub(super) fn measured_from_now(&mut self) {
        self.began = Instant::now();
    }

    /// Ends the observation, and returns the state of the host during the phase.
    pub(super) fn end(self) -> HostConditions {
        let stolen = processors()
            .zip(self.processors)
            .map_or(0.0, |(now, before)| now.stolen_since(&before));
        HostConditions {
            gaps: gaps(self.began, &self.heartbeat.stop()),
            stolen_fraction: stolen,
            after: None,
        }
    }
}

fn processors() -> Option<ProcessorTime> {
    ProcessorTime::read(&Root::host()).ok().flatten()
}

/// The pauses as those of a phase that began at `began`.
fn gaps(began: Instant, pauses: &[Pause]) -> Vec<ProgramPause> {
    let of_phase = pauses.iter().filter_map(|pause| {
        let end = pause.from + pause.length;
        let from = pause.from.max(began);
        (end > began).then(|| ProgramPause {
            t_s: (from - began).as_secs_f64(),
            seconds: (end - from).as_secs_f64(),
        })
    });
    of_phase.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn gaps_are_counted_from_the_begin_of_the_phase() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let pause = |from, length| Pause {
            from: at(from),
            length: Duration::from_millis(length),
        };
        let pauses = [pause(0, 500), pause(800, 700), pause(3000, 2500)];
        let gap = |t_s, seconds| ProgramPause { t_s, seconds };
        assert_eq!(gaps(at(1000), &pauses), [gap(0.0, 0.5), gap(2.0, 2.5)]);
    }
}
