//! A position: the number of a file and an offset in it, packed into one integer.

/// Number of bits of the offset in a position; the other bits are the number of the file. No file is larger than a
/// PiB, and at most as many files are opened as the other bits can represent.
const FILE_BITS: u32 = 50;

/// The position at `offset` in file `file`.
pub(crate) fn position_in(file: u64, offset: u64) -> u64 {
    file << FILE_BITS | offset
}

/// The file of a position, and the offset in it.
#[inline(always)]
pub(crate) fn in_file(position: u64) -> (u64, u64) {
    (position >> FILE_BITS, position & ((1 << FILE_BITS) - 1))
}
