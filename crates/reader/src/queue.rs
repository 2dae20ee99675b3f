//! Blocks that are still to be read, and their order.

use std::collections::VecDeque;
use std::ops::Range;

use record::{Bytes, Ranges};

/// Minimum size of a piece of a failed block that is requested alone.
const MIN_PIECE_BYTES: u64 = 4096;
/// Number of pieces into which a failed request is divided.
const PIECES_PER_REQUEST: u64 = 8;
/// Maximum number of pieces. On a device that cannot be read at all, every page would otherwise be requested, and some
/// devices take half a minute for each.
const MAX_PIECES: u32 = 16_384;

/// Number of pieces, from the front of the queue, that are examined for one that touches none in flight.
const SEARCHED_PIECES: usize = 64;

/// Queue of requests for sets of ranges, set after set. Each set has a mark that identifies it.
#[derive(Debug)]
pub(crate) struct Queue<S> {
    block: u64,
    sets: VecDeque<(S, VecDeque<Range<u64>>)>,
    /// Pieces of failed requests.
    pieces: VecDeque<Range<u64>>,
    pieces_left: u32,
}

impl<S: Copy> Queue<S> {
    /// A queue with the requests of these sets, one for each block.
    pub(crate) fn new(sets: &[(S, Ranges)], block: Bytes) -> Queue<S> {
        Queue {
            block: block.0.max(1),
            sets: listed(sets),
            pieces: VecDeque::new(),
            pieces_left: MAX_PIECES,
        }
    }

    /// The mark of the set that is being read; `None` once everything was requested.
    pub(crate) fn set(&self) -> Option<S> {
        self.sets.front().map(|(mark, _)| *mark)
    }

    /// Replaces the blocks that were not requested yet by those of these sets. Pieces of failed requests stay.
    pub(crate) fn replace(&mut self, sets: &[(S, Ranges)]) {
        self.sets = listed(sets);
    }

    /// Sets the block size of further requests.
    pub(crate) fn cut_by(&mut self, block: Bytes) {
        self.block = block.0.max(1);
    }

    /// The next piece of a failed request that is not adjacent to a piece in flight: the kernel would merge adjacent
    /// ones into one request, which would fail as a whole.
    pub(crate) fn next_piece(&mut self, in_flight: &[Range<u64>]) -> Option<Range<u64>> {
        let touches = |piece: &Range<u64>| {
            let meets = |other: &Range<u64>| piece.start <= other.end && other.start <= piece.end;
            in_flight.iter().any(meets)
        };
        let mut near = self.pieces.iter().take(SEARCHED_PIECES);
        let at = near.position(|piece| !touches(piece))?;
        self.pieces.remove(at)
    }

    /// Removes and returns all pieces that were not requested yet.
    pub(crate) fn give_up_pieces(&mut self) -> Vec<Range<u64>> {
        self.pieces.drain(..).collect()
    }

    /// Range of the next block to read; `None` if there is none left.
    pub(crate) fn next_block(&mut self) -> Option<Range<u64>> {
        while let Some((_, ranges)) = self.sets.front_mut() {
            if let Some(range) = ranges.front_mut() {
                let start = range.start;
                let end = range.end.min((start / self.block + 1) * self.block);
                range.start = end;
                if range.is_empty() {
                    ranges.pop_front();
                }
                return Some(start..end);
            }
            self.sets.pop_front();
        }
        None
    }

    /// Queues the parts of a failed request. Returns false, and queues nothing, for a piece of minimum size, and once
    /// the maximum number of pieces was requested.
    pub(crate) fn narrow(&mut self, failed: &Range<u64>) -> bool {
        let length = failed.end - failed.start;
        if length <= MIN_PIECE_BYTES || self.pieces_left == 0 {
            return false;
        }
        let piece = (length / PIECES_PER_REQUEST)
            .next_multiple_of(MIN_PIECE_BYTES)
            .max(MIN_PIECE_BYTES);
        let whole = Ranges::from(0..length);
        let parts: Vec<Range<u64>> = whole.blocks(Bytes(piece)).collect();
        // Pieces of a piece come before its neighbours, so that when the limit is reached, the blocks that were
        // begun are known to the page.
        for part in parts.into_iter().rev() {
            self.pieces
                .push_front(failed.start + part.start..failed.start + part.end);
            self.pieces_left = self.pieces_left.saturating_sub(1);
        }
        true
    }

    /// Removes everything at or after `end`: the volume now ends there.
    pub(crate) fn cut_at(&mut self, end: u64) {
        let within = |range: &mut Range<u64>| {
            range.end = range.end.min(end);
            !range.is_empty()
        };
        self.pieces.retain_mut(within);
        for (_, ranges) in &mut self.sets {
            ranges.retain_mut(within);
        }
    }
}

fn listed<S: Copy>(sets: &[(S, Ranges)]) -> VecDeque<(S, VecDeque<Range<u64>>)> {
    sets.iter()
        .map(|(mark, ranges)| (*mark, ranges.iter().collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Bytes = Bytes::kib(512);

    fn queue() -> Queue<&'static str> {
        let end = BLOCK.0 * 3 + 4096;
        let rest = [0..2 * BLOCK.0, 3 * BLOCK.0..end];
        let sets = [
            ("first", Ranges::from(block(2))),
            ("rest", rest.into_iter().collect()),
        ];
        Queue::new(&sets, BLOCK)
    }

    fn block(number: u64) -> Range<u64> {
        number * BLOCK.0..(number + 1) * BLOCK.0
    }

    #[test]
    fn blocks_come_one_by_one_set_after_set() {
        let mut queue = queue();
        assert_eq!(queue.set(), Some("first"));
        let all: Vec<_> = std::iter::from_fn(|| queue.next_block()).collect();
        let end = BLOCK.0 * 3;
        assert_eq!(all, [block(2), block(0), block(1), end..end + 4096]);
        assert_eq!(queue.set(), None);
    }

    #[test]
    fn blocks_may_become_smaller_on_the_way() {
        let mut queue = queue();
        queue.next_block();
        queue.cut_by(Bytes::kib(128));
        assert_eq!(queue.next_block(), Some(0..128 << 10));
        queue.cut_by(BLOCK);
        assert_eq!(queue.next_block(), Some(128 << 10..BLOCK.0));
    }

    #[test]
    fn failed_blocks_are_narrowed_down_to_pages() {
        let mut queue = queue();
        let failed = queue.next_block().unwrap();
        assert!(queue.narrow(&failed));
        let mut length = 0;
        let mut smallest = failed.clone();
        for _ in 0..PIECES_PER_REQUEST {
            smallest = queue.next_piece(&[]).unwrap();
            length += smallest.end - smallest.start;
        }
        assert_eq!(length, BLOCK.0);
        assert_eq!(smallest.end, failed.end);
        assert!(queue.narrow(&(smallest.start..smallest.start + 8192)));
        assert_eq!(
            queue.next_piece(&[]),
            Some(smallest.start..smallest.start + 4096)
        );
        assert!(!queue.narrow(&(0..4096)));
    }

    #[test]
    fn pieces_in_flight_have_no_neighbours() {
        let mut queue = queue();
        let failed = queue.next_block().unwrap();
        assert!(queue.narrow(&failed));
        let mut flying = Vec::new();
        while let Some(piece) = queue.next_piece(&flying) {
            flying.push(piece);
        }
        let step = BLOCK.0 / PIECES_PER_REQUEST;
        let starts: Vec<u64> = flying
            .iter()
            .map(|piece| (piece.start - failed.start) / step)
            .collect();
        assert_eq!(starts, [0, 2, 4, 6]);
        flying.remove(0);
        assert_eq!(queue.next_piece(&flying), None, "1 touches 2");
        assert_eq!(queue.give_up_pieces().len(), 4);
        assert_eq!(queue.next_piece(&[]), None);
    }

    #[test]
    fn not_every_page_is_requested_of_a_device_that_answers_nothing() {
        let mut queue = queue();
        let narrowed = (0..10_000).filter(|_| queue.narrow(&block(0))).count();
        assert_eq!(narrowed as u64, u64::from(MAX_PIECES) / PIECES_PER_REQUEST);
    }

    #[test]
    fn lost_ranges_of_a_volume_are_not_requested() {
        let mut queue = queue();
        queue.cut_at(BLOCK.0 + 4096);
        let all: Vec<_> = std::iter::from_fn(|| queue.next_block()).collect();
        assert_eq!(all, [block(0), BLOCK.0..BLOCK.0 + 4096]);
    }
}
