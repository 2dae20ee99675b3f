//! A small NBD client that keeps requests in flight and records when each was answered.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const ZEROES: u16 = 6;

/// One connection to one volume.
pub(crate) struct Client {
    write: UnixStream,
    read: BufReader<UnixStream>,
    pub(crate) size: u64,
    sent: u64,
    waiting: HashMap<u64, (Instant, usize)>,
}

/// One answer.
pub(crate) struct Answer {
    pub(crate) cookie: u64,
    pub(crate) error: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) took: Duration,
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> Client {
        let mut write = UnixStream::connect(socket).unwrap();
        let mut read = BufReader::with_capacity(1 << 20, write.try_clone().unwrap());
        let mut greeting = [0; 18];
        read.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        // No zeros, and the option GO for the default export without information requests.
        let mut hello = 3_u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend([7_u32, 6, 0].map(u32::to_be_bytes).concat());
        hello.extend([0; 2]);
        write.write_all(&hello).unwrap();
        let mut facts = [0; 32 + 20];
        read.read_exact(&mut facts).unwrap();
        let size = u64::from_be_bytes(facts[22..30].try_into().unwrap());
        Client {
            write,
            read,
            size,
            sent: 0,
            waiting: HashMap::new(),
        }
    }

    /// Sends a request, and returns its cookie.
    pub(crate) fn send(&mut self, command: u16, offset: u64, length: u32, payload: &[u8]) -> u64 {
        self.send_with(0, command, offset, length, payload)
    }

    /// Sends a write with FUA, and waits for its answer.
    pub(crate) fn force(&mut self, offset: u64, payload: &[u8]) -> Answer {
        self.send_with(1, WRITE, offset, payload.len() as u32, payload);
        self.answer().unwrap()
    }

    fn send_with(
        &mut self,
        flags: u16,
        command: u16,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> u64 {
        self.sent += 1;
        let mut message = 0x2560_9513_u32.to_be_bytes().to_vec();
        message.extend(flags.to_be_bytes());
        message.extend(command.to_be_bytes());
        message.extend(self.sent.to_be_bytes());
        message.extend(offset.to_be_bytes());
        message.extend(length.to_be_bytes());
        message.extend(payload);
        let expects = if command == READ { length as usize } else { 0 };
        self.waiting.insert(self.sent, (Instant::now(), expects));
        self.write.write_all(&message).unwrap();
        self.sent
    }

    /// Sends raw bytes. A server that has disconnected accepts none.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write.write_all(bytes)
    }

    /// The next answer, for any request; `None` if the server disconnected.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut head = [0; 16];
        self.read.read_exact(&mut head).ok()?;
        assert_eq!(head[..4], 0x6744_6698_u32.to_be_bytes());
        let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
        let cookie = u64::from_be_bytes(head[8..].try_into().unwrap());
        let (sent, expects) = self.waiting.remove(&cookie).unwrap();
        let mut data = vec![0; if error == 0 { expects } else { 0 }];
        self.read.read_exact(&mut data).ok()?;
        Some(Answer {
            cookie,
            error,
            data,
            took: sent.elapsed(),
        })
    }

    /// One request and its answer.
    pub(crate) fn ask(&mut self, command: u16, offset: u64, length: u32, payload: &[u8]) -> Answer {
        self.send(command, offset, length, payload);
        self.answer().unwrap()
    }

    /// Keeps a number of random requests in flight for a while, and returns all answers.
    pub(crate) fn load(
        &mut self,
        command: u16,
        block: u32,
        depth: u32,
        time: Duration,
    ) -> Vec<Answer> {
        let payload = vec![7; if command == WRITE { block as usize } else { 0 }];
        let mut random = record::random::SplitMix64::new(1);
        let mut place = |size: u64| random.below(size / u64::from(block)) * u64::from(block);
        let begun = Instant::now();
        for _ in 0..depth {
            self.send(command, place(self.size), block, &payload);
        }
        let mut answers = Vec::new();
        while !self.waiting.is_empty() {
            let answer = self.answer().unwrap();
            if begun.elapsed() < time {
                answers.push(answer);
                self.send(command, place(self.size), block, &payload);
            }
        }
        answers
    }
}
