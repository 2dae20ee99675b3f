//! The volume that is warmed: what it is, and by what it is known again elsewhere.

use std::fs::File;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use linux::block::{DevNum, Device, Devices, Kind};
use linux::consent::{ReadTarget, open_for_reading};
use record::Bytes;
use rustix::fs::OFlags;

/// A volume that can be read.
pub(crate) struct Volume {
    /// The path by which it was named.
    pub path: PathBuf,
    /// The kernel's name for it.
    pub device: Device,
    /// Its size when it was opened.
    pub size: Bytes,
    /// By what the ledger knows it.
    pub key: String,
    /// Whether the key is only its path, which another volume may have later.
    pub by_path: bool,
    target: ReadTarget,
}

impl Volume {
    /// Opens the device of a path.
    ///
    /// # Errors
    /// A sentence that says why it cannot be warmed.
    pub(crate) fn open(path: &Path, devices: &Devices) -> Result<Volume, String> {
        let target = open_for_reading(path).map_err(|error| error.to_string())?;
        let shown = path.display();
        let number = target.device.ok_or_else(|| {
            format!(
                "{shown} is a file; name the volume that it lies on, and the file with --first: \
                 disksmith warm DEVICE --first {shown}"
            )
        })?;
        let device = devices.get(number).ok_or_else(|| {
            format!("the kernel does not list the device {number} of {shown}; it may just have been removed")
        })?;
        stands_alone(device, devices)?;
        if target.size.0 == 0 {
            return Err(format!("{shown} has no size: there is nothing to read"));
        }
        let known = identity(device, devices);
        Ok(Volume {
            path: path.to_path_buf(),
            key: known.clone().unwrap_or_else(|| path_key(device)),
            by_path: known.is_none(),
            size: target.size,
            device: device.clone(),
            target,
        })
    }

    /// The device's number.
    pub(crate) fn number(&self) -> DevNum {
        self.device.number
    }

    /// Whether it says that it is an EBS volume, as these do on instances of the Nitro system (EC2
    /// User Guide, "Amazon EBS volumes and NVMe").
    pub(crate) fn is_ebs(&self) -> bool {
        let model = self.device.model.as_deref().unwrap_or_default();
        model.trim() == "Amazon Elastic Block Store"
    }

    /// A descriptor for direct I/O.
    ///
    /// # Errors
    /// When the kernel refuses that.
    pub(crate) fn direct(&self) -> io::Result<File> {
        self.target.reopen(OFlags::DIRECT)
    }

    /// The size that it has now.
    ///
    /// # Errors
    /// When the device is gone.
    pub(crate) fn size_now(&self) -> io::Result<Bytes> {
        let end = rustix::fs::seek(&self.target.file, rustix::fs::SeekFrom::End(0))?;
        Ok(Bytes(end))
    }

    /// What requests must be aligned to.
    pub(crate) fn logical_block(&self) -> Bytes {
        self.device.logical_block.unwrap_or(Bytes(512))
    }

    /// Makes sure that no other process warms this device. The name goes with the process, however
    /// it ends, and leaves no file behind (unix(7), abstract sockets); it is seen by all processes
    /// of a network namespace.
    ///
    /// # Errors
    /// When another one has it.
    pub(crate) fn lock(&self) -> Result<UnixDatagram, String> {
        let name = format!("disksmith-warm-{}", self.number());
        let bound = SocketAddr::from_abstract_name(name.as_bytes())
            .and_then(|address| UnixDatagram::bind_addr(&address));
        bound.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => format!(
                "another disksmith is warming {} already: two would read everything twice and share \
                 what the volume gives. Wait for it, or end it",
                self.path.display()
            ),
            _ => format!("the name that keeps others from warming {} at the same time cannot be had: {error}", self.path.display()),
        })
    }
}

/// Arrays and mapped devices are no volumes: of two copies, a read of an array warms one.
fn stands_alone(device: &Device, devices: &Devices) -> Result<(), String> {
    match device.kind {
        Kind::Raid { .. } | Kind::Mapper { .. } => {}
        Kind::Disk | Kind::Partition { .. } | Kind::Loop { .. } | Kind::Ram => return Ok(()),
    }
    let below: Vec<String> = devices
        .below(device.number)
        .iter()
        .filter(|below| below.slaves.is_empty() && below.partition_of().is_none())
        .map(|below| below.node().display().to_string())
        .collect();
    Err(format!(
        "{} is no volume of its own, and a read of it need not reach every block below it. Name the \
         volumes that it lies on: disksmith warm {}",
        device.label(),
        below.join(" ")
    ))
}

/// By what a volume is known on any host: its serial number, which on EBS is the volume's id, or
/// another name that is unique.
fn identity(device: &Device, devices: &Devices) -> Option<String> {
    let disk = match device.kind {
        Kind::Partition { of, number } => {
            let disk = devices.get(of)?;
            return Some(format!("{} part {number}", identity(disk, devices)?));
        }
        _ => device,
    };
    let name = disk.serial.as_ref().or(disk.wwid.as_ref())?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// What stands for a device without a name of its own.
fn path_key(device: &Device) -> String {
    let node = device.node().display().to_string();
    match &device.kind {
        Kind::Loop {
            backing_file: Some(file),
            ..
        } => format!("{node} on {}", file.display()),
        _ => node,
    }
}
