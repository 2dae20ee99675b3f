//! Content of a device, sampled before it is measured.

use std::fs::File;
use std::os::unix::fs::FileExt;

use record::Bytes;

/// Number of blocks that are examined: enough to distinguish a half from nearly none. On a cold volume each may take
/// tens of milliseconds.
const SAMPLED_BLOCKS: u64 = 32;
/// Size of a block, and alignment of memory for direct I/O.
const BLOCK: usize = 4096;

/// The share of blocks, evenly spread over the first `span` bytes, that hold only zeros, 0 to 1. `None` if they cannot
/// be read; the measurement will report the reason.
pub(super) fn zero_fraction(file: &File, span: Bytes) -> Option<f64> {
    let blocks = span.0 / BLOCK as u64;
    let samples = SAMPLED_BLOCKS.min(blocks);
    let mut memory = vec![0; 2 * BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let block = memory.get_mut(start..start + BLOCK)?;
    let mut zeros = 0;
    for sample in 0..samples {
        // The middle of each part: the first block of a device is seldom like the others.
        let place = (2 * sample + 1) * blocks / (2 * samples);
        file.read_exact_at(block, place * BLOCK as u64).ok()?;
        zeros += u64::from(block.iter().all(|byte| *byte == 0));
    }
    (samples > 0).then(|| zeros as f64 / samples as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn zeros_are_distinguished_from_data() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![0; 64 * BLOCK]).unwrap();
        assert_eq!(zero_fraction(&file, Bytes::kib(256)), Some(1.0));
        file.write_all(&vec![7; 64 * BLOCK]).unwrap();
        assert_eq!(zero_fraction(&file, Bytes::kib(512)), Some(0.5));
        assert_eq!(zero_fraction(&file, Bytes::gib(1)), None);
        assert_eq!(zero_fraction(&file, Bytes(512)), None);
    }
}
