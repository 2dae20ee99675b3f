//! Aligned buffers for direct I/O.

use std::ops::Range;

/// Memory for parts of equal length, each aligned for direct I/O (open(2), O_DIRECT).
pub struct Buffer {
    bytes: Vec<u8>,
    /// Offset of the first part, in bytes.
    from: usize,
    /// Distance between parts, in bytes.
    stride: usize,
    /// Capacity in parts.
    room: usize,
    /// Number of parts in use, and their length in bytes.
    used: (usize, usize),
}

impl Buffer {
    const ALIGNMENT: usize = 4096;

    /// Memory for `parts` parts of `length` bytes, which are in use and zero.
    pub fn new(parts: usize, length: usize) -> Buffer {
        let stride = length.next_multiple_of(Self::ALIGNMENT);
        let bytes = vec![0; stride * parts + Self::ALIGNMENT];
        let from = bytes.as_ptr().align_offset(Self::ALIGNMENT);
        Buffer {
            bytes,
            // Alignment is not guaranteed; the kernel refuses an unaligned buffer, which is reported.
            from: if from <= Self::ALIGNMENT { from } else { 0 },
            stride,
            room: parts,
            used: (parts, length),
        }
    }

    /// Takes `parts` parts of `length` bytes into use, in new memory if they do not fit.
    pub fn reserve(&mut self, parts: usize, length: usize) {
        if !self.fits(parts, length) {
            *self = Buffer::new(parts, length);
        }
        self.set(parts, length);
    }

    /// True if `parts` parts of `length` bytes fit.
    fn fits(&self, parts: usize, length: usize) -> bool {
        parts <= self.room && length <= self.stride
    }

    /// Takes `parts` parts of `length` bytes into use, which must fit.
    pub fn set(&mut self, parts: usize, length: usize) {
        self.used = (parts, length);
    }

    /// A part in use, mutable.
    pub fn part_mut(&mut self, index: usize) -> &mut [u8] {
        let from = self.from + index * self.stride;
        &mut self.bytes[from..from + self.used.1]
    }

    /// A part in use.
    pub fn part(&self, index: usize) -> &[u8] {
        let from = self.from + index * self.stride;
        &self.bytes[from..from + self.used.1]
    }

    /// The bytes `within` of each part in use.
    pub fn parts(&self, within: Range<usize>) -> Vec<&[u8]> {
        (0..self.used.0)
            .map(|index| &self.part(index)[within.clone()])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zero() {
        for length in [512, 4096, 1 << 20] {
            let buffer = Buffer::new(2, length);
            let parts = buffer.parts(0..length);
            assert_eq!(parts.len(), 2);
            for part in parts {
                assert!(part.as_ptr().addr().is_multiple_of(Buffer::ALIGNMENT));
                assert!(part.iter().all(|byte| *byte == 0));
            }
        }
    }
}
