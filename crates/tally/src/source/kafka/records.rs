//! Record batches (version 2), as brokers store and send them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;

use super::compression::unpacked;
use super::wire::{ByteReader, protocol_error};

/// Bits of a batch's attributes.
const COMPRESSION: i16 = 7;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
/// Length of a batch without records, from the end of its length field on.
const MIN_BATCH_BYTES: usize = 49;

/// A transaction that was aborted, from its first record on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aborted {
    pub(super) producer: i64,
    pub(super) first: i64,
}

/// Events of a batch, and the offset after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Values of its records, each followed by a newline.
    pub(super) lines: Vec<u8>,
    pub(super) end: i64,
}

/// The batches in the bytes of a partition, without records before `from`, aborted records, and an incomplete batch at
/// the end.
///
/// # Errors
/// Where a batch is damaged, or of a version before Kafka 0.11.
pub(super) fn batches(bytes: &[u8], from: i64, aborted: &[Aborted]) -> io::Result<Vec<Batch>> {
    let mut found = Vec::new();
    let mut rest = ByteReader(bytes);
    let mut pending = aborted.to_vec();
    pending.sort_by_key(|one| std::cmp::Reverse(one.first));
    // Producers with an aborted transaction, up to the batch that ends it.
    let mut open: HashSet<i64> = HashSet::new();
    while rest.0.len() >= 12 {
        let (base, length) = (rest.i64()?, rest.i32()?);
        let length = usize::try_from(length).map_err(|_| protocol_error())?;
        if rest.0.len() < length {
            break;
        }
        let batch = PackedBatch::read(base, ByteReader(rest.take(length)?))?;
        while let Some(begun) = pending.pop_if(|one| one.first <= batch.last()) {
            open.insert(begun.producer);
        }
        let is_aborted = batch.attributes & TRANSACTIONAL != 0 && open.contains(&batch.producer);
        let mut events = Batch {
            lines: Vec::new(),
            end: batch.last().saturating_add(1),
        };
        if batch.attributes & CONTROL != 0 {
            // The end of a transaction, aborted or not.
            open.remove(&batch.producer);
        } else if !is_aborted {
            batch.values(from, &mut events.lines)?;
        }
        if events.end > from {
            found.push(events);
        }
    }
    Ok(found)
}

/// A batch whose records may be compressed.
struct PackedBatch<'a> {
    base: i64,
    attributes: i16,
    last_delta: i32,
    producer: i64,
    count: i32,
    records: &'a [u8],
}

impl<'a> PackedBatch<'a> {
    fn read(base: i64, mut wire: ByteReader<'a>) -> io::Result<PackedBatch<'a>> {
        let _leader_epoch = wire.i32()?;
        if wire.i8()? != 2 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the topic has messages of a format before Kafka 0.11",
            ));
        }
        let checksum = wire.u32()?;
        if wire.0.len() + 9 < MIN_BATCH_BYTES || record::crc32c(0, wire.0) != checksum {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the batch at offset {base} is damaged: its checksum does not fit"),
            ));
        }
        let attributes = wire.i16()?;
        let last_delta = wire.i32()?;
        let _times = (wire.i64()?, wire.i64()?);
        let producer = wire.i64()?;
        let _epoch_and_sequence = (wire.i16()?, wire.i32()?);
        Ok(PackedBatch {
            base,
            attributes,
            last_delta,
            producer,
            count: wire.i32()?,
            records: wire.0,
        })
    }

    fn last(&self) -> i64 {
        self.base.saturating_add(i64::from(self.last_delta))
    }

    /// Appends the values of records from an offset on.
    fn values(&self, from: i64, into: &mut Vec<u8>) -> io::Result<()> {
        let records = match self.attributes & COMPRESSION {
            0 => Cow::Borrowed(self.records),
            kind => Cow::Owned(unpacked(kind, self.records)?),
        };
        let mut records = ByteReader(&records);
        for _ in 0..self.count {
            let length = usize::try_from(records.varint()?).map_err(|_| protocol_error())?;
            let mut record = ByteReader(records.take(length)?);
            let _attributes = record.i8()?;
            let _time = record.varint()?;
            let offset = self.base.saturating_add(record.varint()?);
            let _key = record.varbytes()?;
            if let Some(value) = record.varbytes()?
                && offset >= from
            {
                into.extend_from_slice(value);
                into.push(b'\n');
            }
        }
        Ok(())
    }
}

/// A batch as a producer makes it.
#[cfg(test)]
pub(super) fn packed(base: i64, attributes: i16, producer: i64, values: &[&[u8]]) -> Vec<u8> {
    let varint = |into: &mut Vec<u8>, number: i64| {
        record::varint::put(into, record::varint::folded(number));
    };
    let mut records = Vec::new();
    for (delta, value) in values.iter().enumerate() {
        let mut record = vec![0];
        varint(&mut record, 0);
        varint(&mut record, delta as i64);
        varint(&mut record, -1);
        varint(&mut record, value.len() as i64);
        record.extend_from_slice(value);
        varint(&mut record, 0);
        varint(&mut records, record.len() as i64);
        records.extend_from_slice(&record);
    }
    let count = values.len() as i32;
    with_checksum(base, (attributes, count - 1), producer, count, &records)
}

/// A batch with arbitrary fields and a correct checksum.
#[cfg(test)]
fn with_checksum(
    base: i64,
    (attributes, last_delta): (i16, i32),
    producer: i64,
    count: i32,
    records: &[u8],
) -> Vec<u8> {
    let mut body = attributes.to_be_bytes().to_vec();
    body.extend_from_slice(&last_delta.to_be_bytes());
    body.extend_from_slice(&[0; 16]);
    body.extend_from_slice(&producer.to_be_bytes());
    body.extend_from_slice(&[0; 6]);
    body.extend_from_slice(&count.to_be_bytes());
    body.extend_from_slice(records);
    let mut bytes = base.to_be_bytes().to_vec();
    bytes.extend_from_slice(&(body.len() as i32 + 9).to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 2]);
    bytes.extend_from_slice(&record::crc32c(0, &body).to_be_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        // From RFC 3720, appendix B.4: 32 bytes of zero, and of ones.
        assert_eq!(record::crc32c(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(record::crc32c(0, &[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn a_batch_is_read_from_an_offset_on_and_what_is_cut_off_is_not() {
        let mut bytes = packed(10, 0, -1, &[b"a", b"b", b"c"]);
        bytes.extend_from_slice(&packed(13, 0, -1, &[b"d"]));
        let all = batches(&bytes, 11, &[]).unwrap();
        let lines: Vec<(&[u8], i64)> = all.iter().map(|one| (&one.lines[..], one.end)).collect();
        assert_eq!(lines, [(&b"b\nc\n"[..], 13), (b"d\n", 14)]);
        assert_eq!(batches(&bytes[..bytes.len() - 1], 0, &[]).unwrap().len(), 1);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert!(
            batches(&bytes, 0, &[])
                .unwrap_err()
                .to_string()
                .contains("offset 13")
        );
    }

    /// Length of a batch before its records.
    const HEAD: usize = 61;
    /// Log segments of Kafka's broker 4.3.1, each of what its console producer packed: by their compression.
    const RECORDED: [&[u8]; 4] = [
        include_bytes!("recorded/gzip.batch"),
        include_bytes!("recorded/snappy.batch"),
        include_bytes!("recorded/lz4.batch"),
        include_bytes!("recorded/zstd.batch"),
    ];

    #[test]
    fn batches_of_the_real_broker_are_unpacked() {
        let line = |nth: u32| format!("shop.page.{}:{}|ms|T1760000000\n", nth % 4, nth * 37 % 900);
        let expected: String = (1..=40).map(line).collect();
        for recorded in RECORDED {
            let found = batches(recorded, 0, &[]).unwrap();
            let lines: Vec<u8> = found.iter().flat_map(|one| one.lines.clone()).collect();
            assert_eq!(String::from_utf8(lines).unwrap(), expected);
            assert_eq!(found.last().unwrap().end, 40);
            // From the middle of a batch on.
            let rest = batches(recorded, 39, &[]).unwrap();
            assert_eq!(rest.last().unwrap().lines, line(40).as_bytes());
        }
    }

    #[test]
    fn aborted_transactions_are_left_out() {
        let bytes = [
            packed(0, TRANSACTIONAL, 7, &[b"aborted"]),
            packed(1, TRANSACTIONAL, 8, &[b"committed"]),
            packed(2, TRANSACTIONAL | CONTROL, 7, &[b""]),
            packed(3, TRANSACTIONAL, 7, &[b"again"]),
            packed(4, TRANSACTIONAL | CONTROL, 8, &[b""]),
        ];
        let aborted = [Aborted {
            producer: 7,
            first: 0,
        }];
        let found = batches(&bytes.concat(), 0, &aborted).unwrap();
        let lines: Vec<u8> = found.iter().flat_map(|one| one.lines.clone()).collect();
        assert_eq!(lines, b"committed\nagain\n");
        assert_eq!(found.last().unwrap().end, 5);
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..300), from in any::<i64>()) {
            let _ = batches(&bytes, from, &[]);
        }

        #[test]
        fn no_fields_with_a_right_checksum_are_a_fault(
            base in prop_oneof![any::<i64>(), Just(i64::MAX)],
            fields in (0_i16..64, any::<i32>()),
            producer in 0_i64..3,
            count in -1_i32..5,
            records in prop::collection::vec(any::<u8>(), 0..200),
            from in prop_oneof![Just(0), any::<i64>()],
        ) {
            let bytes = with_checksum(base, fields, producer, count, &records);
            let aborted = [Aborted { producer: 1, first: i64::MIN }];
            let _ = batches(&bytes, from, &aborted);
        }

        #[test]
        fn records_of_the_real_broker_that_are_changed_are_no_fault(
            which in 0_usize..4,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            length in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            // Behind the head of a batch: its checksum is made anew.
            let mut records = RECORDED[which][HEAD..].to_vec();
            for (at, byte) in changes {
                let at = at.index(records.len());
                records[at] = byte;
            }
            if is_cut {
                records.truncate(length.index(records.len()));
            }
            let _ = batches(&with_checksum(0, (which as i16 + 1, 39), -1, 40, &records), 0, &[]);
        }
    }
}
