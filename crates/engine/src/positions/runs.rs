//! Sequential runs in a random job.

use std::sync::{Arc, Mutex, PoisonError};

use record::{Direction, SequentialRuns};

use crate::random::Random;

/// The runs of a job, which its clones share.
#[derive(Clone)]
pub(super) struct Runs {
    rules: SequentialRuns,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Number of requests until the next drawn position, including that request.
    left: u32,
    /// Start and end of the last read, and of the last write.
    last: [(u64, u64); 2],
}

impl Runs {
    pub(super) fn new(rules: SequentialRuns) -> Runs {
        let state = State {
            left: 1,
            last: [(0, 0); 2],
        };
        Runs {
            rules,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Position of the next request in a span of `length` bytes; `None` if it must be drawn at random,
    /// as after the last block of the span.
    /// As in fio, reads and writes continue their own kind, and all of them count towards the next drawn position.
    pub(super) fn position(
        &self,
        direction: Direction,
        bytes: u64,
        length: u64,
        random: &mut Random,
    ) -> Option<u64> {
        let share = match direction {
            Direction::Read => self.rules.reads,
            _ => self.rules.writes,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.left -= 1;
        let is_due = state.left == 0;
        if is_due {
            state.left = self.rules.every.max(1);
            if share >= 1.0 || random.next() < (share * u64::MAX as f64) as u64 {
                return None;
            }
        }
        let (start, end) = state.last[kind(direction)];
        let position = if self.rules.repeats && !is_due {
            start
        } else {
            end
        };
        // If no position is ever drawn the job is sequential, and restarts at the beginning.
        let at_end = (share <= 0.0).then_some(0);
        if position + bytes > length {
            at_end
        } else {
            Some(position)
        }
    }

    /// Notes the position of a request, for the next one of its kind.
    pub(super) fn issued(&self, direction: Direction, position: u64, bytes: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last[kind(direction)] = (position, position + bytes);
    }
}

fn kind(direction: Direction) -> usize {
    usize::from(direction != Direction::Read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions of blocks of one byte, with the drawn positions `drawn`.
    fn positions(rules: SequentialRuns, drawn: &[u64], of: &[Direction]) -> Vec<u64> {
        let runs = Runs::new(rules);
        let mut random = Random::new(1);
        let mut drawn = drawn.iter();
        let mut next = |direction: &Direction| {
            let position = runs.position(*direction, 1, 16, &mut random);
            let position = position.unwrap_or_else(|| *drawn.next().unwrap());
            runs.issued(*direction, position, 1);
            position
        };
        of.iter().map(&mut next).collect()
    }

    fn every(every: u32, repeats: bool) -> SequentialRuns {
        SequentialRuns {
            every,
            repeats,
            reads: 1.0,
            writes: 1.0,
        }
    }

    /// Compared with fio 3.33 with `rw=randread:4` in 16 blocks: `--debug=io` prints the positions. At the end of the
    /// span it draws another.
    #[test]
    fn so_many_requests_follow_each_other() {
        let reads = [Direction::Read; 16];
        assert_eq!(
            positions(every(4, false), &[0, 11, 13, 7, 6], &reads),
            [0, 1, 2, 3, 11, 12, 13, 14, 13, 14, 15, 7, 6, 7, 8, 9]
        );
        assert_eq!(
            positions(every(4, true), &[0, 11, 13, 7], &reads),
            [0, 0, 0, 0, 11, 11, 11, 11, 13, 13, 13, 13, 7, 7, 7, 7]
        );
    }

    /// Compared with fio with `rw=randrw:4`: the first write starts at 0, as there was none before.
    #[test]
    fn reads_and_writes_continue_their_own_kind() {
        let (r, w) = (Direction::Read, Direction::Write);
        assert_eq!(
            positions(every(4, false), &[1, 8], &[r, r, r, w, r, r, w, w]),
            [1, 2, 3, 0, 8, 9, 1, 2]
        );
    }

    #[test]
    fn as_many_positions_are_drawn_as_the_share_says() {
        let count = |share: f64| {
            let runs = Runs::new(SequentialRuns {
                reads: share,
                ..every(1, false)
            });
            let mut random = Random::new(1);
            let mut position = || runs.position(Direction::Read, 1, 1 << 40, &mut random);
            (0..10_000).filter(|_| position().is_none()).count()
        };
        assert_eq!(count(1.0), 10_000);
        assert_eq!(count(0.0), 0);
        // Binomial: a standard deviation of 46.
        assert!(count(0.3).abs_diff(3000) < 300, "{}", count(0.3));
    }

    #[test]
    fn a_job_that_draws_no_position_goes_round() {
        let sequential = SequentialRuns {
            reads: 0.0,
            ..every(1, false)
        };
        let positions = positions(sequential, &[], &[Direction::Read; 20]);
        assert_eq!(positions[14..18], [14, 15, 0, 1]);
    }
}
