//! Blank ranges: the first and the last 16 MiB and 256 samples between are zeros.
//!
//! A device that was made again, zeroed or discarded reads as zeros. Samples are spread evenly at places that
//! are always the same, so that two looks at one device agree.

use std::io;

use super::region::Region;

/// Bytes read at either end.
const EDGE: u64 = 16 << 20;
/// Number of samples read between.
const SAMPLES: u64 = 256;
/// The size of a sample.
const SAMPLE: u64 = 4096;
/// Bytes of one read.
const PIECE: u64 = 1 << 20;

/// Position of the first byte found that is not zero; `None` where the range counts as blank.
///
/// # Errors
/// The kernel's error of a read: a device that cannot be read is not known to be blank.
pub(super) fn first_data(region: &Region) -> io::Result<Option<u64>> {
    let size = region.size;
    let head = EDGE.min(size);
    let tail = size.saturating_sub(EDGE).max(head);
    let pieces = |from: u64, to: u64| {
        (from..to)
            .step_by(PIECE as usize)
            .map(move |at| (at, PIECE.min(to - at)))
    };
    let between = tail - head;
    let samples = (0..SAMPLES)
        .map(|number| {
            head + (u128::from(between) * u128::from(number) / u128::from(SAMPLES)) as u64
        })
        .map(|at| at - at % SAMPLE)
        .filter(|_| between > 0)
        .map(|at| (at, SAMPLE));
    for (at, length) in pieces(0, head).chain(pieces(tail, size)).chain(samples) {
        let bytes = region.read(at, length)?;
        if let Some(data) = bytes.iter().position(|&byte| byte != 0) {
            return Ok(Some(at + data as u64));
        }
    }
    Ok(None)
}
