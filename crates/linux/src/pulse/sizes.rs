//! Block devices with a size (proc(5), `/proc/partitions`): a loop device without a file and a drive without a medium
//! have none, while their counters remain.

use std::collections::HashSet;

use super::polled_file::{PolledFile, lines};
use crate::block::DeviceNumber;
use crate::root::{Result, Root};

/// Reads `/proc/partitions`.
#[derive(Debug)]
pub struct SizedReader {
    file: PolledFile,
}

impl SizedReader {
    /// Opens the file.
    ///
    /// # Errors
    /// When it cannot be opened, as in a container that hides it.
    pub fn open(root: &Root) -> Result<SizedReader> {
        let file = PolledFile::open(&root.proc.join("partitions"))?;
        Ok(SizedReader { file })
    }

    /// The devices that have a size at present.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self) -> Result<HashSet<DeviceNumber>> {
        Ok(parse(self.file.read()?))
    }
}

fn parse(text: &[u8]) -> HashSet<DeviceNumber> {
    let device = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let mut number = || words.next()?.parse::<u64>().ok();
        let (major, minor, blocks) = (number()?, number()?, number()?);
        let number = DeviceNumber::new(u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
        (blocks > 0).then_some(number)
    };
    lines(text).filter_map(device).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn devices_with_a_size_are_listed() {
        let text = b"major minor  #blocks  name\n\n 254        0   10485760 vda\n   7        3          0 loop3\n";
        assert_eq!(parse(text), HashSet::from([DeviceNumber::new(254, 0)]));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: Vec<u8>, line: String) {
            parse(&text);
            parse(format!("8 0 {line}").as_bytes());
        }
    }
}
