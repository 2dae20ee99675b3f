//! Boots of a machine whose power is cut: the command runs from its beginning in each boot, on volumes that survive,
//! and to its end in the last one.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::machine::{Machine, MachineEnd, MachineOptions, Power};
use crate::model::Random;
use crate::server::Server;
use record::Nanos;

use super::failure::of_machine;
use crate::cut_times::CutTimes;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Interval at which an interrupt by the user is polled.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// Settings that all boots of a machine share.
pub(super) struct BootSettings<'a> {
    /// Hardware of the machine, with a disk of its own if its power is cut.
    pub options: MachineOptions,
    /// Server of the volumes.
    pub server: &'a Server,
    /// Time of the power cut in each boot but the last, from the start of the command.
    pub cuts: &'a [Nanos],
    /// Set when the user interrupts.
    pub interrupt: &'a AtomicBool,
}

/// Times of the power cuts; within a given range the seed chooses.
pub(super) fn cut_times(wanted: &[CutTimes], seed: u64) -> Vec<Nanos> {
    // The volumes have the numbers from 0 on.
    let mut random = Random::of(seed, u64::MAX);
    let mut draw = |times: &CutTimes| {
        let room = (times.latest - times.earliest).0;
        times.earliest + Nanos(random.below(room.saturating_add(1)))
    };
    wanted
        .iter()
        .flat_map(|times| std::iter::repeat_n(times, times.count as usize))
        .map(&mut draw)
        .collect()
}

impl BootSettings<'_> {
    /// Runs the machine, which was started once, through its power cuts to the end of its command, and returns the
    /// command's status. The machine has ended then.
    ///
    /// # Errors
    /// As [`Machine::wait`], in any boot; and when a volume's data cannot be written.
    pub(super) fn until_the_end(
        mut self,
        mut machine: Machine,
        context: &Context,
    ) -> Result<u8, Failure> {
        let count = self.cuts.len();
        for (number, after) in (1..).zip(self.cuts) {
            if let Some(status) = self.wait(machine, Some(*after))?.status {
                context.notice(&format!(
                    "The command ended before power cut {number} of {count}: the power is not cut \
                     any more."
                ));
                return Ok(status);
            }
            let cut = self.server.cut_power();
            let lost = cut.midway()?;
            context.notice(&format!(
                "Power cut {number} of {count}, {after} after the command began{}. The machine \
                 starts again.",
                self.losses(lost)
            ));
            self.options.boot = number + 1;
            let again = Machine::start(&self.options, io::stdout(), io::stderr());
            machine = again.map_err(of_machine)?;
        }
        let ended = self.wait(machine, None)?;
        // The power was not cut, so there is a status.
        Ok(ended.status.unwrap_or(3))
    }

    /// Description of the writes that the volumes lost in a power cut; empty if they can lose none.
    fn losses(&self, blocks: u64) -> String {
        let volumes = self.server.volumes();
        match volumes.iter().any(|volume| volume.spec().volatile) {
            true => format!(": {blocks} blocks of 4 KiB that were not flushed are lost"),
            false => String::new(),
        }
    }

    /// Waits until the command ends or the power is cut. The volumes' faults begin with the first start of the
    /// command.
    fn wait(&self, mut machine: Machine, cut: Option<Nanos>) -> Result<MachineEnd, Failure> {
        let interrupt = self.interrupt;
        machine.wait_until_started(interrupt).map_err(of_machine)?;
        let started = Instant::now();
        self.server.begin();
        let power = machine.power();
        let (end, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            if let Some(after) = cut {
                let at = started + Duration::from(after);
                scope.spawn(move || cut_at(at, &power, &ended, interrupt));
            }
            let outcome = machine.wait(interrupt).map_err(of_machine);
            drop::<mpsc::Sender<()>>(end);
            outcome
        })
    }
}

/// Cuts the power at a time, unless the machine ends or the user interrupts before.
fn cut_at(at: Instant, power: &Power, ended: &Receiver<()>, interrupt: &AtomicBool) {
    loop {
        let left = at.saturating_duration_since(Instant::now());
        match ended.recv_timeout(left.min(POLL)) {
            Err(RecvTimeoutError::Timeout) if interrupt.load(Ordering::Relaxed) => return,
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return power.cut(),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_come_in_order_within_their_room_and_repeat_from_the_seed() {
        let wanted: Vec<CutTimes> = ["20x5s..30s", "1s"]
            .map(|text| text.parse().unwrap())
            .into();
        let times = cut_times(&wanted, 1);
        assert_eq!(times.len(), 21);
        assert_eq!(times[20], Nanos::from_secs(1));
        let room = Nanos::from_secs(5)..=Nanos::from_secs(30);
        assert!(times[..20].iter().all(|time| room.contains(time)));
        // Of 20 at random, some are early and some are late.
        let half = Nanos::from_secs(17);
        assert!(times[..20].iter().any(|time| *time < half));
        assert!(times[..20].iter().any(|time| *time > half));
        assert_eq!(times, cut_times(&wanted, 1));
        assert_ne!(times, cut_times(&wanted, 2));
    }
}
