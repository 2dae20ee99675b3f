//! Reads a trace file.

use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use record::Nanos;

use super::block::{self, Block};
use super::frame::{self, BlockKind, Frame};
use super::{EndBlock, HeadBlock, MAGIC, Tick, VERSION};
use crate::input::Input;
use crate::io::{Caveats, Device, DeviceIndex, Header, Io, NameIndex, ReadError, TraceReader};
use crate::names::Names;

/// Reader of a trace file, one block at a time.
pub(crate) struct FileReader {
    input: Input,
    path: PathBuf,
    /// Number of bytes read so far.
    at: u64,
    header: Header,
    tick: Tick,
    names: Names,
    caveats: Caveats,
    block: IntoIter<Io>,
    /// Indices in the trace for the block's devices.
    devices: Vec<DeviceIndex>,
    block_names: Vec<NameIndex>,
    last: Nanos,
    at_end: bool,
}

impl FileReader {
    pub(crate) fn open(mut input: Input, path: &Path) -> Result<FileReader, ReadError> {
        let failed = |source| ReadError::Io {
            path: path.to_path_buf(),
            source,
        };
        let damaged = |detail: String| ReadError::Binary {
            path: path.to_path_buf(),
            offset: MAGIC.len() as u64,
            detail,
        };
        std::io::Read::read_exact(&mut input, &mut [0; MAGIC.len()]).map_err(failed)?;
        let (frame, taken) = frame::read(&mut input).map_err(failed)?;
        let Frame::Whole(BlockKind::Head, head) = frame else {
            return Err(damaged("the trace's description is not whole".to_owned()));
        };
        let head: HeadBlock = serde_json::from_slice(&head)
            .map_err(|error| damaged(format!("the trace's description: {error}")))?;
        if head.version > VERSION || head.tick_ns.0.0 == 0 {
            return Err(damaged(format!(
                "it has version {} of the format, and this program reads versions to {VERSION}",
                head.version
            )));
        }
        Ok(FileReader {
            input,
            path: path.to_path_buf(),
            at: MAGIC.len() as u64 + taken,
            header: Header {
                format: "disksmith",
                started: head.started,
                devices: head.devices.into_iter().map(Into::into).collect(),
                has_completions: head.has_completions,
                has_flushes: head.has_flushes,
            },
            tick: head.tick_ns,
            names: Names::default(),
            caveats: Caveats::default(),
            block: Vec::new().into_iter(),
            devices: Vec::new(),
            block_names: Vec::new(),
            last: Nanos(0),
            at_end: false,
        })
    }

    /// Reads the next block of I/Os; false at the end.
    fn next_block(&mut self) -> Result<bool, ReadError> {
        loop {
            let offset = self.at;
            let (frame, taken) = frame::read(&mut self.input).map_err(|source| {
                self.at_end = true;
                ReadError::Io {
                    path: self.path.clone(),
                    source,
                }
            })?;
            self.at += taken;
            match frame {
                Frame::Whole(BlockKind::Ios, bytes) => {
                    let block = block::read(&bytes, self.tick)
                        .map_err(|detail| self.damaged(offset, detail))?;
                    self.take(block, offset)?;
                    return Ok(true);
                }
                Frame::Whole(BlockKind::End, bytes) => {
                    self.at_end = true;
                    if let Ok(end) = serde_json::from_slice::<EndBlock>(&bytes) {
                        self.caveats.lost = end.lost;
                        self.caveats.ambiguous = end.ambiguous;
                    }
                    return Ok(false);
                }
                Frame::Whole(BlockKind::Head | BlockKind::Unknown, _) => {}
                // If the machine stopped during a write, the last block has its length but not its bytes.
                Frame::Damaged(detail) if !self.is_at_end()? => {
                    return Err(self.damaged(offset, detail));
                }
                Frame::Lost => {
                    self.at_end = true;
                    return Err(self.damaged(offset, "no block begins here"));
                }
                Frame::Damaged(_) | Frame::Cut | Frame::End => {
                    self.at_end = true;
                    self.caveats.cut_off = true;
                    return Ok(false);
                }
            }
        }
    }

    fn is_at_end(&mut self) -> Result<bool, ReadError> {
        match self.input.fill_buf() {
            Ok(rest) => Ok(rest.is_empty()),
            Err(source) => Err(ReadError::Io {
                path: self.path.clone(),
                source,
            }),
        }
    }

    fn damaged(&self, offset: u64, detail: &str) -> ReadError {
        ReadError::Binary {
            path: self.path.clone(),
            offset,
            detail: detail.to_owned(),
        }
    }

    /// Uses a block, with its tables.
    fn take(&mut self, block: Block, offset: u64) -> Result<(), ReadError> {
        if block.ios.first().is_some_and(|io| io.issued < self.last) {
            return Err(self.damaged(offset, "a block is earlier than the one before it"));
        }
        self.last = block.ios.last().map_or(self.last, |io| io.issued);
        self.caveats.lost = block.lost;
        self.caveats.ambiguous = block.ambiguous;
        self.devices.clear();
        for device in block.devices.into_iter().map(Device::from) {
            let known = &mut self.header.devices;
            let number = match known.iter().position(|known| known.name == device.name) {
                Some(number) => number,
                None if known.len() > usize::from(u16::MAX) => {
                    return Err(self.damaged(offset, "there are too many devices"));
                }
                None => {
                    known.push(device);
                    known.len() - 1
                }
            };
            self.devices.push(DeviceIndex(number as u16));
        }
        let names = &mut self.names;
        self.block_names = block.names.iter().map(|name| names.number(name)).collect();
        self.block = block.ios.into_iter();
        Ok(())
    }

    /// The I/O with the trace's indices instead of the block's.
    fn of_trace(&self, io: Io) -> Io {
        let name = |index: Option<NameIndex>| Some(self.block_names[index?.0 as usize]);
        Io {
            device: self.devices[usize::from(io.device.0)],
            process: name(io.process),
            file: name(io.file),
            ..io
        }
    }
}

impl Iterator for FileReader {
    type Item = Result<Io, ReadError>;

    /// Reads the next I/O; after the error for a damaged block, from the next block.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(io) = self.block.next() {
                return Some(Ok(self.of_trace(io)));
            }
            if self.at_end {
                return None;
            }
            match self.next_block() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl TraceReader for FileReader {
    fn header(&self) -> &Header {
        &self.header
    }

    fn name(&self, index: NameIndex) -> Option<&str> {
        self.names.name(index)
    }

    fn caveats(&self) -> Caveats {
        self.caveats
    }
}
