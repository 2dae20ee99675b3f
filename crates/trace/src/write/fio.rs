//! fio's I/O logs, which `fio --read_iolog` replays.

use std::io::{self, Write};

use super::output::Output;
use crate::io::{Described, Io, Op};

/// Version of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Times are `wait` actions.
    Two,
    /// Each line begins with its time.
    Three,
}

/// Minimum wait: fio ignores shorter ones (HOWTO, "wait").
const MIN_WAIT_US: u64 = 100;

/// Writer.
pub(super) struct Iolog<W> {
    out: W,
    version: Version,
    /// Number of files that were added.
    added: usize,
    /// Sum of the waits so far, in µs.
    waited: u64,
}

impl<W: Write> Iolog<W> {
    pub(super) fn new(mut out: W, version: Version) -> io::Result<Iolog<W>> {
        let number = if version == Version::Two { 2 } else { 3 };
        writeln!(out, "fio version {number} iolog")?;
        Ok(Iolog {
            out,
            version,
            added: 0,
            waited: 0,
        })
    }

    fn line(&mut self, micros: u64, rest: std::fmt::Arguments<'_>) -> io::Result<()> {
        match self.version {
            Version::Two => writeln!(self.out, "{rest}"),
            Version::Three => writeln!(self.out, "{micros} {rest}"),
        }
    }
}

/// File name of a device. fio splits lines at white space, and takes a name without a folder as a file of its working
/// directory.
fn file_name(described: &dyn Described, place: usize) -> String {
    let name = described
        .devices()
        .get(place)
        .map_or("", |device| &device.name);
    let safe = |c: char| {
        if c.is_whitespace() || c == ':' || c == ',' {
            '_'
        } else {
            c
        }
    };
    match name.chars().map(safe).collect::<String>() {
        name if name.is_empty() => format!("device{place}"),
        name if name.starts_with('/') || !name.starts_with(|c: char| c.is_alphabetic()) => name,
        name => format!("/dev/{name}"),
    }
}

impl<W: Write> Output for Iolog<W> {
    fn write(&mut self, io: &Io, described: &dyn Described) -> io::Result<()> {
        let micros = io.issued.0 / 1000;
        while self.added <= usize::from(io.device.0) {
            let name = file_name(described, self.added);
            self.line(micros, format_args!("{name} add"))?;
            self.line(micros, format_args!("{name} open"))?;
            self.added += 1;
        }
        let name = file_name(described, usize::from(io.device.0));
        let wait = micros.saturating_sub(self.waited);
        if self.version == Version::Two && wait >= MIN_WAIT_US {
            writeln!(self.out, "{name} wait {wait} 0")?;
            self.waited = micros;
        }
        let (offset, length) = (io.offset.0, io.length.0);
        match io.op {
            Op::Read => self.line(micros, format_args!("{name} read {offset} {length}")),
            Op::Write => self.line(micros, format_args!("{name} write {offset} {length}")),
            Op::Flush => self.line(micros, format_args!("{name} datasync 0 0")),
            Op::Discard => self.line(micros, format_args!("{name} trim {offset} {length}")),
        }
    }

    fn has_moved(&self, io: &Io) -> bool {
        self.version == Version::Two && io.issued.0 / 1000 != self.waited
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
