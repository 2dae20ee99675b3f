//! Frames around blocks: kind, lengths, checksum, and the block's bytes, compressed with deflate.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 to 3 | `dsTB` |
//! | 4 | kind |
//! | 5 to 7 | 0 |
//! | 8 to 11 | length of the packed bytes, little-endian |
//! | 12 to 15 | length of the block, little-endian |
//! | 16 to 19 | CRC-32 of bytes 4 to 15 and of the packed bytes, little-endian |
//! | 20 … | packed bytes |

use std::io::{self, BufRead, Read as _, Write as _};

use flate2::write::{DeflateDecoder, DeflateEncoder};
use flate2::{Compression, Crc};

const MAGIC: &[u8; 4] = b"dsTB";
const HEAD: usize = 20;
/// Maximum length of a block, so that a reader's memory is bounded.
pub(super) const MAX_BLOCK_BYTES: usize = 1 << 20;

/// Kind of a block of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Description of the trace.
    Head,
    /// I/Os.
    Ios,
    /// End of the trace, in a file that was closed.
    End,
    /// A kind of a later version, which is skipped.
    Unknown,
}

impl BlockKind {
    fn code(self) -> u8 {
        match self {
            BlockKind::Unknown => 0,
            BlockKind::Head => 1,
            BlockKind::Ios => 2,
            BlockKind::End => 3,
        }
    }

    fn of(code: u8) -> BlockKind {
        let known = [BlockKind::Head, BlockKind::Ios, BlockKind::End].into_iter();
        let mut found = known.filter(|kind| kind.code() == code);
        found.next().unwrap_or(BlockKind::Unknown)
    }
}

/// A frame around a block.
pub(super) fn pack(kind: BlockKind, block: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(4));
    // Writing to memory does not fail.
    let _ = encoder.write_all(block);
    let packed = encoder.finish().unwrap_or_default();
    let mut described = [0; 12];
    described[0] = kind.code();
    described[4..8].copy_from_slice(&(packed.len() as u32).to_le_bytes());
    described[8..].copy_from_slice(&(block.len() as u32).to_le_bytes());
    let sum = checksum(&described, &packed).to_le_bytes();
    [&MAGIC[..], &described, &sum, &packed].concat()
}

fn checksum(described: &[u8], packed: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(described);
    crc.update(packed);
    crc.sum()
}

/// Result of reading a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A block.
    Whole(BlockKind, Vec<u8>),
    /// The checksum is wrong; the next frame follows.
    Damaged(&'static str),
    /// The bytes are not the beginning of a frame.
    Lost,
    /// The file ends within a frame.
    Cut,
    /// The file ends.
    End,
}

/// Reads the next frame, and the number of bytes that it took.
pub(super) fn read(source: &mut impl BufRead) -> io::Result<(Frame, u64)> {
    let mut head = Vec::new();
    source.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    let taken = head.len() as u64;
    if head.is_empty() {
        return Ok((Frame::End, taken));
    }
    if head.len() < HEAD {
        return Ok((Frame::Cut, taken));
    }
    let (described, sum) = (&head[4..16], &head[16..]);
    let length = |at: usize| {
        let bytes = [
            described[at],
            described[at + 1],
            described[at + 2],
            described[at + 3],
        ];
        u32::from_le_bytes(bytes) as usize
    };
    let (packed_length, length) = (length(4), length(8));
    // Deflate adds 5 bytes for each 16 KiB that it cannot compress, and a few at the end.
    if !head.starts_with(MAGIC)
        || length > MAX_BLOCK_BYTES
        || packed_length > MAX_BLOCK_BYTES + MAX_BLOCK_BYTES / 1024
    {
        return Ok((Frame::Lost, taken));
    }
    let mut packed = Vec::new();
    source.take(packed_length as u64).read_to_end(&mut packed)?;
    let taken = taken + packed.len() as u64;
    if packed.len() < packed_length {
        return Ok((Frame::Cut, taken));
    }
    if checksum(described, &packed).to_le_bytes() != *sum {
        return Ok((Frame::Damaged("the checksum of a block is wrong"), taken));
    }
    let frame = match unpack(&packed, length) {
        Some(block) => Frame::Whole(BlockKind::of(described[0]), block),
        None => Frame::Damaged("a block cannot be unpacked"),
    };
    Ok((frame, taken))
}

/// A writer that accepts a bounded number of bytes.
struct Bounded(Vec<u8>, usize);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > self.1 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unpack(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut decoder = DeflateDecoder::new(Bounded(Vec::with_capacity(length), length));
    decoder.write_all(packed).ok()?;
    let block = decoder.finish().ok()?.0;
    (block.len() == length).then_some(block)
}
