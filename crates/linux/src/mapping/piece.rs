//! The arithmetic of a stack: positions of a device's bytes on a device below it.

use std::ops::Range;

/// A part of an upper device, and its layout on one lower device: contiguous, or in this device's share of the
/// stripes.
///
/// The part is divided into chunks. Each is stored `copies` times in a row, and these are distributed over `width`
/// lanes, one chunk to each, row by row; the lower device is one of the lanes. The chunks of a range on one lane are
/// contiguous there: between the first and the last chunk of the range, the lane holds nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MappedPiece {
    /// The part of the upper device, in bytes.
    pub upper: Range<u64>,
    /// Start on the lower device, in bytes.
    pub lower: u64,
    /// Layout of the piece over lanes.
    pub deal: ChunkLayout,
}

/// Layout of chunks over lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkLayout {
    /// The size of a chunk in bytes, at least 1.
    pub chunk: u64,
    /// Number of lanes, at least 1.
    pub width: u64,
    /// Number of copies of each chunk: from 1 to `width`.
    pub copies: u64,
    /// Lane of the lower device, from 0; below `width`.
    pub lane: u64,
}

impl ChunkLayout {
    /// A single lane with everything in order.
    pub(super) const STRAIGHT: ChunkLayout = ChunkLayout {
        chunk: 1,
        width: 1,
        copies: 1,
        lane: 0,
    };
}

impl MappedPiece {
    /// A part that is contiguous on the lower device.
    pub(super) fn straight(upper: Range<u64>, lower: u64) -> MappedPiece {
        MappedPiece {
            upper,
            lower,
            deal: ChunkLayout::STRAIGHT,
        }
    }

    /// Bytes of the lower device that hold a range of the upper one.
    pub(super) fn down(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let start = range.start.max(self.upper.start);
        let end = range.end.min(self.upper.end);
        if start >= end {
            return None;
        }
        let held = self
            .deal
            .held(start - self.upper.start..end - self.upper.start)?;
        let at = |within: u64| self.lower.checked_add(within);
        Some(at(held.start)?..at(held.end)?)
    }
}

impl ChunkLayout {
    /// Bytes of the lane that hold a range that is not empty, counted from the lane's start.
    fn held(&self, range: Range<u64>) -> Option<Range<u64>> {
        let (chunk, width) = (u128::from(self.chunk), u128::from(self.width));
        let (copies, lane) = (u128::from(self.copies), u128::from(self.lane));
        let (start, last) = (u128::from(range.start), u128::from(range.end - 1));
        // Row r of the lane holds the copy numbered r * width + lane, which is of this chunk.
        let chunk_of = |row: u128| (row * width + lane) / copies;
        let (first_chunk, last_chunk) = (start / chunk, last / chunk);
        // The first row with a copy of the first chunk or a later one, and the last row with one of
        // the last chunk or an earlier one.
        let first = (first_chunk * copies).saturating_sub(lane).div_ceil(width);
        let end = last_chunk * copies + copies - 1;
        let last_row = end.checked_sub(lane)? / width;
        if first > last_row {
            return None;
        }
        let from = match chunk_of(first) == first_chunk {
            true => start % chunk,
            false => 0,
        };
        let to = match chunk_of(last_row) == last_chunk {
            true => last % chunk + 1,
            false => chunk,
        };
        let at = |place: u128| u64::try_from(place).ok();
        Some(at(first * chunk + from)?..at(last_row * chunk + to)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use record::Ranges;

    /// Positions of every copy of every byte, distributed chunk by chunk.
    fn dealt(deal: &ChunkLayout, size: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        let (mut lane, mut row) = (0, 0);
        for chunk in 0..size.div_ceil(deal.chunk) {
            for _ in 0..deal.copies {
                if lane == deal.lane {
                    for byte in 0..deal.chunk {
                        out.push((chunk * deal.chunk + byte, row * deal.chunk + byte));
                    }
                }
                lane += 1;
                if lane == deal.width {
                    (lane, row) = (0, row + 1);
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn a_range_goes_where_each_of_its_bytes_goes(
            chunk in 1_u64..9,
            width in 1_u64..7,
            copies in 1_u64..4,
            lane in 0_u64..7,
            (base, lower) in (0_u64..50, 0_u64..50),
            size in 1_u64..200,
            (start, len) in (0_u64..300, 1_u64..300),
        ) {
            let deal = ChunkLayout { chunk, width, copies: copies.min(width), lane: lane % width };
            let piece = MappedPiece { upper: base..base + size, lower, deal };
            let asked = start..start + len;
            let bytes = dealt(&deal, size).into_iter().filter(|(upper, _)| {
                *upper < size && asked.contains(&(upper + base))
            });
            let expected: Ranges = bytes.map(|(_, at)| at + lower..at + lower + 1).collect();
            let found: Ranges = piece.down(&asked).into_iter().collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn no_figures_overflow(
            chunk in 1_u64.., width in 1_u64.., lane: u64, start: u64, len: u64, lower: u64,
        ) {
            let deal = ChunkLayout { chunk, width, copies: 1, lane: lane % width };
            let piece = MappedPiece { upper: 0..u64::MAX, lower, deal };
            let _ = piece.down(&(start..start.saturating_add(len)));
        }
    }
}
