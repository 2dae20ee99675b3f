//! The compressed streams of a block, and its checksum.

use std::cell::RefCell;

use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output, create_comp_flags_from_zip_params,
};
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use record::varint::{put, take};

/// Compression level.
const LEVEL: i32 = 6;
/// Use only matches of six bytes or more (zlib's `Z_FILTERED`): the data is mostly noise, in which shorter matches cost
/// more than they save.
const FILTERED: i32 = 1;
/// Raw deflate: the block has one checksum for all of its streams.
const RAW: i32 = 0;

/// Aim of packing: size or speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PackingGoal {
    /// Small size, for data that is kept.
    #[default]
    Room,
    /// Speed, for data that is read once and dropped: columns are not compressed, since that takes most of the time.
    Time,
}

/// Appends a stream: its length, its stored length, and its bytes, compressed if that is shorter.
pub(super) fn put_stream(out: &mut Vec<u8>, stream: &[u8]) {
    put(out, stream.len() as u64);
    if stream.is_empty() {
        return;
    }
    let packed = deflated(stream).filter(|packed| packed.len() < stream.len());
    put_body(out, packed.as_deref().unwrap_or(stream));
}

/// Appends a stream of figures, which is compressed only if the goal is small size.
pub(super) fn put_figures(out: &mut Vec<u8>, stream: &[u8], aim: PackingGoal) {
    match aim {
        PackingGoal::Room => put_stream(out, stream),
        PackingGoal::Time => {
            put(out, stream.len() as u64);
            if !stream.is_empty() {
                put_body(out, stream);
            }
        }
    }
}

fn put_body(out: &mut Vec<u8>, body: &[u8]) {
    put(out, body.len() as u64);
    out.extend_from_slice(body);
}

/// Takes a stream of at most `limit` bytes off the front.
pub(super) fn take_stream(rest: &mut &[u8], limit: usize) -> Option<Vec<u8>> {
    let length = usize::try_from(take(rest)?).ok()?;
    if length == 0 {
        return Some(Vec::new());
    }
    let here = usize::try_from(take(rest)?).ok()?;
    if length > limit || here > rest.len() {
        return None;
    }
    let (body, tail) = rest.split_at(here);
    *rest = tail;
    if here == length {
        return Some(body.to_vec());
    }
    let stream = decompress_to_vec_with_limit(body, length).ok()?;
    (stream.len() == length).then_some(stream)
}

thread_local! {
    /// The compressor. It is reused, so that its third of a megabyte is not allocated for each of the hundred streams
    /// of a block.
    static COMPRESSOR: RefCell<CompressorOxide> =
        RefCell::new(CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL, RAW, FILTERED)));
}

fn deflated(stream: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::new();
    let status = COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.reset();
        let (status, _) = compress_to_output(compressor, stream, TDEFLFlush::Finish, |bytes| {
            packed.extend_from_slice(bytes);
            true
        });
        status
    });
    (status == TDEFLStatus::Done).then_some(packed)
}

/// A checksum of bytes that detects damage: FNV-1a of 64 bits (Fowler, Noll, Vo).
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use record::varint::{folded, unfolded};

    use super::*;

    proptest! {
        #[test]
        fn integers_and_streams_come_back(
            values in vec(any::<i64>(), 0..20),
            stream in vec(0..4_u8, 0..400),
        ) {
            let mut out = Vec::new();
            for value in &values {
                put(&mut out, folded(*value));
            }
            put_stream(&mut out, &stream);
            put_figures(&mut out, &stream, PackingGoal::Time);
            let mut rest = &out[..];
            for value in values {
                prop_assert_eq!(take(&mut rest).map(unfolded), Some(value));
            }
            prop_assert_eq!(take_stream(&mut rest, 400), Some(stream.clone()));
            prop_assert_eq!(take_stream(&mut rest, 400), Some(stream));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn bytes_that_are_no_stream_are_refused_and_never_a_panic(bytes in vec(any::<u8>(), 0..60)) {
            let _ = take_stream(&mut &bytes[..], 1 << 16);
            let _ = take(&mut &bytes[..]);
        }
    }
}
