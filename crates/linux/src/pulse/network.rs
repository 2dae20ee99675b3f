//! Traffic of the network interfaces (`/proc/net/dev`, proc_pid_net(5)).

use super::polled_file::PolledFile;
use crate::root::{Result, Root};

/// Counts of one direction since the interface came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounts {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of packets.
    pub packets: u64,
    /// Packets with errors.
    pub errors: u64,
    /// Packets that were dropped.
    pub drops: u64,
}

impl DirectionCounts {
    /// Difference from an earlier reading. `None` if a count decreased, for example because the interface was created
    /// again.
    pub fn since(&self, before: &DirectionCounts) -> Option<DirectionCounts> {
        Some(DirectionCounts {
            bytes: since(before.bytes, self.bytes)?,
            packets: since(before.packets, self.packets)?,
            errors: since(before.errors, self.errors)?,
            drops: since(before.drops, self.drops)?,
        })
    }
}

/// Difference of a counter; `None` if it was reset. Some drivers count in 32 bits, which wrap within half a minute at
/// a gigabit a second, so that only a decrease by less than half of that range is a reset.
fn since(before: u64, now: u64) -> Option<u64> {
    if now >= before {
        return Some(now - before);
    }
    let (before, now) = (u32::try_from(before).ok()?, u32::try_from(now).ok()?);
    let step = now.wrapping_sub(before);
    (step < u32::MAX / 2).then_some(u64::from(step))
}

/// A network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Counts of what was received.
    pub received: DirectionCounts,
    /// Counts of what was transmitted.
    pub transmitted: DirectionCounts,
}

impl<'a> Interface<'a> {
    /// Parses a line of the file. `None` for its two header lines, and for lines of another form.
    pub fn parse(line: &'a str) -> Option<Interface<'a>> {
        // The name may be followed by its first count without a blank.
        let (name, counts) = line.trim_start().split_once(':')?;
        let mut counts = counts.split_ascii_whitespace().map(str::parse::<u64>);
        let mut direction = || {
            let mut next = || counts.next()?.ok();
            let passed = DirectionCounts {
                bytes: next()?,
                packets: next()?,
                errors: next()?,
                drops: next()?,
            };
            // Four other kinds of counts that are not used.
            for _ in 0..4 {
                next()?;
            }
            Some(passed)
        };
        Some(Interface {
            name,
            received: direction()?,
            transmitted: direction()?,
        })
    }
}

/// Reads `/proc/net/dev`.
#[derive(Debug)]
pub struct NetReader {
    file: PolledFile,
}

impl NetReader {
    /// Opens the file.
    ///
    /// # Errors
    /// When it is missing.
    pub fn open(root: &Root) -> Result<NetReader> {
        let file = PolledFile::open(&root.proc.join("net/dev"))?;
        Ok(NetReader { file })
    }

    /// The present interfaces, in the kernel's order, without the loopback.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self) -> Result<impl Iterator<Item = Interface<'_>>> {
        let text = self.file.read()?;
        Ok(super::polled_file::lines(text)
            .filter_map(Interface::parse)
            .filter(|interface| interface.name != "lo"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEEN: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1336956   19642    0    0    0     0          0         0  1336956   19642    0    0    0     0       0          0
  eth0:1039020320   48686    1    2    0     0          0         0  2656058   29535    3    4    0     0       0          0
";

    #[test]
    fn an_interface_is_read_also_without_a_blank_behind_its_name() {
        let interfaces: Vec<_> = SEEN.lines().filter_map(Interface::parse).collect();
        assert_eq!(interfaces.len(), 2);
        let eth0 = interfaces[1];
        assert_eq!(eth0.name, "eth0");
        assert_eq!(eth0.received.bytes, 1_039_020_320);
        assert_eq!((eth0.received.errors, eth0.received.drops), (1, 2));
        assert_eq!((eth0.transmitted.errors, eth0.transmitted.drops), (3, 4));
    }

    #[test]
    fn a_count_of_32_bits_wraps_and_a_reset_is_seen() {
        assert_eq!(since(u64::from(u32::MAX), 9), Some(10));
        assert_eq!(since(1000, 9), None);
        assert_eq!(since(u64::MAX - 1, 9), None);
    }

    #[test]
    fn the_loopback_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        std::fs::create_dir_all(root.proc.join("net")).unwrap();
        std::fs::write(root.proc.join("net/dev"), SEEN).unwrap();
        let mut reader = NetReader::open(&root).unwrap();
        let names: Vec<_> = reader.read().unwrap().map(|one| one.name).collect();
        assert_eq!(names, ["eth0"]);
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line: String) {
            let _ = Interface::parse(&line);
        }
    }
}
