//! A device-mapper device, made without its tools (include/uapi/linux/dm-ioctl.h). It is removed when it is dropped,
//! also if the test panics.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use linux::block::DeviceNumber;
use rustix::io::Result;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// struct dm_ioctl, and room for a table.
#[repr(C)]
struct Raw {
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
    table: [u8; 4096],
}

const HEAD: usize = 312;

const fn request(number: u8) -> Opcode {
    opcode::read_write::<[u8; HEAD]>(0xfd, number)
}

const CREATE: Opcode = request(3);
const REMOVE: Opcode = request(4);
/// Without a flag it resumes the device.
const SUSPEND: Opcode = request(6);
const LOAD: Opcode = request(9);

/// A line of a table: number of sectors, target type, and its parameters.
pub type Line<'a> = (u64, &'a str, String);

pub struct Mapped {
    control: File,
    name: String,
    pub number: DeviceNumber,
}

impl Mapped {
    /// A device with this table; `None`, with a note, without the device mapper.
    pub fn new(lines: &[Line]) -> Option<Mapped> {
        let name = format!("disksmith-test-{}", std::process::id());
        let made = File::open("/dev/mapper/control")
            .map_err(|error| error.to_string())
            .and_then(|control| {
                let raw =
                    send::<CREATE>(&control, &name, &[]).map_err(|error| error.to_string())?;
                Ok((control, raw.device))
            });
        match made {
            Ok((control, device)) => {
                let mapped = Mapped {
                    control,
                    name,
                    number: DeviceNumber::from_raw(device),
                };
                send::<LOAD>(&mapped.control, &mapped.name, lines).unwrap();
                send::<SUSPEND>(&mapped.control, &mapped.name, &[]).unwrap();
                Some(mapped)
            }
            Err(why) => {
                skip::skipped(&format!("there is no device mapper here ({why})"));
                None
            }
        }
    }

    pub fn node(&self) -> PathBuf {
        format!("/dev/dm-{}", self.number.minor).into()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        for _ in 0..50 {
            if send::<REMOVE>(&self.control, &self.name, &[]).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let _ = writeln!(std::io::stderr(), "left behind: {}", self.name);
    }
}

fn send<const REQUEST: Opcode>(control: &File, name: &str, lines: &[Line]) -> Result<Box<Raw>> {
    let mut raw = Box::new(Raw {
        version: [4, 0, 0],
        data_size: size_of::<Raw>() as u32,
        data_start: HEAD as u32,
        target_count: lines.len() as u32,
        open_count: 0,
        flags: 0,
        event_number: 0,
        padding: 0,
        device: 0,
        name: [0; 128],
        uuid: [0; 129],
        data: [0; 7],
        table: [0; 4096],
    });
    raw.name[..name.len()].copy_from_slice(name.as_bytes());
    let table = written(lines);
    raw.table[..table.len()].copy_from_slice(&table);
    // SAFETY: the argument of these requests is a struct dm_ioctl at the beginning of `data_size`
    // bytes. `Raw` is laid out so, has that size, and is made of integers.
    unsafe { ioctl(control, Updater::<REQUEST, Raw>::new(&mut raw)) }?;
    Ok(raw)
}

/// A struct dm_target_spec for each line, with its parameters and a zero behind it.
fn written(lines: &[Line]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut start = 0_u64;
    for (length, kind, parameters) in lines {
        let size = (40 + parameters.len() + 1).next_multiple_of(8);
        let mut line = Vec::new();
        line.extend(start.to_ne_bytes());
        line.extend(length.to_ne_bytes());
        line.extend([0; 4]);
        line.extend((size as u32).to_ne_bytes());
        line.extend(kind.as_bytes());
        line.resize(40, 0);
        line.extend(parameters.as_bytes());
        line.resize(size, 0);
        out.extend(line);
        start += length;
    }
    out
}
