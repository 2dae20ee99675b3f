//! Requests that count as one operation.

use std::collections::VecDeque;

use record::{Bytes, Nanos};

/// Maximum number of runs of adjacent requests that are tracked; the one that was unused for the longest time is
/// forgotten.
const MAX_RUNS: usize = 16;

/// A run of adjacent requests.
#[derive(Clone, Debug)]
struct Run {
    write: bool,
    /// Offset of the byte after the last one.
    end: u64,
    /// Bytes in the operation to which requests are being added.
    filled: u64,
    /// Time at which this operation left the queue.
    start: Nanos,
    /// Time at which the last of its requests is answered: later requests are not merged with it.
    done: Nanos,
}

/// Counts operations.
#[derive(Clone, Debug)]
pub(super) struct MergeCounter {
    /// Maximum size of an operation; `None` to neither merge nor split.
    largest: Option<Bytes>,
    runs: VecDeque<Run>,
}

/// Count of a request towards caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeCount {
    /// The request was merged with an operation that was already counted and left the queue at this time.
    Joined(Nanos),
    /// The request counts as this number of operations.
    New(u64),
}

impl MergeCounter {
    pub(super) fn new(largest: Option<Bytes>) -> MergeCounter {
        MergeCounter {
            largest,
            runs: VecDeque::with_capacity(MAX_RUNS),
        }
    }

    /// Counts a request that arrives now.
    pub(super) fn count(
        &mut self,
        now: Nanos,
        write: bool,
        offset: u64,
        length: u64,
    ) -> MergeCount {
        let Some(largest) = self.largest else {
            return MergeCount::New(1);
        };
        let continued = self
            .runs
            .iter()
            .position(|run| run.end == offset && run.write == write && run.done > now);
        let run = continued.and_then(|index| self.runs.remove(index));
        match run {
            Some(run) if run.filled + length <= largest.0 => {
                let start = run.start;
                self.remember(Run {
                    end: offset + length,
                    filled: run.filled + length,
                    ..run
                });
                MergeCount::Joined(start)
            }
            _ => {
                let ops = length.div_ceil(largest.0).max(1);
                self.remember(Run {
                    write,
                    end: offset + length,
                    filled: length - (ops - 1) * largest.0,
                    start: now,
                    done: now,
                });
                MergeCount::New(ops)
            }
        }
    }

    /// Records when the request that was counted last leaves the queue, and when it completes.
    pub(super) fn scheduled(&mut self, start: Nanos, done: Nanos) {
        if let Some(run) = self.runs.back_mut() {
            run.start = start;
            run.done = run.done.max(done);
        }
    }

    fn remember(&mut self, run: Run) {
        if self.runs.len() == MAX_RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// Number of operations for these requests, all in flight together.
    fn ops(requests: &[(u64, u64)]) -> u64 {
        let mut merger = MergeCounter::new(Some(Bytes::kib(256)));
        let count = |(offset, length): &(u64, u64)| {
            let count = merger.count(Nanos(0), false, offset * KIB, length * KIB);
            merger.scheduled(Nanos(0), Nanos(1));
            match count {
                MergeCount::Joined(_) => 0,
                MergeCount::New(ops) => ops,
            }
        };
        requests.iter().map(count).sum()
    }

    #[test]
    fn the_examples_of_the_ebs_documentation() {
        // "1 x 1024 KiB I/O operation: 4", "8 x sequential 32 KiB: 1", "8 random 32 KiB: 8".
        assert_eq!(ops(&[(0, 1024)]), 4);
        assert_eq!(ops(&[0, 1, 2, 3, 4, 5, 6, 7].map(|n| (n * 32, 32))), 1);
        assert_eq!(ops(&[0, 1, 2, 3, 4, 5, 6, 7].map(|n| (n * 1000, 32))), 8);
    }

    #[test]
    fn an_operation_is_never_larger_than_the_largest() {
        // 100 KiB: two fit in one operation, the third begins the next.
        assert_eq!(
            ops(&[(0, 100), (100, 100), (200, 100), (300, 100), (400, 100)]),
            3
        );
    }

    #[test]
    fn interleaved_streams_are_followed() {
        let requests: Vec<_> = (0..8)
            .flat_map(|n| (0..4).map(move |stream| (stream * 10_000 + n * 32, 32)))
            .collect();
        assert_eq!(ops(&requests), 4);
    }

    #[test]
    fn too_late_or_the_other_direction_does_not_join() {
        let mut merger = MergeCounter::new(Some(Bytes::kib(256)));
        merger.count(Nanos(0), false, 0, 4096);
        merger.scheduled(Nanos(5), Nanos(10));
        assert_eq!(merger.count(Nanos(3), true, 4096, 4096), MergeCount::New(1));
        assert_eq!(
            merger.count(Nanos(9), false, 4096, 4096),
            MergeCount::Joined(Nanos(5))
        );
        assert_eq!(
            merger.count(Nanos(11), false, 8192, 4096),
            MergeCount::New(1)
        );
    }
}
