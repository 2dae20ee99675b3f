//! The four compression codecs of record batches, each with a limit on the decompressed size.

use std::io::{self, Read};

use super::wire::protocol_error;

/// Maximum decompressed bytes of a batch.
const MAX_BATCH_BYTES: usize = 128 << 20;

/// Magic number of Snappy blocks in the framing of Java's library (xerial).
const XERIAL: &[u8] = b"\x82SNAPPY\0";

/// Decompresses the records of a batch; `kind` is the codec in its attributes.
pub(super) fn unpacked(kind: i16, bytes: &[u8]) -> io::Result<Vec<u8>> {
    match kind {
        1 => read_all(flate2::read::MultiGzDecoder::new(bytes)),
        2 => snappy(bytes),
        3 => lz4(bytes),
        4 => {
            let frame = ruzstd::decoding::StreamingDecoder::new(bytes);
            read_all(frame.map_err(|error| io::Error::other(error.to_string()))?)
        }
        _ => Err(protocol_error()),
    }
}

fn read_all(packed: impl Read) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    let length = packed
        .take(MAX_BATCH_BYTES as u64 + 1)
        .read_to_end(&mut found)?;
    match length > MAX_BATCH_BYTES {
        true => Err(protocol_error()),
        false => Ok(found),
    }
}

/// Snappy: one block, or blocks with their lengths before them.
fn snappy(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    if !bytes.starts_with(XERIAL) {
        snappy_block(bytes, &mut found)?;
        return Ok(found);
    }
    // Two versions follow the name.
    let mut rest = bytes.get(16..).ok_or_else(protocol_error)?;
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (block, next) = behind
            .split_at_checked(u32::from_be_bytes(*length) as usize)
            .ok_or_else(protocol_error)?;
        snappy_block(block, &mut found)?;
        rest = next;
    }
    Ok(found)
}

/// A block: its length, then literals and copies of earlier output.
fn snappy_block(block: &[u8], found: &mut Vec<u8>) -> io::Result<()> {
    let begin = found.len();
    let (mut length, mut shift, mut at) = (0_usize, 0, 0);
    loop {
        let byte = *block.get(at).ok_or_else(protocol_error)?;
        at += 1;
        length |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
        if shift > 28 {
            return Err(protocol_error());
        }
    }
    while at < block.len() {
        let tag = usize::from(block[at]);
        at += 1;
        let little = |at: usize, count: usize| -> io::Result<usize> {
            let bytes = block.get(at..at + count).ok_or_else(protocol_error)?;
            Ok(bytes
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
        };
        match tag & 3 {
            0 => {
                let mut count = (tag >> 2) + 1;
                if count > 60 {
                    let extra = count - 60;
                    count = little(at, extra)? + 1;
                    at += extra;
                }
                found.extend_from_slice(block.get(at..at + count).ok_or_else(protocol_error)?);
                at += count;
            }
            1 => {
                copy(
                    found,
                    begin,
                    (tag >> 5) << 8 | little(at, 1)?,
                    (tag >> 2 & 7) + 4,
                )?;
                at += 1;
            }
            2 => {
                copy(found, begin, little(at, 2)?, (tag >> 2) + 1)?;
                at += 2;
            }
            _ => {
                copy(found, begin, little(at, 4)?, (tag >> 2) + 1)?;
                at += 4;
            }
        }
        check(found, begin + length)?;
    }
    match found.len() == begin + length {
        true => Ok(()),
        false => Err(protocol_error()),
    }
}

/// Returns an error if more was decompressed than announced or allowed.
fn check(found: &[u8], end: usize) -> io::Result<()> {
    match found.len() > end.min(MAX_BATCH_BYTES) {
        true => Err(protocol_error()),
        false => Ok(()),
    }
}

/// Appends `count` bytes from `back` bytes before the end. They may overlap the appended bytes.
fn copy(found: &mut Vec<u8>, begin: usize, back: usize, count: usize) -> io::Result<()> {
    let from = found.len().checked_sub(back).filter(|from| *from >= begin);
    let from = from.filter(|_| back > 0).ok_or_else(protocol_error)?;
    for place in from..from + count {
        found.push(found[place]);
    }
    Ok(())
}

/// Flags and sizes of an LZ4 frame.
mod frame {
    pub(super) const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
    pub(super) const BLOCK_CHECKSUMS: u8 = 0x10;
    pub(super) const CONTENT_SIZE: u8 = 0x08;
    pub(super) const DICTIONARY: u8 = 0x01;
    pub(super) const UNPACKED: u32 = 0x8000_0000;
}

/// LZ4's frame format. Its checksums are not verified, as the batch has one of its own.
fn lz4(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    let rest = bytes
        .strip_prefix(&frame::MAGIC)
        .ok_or_else(protocol_error)?;
    let flags = *rest.first().ok_or_else(protocol_error)?;
    if flags & frame::DICTIONARY != 0 {
        return Err(protocol_error());
    }
    let size = if flags & frame::CONTENT_SIZE != 0 {
        8
    } else {
        0
    };
    // Flags, the largest block, the size, and a checksum of these.
    let mut rest = rest.get(3 + size..).ok_or_else(protocol_error)?;
    loop {
        let (head, behind) = rest.split_first_chunk().ok_or_else(protocol_error)?;
        let head = u32::from_le_bytes(*head);
        if head == 0 {
            return Ok(found);
        }
        let length = (head & !frame::UNPACKED) as usize;
        let (block, behind) = behind.split_at_checked(length).ok_or_else(protocol_error)?;
        match head & frame::UNPACKED {
            0 => lz4_block(block, &mut found)?,
            _ => found.extend_from_slice(block),
        }
        check(&found, MAX_BATCH_BYTES)?;
        let checksum = if flags & frame::BLOCK_CHECKSUMS != 0 {
            4
        } else {
            0
        };
        rest = behind.get(checksum..).ok_or_else(protocol_error)?;
    }
}

/// A block: literals, and copies of earlier output, also from an earlier block.
fn lz4_block(block: &[u8], found: &mut Vec<u8>) -> io::Result<()> {
    let mut at = 0;
    let length = |at: &mut usize, short: usize| -> io::Result<usize> {
        let mut sum = short;
        if short == 15 {
            loop {
                let byte = *block.get(*at).ok_or_else(protocol_error)?;
                *at += 1;
                sum += usize::from(byte);
                if byte < 255 {
                    break;
                }
            }
        }
        Ok(sum)
    };
    while at < block.len() {
        let token = usize::from(block[at]);
        at += 1;
        let literals = length(&mut at, token >> 4)?;
        found.extend_from_slice(block.get(at..at + literals).ok_or_else(protocol_error)?);
        at += literals;
        if at == block.len() {
            // The last sequence has no copy.
            return Ok(());
        }
        let back = block.get(at..at + 2).ok_or_else(protocol_error)?;
        let back = usize::from(u16::from_le_bytes([back[0], back[1]]));
        at += 2;
        let count = length(&mut at, token & 15)? + 4;
        if found.len() + count > MAX_BATCH_BYTES {
            return Err(protocol_error());
        }
        copy(found, 0, back, count)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_with_copies_are_unpacked() {
        // A literal "ab", and a copy of 8 bytes from 2 back.
        let mut found = Vec::new();
        snappy_block(&[10, 1 << 2, b'a', b'b', (8 - 4) << 2 | 1, 2], &mut found).unwrap();
        assert_eq!(found, b"ababababab");
        let mut found = Vec::new();
        lz4_block(&[0x24, b'a', b'b', 2, 0, 0x10, b'c'], &mut found).unwrap();
        assert_eq!(
            found,
            b"ababababab"
                .iter()
                .chain(b"c")
                .copied()
                .collect::<Vec<_>>()
        );
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_fault(kind in 0_i16..6, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpacked(kind, &bytes);
            let _ = unpacked(2, &[XERIAL, &[0; 8], &bytes].concat());
            let _ = unpacked(3, &[&frame::MAGIC[..], &[0x40, 0x40, 0], &bytes].concat());
        }
    }
}
