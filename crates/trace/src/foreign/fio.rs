//! fio's I/O logs, versions 2 and 3 (fio's HOWTO, "Trace file format"). In version 3 each line begins with its time, in
//! µs as fio writes it. Version 2 has times only in `wait` actions, in µs since the previous action.

use record::{Bytes, Nanos};

use crate::decode::{Sink, TimeOrigin};
use crate::io::{Io, Op};
use crate::text::{Fields, LineError, LineFormat};

/// Origin of its times.
pub(crate) const ZERO: TimeOrigin = TimeOrigin::Start;

/// Version of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Version 2: without times.
    Two,
    /// Version 3: with a time on each line.
    Three,
}

impl Version {
    /// The version of a text that begins with `start`.
    pub(crate) fn of(start: &str) -> Option<Version> {
        match start.lines().next()?.trim() {
            "fio version 2 iolog" => Some(Version::Two),
            "fio version 3 iolog" => Some(Version::Three),
            _ => None,
        }
    }

    /// Name of the format.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Version::Two => "fio iolog v2",
            Version::Three => "fio iolog v3",
        }
    }
}

/// Decoder of the format.
#[derive(Debug)]
pub(crate) struct Iolog {
    version: Version,
    now: Nanos,
    in_actions: bool,
}

impl Iolog {
    pub(crate) fn new(version: Version) -> Iolog {
        Iolog {
            version,
            now: Nanos(0),
            in_actions: false,
        }
    }
}

impl LineFormat for Iolog {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), LineError> {
        // The first line is the version, which was examined before.
        if !std::mem::replace(&mut self.in_actions, true) || line.trim().is_empty() {
            return Ok(());
        }
        let mut fields = Fields::spaced(line);
        if self.version == Version::Three {
            let time = "the time in µs";
            self.now = Nanos(fields.next(time)?.number::<u64>(time)?.saturating_mul(1000));
        }
        let file = fields.next("the file's name")?;
        let actions = "add, open, close, read, write, sync, datasync, trim or wait";
        let action = fields.next(actions)?;
        let op = match action.text {
            "read" => Op::Read,
            "write" => Op::Write,
            "sync" | "datasync" => Op::Flush,
            "trim" => Op::Discard,
            "add" | "open" | "close" => {
                sink.device(file.text)?;
                return Ok(());
            }
            "wait" if self.version == Version::Two => {
                let wait = "the time to wait in µs";
                let micros = fields.next(wait)?.number::<u64>(wait)?;
                self.now += Nanos(micros.saturating_mul(1000));
                return Ok(());
            }
            _ => return Err(action.expected(actions).into()),
        };
        let (mut offset, mut length) = (0, 0);
        if op != Op::Flush {
            (offset, length) = (
                fields
                    .next("the offset in bytes")?
                    .number("the offset in bytes")?,
                fields
                    .next("the length in bytes")?
                    .number("the length in bytes")?,
            );
        }
        let device = sink.device(file.text)?;
        sink.push(Io {
            device,
            op,
            fua: false,
            offset: Bytes(offset),
            length: Bytes(length),
            queued: None,
            issued: self.now,
            completed: None,
            failed: false,
            process: None,
            thread: None,
            file: None,
        });
        Ok(())
    }
}
