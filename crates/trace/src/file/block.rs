//! A block of I/Os: its tables as JSON, then a column for each field of an I/O.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use record::{Bytes, Nanos};

use super::{DeviceEntry, Tick, columns};
use crate::io::{Caveats, Described, DeviceIndex, Io, NameIndex, Op};

/// Maximum number of I/Os in a block.
pub(super) const MAX_IOS: usize = 4096;
/// Maximum bytes of all names in a block.
const MAX_NAME_BYTES_IN_BLOCK: usize = 128 << 10;
/// Maximum bytes of a name; a longer one is truncated.
const MAX_NAME_BYTES: usize = 4096;
const MAX_DEVICES: usize = 1024;

const FUA: u64 = 4;
const FAILED: u64 = 8;

/// Tables before the columns.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tables {
    ios: usize,
    /// Ticks at the first issue.
    first: u64,
    /// Number of low bits that are 0 in all offsets and lengths, and are not stored.
    shift: u32,
    /// Number of events that the recorder had lost by then.
    lost: u64,
    ambiguous: u64,
    pub(super) devices: Vec<DeviceEntry>,
    names: Vec<String>,
}

/// Builder of a block.
#[derive(Debug, Default)]
pub(super) struct Builder {
    ios: Vec<Io>,
    devices: Vec<DeviceEntry>,
    device_numbers: HashMap<DeviceIndex, u16>,
    names: Vec<String>,
    name_bytes: usize,
    name_numbers: HashMap<NameIndex, u32>,
}

impl Builder {
    /// Number of I/Os in the unfinished block.
    pub(super) fn len(&self) -> usize {
        self.ios.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.ios.len() >= MAX_IOS
            || self.name_bytes >= MAX_NAME_BYTES_IN_BLOCK
            || self.devices.len() >= MAX_DEVICES
    }

    /// Adds an I/O. The indices of its device and names are replaced by those of the block's tables.
    pub(super) fn push(&mut self, io: &Io, described: &dyn Described) {
        let device = *self.device_numbers.entry(io.device).or_insert_with(|| {
            let device = described.devices().get(usize::from(io.device.0));
            self.devices.push(match device {
                Some(device) => device.into(),
                None => DeviceEntry {
                    name: io.device.0.to_string(),
                    size_bytes: None,
                    write_cache: None,
                },
            });
            (self.devices.len() - 1) as u16
        });
        let process = self.name(io.process, described);
        let file = self.name(io.file, described);
        self.ios.push(Io {
            device: DeviceIndex(device),
            process,
            file,
            ..*io
        });
    }

    fn name(&mut self, index: Option<NameIndex>, described: &dyn Described) -> Option<NameIndex> {
        let index = index?;
        if let Some(number) = self.name_numbers.get(&index) {
            return Some(NameIndex(*number));
        }
        let name = described.name(index)?;
        let mut end = name.len().min(MAX_NAME_BYTES);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let number = self.names.len() as u32;
        self.name_bytes += end;
        self.names.push(name[..end].to_owned());
        self.name_numbers.insert(index, number);
        Some(NameIndex(number))
    }

    /// Returns the block, and empties the builder.
    pub(super) fn build(&mut self, tick: Tick, caveats: Caveats) -> Vec<u8> {
        let built = std::mem::take(self);
        let ios = &built.ios;
        let places = ios
            .iter()
            .fold(0, |all, io| all | io.offset.0 | io.length.0);
        let tables = Tables {
            ios: ios.len(),
            first: ios.first().map_or(0, |io| tick.of(io.issued)),
            shift: if places == 0 {
                0
            } else {
                places.trailing_zeros()
            },
            lost: caveats.lost,
            ambiguous: caveats.ambiguous,
            devices: built.devices,
            names: built.names,
        };
        // Numbers and strings can always be written as JSON.
        let head = serde_json::to_vec(&tables).unwrap_or_default();
        let mut out = (head.len() as u32).to_le_bytes().to_vec();
        out.extend(head);
        for column in to_columns(ios, &tables, tick) {
            columns::put(&mut out, &column);
        }
        out
    }
}

const COLUMNS: usize = 10;
/// Number of columns in versions without threads.
const COLUMNS_WITHOUT_THREADS: usize = 9;

fn to_columns(ios: &[Io], tables: &Tables, tick: Tick) -> [Vec<u64>; COLUMNS] {
    let mut columns: [Vec<u64>; COLUMNS] = Default::default();
    let mut last = tables.first;
    let mut ends = vec![0_u64; tables.devices.len()];
    for io in ios {
        let issued = tick.of(io.issued);
        let since = |time: u64| time.saturating_add(1);
        let (offset, length) = (io.offset.0 >> tables.shift, io.length.0 >> tables.shift);
        let end = &mut ends[usize::from(io.device.0)];
        let values = [
            op_code(io.op) | if io.fua { FUA } else { 0 } | if io.failed { FAILED } else { 0 },
            u64::from(io.device.0),
            issued.saturating_sub(last),
            io.queued
                .map_or(0, |queued| since(issued.saturating_sub(tick.of(queued)))),
            io.completed
                .map_or(0, |done| since(tick.of(done).saturating_sub(issued))),
            zigzag(offset.wrapping_sub(*end).cast_signed()),
            length,
            io.process.map_or(0, |name| u64::from(name.0) + 1),
            io.file.map_or(0, |name| u64::from(name.0) + 1),
            io.thread.map_or(0, |thread| u64::from(thread) + 1),
        ];
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
        last = last.max(issued);
        *end = offset.wrapping_add(length);
    }
    columns
}

fn op_code(op: Op) -> u64 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
    }
}

fn op_of(code: u64) -> Op {
    match code & 3 {
        0 => Op::Read,
        1 => Op::Write,
        2 => Op::Flush,
        _ => Op::Discard,
    }
}

/// Zigzag encoding: maps signed numbers near 0 to small unsigned ones.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn from_zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// A decoded block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) devices: Vec<DeviceEntry>,
    pub(super) names: Vec<String>,
    pub(super) lost: u64,
    pub(super) ambiguous: u64,
    /// I/Os; their devices and names are indices into these tables.
    pub(super) ios: Vec<Io>,
}

/// Decodes a block; the error describes the damage.
pub(super) fn read(bytes: &[u8], tick: Tick) -> Result<Block, &'static str> {
    let (length, rest) = bytes.split_first_chunk().ok_or("a block is too short")?;
    let length = u32::from_le_bytes(*length) as usize;
    let (head, mut rest) = rest
        .split_at_checked(length)
        .ok_or("a block is too short")?;
    let tables: Tables =
        serde_json::from_slice(head).map_err(|_| "a block's tables are damaged")?;
    if tables.ios > MAX_IOS || tables.shift > 63 {
        return Err("a block's tables are damaged");
    }
    let mut columns: [Vec<u64>; COLUMNS] = Default::default();
    for (number, column) in columns.iter_mut().enumerate() {
        if number == COLUMNS_WITHOUT_THREADS && rest.is_empty() {
            *column = vec![0; tables.ios];
            break;
        }
        *column = columns::take(&mut rest, tables.ios).ok_or("a block's columns are damaged")?;
    }
    if !rest.is_empty() {
        return Err("a block is too long");
    }
    let ios = from_columns(&columns, &tables, tick).ok_or("an I/O of a block is damaged")?;
    Ok(Block {
        devices: tables.devices,
        names: tables.names,
        lost: tables.lost,
        ambiguous: tables.ambiguous,
        ios,
    })
}

fn from_columns(columns: &[Vec<u64>; COLUMNS], tables: &Tables, tick: Tick) -> Option<Vec<Io>> {
    let mut ends = vec![0_u64; tables.devices.len()];
    let mut last = tables.first;
    let mut ios = Vec::with_capacity(tables.ios);
    let name = |value: u64| match usize::try_from(value).ok()?.checked_sub(1) {
        None => Some(None),
        Some(number) => (number < tables.names.len()).then_some(Some(NameIndex(number as u32))),
    };
    for row in 0..tables.ios {
        let [
            kind,
            device,
            issued,
            queued,
            completed,
            offset,
            length,
            process,
            file,
            thread,
        ] = columns.each_ref().map(|column| column[row]);
        let device = u16::try_from(device).ok()?;
        let end = ends.get_mut(usize::from(device))?;
        let issued = last.checked_add(issued)?;
        let offset = end.wrapping_add_signed(from_zigzag(offset));
        last = issued;
        *end = offset.wrapping_add(length);
        let shifted = |value: u64| Some(Bytes(value.checked_mul(1 << tables.shift)?));
        let time = |ticks: u64| -> Nanos { tick.time(ticks) };
        ios.push(Io {
            device: DeviceIndex(device),
            op: op_of(kind),
            fua: kind & FUA != 0,
            offset: shifted(offset)?,
            length: shifted(length)?,
            queued: queued
                .checked_sub(1)
                .map(|since| time(issued.saturating_sub(since))),
            issued: time(issued),
            completed: completed
                .checked_sub(1)
                .map(|since| time(issued.saturating_add(since))),
            failed: kind & FAILED != 0,
            process: name(process)?,
            thread: match thread.checked_sub(1) {
                Some(thread) => Some(u32::try_from(thread).ok()?),
                None => None,
            },
            file: name(file)?,
        });
    }
    Some(ios)
}
