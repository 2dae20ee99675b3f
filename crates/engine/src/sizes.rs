//! Sizes of the next requests.

use record::{Direction, SizeShare, Workload};

use crate::random::Random;

/// Generator of the sizes of a workload's requests.
#[derive(Clone)]
pub(crate) struct Sizes {
    /// Size of requests of a direction without a distribution of sizes.
    block: u64,
    read: Vec<(u64, u64)>,
    write: Vec<(u64, u64)>,
}

impl Sizes {
    pub(crate) fn of(workload: &Workload) -> Sizes {
        let details = workload.details.as_deref();
        Sizes {
            block: workload.block.0,
            read: details.map_or_else(Vec::new, |details| bounds(&details.read_sizes)),
            write: details.map_or_else(Vec::new, |details| bounds(&details.write_sizes)),
        }
    }

    /// The size of the next request of `direction`, in bytes.
    #[inline(always)]
    pub(crate) fn draw(&self, direction: Direction, random: &mut Random) -> u64 {
        let sizes = match direction {
            Direction::Read => &self.read,
            _ => &self.write,
        };
        match sizes[..] {
            [] => self.block,
            [(_, only)] => only,
            _ => {
                let number = random.next();
                let drawn = sizes.iter().find(|(bound, _)| number <= *bound);
                drawn.map_or(self.block, |(_, size)| *size)
            }
        }
    }
}

/// Sizes, each with the largest random number that selects it.
fn bounds(shares: &[SizeShare]) -> Vec<(u64, u64)> {
    let all: f64 = shares.iter().map(|share| share.share).sum();
    let mut below = 0.0;
    let mut bounds: Vec<(u64, u64)> = shares
        .iter()
        .map(|share| {
            below += share.share / all;
            ((below * u64::MAX as f64) as u64, share.size.0)
        })
        .collect();
    // Rounding must not leave numbers that select no size.
    if let Some((bound, _)) = bounds.last_mut() {
        *bound = u64::MAX;
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::tests::workload;
    use record::{Bytes, JobOptions};

    #[test]
    fn each_size_comes_as_often_as_its_share() {
        let share = |kib, share| SizeShare {
            size: Bytes::kib(kib),
            share,
        };
        let mut workload = workload();
        workload.details = Some(Box::new(JobOptions {
            read_sizes: vec![share(4, 0.1), share(64, 0.5), share(32, 0.4)],
            write_sizes: vec![share(8, 1.0)],
            ..JobOptions::default()
        }));
        let sizes = Sizes::of(&workload);
        let mut random = Random::new(3);
        let draws: Vec<u64> = (0..100_000)
            .map(|_| sizes.draw(Direction::Read, &mut random))
            .collect();
        for (kib, share) in [(4, 0.1), (64, 0.5), (32, 0.4)] {
            let seen = draws.iter().filter(|size| **size == kib << 10).count() as f64 / 1e5;
            // Binomial: a standard deviation of at most 0.0016.
            assert!((seen - share).abs() < 0.01, "{kib} KiB: {seen}");
        }
        assert_eq!(sizes.draw(Direction::Write, &mut random), 8 << 10);
    }
}
