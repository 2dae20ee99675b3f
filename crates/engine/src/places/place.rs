//! A place: a file, and the position in it.

/// Bits of a place that are the position in its file; the others are the file's number. No file is larger (a
/// PiB), and more files than fit into the rest are not opened.
const FILE_BITS: u32 = 50;

/// The place at `offset` in file `file`.
pub(crate) fn place_in(file: u64, offset: u64) -> u64 {
    file << FILE_BITS | offset
}

/// The file of a place, and the position in it.
#[inline(always)]
pub(crate) fn in_file(place: u64) -> (u64, u64) {
    (place >> FILE_BITS, place & ((1 << FILE_BITS) - 1))
}
