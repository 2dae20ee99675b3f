//! Swap areas, from `/proc/swaps` (proc(5)).

use std::path::{Path, PathBuf};

use record::Bytes;

use crate::block::{self, DeviceNumber};
use crate::root::{self, Error, Result, Root, shown, unescape};

/// Kind of a swap area: a device of its own or a file on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapKind {
    /// A whole disk, partition, LVM volume or zram device.
    Device,
    /// A regular file.
    File,
}

/// A swap area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The path with which it was enabled, or the kernel's name for it.
    pub path: PathBuf,
    /// Kind of the area.
    pub kind: SwapKind,
    /// Size of the area.
    pub size: Bytes,
    /// Number of bytes in use.
    pub used: Bytes,
}

impl Swap {
    /// The block devices that it is on: the device itself, or those of the file system with the swap file. Empty if
    /// they cannot be determined.
    pub fn devices(&self, root: &Root, devices: &block::Devices) -> Vec<DeviceNumber> {
        match self.kind {
            SwapKind::Device => devices
                .at_path(root, &self.path)
                .map(|device| vec![device.number])
                .unwrap_or_default(),
            SwapKind::File => block::place_of(root, devices, &self.path)
                .map(|place| place.devices)
                .unwrap_or_default(),
        }
    }
}

/// The swap areas in use.
///
/// # Errors
/// When `/proc/swaps` has a line that cannot be parsed: it must not count as "not swap". A kernel without swap has no
/// such file, and no swap areas.
pub fn read(root: &Root) -> Result<Vec<Swap>> {
    let path = root.proc.join("swaps");
    if !path.exists() {
        return Ok(Vec::new());
    }
    parse(&root::read_bytes(&path)?).map_err(|(line, what)| Error::Parse { path, line, what })
}

/// Parses the text of `/proc/swaps`.
///
/// # Errors
/// The number of the first line that does not parse, and the reason.
pub fn parse(text: &[u8]) -> std::result::Result<Vec<Swap>, (usize, String)> {
    text.split(|&byte| byte == b'\n')
        .enumerate()
        .skip(1)
        .filter(|(_, line)| !line.is_empty())
        .map(|(index, line)| parse_line(line).map_err(|what| (index + 1, what)))
        .collect()
}

/// `/dev/dm-1    partition    8388604    0    -2`, with tabs and blanks between the fields.
fn parse_line(line: &[u8]) -> std::result::Result<Swap, String> {
    let fields: Vec<&[u8]> = line
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|field| !field.is_empty())
        .collect();
    let [name, kind, size, used, ..] = fields[..] else {
        return Err(format!("'{}' has fewer than four fields", shown(line)));
    };
    let kind = match kind {
        b"partition" => SwapKind::Device,
        b"file" => SwapKind::File,
        other => return Err(format!("the type '{}' is not known", shown(other))),
    };
    Ok(Swap {
        path: path_of(name),
        kind,
        size: kib(size)?,
        used: kib(used)?,
    })
}

/// The path, without the suffix that the kernel adds to the name of a deleted file.
fn path_of(name: &[u8]) -> PathBuf {
    let name = name.strip_suffix(br"\040(deleted)").unwrap_or(name);
    Path::new(&unescape(name)).to_path_buf()
}

fn kib(field: &[u8]) -> std::result::Result<Bytes, String> {
    let text = shown(field);
    let kib: u64 = text
        .parse()
        .map_err(|_| format!("'{text}' is not a number of KiB"))?;
    Ok(Bytes(kib.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // The second line is captured (6.18); the others follow its form.
    const SEEN: &[u8] = b"\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/loop0p1                            partition\t32764\t\t0\t\t-2
/var/my\\040swap                         file\t\t1024\t\t8\t\t-3
/gone\\040(deleted)                       file\t\t1024\t\t8\t\t-3
";

    #[test]
    fn partitions_and_files_are_read_with_their_escapes() {
        let swaps = parse(SEEN).unwrap();
        assert_eq!(
            swaps[0],
            Swap {
                path: "/dev/loop0p1".into(),
                kind: SwapKind::Device,
                size: Bytes(32764 << 10),
                used: Bytes(0),
            }
        );
        assert_eq!(swaps[1].path, Path::new("/var/my swap"));
        assert_eq!(swaps[1].kind, SwapKind::File);
        assert_eq!(swaps[2].path, Path::new("/gone"));
    }

    #[test]
    fn a_line_that_cannot_be_understood_is_an_error() {
        let (line, what) = parse(b"Filename\n/dev/sda2 tape 1 1 -2\n").unwrap_err();
        assert_eq!((line, what.contains("tape")), (2, true));
        assert!(parse(b"Filename\n/dev/sda2\n").is_err());
    }

    #[test]
    fn a_kernel_without_swap_has_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(&Root::under(folder.path())).unwrap(), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text: Vec<u8>) {
            let _ = parse(&text);
        }
    }
}
