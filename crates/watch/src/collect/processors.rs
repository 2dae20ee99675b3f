//! Shares of the processors' time (linux, Documentation/filesystems/proc.rst, `/proc/stat`).

use linux::Root;
use linux::pulse::PolledFile;
use record::sample::{CpuShares, Fraction};

/// Ticks by state: user, nice, system, idle, iowait, irq, softirq, steal. User time includes that of guests.
type Ticks = [u64; 8];

/// Reader of `/proc/stat`, with the last reading.
pub(super) struct Processors {
    file: PolledFile,
    before: Option<Ticks>,
}

impl Processors {
    /// Opens `/proc/stat`; `None` where it cannot be read.
    pub(super) fn open(root: &Root) -> Option<Processors> {
        let file = PolledFile::open(&root.proc.join("stat")).ok()?;
        Some(Processors { file, before: None })
    }

    /// Shares of the time since the last call; `None` at the first call.
    pub(super) fn poll(&mut self) -> Option<CpuShares> {
        let now = ticks(self.file.read().ok()?)?;
        shares(&self.before.replace(now)?, &now)
    }
}

fn ticks(text: &[u8]) -> Option<Ticks> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("cpu ")?;
    let mut ticks = Ticks::default();
    for (place, word) in ticks.iter_mut().zip(line.split_ascii_whitespace()) {
        *place = word.parse().ok()?;
    }
    Some(ticks)
}

/// Shares of the time between two readings; `None` where no tick has passed.
fn shares(before: &Ticks, now: &Ticks) -> Option<CpuShares> {
    // A counter of idle time may decrease slightly.
    let passed: Vec<f64> = now
        .iter()
        .zip(before)
        .map(|(now, before)| now.saturating_sub(*before) as f64)
        .collect();
    let all: f64 = passed.iter().sum();
    let share = |ticks: f64| Fraction(ticks / all);
    (all > 0.0).then(|| CpuShares {
        user: share(passed[0]),
        nice: share(passed[1]),
        system: share(passed[2] + passed[5] + passed[6]),
        idle: share(passed[3]),
        iowait: share(passed[4]),
        steal: share(passed[7]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between_two_polls() {
        let before = ticks(b"cpu  100 0 50 800 10 0 5 35 20 0\ncpu0 1\n").unwrap();
        let now = ticks(b"cpu  150 0 60 830 15 2 8 35 20 0\n").unwrap();
        let shares = shares(&before, &now).unwrap();
        assert_eq!(
            (shares.user, shares.system),
            (Fraction(0.5), Fraction(0.15))
        );
        assert_eq!(
            (shares.idle, shares.iowait),
            (Fraction(0.3), Fraction(0.05))
        );
        assert!(super::shares(&now, &now).is_none());
        assert!(ticks(b"intr 5\n").is_none() && ticks(b"").is_none());
    }
}
