//! Blocks that can be verified by themselves: the header has the offset, the number of the write and a checksum.

use std::fmt;

use record::{Verify, crc32c};

use crate::positions::in_file;

/// First bytes of each header.
const MAGIC: u64 = u64::from_le_bytes(*b"dsverify");
/// Length of a header: magic, offset, number, length, checksum.
pub(crate) const HEADER: usize = 32;
const SUM: usize = 28;
/// Distance between the words that make pages without a header unique, in bytes.
const PAGE: usize = 4096;

/// Layout of blocks.
pub(super) struct Layout {
    interval: Option<usize>,
    header_at: usize,
    pattern: Vec<u8>,
    pattern_only: bool,
}

/// Mismatch between the data that was read and the data written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    NoHeader,
    Offset { found: u64 },
    Length { found: u32 },
    Sum,
    Number { found: u64, wanted: u64 },
    Pattern { at: usize },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::NoHeader => write!(f, "it has no header, so this job did not write it"),
            Mismatch::Offset { found } => write!(f, "it holds the data of byte {found}"),
            Mismatch::Length { found } => write!(f, "it was written as {found} bytes"),
            Mismatch::Sum => write!(f, "its checksum does not match"),
            Mismatch::Number { found, wanted } => {
                write!(f, "it holds write {found} in place of write {wanted}")
            }
            Mismatch::Pattern { at } => write!(f, "byte {at} of it is not the pattern's"),
        }
    }
}

impl Layout {
    pub(super) fn of(verify: &Verify) -> Layout {
        Layout {
            interval: verify.interval.map(|interval| interval.0 as usize),
            header_at: verify.header_at as usize,
            pattern: verify.pattern.clone(),
            pattern_only: verify.pattern_only,
        }
    }

    /// Fills the data of write `number` at `position`.
    pub(super) fn fill(&self, data: &mut [u8], position: u64, number: u64) {
        let (_, start) = in_file(position);
        let interval = self.interval.unwrap_or(data.len()).max(1);
        for (index, block) in data.chunks_mut(interval).enumerate() {
            let offset = start + (index * interval) as u64;
            if self.pattern.is_empty() {
                vary(block, offset ^ number.rotate_left(32));
            } else {
                repeat(block, &self.pattern);
            }
            if self.pattern_only || block.len() < HEADER {
                continue;
            }
            let at = self.header_of(block);
            let length = block.len() as u32;
            let header = &mut block[at..at + HEADER];
            header[..8].copy_from_slice(&MAGIC.to_le_bytes());
            header[8..16].copy_from_slice(&offset.to_le_bytes());
            header[16..24].copy_from_slice(&number.to_le_bytes());
            header[24..SUM].copy_from_slice(&length.to_le_bytes());
            let sum = sum(block, at);
            block[at + SUM..at + HEADER].copy_from_slice(&sum.to_le_bytes());
        }
    }

    /// Checks `data`, which was read at `position`; `number` is that of its last write, if known.
    pub(super) fn check(
        &self,
        data: &[u8],
        position: u64,
        number: Option<u64>,
    ) -> Result<(), Mismatch> {
        let (_, start) = in_file(position);
        let interval = self.interval.unwrap_or(data.len()).max(1);
        for (index, block) in data.chunks(interval).enumerate() {
            let offset = start + (index * interval) as u64;
            if self.pattern_only {
                self.check_pattern(block, None)?;
            } else if block.len() >= HEADER {
                self.check_block(block, offset, number)?;
            }
        }
        Ok(())
    }

    fn check_block(&self, block: &[u8], offset: u64, number: Option<u64>) -> Result<(), Mismatch> {
        let at = self.header_of(block);
        if word(block, at) != MAGIC {
            return Err(Mismatch::NoHeader);
        }
        let length = half(block, at + 24);
        if length as usize != block.len() {
            return Err(Mismatch::Length { found: length });
        }
        if half(block, at + SUM) != sum(block, at) {
            return Err(Mismatch::Sum);
        }
        let found = word(block, at + 8);
        if found != offset {
            return Err(Mismatch::Offset { found });
        }
        let found = word(block, at + 16);
        if let Some(wanted) = number
            && found != wanted
        {
            return Err(Mismatch::Number { found, wanted });
        }
        match self.pattern.is_empty() {
            true => Ok(()),
            false => self.check_pattern(block, Some(at)),
        }
    }

    fn check_pattern(&self, block: &[u8], header: Option<usize>) -> Result<(), Mismatch> {
        let is_header = |at: usize| header.is_some_and(|from| (from..from + HEADER).contains(&at));
        let other = block
            .iter()
            .zip(self.pattern.iter().cycle())
            .enumerate()
            .position(|(at, (found, wanted))| found != wanted && !is_header(at));
        match other {
            None => Ok(()),
            Some(at) => Err(Mismatch::Pattern { at }),
        }
    }

    /// Offset of the header in a block, which may be shorter at the end of a request.
    fn header_of(&self, block: &[u8]) -> usize {
        self.header_at.min(block.len() - HEADER)
    }
}

/// Fills a block with repetitions of the pattern.
fn repeat(block: &mut [u8], pattern: &[u8]) {
    for part in block.chunks_mut(pattern.len()) {
        part.copy_from_slice(&pattern[..part.len()]);
    }
}

/// Makes each page of a block unique, so that no device deduplicates it.
fn vary(block: &mut [u8], by: u64) {
    for (index, page) in block.chunks_mut(PAGE).enumerate() {
        if let Some(word) = page.first_chunk_mut::<8>() {
            *word = record::random::mix(by ^ ((index as u64) << 50)).to_le_bytes();
        }
    }
}

/// The checksum of a block, without the checksum field.
fn sum(block: &[u8], header: usize) -> u32 {
    let before = crc32c(0, &block[..header + SUM]);
    crc32c(before, &block[header + HEADER..])
}

fn word(block: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(word)
}

fn half(block: &[u8], at: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&block[at..at + 4]);
    u32::from_le_bytes(half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use record::Bytes;

    pub(crate) fn verify() -> Verify {
        Verify {
            interval: None,
            header_at: 0,
            pattern: Vec::new(),
            pattern_only: false,
            reads_back: true,
            backlog: 0,
            in_sequence: true,
            fatal: false,
        }
    }

    fn layout(change: impl Fn(&mut Verify)) -> Layout {
        let mut verify = verify();
        change(&mut verify);
        Layout::of(&verify)
    }

    #[test]
    fn each_kind_of_damage_has_its_name() {
        let layout = layout(|_| {});
        let mut data = vec![7; 16 << 10];
        layout.fill(&mut data, 8192, 42);
        assert_eq!(layout.check(&data, 8192, Some(42)), Ok(()));
        assert_eq!(layout.check(&data, 8192, None), Ok(()));
        let number = Mismatch::Number {
            found: 42,
            wanted: 43,
        };
        assert_eq!(layout.check(&data, 8192, Some(43)), Err(number));
        let position = Mismatch::Offset { found: 8192 };
        assert_eq!(layout.check(&data, 0, Some(42)), Err(position));
        let length = Mismatch::Length { found: 16 << 10 };
        assert_eq!(layout.check(&data[..4096], 8192, None), Err(length));
        data[9000] ^= 1;
        assert_eq!(layout.check(&data, 8192, None), Err(Mismatch::Sum));
        assert_eq!(layout.check(&[0; 512], 0, None), Err(Mismatch::NoHeader));
    }

    #[test]
    fn a_pattern_fills_all_but_the_header() {
        let layout = layout(|verify| {
            verify.interval = Some(Bytes(512));
            verify.pattern = vec![0xaa, 0x55, 0x5a];
        });
        let mut data = vec![0; 2048];
        layout.fill(&mut data, 0, 1);
        assert_eq!(layout.check(&data, 0, Some(1)), Ok(()));
        // Position 34 of a block is byte 1 of the pattern.
        assert_eq!((data[HEADER + 2], data[512 + HEADER + 2]), (0x55, 0x55));
        data[600] ^= 8;
        assert_eq!(layout.check(&data, 0, Some(1)), Err(Mismatch::Sum));
    }

    #[test]
    fn a_pattern_alone_is_compared_byte_by_byte() {
        let layout = layout(|verify| {
            verify.pattern = b"abc".to_vec();
            verify.pattern_only = true;
        });
        let mut data = vec![0; 1024];
        layout.fill(&mut data, 4096, 9);
        assert_eq!(&data[..6], b"abcabc");
        assert_eq!(layout.check(&data, 0, Some(3)), Ok(()));
        data[700] = b'!';
        let found = layout.check(&data, 0, None);
        assert_eq!(found, Err(Mismatch::Pattern { at: 700 }));
    }

    proptest! {
        #[test]
        fn no_flipped_bit_is_missed(
            bit in 0_usize..8 * 4096,
            header_at in 0_u32..480,
            number in any::<u64>(),
        ) {
            let layout = layout(|verify| {
                verify.interval = Some(Bytes(512));
                verify.header_at = header_at;
            });
            let mut data = vec![3; 4096];
            layout.fill(&mut data, 4096, number);
            prop_assert_eq!(layout.check(&data, 4096, Some(number)), Ok(()));
            data[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(layout.check(&data, 4096, Some(number)).is_err());
        }
    }
}
