//! Blank ranges: the first and the last 16 MiB and 256 samples in between are zeros.
//!
//! A device that was recreated, zeroed or discarded reads as zeros. The samples are evenly spaced at fixed positions,
//! so that two readings of one device agree.

use std::io;

use super::region::Region;

/// Number of bytes read at either end.
const EDGE_BYTES: u64 = 16 << 20;
/// Number of samples in between.
const SAMPLES: u64 = 256;
/// The size of a sample.
const SAMPLE: u64 = 4096;
/// Size of one read, in bytes.
const PIECE: u64 = 1 << 20;

/// Position of the first nonzero byte that is found; `None` if the range counts as blank.
///
/// # Errors
/// The kernel's error of a read: a device that cannot be read does not count as blank.
pub(super) fn first_data(region: &Region) -> io::Result<Option<u64>> {
    let size = region.size;
    let head = EDGE_BYTES.min(size);
    let tail = size.saturating_sub(EDGE_BYTES).max(head);
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
        if let Some(data) = first_not_zero(&bytes) {
            return Ok(Some(at + data as u64));
        }
    }
    Ok(None)
}

/// Compares blocks first, and searches bytes only in a block that differs: this is most of the work on an empty disk.
fn first_not_zero(bytes: &[u8]) -> Option<usize> {
    const ZEROS: [u8; SAMPLE as usize] = [0; SAMPLE as usize];
    let differs = |block: &&[u8]| ZEROS.get(..block.len()) != Some(*block);
    let (number, block) = bytes
        .chunks(ZEROS.len())
        .enumerate()
        .find(|(_, block)| differs(block))?;
    let within = block.iter().position(|&byte| byte != 0)?;
    Some(number * ZEROS.len() + within)
}

#[cfg(test)]
mod tests {
    use super::first_not_zero;

    #[test]
    fn the_first_byte_that_is_not_zero_is_found_wherever_it_is() {
        for length in [0, 1, 4096, 10_000] {
            let mut bytes = vec![0; length];
            assert_eq!(first_not_zero(&bytes), None);
            for at in (0..length)
                .rev()
                .filter(|at| at % 997 == 0 || at % 4096 == 4095)
            {
                bytes[at] = 1;
                assert_eq!(first_not_zero(&bytes), Some(at), "{at} of {length}");
            }
        }
    }
}
