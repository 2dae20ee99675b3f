//! Stalls and fail-slow episodes, in time.

use record::Nanos;

use crate::spec::{Episode, Episodes, VolumeSpec};

/// Times at which a volume stalls and is slow.
#[derive(Clone, Debug)]
pub struct NoiseModel {
    stalls: Episodes,
    slow: Episodes,
    factor: f64,
    /// Start of the episodes' times; `None` while they are held.
    origin: Option<Nanos>,
}

impl NoiseModel {
    /// The faults of a volume, with times relative to `origin`. With `None` there are no faults until
    /// [`NoiseModel::begin`].
    pub fn new(spec: &VolumeSpec, origin: Option<Nanos>) -> NoiseModel {
        NoiseModel {
            stalls: spec.stalls.clone(),
            slow: spec.slow.when.clone(),
            factor: spec.slow.factor,
            origin,
        }
    }

    /// Starts the times now, unless they have already started.
    pub fn begin(&mut self, now: Nanos) {
        self.origin.get_or_insert(now);
    }

    /// Time since the start of the times; `None` before it.
    pub fn elapsed(&self, now: Nanos) -> Option<Nanos> {
        Some(Nanos(now.0.saturating_sub(self.origin?.0)))
    }

    /// `time`, or the end of the stall that contains it.
    pub fn after_stall(&self, mut time: Nanos) -> Nanos {
        // Stalls that overlap are left one after the other; the count bounds a chain that would
        // have no end, where the repetitions of several stalls leave no gap.
        for _ in 0..=64 {
            match self.end_of(&self.stalls, time) {
                Some(end) => time = end,
                None => break,
            }
        }
        time
    }

    /// Factor by which the volume is slower at this time; 1 when it is healthy.
    pub fn factor(&self, time: Nanos) -> f64 {
        match self.end_of(&self.slow, time) {
            Some(_) => self.factor,
            None => 1.0,
        }
    }

    /// Number of stalls that have begun.
    pub fn stalls_begun(&self, now: Nanos) -> u64 {
        self.begun(&self.stalls, now)
    }

    /// Number of fail-slow episodes that have begun.
    pub fn slow_begun(&self, now: Nanos) -> u64 {
        self.begun(&self.slow, now)
    }

    /// The end of the episode that this moment lies in.
    fn end_of(&self, of: &Episodes, time: Nanos) -> Option<Nanos> {
        let at = time.0.checked_sub(self.origin?.0)?;
        of.episodes
            .iter()
            .filter_map(|episode| {
                let within = within(*episode, of.every, at)?;
                Some(Nanos(time.0.saturating_add(episode.length.0 - within)))
            })
            .max()
    }

    fn begun(&self, of: &Episodes, now: Nanos) -> u64 {
        let Some(at) = self.origin.and_then(|origin| now.0.checked_sub(origin.0)) else {
            return 0;
        };
        of.episodes
            .iter()
            .filter_map(|episode| at.checked_sub(episode.start.0))
            .map(|since| 1 + of.every.map_or(0, |every| since / every.0.max(1)))
            .sum()
    }
}

/// Time since the start of the episode, or of one of its repetitions, at this moment.
fn within(episode: Episode, every: Option<Nanos>, at: u64) -> Option<u64> {
    let since = at.checked_sub(episode.start.0)?;
    let within = every.map_or(since, |every| since % every.0.max(1));
    (within < episode.length.0).then_some(within)
}

#[cfg(test)]
mod tests {
    use record::Bytes;

    use super::*;

    fn noise(what: &str) -> NoiseModel {
        let group: crate::spec::VolumeGroup = format!("{what}:1GiB").parse().unwrap();
        assert_eq!(group.spec.size, Bytes::GIB);
        NoiseModel::new(&group.spec, Some(Nanos::from_secs(100)))
    }

    fn secs(s: f64) -> Nanos {
        Nanos((s * 1e9) as u64)
    }

    #[test]
    fn stalls_repeat_and_hold_to_their_end() {
        let noise = noise("stall=10s+1s,stall-every=30s");
        for (from, to) in [(50.0, 50.0), (109.9, 109.9), (110.0, 111.0), (140.5, 141.0)] {
            assert_eq!(noise.after_stall(secs(from)), secs(to), "{from}");
        }
        assert_eq!(noise.after_stall(secs(111.0)), secs(111.0));
        let begun = [99.0, 109.0, 110.0, 139.0, 141.0].map(|t| noise.stalls_begun(secs(t)));
        assert_eq!(begun, [0, 0, 1, 1, 2]);
    }

    #[test]
    fn stalls_that_overlap_are_left_together() {
        let noise = noise("stall=1s+2s,stall=2s+2s,stall=4s+1s");
        assert_eq!(noise.after_stall(secs(101.5)), secs(105.0));
    }

    #[test]
    fn stalls_without_a_gap_do_not_hang() {
        let noise = noise("stall=0s+1s,stall=1s+1s,stall-every=2s");
        assert!(noise.after_stall(secs(100.0)) > secs(130.0));
    }

    #[test]
    fn it_is_slow_for_a_while() {
        let noise = noise("slow=1s+2s,slow-factor=4");
        assert_eq!(
            [100.5, 102.0, 103.0].map(|t| noise.factor(secs(t))),
            [1.0, 4.0, 1.0]
        );
    }
}
