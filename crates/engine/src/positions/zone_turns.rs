//! Random positions in one zone after the other.

use crate::random::{Random, derive_seed};

use super::permutation::Permutation;

/// Rules of zones that are used one after the other, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneRules {
    /// Number of bytes transferred in a zone before the next one is used.
    pub size: u64,
    /// Length of a zone.
    pub range: u64,
    /// Bytes between two zones.
    pub skip: u64,
    /// True if each block of a zone is drawn once before any is drawn again.
    pub once: bool,
    /// Seed of the order of the blocks.
    pub seed: u64,
}

/// The zone in use.
#[derive(Clone, Debug)]
pub(super) struct ZoneTurns {
    rules: ZoneRules,
    /// Start of the zone.
    zone: u64,
    /// Number of bytes transferred in it.
    moved: u64,
    /// Number of requests drawn in it.
    drawn: u64,
    /// Number of zones used so far.
    turn: u64,
}

impl ZoneTurns {
    pub(super) fn new(rules: ZoneRules) -> ZoneTurns {
        ZoneTurns {
            rules,
            zone: 0,
            moved: 0,
            drawn: 0,
            turn: 0,
        }
    }

    /// Position of the next request in a span of `length` bytes.
    pub(super) fn next(
        &mut self,
        length: u64,
        bytes: u64,
        alignment: u64,
        random: &mut Random,
    ) -> u64 {
        let rules = self.rules;
        if self.moved >= rules.size {
            self.zone += rules.range + rules.skip;
            (self.moved, self.drawn) = (0, 0);
            self.turn += 1;
        }
        if self.zone + bytes > length {
            self.zone = 0;
        }
        let room = rules.range.min(length - self.zone);
        let blocks = room.saturating_sub(bytes) / alignment + 1;
        let block = match rules.once {
            true => {
                let round = derive_seed(rules.seed, self.turn).wrapping_add(self.drawn / blocks);
                Permutation::new(blocks).position(self.drawn % blocks, round)
            }
            false => random.below(blocks),
        };
        self.moved += bytes;
        self.drawn += 1;
        self.zone + block * alignment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(once: bool, size: u64, count: usize) -> Vec<u64> {
        let mut turns = ZoneTurns::new(ZoneRules {
            size,
            range: 8,
            skip: 8,
            once,
            seed: 3,
        });
        let mut random = Random::new(1);
        let mut next = || turns.next(32, 1, 1, &mut random);
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn each_zone_has_as_much_as_it_is_to_have_and_the_first_follows_the_last() {
        let zones = |once| -> Vec<u64> {
            let positions = positions(once, 4, 12).into_iter();
            positions.map(|position| position / 8).collect()
        };
        for once in [false, true] {
            assert_eq!(zones(once), [0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn blocks_of_a_zone_are_drawn_once_before_they_are_drawn_again() {
        let positions = positions(true, 16, 32);
        for (zone, seen) in [0, 16].into_iter().zip(positions.chunks(16)) {
            for round in seen.chunks(8) {
                let mut round = round.to_vec();
                round.sort_unstable();
                assert_eq!(round, (zone..zone + 8).collect::<Vec<_>>());
            }
        }
    }
}
