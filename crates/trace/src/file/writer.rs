//! Writes a trace file.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use record::Bytes;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

use super::block::Builder;
use super::frame::{BlockKind, pack};
use super::{EndBlock, HeadBlock, MAGIC, Tick, VERSION};
use crate::io::{Caveats, Described, Header, Io};

/// Bytes that are preallocated after the written blocks, for the end block: it can be written on a full disk too.
const END_ROOM: u64 = 512;

/// Writer of a trace file. Every written block stays readable, whatever happens later.
#[derive(Debug)]
pub struct TraceWriter {
    file: File,
    tick: Tick,
    block: Builder,
    /// Number of I/Os in the written blocks.
    ios: u64,
    /// Length of the file up to the end of its last whole block.
    whole: u64,
    caveats: Caveats,
}

impl TraceWriter {
    /// Begins a trace in an empty file. The header's format is not stored.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn new(file: File, header: &Header, tick: Tick) -> io::Result<TraceWriter> {
        let head = HeadBlock {
            version: VERSION,
            started: header.started,
            tick_ns: tick,
            has_completions: header.has_completions,
            has_flushes: header.has_flushes,
            devices: header.devices.iter().map(Into::into).collect(),
        };
        let mut writer = TraceWriter {
            file,
            tick,
            block: Builder::default(),
            ios: 0,
            whole: 0,
            caveats: Caveats::default(),
        };
        let head = pack(BlockKind::Head, &serde_json::to_vec(&head)?);
        writer.append(&[&MAGIC[..], &head].concat())?;
        Ok(writer)
    }

    /// Appends an I/O. I/Os must be in the order of their issue. `described` names its device, its process and its
    /// file.
    ///
    /// # Errors
    /// When the file cannot be written; what was written before stays.
    pub fn write(&mut self, io: &Io, described: &dyn Described) -> io::Result<()> {
        self.block.push(io, described);
        match self.block.is_full() {
            true => self.close_block(),
            false => Ok(()),
        }
    }

    /// Sets the caveats that the next block records.
    pub fn set_caveats(&mut self, caveats: Caveats) {
        self.caveats = caveats;
    }

    /// Writes the unfinished block.
    ///
    /// # Errors
    /// When the file cannot be written: then its I/Os are not part of the trace, which can still be finished.
    pub fn close_block(&mut self) -> io::Result<()> {
        let ios = self.block.len();
        if ios == 0 {
            return Ok(());
        }
        let block = self.block.build(self.tick, self.caveats);
        self.append(&pack(BlockKind::Ios, &block))?;
        self.ios += ios as u64;
        Ok(())
    }

    /// Length of the file so far.
    pub fn length(&self) -> Bytes {
        Bytes(self.whole)
    }

    /// Closes the trace, with the number of its I/Os.
    ///
    /// # Errors
    /// When the rest cannot be written; what was written before stays.
    pub fn finish(mut self) -> io::Result<u64> {
        self.close_block()?;
        let end = EndBlock {
            ios: self.ios,
            lost: self.caveats.lost,
            ambiguous: self.caveats.ambiguous,
        };
        self.put(&pack(BlockKind::End, &serde_json::to_vec(&end)?))?;
        // Releases preallocated space; fails for a pipe, which has none.
        let _ = self.file.set_len(self.whole);
        Ok(self.ios)
    }

    /// Appends a frame, and preallocates space for the end block after it.
    fn append(&mut self, frame: &[u8]) -> io::Result<()> {
        let room = frame.len() as u64 + END_ROOM;
        let reserve = || fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.whole, room);
        match retry_on_intr(reserve) {
            Err(full @ (Errno::NOSPC | Errno::DQUOT)) => Err(full.into()),
            // If space cannot be preallocated, the write itself shows whether there is any.
            _ => self.put(frame),
        }
    }

    /// Writes a frame. If it does not fit, the file is truncated, so that it ends with a whole frame.
    fn put(&mut self, frame: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(frame) {
            let cut = self.file.set_len(self.whole);
            let back = self.file.seek(io::SeekFrom::Start(self.whole));
            // A pipe cannot be truncated.
            let _ = (cut, back);
            return Err(error);
        }
        self.whole += frame.len() as u64;
        Ok(())
    }
}
