//! The protocol's numbers, and its messages as bytes. All integers are big-endian. The names are
//! those of the specification.

use crate::disk::ENOSPC;
use crate::model::{Request, RequestKind};

/// Greeting of a server: "NBDMAGIC" and "IHAVEOPT".
pub(super) const GREETING: [u8; 16] = *b"NBDMAGICIHAVEOPT";
pub(super) const IHAVEOPT: u64 = u64::from_be_bytes(*b"IHAVEOPT");
pub(super) const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(super) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;

pub(super) const FLAG_FIXED_NEWSTYLE: u16 = 1;
pub(super) const FLAG_NO_ZEROES: u16 = 2;
pub(super) const CLIENT_KNOWN: u32 = (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES) as u32;
pub(super) const CLIENT_NO_ZEROES: u32 = FLAG_NO_ZEROES as u32;

pub(super) const OPT_EXPORT_NAME: u32 = 1;
pub(super) const OPT_ABORT: u32 = 2;
pub(super) const OPT_LIST: u32 = 3;
pub(super) const OPT_INFO: u32 = 6;
pub(super) const OPT_GO: u32 = 7;

pub(super) const REP_ACK: u32 = 1;
pub(super) const REP_SERVER: u32 = 2;
pub(super) const REP_INFO: u32 = 3;
pub(super) const REP_ERR_UNSUP: u32 = (1 << 31) + 1;
pub(super) const REP_ERR_INVALID: u32 = (1 << 31) + 3;
pub(super) const REP_ERR_UNKNOWN: u32 = (1 << 31) + 6;

pub(super) const INFO_EXPORT: u16 = 0;
pub(super) const INFO_BLOCK_SIZE: u16 = 3;

/// `HAS_FLAGS`, `SEND_FLUSH`, `SEND_FUA`, `SEND_TRIM`, `SEND_WRITE_ZEROES`, `CAN_MULTI_CONN`.
pub(super) const TRANSMISSION_FLAGS: u16 = 1 | 4 | 8 | 32 | 64 | 256;

const CMD_READ: u16 = 0;
const CMD_WRITE: u16 = 1;
const CMD_DISC: u16 = 2;
const CMD_FLUSH: u16 = 3;
const CMD_TRIM: u16 = 4;
const CMD_WRITE_ZEROES: u16 = 6;
const CMD_FLAG_FUA: u16 = 1;
const CMD_FLAG_NO_HOLE: u16 = 2;

/// The request is invalid.
pub(super) const EINVAL: u32 = 22;

/// Maximum number of bytes of a read or write: the value that clients may assume by the specification.
pub(super) const MAX_PAYLOAD_BYTES: u32 = 32 << 20;

/// Maximum length of an accepted option, in bytes.
pub(super) const MAX_OPTION_BYTES: u32 = 64 << 10;

/// Reason why a connection is closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// The other side disconnected, or the socket failed.
    #[error("the connection failed: {0}")]
    Io(#[from] std::io::Error),
    /// Bytes that are not of this protocol.
    #[error("the client sent {0:#x} where the protocol has a magic number")]
    Magic(u64),
    /// Flags that the server did not offer.
    #[error("the client answered with flags {0:#x}, which were not offered")]
    Flags(u32),
    /// A message that is longer than allowed.
    #[error("the client sent a message of {0} bytes, which is more than is allowed")]
    TooLong(u32),
    /// A request for an unknown export, by an option without an error reply.
    #[error("the client requested an export that does not exist")]
    NoExport,
    /// More requests in flight than allowed.
    #[error("the client has too many requests in flight")]
    TooMany,
}

/// A request as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) flags: u16,
    pub(super) command: u16,
    pub(super) cookie: [u8; 8],
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// Meaning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A request to be carried out.
    Do {
        /// A request to be carried out.
        request: Request,
        /// True if the data must be durable before the answer (`NBD_CMD_FLAG_FUA`).
        fua: bool,
    },
    /// The client disconnects.
    Leave,
    /// A request to be answered with this error.
    Refuse(u32),
}

/// N bytes at an offset in a message of fixed size.
fn part<const N: usize, const M: usize>(bytes: &[u8; M], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

impl Message {
    pub(super) const SIZE: usize = 28;

    pub(super) fn parse(bytes: &[u8; Message::SIZE]) -> Result<Message, ProtocolError> {
        let magic = u32::from_be_bytes(part(bytes, 0));
        if magic != REQUEST_MAGIC {
            return Err(ProtocolError::Magic(magic.into()));
        }
        Ok(Message {
            flags: u16::from_be_bytes(part(bytes, 4)),
            command: u16::from_be_bytes(part(bytes, 6)),
            cookie: part(bytes, 8),
            offset: u64::from_be_bytes(part(bytes, 16)),
            length: u32::from_be_bytes(part(bytes, 24)),
        })
    }

    /// Number of bytes of data that follow it.
    ///
    /// # Errors
    /// When they exceed the limit of the server.
    pub(super) fn payload(&self) -> Result<usize, ProtocolError> {
        match self.command {
            CMD_WRITE if self.length > MAX_PAYLOAD_BYTES => {
                Err(ProtocolError::TooLong(self.length))
            }
            CMD_WRITE => Ok(self.length as usize),
            _ => Ok(0),
        }
    }

    /// The meaning on a volume of this size.
    pub(super) fn meaning(&self, size: u64) -> Meaning {
        let kind = match self.command {
            CMD_DISC => return Meaning::Leave,
            CMD_READ => RequestKind::Read,
            CMD_WRITE => RequestKind::Write,
            CMD_FLUSH => RequestKind::Flush,
            CMD_TRIM => RequestKind::Trim,
            CMD_WRITE_ZEROES => RequestKind::Zero,
            _ => return Meaning::Refuse(EINVAL),
        };
        // A hole is as good as zeros here, so that the flag needs no special treatment.
        let known = match kind {
            RequestKind::Zero => CMD_FLAG_FUA | CMD_FLAG_NO_HOLE,
            _ => CMD_FLAG_FUA,
        };
        if self.flags & !known != 0 {
            return Meaning::Refuse(EINVAL);
        }
        if kind == RequestKind::Flush {
            let (offset, length) = (0, 0);
            let request = Request {
                kind,
                offset,
                length,
            };
            return Meaning::Do {
                request,
                fua: false,
            };
        }
        let length = u64::from(self.length);
        match self.offset.checked_add(length) {
            Some(end) if end <= size => {}
            _ if matches!(kind, RequestKind::Write | RequestKind::Zero) => {
                return Meaning::Refuse(ENOSPC);
            }
            _ => return Meaning::Refuse(EINVAL),
        }
        // The specification leaves empty requests undefined.
        if length == 0 || (kind == RequestKind::Read && self.length > MAX_PAYLOAD_BYTES) {
            return Meaning::Refuse(EINVAL);
        }
        Meaning::Do {
            request: Request {
                kind,
                offset: self.offset,
                length,
            },
            fua: self.flags & CMD_FLAG_FUA != 0,
        }
    }
}

/// The header of the answer to a request.
pub(super) fn reply_head(cookie: [u8; 8], error: u32) -> [u8; 16] {
    let mut head = [0; 16];
    head[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    head[4..8].copy_from_slice(&error.to_be_bytes());
    head[8..].copy_from_slice(&cookie);
    head
}

/// The answer to an option.
pub(super) fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut reply = Vec::with_capacity(20 + data.len());
    reply.extend(REPLY_MAGIC.to_be_bytes());
    reply.extend(option.to_be_bytes());
    reply.extend(kind.to_be_bytes());
    reply.extend((data.len() as u32).to_be_bytes());
    reply.extend(data);
    reply
}

/// The name and the requested information types of `NBD_OPT_GO` and `NBD_OPT_INFO`; `None` if they are invalid.
pub(super) fn parse_go(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let (count, facts) = rest.split_first_chunk::<2>()?;
    let count = usize::from(u16::from_be_bytes(*count));
    let facts: Vec<u16> = facts
        .chunks(2)
        .map(|fact| fact.try_into().map(u16::from_be_bytes))
        .collect::<Result<_, _>>()
        .ok()?;
    (facts.len() == count).then_some((name, facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flags: u16, command: u16, offset: u64, length: u32) -> Message {
        Message {
            flags,
            command,
            cookie: [0; 8],
            offset,
            length,
        }
    }

    #[test]
    fn requests_past_the_end_are_refused_as_the_specification_says() {
        let size = 1 << 20;
        let meaning =
            |flags, command, offset, length| message(flags, command, offset, length).meaning(size);
        assert_eq!(
            meaning(0, CMD_READ, size - 512, 1024),
            Meaning::Refuse(EINVAL)
        );
        assert_eq!(
            meaning(0, CMD_WRITE, size - 512, 1024),
            Meaning::Refuse(ENOSPC)
        );
        assert_eq!(
            meaning(0, CMD_TRIM, u64::MAX, 1024),
            Meaning::Refuse(EINVAL)
        );
        assert_eq!(meaning(0, CMD_READ, 0, 0), Meaning::Refuse(EINVAL));
        assert_eq!(meaning(0, 99, 0, 512), Meaning::Refuse(EINVAL));
        assert_eq!(meaning(2, CMD_WRITE, 0, 512), Meaning::Refuse(EINVAL));
        assert_eq!(meaning(7, CMD_DISC, 0, 0), Meaning::Leave);
        assert!(matches!(
            meaning(1, CMD_WRITE, size - 512, 512),
            Meaning::Do { fua: true, .. }
        ));
        assert!(matches!(
            meaning(3, CMD_WRITE_ZEROES, 0, 1 << 20),
            Meaning::Do { fua: true, .. }
        ));
        assert!(matches!(
            meaning(0, CMD_FLUSH, 0, 0),
            Meaning::Do { fua: false, .. }
        ));
        let large = message(0, CMD_READ, 0, MAX_PAYLOAD_BYTES + 1).meaning(1 << 40);
        assert_eq!(large, Meaning::Refuse(EINVAL));
        assert!(
            message(0, CMD_WRITE, 0, MAX_PAYLOAD_BYTES + 1)
                .payload()
                .is_err()
        );
    }

    proptest::proptest! {
        #[test]
        fn accepted_requests_lie_inside_the_volume(
            bytes in proptest::array::uniform28(proptest::num::u8::ANY),
            command in 0_u16..8,
            flags in 0_u16..4,
            offset in 0_u64..(1 << 21),
        ) {
            let size = 1 << 20;
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
            bytes[4..6].copy_from_slice(&flags.to_be_bytes());
            bytes[6..8].copy_from_slice(&command.to_be_bytes());
            bytes[16..24].copy_from_slice(&offset.to_be_bytes());
            bytes[24..26].fill(0);
            let message = Message::parse(&bytes).unwrap();
            if let Meaning::Do { request, .. } = message.meaning(size) {
                assert!(request.offset + request.length <= size);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::array::uniform28(proptest::num::u8::ANY),
            data in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
        ) {
            if let Ok(message) = Message::parse(&bytes) {
                let _ = (message.meaning(u64::MAX), message.payload());
            }
            let _ = parse_go(&data);
        }
    }
}
