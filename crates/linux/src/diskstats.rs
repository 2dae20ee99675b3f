//! The kernel's counters of each block device (Documentation/admin-guide/iostats.rst and
//! Documentation/block/stat.rst).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use record::DeviceCounts;

use crate::block::{Device, DeviceNumber};
use crate::pulse::PolledFile;
use crate::root::{Error, Result, Root, names_in, read_text, shown};

/// Size of a sector in these counts, in bytes, whatever the device's own block size.
pub const SECTOR: u64 = 512;
/// Maximum advance of a 32-bit counter between two readings: a larger one means that the counter was reset. 2^28
/// sectors are 128 GiB.
const WRAP_LIMIT: u32 = 1 << 28;

/// A reading of a device's counters. Counters that a kernel lacks are zero: discards were added in 4.18, flushes in
/// 5.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Reads completed.
    pub reads: u64,
    /// Reads merged with others before they were issued.
    pub reads_merged: u64,
    /// Sectors of 512 bytes read.
    pub sectors_read: u64,
    /// Total time of reads in milliseconds, summed over requests; 32 bits.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Writes merged with others.
    pub writes_merged: u64,
    /// Sectors of 512 bytes that were written.
    pub sectors_written: u64,
    /// Total time of writes in milliseconds; 32 bits.
    pub write_ms: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Time with anything in flight, in milliseconds; 32 bits.
    pub busy_ms: u64,
    /// Time in flight in milliseconds, weighted by the number of requests; 32 bits.
    pub weighted_ms: u64,
    /// Discards completed.
    pub discards: u64,
    /// Discards merged with others.
    pub discards_merged: u64,
    /// Sectors of 512 bytes that were discarded.
    pub sectors_discarded: u64,
    /// Total time of discards in milliseconds; 32 bits.
    pub discard_ms: u64,
    /// Flushes completed. Partitions do not have this count.
    pub flushes: u64,
    /// Total time of flushes in milliseconds; 32 bits.
    pub flush_ms: u64,
}

impl DiskStats {
    /// Reads a device's counters once. [`Counter`] is cheaper for repeated readings.
    ///
    /// # Errors
    /// When the device does not exist any more, or its counters cannot be parsed.
    pub fn read(root: &Root, device: &Device) -> Result<DiskStats> {
        Counter::open(root, device)?.read()
    }

    /// Parses counters without the device's name, as in `/sys/block/*/stat`: 11, 15, 17, or more in future kernels.
    /// `None` if there are fewer, or one is not a number.
    pub fn parse(line: &[u8]) -> Option<DiskStats> {
        Self::parse_columns(line).map(|(stats, _)| stats)
    }

    /// The counters, and their number.
    fn parse_columns(line: &[u8]) -> Option<(DiskStats, usize)> {
        let mut counts = [0_u64; 17];
        let mut seen = 0;
        let words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        for word in words {
            let value = std::str::from_utf8(word).ok()?.parse().ok()?;
            if let Some(slot) = counts.get_mut(seen) {
                *slot = value;
            }
            seen += 1;
        }
        (seen >= 11).then(|| (Self::from_counts(counts), seen))
    }

    fn from_counts(counts: [u64; 17]) -> DiskStats {
        let [
            reads,
            reads_merged,
            sectors_read,
            read_ms,
            writes,
            writes_merged,
            sectors_written,
            write_ms,
            in_flight,
            busy_ms,
            weighted_ms,
            discards,
            discards_merged,
            sectors_discarded,
            discard_ms,
            flushes,
            flush_ms,
        ] = counts;
        DiskStats {
            reads,
            reads_merged,
            sectors_read,
            read_ms,
            writes,
            writes_merged,
            sectors_written,
            write_ms,
            in_flight,
            busy_ms,
            weighted_ms,
            discards,
            discards_merged,
            sectors_discarded,
            discard_ms,
            flushes,
            flush_ms,
        }
    }

    /// Counts since an earlier reading. `None` if a counter decreased, for example because the device was replaced by
    /// another of the same name.
    pub fn since(&self, before: &DiskStats) -> Option<DeviceCounts> {
        let read = count_since(before.sectors_read, self.sectors_read)?;
        let written = count_since(before.sectors_written, self.sectors_written)?;
        Some(DeviceCounts {
            reads: count_since(before.reads, self.reads)?,
            read_bytes: read.saturating_mul(SECTOR),
            writes: count_since(before.writes, self.writes)?,
            write_bytes: written.saturating_mul(SECTOR),
            flushes: count_since(before.flushes, self.flushes)?,
            busy_ms: millis_since(before.busy_ms, self.busy_ms),
        })
    }

    /// Mean latency of the requests completed since an earlier reading, from their issue, in nanoseconds; `None` if
    /// there are none, or a counter decreased.
    pub fn mean_latency_ns(&self, before: &DiskStats) -> Option<f64> {
        let reads = count_since(before.reads, self.reads)?;
        let writes = count_since(before.writes, self.writes)?;
        let took = |before, now| millis_since(before, now) as f64;
        let millis = took(before.read_ms, self.read_ms) + took(before.write_ms, self.write_ms);
        (reads + writes > 0).then(|| millis * 1e6 / (reads + writes) as f64)
    }

    /// Counts since an earlier reading, with the present number in flight. `None` if a counter decreased, for example
    /// because the device was replaced by another of the same name.
    pub fn moved_since(&self, before: &DiskStats) -> Option<DiskStats> {
        Some(DiskStats {
            reads: count_since(before.reads, self.reads)?,
            reads_merged: count_since(before.reads_merged, self.reads_merged)?,
            sectors_read: count_since(before.sectors_read, self.sectors_read)?,
            read_ms: millis_since(before.read_ms, self.read_ms),
            writes: count_since(before.writes, self.writes)?,
            writes_merged: count_since(before.writes_merged, self.writes_merged)?,
            sectors_written: count_since(before.sectors_written, self.sectors_written)?,
            write_ms: millis_since(before.write_ms, self.write_ms),
            in_flight: self.in_flight,
            busy_ms: millis_since(before.busy_ms, self.busy_ms),
            weighted_ms: millis_since(before.weighted_ms, self.weighted_ms),
            discards: count_since(before.discards, self.discards)?,
            discards_merged: count_since(before.discards_merged, self.discards_merged)?,
            sectors_discarded: count_since(before.sectors_discarded, self.sectors_discarded)?,
            discard_ms: millis_since(before.discard_ms, self.discard_ms),
            flushes: count_since(before.flushes, self.flushes)?,
            flush_ms: millis_since(before.flush_ms, self.flush_ms),
        })
    }
}

/// Advance of a counter. It is an `unsigned long` in the kernel, so that it wraps at 2^32 on a 32-bit machine and at
/// 2^64 on others; any other decrease is a reset.
fn count_since(before: u64, now: u64) -> Option<u64> {
    if now >= before {
        return Some(now - before);
    }
    let step = now.wrapping_sub(before);
    if step < u64::from(WRAP_LIMIT) {
        return Some(step);
    }
    let (before, now) = (u32::try_from(before).ok()?, u32::try_from(now).ok()?);
    let step = now.wrapping_sub(before);
    (step < WRAP_LIMIT).then_some(u64::from(step))
}

/// Advance of a counter of milliseconds. The kernel shows these as 32 bits on every machine, so they wrap after 49
/// days in flight; a small decrease is rounding by the kernel and counts as zero.
fn millis_since(before: u64, now: u64) -> u64 {
    let step = (now as u32).wrapping_sub(before as u32);
    if step <= u32::MAX / 2 {
        u64::from(step)
    } else {
        0
    }
}

/// The sum of the counts of several devices, such as the members of an array. The time with anything in flight is that
/// of the busiest device, since the times of several devices overlap.
pub fn sum(counts: impl IntoIterator<Item = DeviceCounts>) -> DeviceCounts {
    counts
        .into_iter()
        .fold(DeviceCounts::default(), |all, one| DeviceCounts {
            reads: all.reads.saturating_add(one.reads),
            read_bytes: all.read_bytes.saturating_add(one.read_bytes),
            writes: all.writes.saturating_add(one.writes),
            write_bytes: all.write_bytes.saturating_add(one.write_bytes),
            flushes: all.flushes.saturating_add(one.flushes),
            busy_ms: all.busy_ms.max(one.busy_ms),
        })
}

/// A device's counters, kept open, so that a reading is one system call.
#[derive(Debug)]
pub struct Counter {
    file: File,
    path: PathBuf,
    /// The number of the device, if the file has all devices.
    number: Option<DeviceNumber>,
}

impl Counter {
    /// Opens a device's own `stat` in sysfs, or `/proc/diskstats` where that is missing.
    ///
    /// # Errors
    /// When neither file exists.
    pub fn open(root: &Root, device: &Device) -> Result<Counter> {
        let own = root
            .sys
            .join("class/block")
            .join(device.sysfs_name())
            .join("stat");
        if let Ok(file) = File::open(&own) {
            return Ok(Counter {
                file,
                path: own,
                number: None,
            });
        }
        let path = root.proc.join("diskstats");
        match File::open(&path) {
            Ok(file) => Ok(Counter {
                file,
                path,
                number: Some(device.number),
            }),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Opens a device's counters; `None` if the kernel does not count its I/O.
    pub fn if_counted(root: &Root, device: &Device) -> Option<Counter> {
        let opened = device.is_counted(root).then(|| Counter::open(root, device));
        opened?.ok()
    }

    /// The present counters.
    ///
    /// # Errors
    /// When the device does not exist any more, or its counters cannot be parsed.
    pub fn read(&self) -> Result<DiskStats> {
        let text = self.text()?;
        match self.number {
            None => DiskStats::parse(&text).ok_or_else(|| Error::Parse {
                path: self.path.clone(),
                line: 1,
                what: format!("'{}' is not eleven counters or more", shown(&text).trim()),
            }),
            Some(number) => parse_all(&text)
                .into_iter()
                .find(|(listed, _, _)| *listed == number)
                .map(|(_, _, stats)| stats)
                .ok_or_else(|| Error::NoDevice(format!("Device {number}"))),
        }
    }

    /// The whole file, read from its start, which makes the kernel generate it again.
    fn text(&self) -> Result<Vec<u8>> {
        let failed = |source| Error::Read {
            path: self.path.clone(),
            source,
        };
        let mut text = vec![0; 512];
        let mut end = 0;
        loop {
            let got = self
                .file
                .read_at(&mut text[end..], end as u64)
                .map_err(failed)?;
            end += got;
            // A device's own stat fits into the first read, which returns less than requested; another read would be
            // an unnecessary system call.
            if got == 0 || (self.number.is_none() && end < text.len()) {
                text.truncate(end);
                return Ok(text);
            }
            if end == text.len() {
                text.resize(2 * end, 0);
            }
        }
    }
}

/// Counters in a line of `/proc/diskstats`: older kernels have fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedFields {
    /// True if discards are counted (Linux 4.18).
    pub discards: bool,
    /// True if flushes are counted (Linux 5.5).
    pub flushes: bool,
}

/// A line of `/proc/diskstats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskStatsLine<'a> {
    /// The device's number.
    pub number: DeviceNumber,
    /// Name of the device.
    pub name: &'a str,
    /// Counters of the device.
    pub stats: DiskStats,
    /// Counters that this kernel has.
    pub counted: CountedFields,
}

impl<'a> DiskStatsLine<'a> {
    /// Parses a line; `None` if it has another form.
    pub fn parse(line: &'a str) -> Option<DiskStatsLine<'a>> {
        let (major, line) = line.trim_start().split_once(' ')?;
        let (minor, line) = line.trim_start().split_once(' ')?;
        let (name, counts) = line.trim_start().split_once(' ')?;
        let (stats, columns) = DiskStats::parse_columns(counts.as_bytes())?;
        Some(DiskStatsLine {
            number: DeviceNumber::new(major.parse().ok()?, minor.parse().ok()?),
            name,
            stats,
            counted: CountedFields {
                discards: columns >= 15,
                flushes: columns >= 17,
            },
        })
    }
}

/// Reads the counters of all devices repeatedly.
#[derive(Debug)]
pub struct AllCounters {
    source: Source,
}

/// Source of the counters of all devices.
#[derive(Debug)]
enum Source {
    /// `/proc/diskstats`, which has all of them.
    Proc(PolledFile),
    /// `stat` of each device in sysfs, if a container hides the other file.
    Sys { folder: PathBuf, text: Vec<u8> },
}

impl AllCounters {
    /// Opens `/proc/diskstats`, or the folder of all devices in sysfs where that is missing or
    /// covered by an empty file.
    ///
    /// # Errors
    /// When both are missing.
    pub fn open(root: &Root) -> Result<AllCounters> {
        let folder = root.sys.join("class/block");
        let file = PolledFile::open(&root.proc.join("diskstats"))
            .and_then(|mut file| Ok((!file.read()?.is_empty(), file)));
        let source = match file {
            Ok((true, file)) => Source::Proc(file),
            other if !names_in(&folder)?.is_empty() => {
                drop(other);
                let text = Vec::new();
                Source::Sys { folder, text }
            }
            other => Source::Proc(other?.1),
        };
        Ok(AllCounters { source })
    }

    /// The present devices, in the kernel's order. A line of another form, as 2.6 kernels wrote for partitions, is
    /// skipped.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self) -> Result<impl Iterator<Item = DiskStatsLine<'_>>> {
        let text = match &mut self.source {
            Source::Proc(file) => file.read()?,
            Source::Sys { folder, text } => {
                gather(folder, text)?;
                text
            }
        };
        Ok(text
            .split(|&byte| byte == b'\n')
            .filter_map(|line| DiskStatsLine::parse(std::str::from_utf8(line).ok()?)))
    }
}

/// Writes the contents of `/proc/diskstats` into `text`, from the files of the devices. A device that is removed
/// meanwhile is left out.
fn gather(folder: &Path, text: &mut Vec<u8>) -> Result<()> {
    text.clear();
    for name in names_in(folder)? {
        let device = folder.join(&name);
        let (Ok(number), Ok(counts)) = (
            read_text(&device.join("dev")),
            read_text(&device.join("stat")),
        ) else {
            continue;
        };
        // The kernel writes a slash within a name as an exclamation mark here.
        let name = name.to_string_lossy().replace('!', "/");
        let line = format!("{} {name} {counts}\n", number.replace(':', " "));
        text.extend_from_slice(line.as_bytes());
    }
    Ok(())
}

/// Parses the text of `/proc/diskstats`: number, name and counters of each device. A line of another form, as 2.6
/// kernels wrote for partitions, is skipped.
pub fn parse_all(text: &[u8]) -> Vec<(DeviceNumber, String, DiskStats)> {
    text.split(|&byte| byte == b'\n')
        .filter_map(parse_named)
        .collect()
}

fn parse_named(line: &[u8]) -> Option<(DeviceNumber, String, DiskStats)> {
    let line = DiskStatsLine::parse(std::str::from_utf8(line).ok()?)?;
    Some((line.number, line.name.to_owned(), line.stats))
}

#[cfg(test)]
mod tests;
