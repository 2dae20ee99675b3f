//! Writing a trace file.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use record::Bytes;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

use super::block::Builder;
use super::frame::{BlockKind, pack};
use super::{EndBlock, HeadBlock, MAGIC, Tick, VERSION};
use crate::io::{Caveats, Described, Header, Io};

/// Room that the file system keeps behind what is written, for the last block: it is there on a full disk too.
const END_ROOM: u64 = 512;

/// Writer of a trace file. Each block that was written stays readable, whatever happens later.
#[derive(Debug)]
pub struct TraceWriter {
    file: File,
    tick: Tick,
    block: Builder,
    /// I/Os of the blocks that were written.
    ios: u64,
    /// Length of the file up to its last whole block.
    whole: u64,
    caveats: Caveats,
}

impl TraceWriter {
    /// Begins a trace in an empty file. Of the header's format nothing is kept.
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

    /// Appends an I/O, which must not be issued before the one before it. `described` names its device, its process
    /// and its file.
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

    /// Sets the reasons for doubt that the next block tells of.
    pub fn set_caveats(&mut self, caveats: Caveats) {
        self.caveats = caveats;
    }

    /// Writes the I/Os that wait for their block to be full.
    ///
    /// # Errors
    /// When the file cannot be written: then they are no part of the trace, which can still be finished.
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
        // The rest of the room goes back; a pipe has none.
        let _ = self.file.set_len(self.whole);
        Ok(self.ios)
    }

    /// Appends a frame, and keeps room for the last one behind it.
    fn append(&mut self, frame: &[u8]) -> io::Result<()> {
        let room = frame.len() as u64 + END_ROOM;
        let reserve = || fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.whole, room);
        match retry_on_intr(reserve) {
            Err(full @ (Errno::NOSPC | Errno::DQUOT)) => Err(full.into()),
            // Where room cannot be kept, writing tells whether there is any.
            _ => self.put(frame),
        }
    }

    /// Writes a frame; one that does not fit is taken back, so that the file ends with a whole one.
    fn put(&mut self, frame: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(frame) {
            let cut = self.file.set_len(self.whole);
            let back = self.file.seek(io::SeekFrom::Start(self.whole));
            // A pipe has no end to cut off.
            let _ = (cut, back);
            return Err(error);
        }
        self.whole += frame.len() as u64;
        Ok(())
    }
}
