//! The tables of the device mapper, by DM_TABLE_STATUS (include/uapi/linux/dm-ioctl.h).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use super::piece::{ChunkLayout, MappedPiece};
use super::units::SECTOR;
use super::unknown::MappingUnknown;
use crate::block::{Device, DeviceNumber};
use crate::root::Root;

/// A line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    /// Start on the device, in sectors.
    start: u64,
    /// Length, in sectors.
    length: u64,
    /// Target type, such as `linear`.
    kind: String,
    /// Parameters of the target.
    parameters: String,
}

/// The segments of a device, each with the device below.
pub(super) fn pieces(
    root: &Root,
    device: &Device,
) -> Result<Vec<(DeviceNumber, MappedPiece)>, MappingUnknown> {
    let failed = |error: io::Error| MappingUnknown::Table {
        device: device.label(),
        error: error.kind(),
    };
    let control = File::open(root.locate(Path::new("/dev/mapper/control"))).map_err(failed)?;
    let targets = targets(&control, device.number).map_err(failed)?;
    let mut pieces = Vec::new();
    for target in &targets {
        pieces.extend(pieces_of(device, target)?);
    }
    Ok(pieces)
}

/// The target types of a device, such as `linear` or `cache`.
///
/// # Errors
/// When the device mapper cannot be queried, for which root is required.
pub(super) fn kinds(root: &Root, device: &Device) -> io::Result<Vec<String>> {
    let control = File::open(root.locate(Path::new("/dev/mapper/control")))?;
    let targets = targets(&control, device.number)?;
    Ok(targets.into_iter().map(|target| target.kind).collect())
}

fn pieces_of(
    device: &Device,
    target: &Target,
) -> Result<Vec<(DeviceNumber, MappedPiece)>, MappingUnknown> {
    let found = match target.kind.as_str() {
        "linear" => linear(target),
        "striped" => striped(target),
        _ => {
            return Err(MappingUnknown::Target {
                device: device.label(),
                target: target.kind.clone(),
            });
        }
    };
    found.ok_or_else(|| MappingUnknown::Line {
        device: device.label(),
        line: format!("{} {}", target.kind, target.parameters),
    })
}

impl Target {
    fn upper(&self) -> Option<std::ops::Range<u64>> {
        let start = self.start.checked_mul(SECTOR)?;
        Some(start..start.checked_add(self.length.checked_mul(SECTOR)?)?)
    }
}

/// `DEVICE OFFSET` (linux, Documentation/admin-guide/device-mapper/linear.rst).
fn linear(target: &Target) -> Option<Vec<(DeviceNumber, MappedPiece)>> {
    let (device, offset) = target.parameters.split_once(' ')?;
    let offset: u64 = offset.parse().ok()?;
    let piece = MappedPiece::straight(target.upper()?, offset.checked_mul(SECTOR)?);
    Some(vec![(device.parse().ok()?, piece)])
}

/// `STRIPES CHUNK` and then `DEVICE OFFSET` for each stripe
/// (linux, Documentation/admin-guide/device-mapper/striped.rst; drivers/md/dm-stripe.c,
/// stripe_map_sector).
fn striped(target: &Target) -> Option<Vec<(DeviceNumber, MappedPiece)>> {
    let mut words = target.parameters.split(' ');
    let width: u64 = words.next()?.parse().ok().filter(|&width| width > 0)?;
    let chunk: u64 = words.next()?.parse().ok().filter(|&chunk| chunk > 0)?;
    let mut pieces = Vec::new();
    for lane in 0..width {
        let device = words.next()?.parse().ok()?;
        let offset: u64 = words.next()?.parse().ok()?;
        let piece = MappedPiece {
            upper: target.upper()?,
            lower: offset.checked_mul(SECTOR)?,
            deal: ChunkLayout {
                chunk: chunk.checked_mul(SECTOR)?,
                width,
                copies: 1,
                lane,
            },
        };
        pieces.push((device, piece));
    }
    words.next().is_none().then_some(pieces)
}

/// struct dm_ioctl.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawHead {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_number: u32,
    padding: u32,
    device: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
}

/// Maximum size of an answer: more than a thousand lines.
const MAX_ANSWER_BYTES: usize = 1 << 17;

#[repr(C)]
struct RawTable {
    head: RawHead,
    data: [u8; MAX_ANSWER_BYTES],
}

/// DM_TABLE_STATUS is `_IOWR(DM_IOCTL, 12, struct dm_ioctl)`.
const DM_TABLE_STATUS: Opcode = opcode::read_write::<RawHead>(0xfd, 12);
/// DM_STATUS_TABLE_FLAG: return the table instead of the status of its targets.
const TABLE: u32 = 1 << 4;
/// DM_BUFFER_FULL_FLAG: the buffer was too small.
const BUFFER_FULL_FLAG: u32 = 1 << 8;

fn targets(control: &File, device: DeviceNumber) -> io::Result<Vec<Target>> {
    let mut raw = Box::new(RawTable {
        head: RawHead {
            // The oldest interface version with the required functions; newer kernels accept it.
            version: [4, 0, 0],
            data_size: size_of::<RawTable>() as u32,
            data_start: size_of::<RawHead>() as u32,
            target_count: 0,
            open_count: 0,
            flags: TABLE,
            event_number: 0,
            padding: 0,
            device: encoded(device),
            name: [0; 128],
            uuid: [0; 129],
            data: [0; 7],
        },
        data: [0; MAX_ANSWER_BYTES],
    });
    // SAFETY: the opcode is DM_TABLE_STATUS, whose argument is a struct dm_ioctl at the beginning of
    // `data_size` bytes, which the kernel reads and writes from `data_start` on. `RawTable` is laid
    // out so and has that size, and is made of integers, for which any bytes are valid.
    unsafe { ioctl(control, Updater::<DM_TABLE_STATUS, RawTable>::new(&mut raw)) }?;
    let start = (raw.head.data_start as usize).checked_sub(size_of::<RawHead>());
    let answer = start.and_then(|start| raw.data.get(start..));
    if raw.head.flags & BUFFER_FULL_FLAG != 0 {
        return Err(Errno::NOBUFS.into());
    }
    answer
        .and_then(|answer| parse(answer, raw.head.target_count))
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The number as the kernel writes it in 64 bits (include/linux/kdev_t.h, huge_encode_dev).
fn encoded(device: DeviceNumber) -> u64 {
    let (major, minor) = (u64::from(device.major), u64::from(device.minor));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// Parses `count` struct dm_target_spec, each followed by its parameters and a zero. Each has the offset of the next
/// one, relative to the first.
fn parse(answer: &[u8], count: u32) -> Option<Vec<Target>> {
    let mut targets = Vec::new();
    let mut at = 0_usize;
    for _ in 0..count {
        let spec = answer.get(at..)?;
        let wide = |from: usize| {
            let bytes = spec.get(from..from + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        };
        let next = u32::from_ne_bytes(spec.get(20..24)?.try_into().ok()?) as usize;
        targets.push(Target {
            start: wide(0)?,
            length: wide(8)?,
            kind: text(spec.get(24..40)?),
            parameters: text(spec.get(40..)?).trim().to_owned(),
        });
        if next <= at && targets.len() < count as usize {
            return None;
        }
        at = next;
    }
    Some(targets)
}

/// Text before the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(kind: &str, parameters: &str) -> Target {
        Target {
            start: 2048,
            length: 4096,
            kind: kind.to_owned(),
            parameters: parameters.to_owned(),
        }
    }

    /// Writes a table as the kernel does (drivers/md/dm-ioctl.c, retrieve_status).
    fn written(targets: &[Target]) -> Vec<u8> {
        let mut out = Vec::new();
        for target in targets {
            let begin = out.len();
            out.extend(target.start.to_ne_bytes());
            out.extend(target.length.to_ne_bytes());
            out.extend([0; 8]);
            let mut kind = [0; 16];
            kind[..target.kind.len()].copy_from_slice(target.kind.as_bytes());
            out.extend(kind);
            out.extend(target.parameters.as_bytes());
            out.push(0);
            out.resize(out.len().next_multiple_of(8), 0);
            let next = (out.len() as u32).to_ne_bytes();
            out[begin + 20..begin + 24].copy_from_slice(&next);
        }
        out
    }

    #[test]
    fn the_answer_of_the_kernel_is_read() {
        let table = [
            target("linear", "254:0 2048"),
            target("striped", "2 128 254:0 6144 254:16 0"),
        ];
        let answer = written(&table);
        assert_eq!(parse(&answer, 2).unwrap(), table);
        assert_eq!(parse(&answer, 0).unwrap(), []);
        assert_eq!(parse(&answer, 3), None);
        assert_eq!(parse(&answer[..60], 2), None);
    }

    #[test]
    fn a_linear_part_is_moved() {
        let found = linear(&target("linear", "254:16 384")).unwrap();
        let (device, piece) = &found[0];
        assert_eq!(*device, DeviceNumber::new(254, 16));
        assert_eq!(
            *piece,
            MappedPiece::straight(1 << 20..3 << 20, 384 * SECTOR)
        );
    }

    #[test]
    fn stripes_go_round_their_devices() {
        let found = striped(&target("striped", "2 128 254:0 6144 254:16 8")).unwrap();
        let second = &found[1];
        assert_eq!(second.0, DeviceNumber::new(254, 16));
        let chunk = 128 * SECTOR;
        let begin = 1 << 20;
        let lower = 8 * SECTOR;
        assert_eq!(second.1.down(&(begin..begin + chunk)), None);
        assert_eq!(
            second.1.down(&(begin..begin + 4 * chunk)),
            Some(lower..lower + 2 * chunk)
        );
    }

    #[test]
    fn lines_that_are_none_are_not_understood() {
        for line in ["", "254:0", "254:0 x", "254 0"] {
            assert_eq!(linear(&target("linear", line)), None, "{line}");
        }
        for line in [
            "",
            "0 8",
            "1 0 254:0 0",
            "2 8 254:0 0",
            "1 8 254:0 0 254:1 0",
        ] {
            assert_eq!(striped(&target("striped", line)), None, "{line}");
        }
    }

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(DM_TABLE_STATUS, 0xC138_FD0C);
        assert_eq!(size_of::<RawHead>(), 312);
        assert_eq!(encoded(DeviceNumber::new(0xfd, 0x103)), 0x10_fd03);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(answer: Vec<u8>, count in 0_u32..5) {
            let _ = parse(&answer, count);
        }

        #[test]
        fn any_line_is_read_or_refused(line in "[0-9: ]{0,30}", start: u64, length: u64) {
            let target = Target { start, length, ..target("striped", &line) };
            let _ = (linear(&target), striped(&target));
        }
    }
}
