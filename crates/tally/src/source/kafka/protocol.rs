//! The requests of a consumer that keeps its offsets itself, in versions that brokers from 0.11 to 4 have: Metadata 4,
//! ListOffsets 1, Fetch 4.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::records::Aborted;
use super::wire::{ByteReader, protocol_error, put_length, put_string};

/// Keys and versions of requests.
const FETCH: (i16, i16) = (1, 4);
const LIST_OFFSETS: (i16, i16) = (2, 1);
const METADATA: (i16, i16) = (3, 4);

/// Time to connect and for an answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of an answer: a batch may be larger than the size that a fetch requests.
const MAX_RESPONSE_BYTES: i32 = 256 << 20;
/// Bytes that a fetch requests in total.
const MAX_FETCH_BYTES: i32 = 8 << 20;
/// Bytes that a fetch requests from one partition.
const MAX_PARTITION_BYTES: i32 = 1 << 20;
/// The earliest offset, as a time of ListOffsets.
const EARLIEST: i64 = -2;
const READ_COMMITTED: u8 = 1;
/// Replica id of a client that is not a replica.
const CONSUMER: i32 = -1;

/// Errors of brokers, by their numbers.
pub(super) mod error {
    pub(in super::super) const NONE: i16 = 0;
    pub(in super::super) const OFFSET_OUT_OF_RANGE: i16 = 1;
    pub(in super::super) const UNKNOWN_TOPIC: i16 = 3;
    pub(in super::super) const DENIED: i16 = 29;

    /// Description of an error, as the end of a sentence.
    pub(in super::super) fn text(code: i16) -> String {
        match code {
            UNKNOWN_TOPIC => "there is no such topic".to_owned(),
            DENIED => "this user may not read the topic".to_owned(),
            5 | 6 => "a partition has no leader at the moment".to_owned(),
            code => format!("error {code}"),
        }
    }
}

/// A connection to a broker.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    sent: i32,
    answer: Vec<u8>,
}

impl Connection {
    pub(super) fn open(address: &str) -> io::Result<Connection> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, RESPONSE_TIMEOUT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
                    stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
                    return Ok(Connection {
                        stream,
                        sent: 0,
                        answer: Vec::new(),
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn send(&mut self, (key, version): (i16, i16), body: &[u8]) -> io::Result<()> {
        self.sent = self.sent.wrapping_add(1);
        let mut request = vec![0; 4];
        request.extend_from_slice(&key.to_be_bytes());
        request.extend_from_slice(&version.to_be_bytes());
        request.extend_from_slice(&self.sent.to_be_bytes());
        put_string(&mut request, "disksmith");
        request.extend_from_slice(body);
        let length = (request.len() - 4) as i32;
        request[..4].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&request)
    }

    /// The answer to the request that was sent last.
    fn receive(&mut self) -> io::Result<ByteReader<'_>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = i32::from_be_bytes(length);
        if !(4..=MAX_RESPONSE_BYTES).contains(&length) {
            return Err(protocol_error());
        }
        self.answer.clear();
        // Memory grows with the bytes that arrive, so that a false length allocates none.
        let read = (&mut self.stream)
            .take(length as u64)
            .read_to_end(&mut self.answer)?;
        if read < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut answer = ByteReader(&self.answer);
        match answer.i32()? == self.sent {
            true => Ok(answer),
            false => Err(protocol_error()),
        }
    }

    /// Brokers, and the partitions of a topic.
    pub(super) fn metadata(&mut self, topic: &str) -> io::Result<Metadata> {
        let mut body = Vec::new();
        put_length(&mut body, 1);
        put_string(&mut body, topic);
        // A topic that does not exist is not created.
        body.push(0);
        self.send(METADATA, &body)?;
        metadata(self.receive()?)
    }

    /// The earliest offset of a partition.
    pub(super) fn earliest(&mut self, topic: &str, partition: i32) -> io::Result<u64> {
        let mut body = CONSUMER.to_be_bytes().to_vec();
        put_length(&mut body, 1);
        put_string(&mut body, topic);
        put_length(&mut body, 1);
        body.extend_from_slice(&partition.to_be_bytes());
        body.extend_from_slice(&EARLIEST.to_be_bytes());
        self.send(LIST_OFFSETS, &body)?;
        earliest(self.receive()?)
    }

    /// Requests the records from these offsets on. The broker answers within the wait.
    pub(super) fn ask(
        &mut self,
        topic: &str,
        offsets: impl ExactSizeIterator<Item = (i32, u64)>,
        wait: Duration,
    ) -> io::Result<()> {
        let mut body = CONSUMER.to_be_bytes().to_vec();
        for number in [wait.as_millis() as i32, 1, MAX_FETCH_BYTES] {
            body.extend_from_slice(&number.to_be_bytes());
        }
        body.push(READ_COMMITTED);
        put_length(&mut body, 1);
        put_string(&mut body, topic);
        put_length(&mut body, offsets.len());
        for (partition, offset) in offsets {
            body.extend_from_slice(&partition.to_be_bytes());
            body.extend_from_slice(&offset.to_be_bytes());
            body.extend_from_slice(&MAX_PARTITION_BYTES.to_be_bytes());
        }
        self.send(FETCH, &body)
    }

    /// The answer to [`Connection::ask`].
    pub(super) fn fetched(&mut self) -> io::Result<Vec<Fetched<'_>>> {
        fetched(self.receive()?)
    }
}

/// Brokers, and the partitions of a topic.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    /// Identity of the cluster.
    pub(super) cluster: String,
    /// Ids and addresses of the brokers.
    pub(super) brokers: Vec<(i32, String)>,
    /// Error of the topic.
    pub(super) error: i16,
    /// Number, error and leader of each partition.
    pub(super) partitions: Vec<(i32, i16, i32)>,
}

fn metadata(mut answer: ByteReader<'_>) -> io::Result<Metadata> {
    let _throttled = answer.i32()?;
    let brokers = answer.elements(|broker| {
        let node = broker.i32()?;
        let host = broker.string()?;
        let port = broker.i32()?;
        let _rack = broker.string()?;
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host
        };
        Ok((node, format!("{host}:{port}")))
    })?;
    let cluster = answer.string()?;
    let _controller = answer.i32()?;
    let topics = answer.elements(|topic| {
        let error = topic.i16()?;
        let _name = topic.string()?;
        let _is_internal = topic.i8()?;
        let partitions = topic.elements(|partition| {
            let error = partition.i16()?;
            let (index, leader) = (partition.i32()?, partition.i32()?);
            let _replicas = partition.elements(ByteReader::i32)?;
            let _in_sync = partition.elements(ByteReader::i32)?;
            Ok((index, error, leader))
        })?;
        Ok((error, partitions))
    })?;
    let (error, partitions) = topics.into_iter().next().ok_or_else(protocol_error)?;
    Ok(Metadata {
        cluster,
        brokers,
        error,
        partitions,
    })
}

fn earliest(mut answer: ByteReader<'_>) -> io::Result<u64> {
    let topics = answer.elements(|topic| {
        let _name = topic.string()?;
        topic.elements(|partition| {
            let _index = partition.i32()?;
            let error = partition.i16()?;
            let _time = partition.i64()?;
            Ok((error, partition.i64()?))
        })
    })?;
    match topics.first().and_then(|topic| topic.first()) {
        Some((error::NONE, offset)) => u64::try_from(*offset).map_err(|_| protocol_error()),
        Some((code, _)) => Err(io::Error::other(error::text(*code))),
        None => Err(protocol_error()),
    }
}

/// The part of a fetch's answer that belongs to one partition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetched<'a> {
    pub(super) partition: i32,
    pub(super) error: i16,
    /// Offset after the last record that all in-sync replicas have (high watermark).
    pub(super) end: i64,
    pub(super) aborted: Vec<Aborted>,
    pub(super) records: &'a [u8],
}

fn fetched(mut answer: ByteReader<'_>) -> io::Result<Vec<Fetched<'_>>> {
    let _throttled = answer.i32()?;
    let topics = answer.elements(|topic| {
        let _name = topic.string()?;
        topic.elements(|partition| {
            let (index, error, end) = (partition.i32()?, partition.i16()?, partition.i64()?);
            let _last_stable = partition.i64()?;
            let aborted = partition.elements(|one| {
                Ok(Aborted {
                    producer: one.i64()?,
                    first: one.i64()?,
                })
            })?;
            Ok(Fetched {
                partition: index,
                error,
                end,
                aborted,
                records: partition.bytes()?,
            })
        })
    })?;
    Ok(topics.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_answer_is_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = metadata(ByteReader(&bytes));
            let _ = earliest(ByteReader(&bytes));
            let _ = fetched(ByteReader(&bytes));
        }

        #[test]
        fn an_answer_that_is_changed_or_cut_is_no_fault(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            length in any::<prop::sample::Index>(),
        ) {
            let answer = answer(&[(3, 17)], b"records");
            prop_assert_eq!(&fetched(ByteReader(&answer)).unwrap()[0].records, b"records");
            let mut changed = answer.clone();
            for (at, byte) in changes {
                changed[at.index(answer.len())] = byte;
            }
            let _ = fetched(ByteReader(&changed));
            let _ = metadata(ByteReader(&changed));
            let _ = earliest(ByteReader(&changed));
            prop_assert!(fetched(ByteReader(&answer[..length.index(answer.len())])).is_err());
        }
    }

    /// A broker's answer with one partition.
    fn answer(aborted: &[(i64, i64)], records: &[u8]) -> Vec<u8> {
        let mut answer = vec![0; 4];
        put_length(&mut answer, 1);
        put_string(&mut answer, "events");
        put_length(&mut answer, 1);
        answer.extend_from_slice(&[0; 4 + 2 + 8 + 8]);
        put_length(&mut answer, aborted.len());
        for (producer, first) in aborted {
            answer.extend_from_slice(&producer.to_be_bytes());
            answer.extend_from_slice(&first.to_be_bytes());
        }
        put_length(&mut answer, records.len());
        answer.extend_from_slice(records);
        answer
    }
}
