//! The fixed newstyle handshake, in which a client chooses a volume.

use std::io::{Read, Write};
use std::sync::Arc;

use super::Exports;
use super::wire::{
    CLIENT_KNOWN, CLIENT_NO_ZEROES, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, GREETING, IHAVEOPT,
    INFO_BLOCK_SIZE, INFO_EXPORT, MAX_OPTION_BYTES, MAX_PAYLOAD_BYTES, OPT_ABORT, OPT_EXPORT_NAME,
    OPT_GO, OPT_INFO, OPT_LIST, ProtocolError, REP_ACK, REP_ERR_INVALID, REP_ERR_UNKNOWN,
    REP_ERR_UNSUP, REP_INFO, REP_SERVER, TRANSMISSION_FLAGS, option_reply, parse_go,
};
use crate::disk::Disk;

/// Result of an option.
enum Step {
    /// The client continues with another option.
    GoOn,
    /// The client has chosen a volume.
    Chosen(Arc<Disk>),
    /// The client disconnects.
    Leave,
}

/// Greets the client and answers its options, until it has chosen a volume; `None` if it disconnects.
///
/// # Errors
/// When it violates the protocol, or the connection fails.
pub(super) fn handshake(
    stream: &mut (impl Read + Write),
    exports: &Exports,
) -> Result<Option<Arc<Disk>>, ProtocolError> {
    stream.write_all(&GREETING)?;
    stream.write_all(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes())?;
    let flags = u32::from_be_bytes(read_array(stream)?);
    if flags & !CLIENT_KNOWN != 0 {
        return Err(ProtocolError::Flags(flags));
    }
    let zeroes = flags & CLIENT_NO_ZEROES == 0;
    loop {
        let magic = u64::from_be_bytes(read_array(stream)?);
        if magic != IHAVEOPT {
            return Err(ProtocolError::Magic(magic));
        }
        let option = u32::from_be_bytes(read_array(stream)?);
        let length = u32::from_be_bytes(read_array(stream)?);
        if length > MAX_OPTION_BYTES {
            return Err(ProtocolError::TooLong(length));
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        match answer(stream, exports, option, &data, zeroes)? {
            Step::GoOn => {}
            Step::Chosen(disk) => return Ok(Some(disk)),
            Step::Leave => return Ok(None),
        }
    }
}

fn read_array<const N: usize>(stream: &mut impl Read) -> Result<[u8; N], ProtocolError> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn answer(
    stream: &mut impl Write,
    exports: &Exports,
    option: u32,
    data: &[u8],
    zeroes: bool,
) -> Result<Step, ProtocolError> {
    match option {
        OPT_EXPORT_NAME => {
            // This option is older than error replies: a server can only disconnect.
            let disk = named(exports, data).ok_or(ProtocolError::NoExport)?;
            stream.write_all(&old_answer(disk, zeroes))?;
            return Ok(Step::Chosen(Arc::clone(disk)));
        }
        OPT_ABORT => {
            stream.write_all(&option_reply(option, REP_ACK, &[]))?;
            return Ok(Step::Leave);
        }
        OPT_LIST if data.is_empty() => stream.write_all(&list(exports))?,
        OPT_LIST => stream.write_all(&option_reply(option, REP_ERR_INVALID, &[]))?,
        OPT_INFO | OPT_GO => {
            let (reply, disk) = facts(exports, option, data);
            stream.write_all(&reply)?;
            if let Some(disk) = disk.filter(|_| option == OPT_GO) {
                return Ok(Step::Chosen(disk));
            }
        }
        _ => stream.write_all(&option_reply(option, REP_ERR_UNSUP, &[]))?,
    }
    Ok(Step::GoOn)
}

/// The volume with this name; the first volume also has the empty name.
fn named<'a>(exports: &'a Exports, name: &[u8]) -> Option<&'a Arc<Disk>> {
    if name.is_empty() {
        return exports.first();
    }
    exports.iter().find(|disk| disk.serial().as_bytes() == name)
}

/// Size and flags, followed by zeros for the first clients of the protocol.
fn old_answer(disk: &Disk, zeroes: bool) -> Vec<u8> {
    let mut answer = Vec::with_capacity(134);
    answer.extend(disk.size().0.to_be_bytes());
    answer.extend(TRANSMISSION_FLAGS.to_be_bytes());
    if zeroes {
        answer.extend([0; 124]);
    }
    answer
}

fn list(exports: &Exports) -> Vec<u8> {
    let mut replies = Vec::new();
    for disk in exports.iter() {
        let name = disk.serial().as_bytes();
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name);
        replies.extend(option_reply(OPT_LIST, REP_SERVER, &data));
    }
    replies.extend(option_reply(OPT_LIST, REP_ACK, &[]));
    replies
}

/// The answer to `INFO` and `GO`, and the volume if it exists.
fn facts(exports: &Exports, option: u32, data: &[u8]) -> (Vec<u8>, Option<Arc<Disk>>) {
    let Some((name, wanted)) = parse_go(data) else {
        return (option_reply(option, REP_ERR_INVALID, &[]), None);
    };
    let Some(disk) = named(exports, name) else {
        return (option_reply(option, REP_ERR_UNKNOWN, &[]), None);
    };
    let mut export = INFO_EXPORT.to_be_bytes().to_vec();
    export.extend(disk.size().0.to_be_bytes());
    export.extend(TRANSMISSION_FLAGS.to_be_bytes());
    let mut reply = option_reply(option, REP_INFO, &export);
    if wanted.contains(&INFO_BLOCK_SIZE) {
        // Any byte may be addressed; whole pages are preferred.
        let mut sizes = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
        sizes.extend(
            [1_u32, 4096, MAX_PAYLOAD_BYTES]
                .map(u32::to_be_bytes)
                .concat(),
        );
        reply.extend(option_reply(option, REP_INFO, &sizes));
    }
    reply.extend(option_reply(option, REP_ACK, &[]));
    (reply, Some(Arc::clone(disk)))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A client whose messages are prepared.
    struct Script {
        sent: io::Cursor<Vec<u8>>,
        received: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.sent.read(buffer)
        }
    }
    impl Write for Script {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.received.extend(data);
            Ok(data.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn exports() -> Exports {
        ["first", "second"]
            .map(|serial| Disk::for_tests("iops=400:1MiB", serial))
            .into()
    }

    fn option(option: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = IHAVEOPT.to_be_bytes().to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        bytes
    }

    fn go(name: &str) -> Vec<u8> {
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name.as_bytes());
        data.extend([0, 1, 0, 3]);
        data
    }

    /// The serial number of the chosen volume, and all bytes that the client received.
    fn exchange(
        flags: u32,
        options: &[Vec<u8>],
    ) -> (Result<Option<String>, ProtocolError>, Vec<u8>) {
        let mut sent = flags.to_be_bytes().to_vec();
        sent.extend(options.concat());
        let mut script = Script {
            sent: io::Cursor::new(sent),
            received: Vec::new(),
        };
        let chosen = handshake(&mut script, &exports());
        let serial = chosen.map(|disk| disk.map(|disk| disk.serial().to_owned()));
        (serial, script.received)
    }

    #[test]
    fn go_chooses_by_name_and_the_first_without_one() {
        for (name, serial) in [("", "first"), ("first", "first"), ("second", "second")] {
            let (chosen, received) = exchange(3, &[option(OPT_GO, &go(name))]);
            assert_eq!(chosen.unwrap().as_deref(), Some(serial));
            // Greeting, two facts, and the end.
            assert_eq!(received.len(), 18 + (20 + 12) + (20 + 14) + 20);
        }
    }

    #[test]
    fn unknown_names_and_options_are_refused_and_the_talk_continues() {
        let options = [
            option(OPT_GO, &go("third")),
            option(5, &[]),
            option(8, &[]),
            option(OPT_INFO, &[0, 0]),
            option(OPT_LIST, &[1]),
            option(OPT_INFO, &go("first")),
            option(OPT_GO, &go("second")),
        ];
        let (chosen, received) = exchange(1, &options);
        assert_eq!(chosen.unwrap().as_deref(), Some("second"));
        let kinds: Vec<u32> = (0..5)
            .map(|n| u32::from_be_bytes(received[18 + n * 20 + 12..][..4].try_into().unwrap()))
            .collect();
        let refusals = [
            REP_ERR_UNKNOWN,
            REP_ERR_UNSUP,
            REP_ERR_UNSUP,
            REP_ERR_INVALID,
            REP_ERR_INVALID,
        ];
        assert_eq!(kinds, refusals);
    }

    #[test]
    fn the_old_way_in_has_zeros_unless_they_are_declined() {
        for (flags, length) in [(3, 10), (1, 134)] {
            let (chosen, received) = exchange(flags, &[option(OPT_EXPORT_NAME, b"second")]);
            assert_eq!(chosen.unwrap().as_deref(), Some("second"));
            assert_eq!(received.len(), 18 + length);
            assert_eq!(received[18..26], (1_u64 << 20).to_be_bytes());
        }
        let (chosen, _) = exchange(3, &[option(OPT_EXPORT_NAME, b"third")]);
        assert!(matches!(chosen, Err(ProtocolError::NoExport)));
    }

    #[test]
    fn a_client_may_list_and_leave() {
        let (chosen, received) = exchange(3, &[option(OPT_LIST, &[]), option(OPT_ABORT, &[])]);
        assert_eq!(chosen.unwrap(), None);
        assert_eq!(received.len(), 18 + (20 + 4 + 5) + (20 + 4 + 6) + 20 + 20);
    }

    #[test]
    fn bytes_beyond_the_protocol_end_the_connection() {
        assert!(matches!(exchange(4, &[]).0, Err(ProtocolError::Flags(4))));
        let nonsense = vec![7; 16];
        assert!(matches!(
            exchange(3, &[nonsense]).0,
            Err(ProtocolError::Magic(_))
        ));
        let mut long = option(OPT_LIST, &[]);
        long[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(
            exchange(3, &[long]).0,
            Err(ProtocolError::TooLong(_))
        ));
        assert!(matches!(
            exchange(3, &[vec![b'I']]).0,
            Err(ProtocolError::Io(_))
        ));
    }

    proptest::proptest! {
        #[test]
        fn any_words_are_answered_or_end_the_talk(
            flags in 0_u32..5,
            options in proptest::collection::vec(
                (0_u32..10, proptest::collection::vec(proptest::num::u8::ANY, 0..30)),
                0..6,
            ),
            rest in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
        ) {
            let mut sent: Vec<Vec<u8>> = options.iter().map(|(o, data)| option(*o, data)).collect();
            sent.push(rest);
            let _ = exchange(flags, &sent);
        }
    }
}
