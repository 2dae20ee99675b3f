//! Configuration of a machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::Bytes;

use super::accel::Accel;
use super::disk::{Disk, DiskContent};
use super::packages::Packages;
use super::qemu::MAX_DISKS;
use super::{Error, Result};
use crate::spec::STATE_SERIAL;

/// Time for a command to end in order after Ctrl-C.
const GRACE: Duration = Duration::from_secs(60);

/// Maximum length of the serial number of a virtio disk, in bytes.
const MAX_SERIAL_BYTES: usize = 20;

/// Minimum memory in which the kernel and the tools run.
const MIN_MEMORY: Bytes = Bytes::mib(384);

/// Configuration of a machine, and the command that it runs.
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// The kernel and the tools.
    pub packages: Packages,
    /// Cache folder of the kernel and the tools, which also stores whether KVM works.
    pub cache: PathBuf,
    /// The binary that is installed as `disksmith` in the machine.
    pub binary: PathBuf,
    /// Command: a program and its arguments.
    pub command: Vec<OsString>,
    /// A shell script that runs in the first boot before the machine reports the start of the command, so that held
    /// volumes are still held. If it fails, the machine fails.
    pub prepare: Option<OsString>,
    /// Files of this host that are copied into the machine: programs as commands, with their libraries, and others in
    /// the folder in which the command starts.
    pub copies: Vec<PathBuf>,
    /// The disks `/dev/vda`, `/dev/vdb`, … in this order.
    pub disks: Vec<Disk>,
    /// True if QEMU may merge adjacent requests of the machine into one.
    pub merge: bool,
    /// Size of the machine's memory.
    pub memory: Bytes,
    /// Number of the machine's processors.
    pub cpus: u32,
    /// Time limit of the machine, from its start; it is then killed.
    pub timeout: Option<Duration>,
    /// Path to which the machine's ledger is copied after the command's end.
    pub ledger_out: Option<PathBuf>,
    /// A file with the machine's own disk, which contains its ledger. It is created if it does not exist, and survives
    /// a power cut; without it the ledger is in the machine's memory. Files with other contents are refused, and files
    /// in use by another machine.
    pub state: Option<PathBuf>,
    /// Accelerator.
    pub accel: Accel,
    /// Number of this boot, for a command that is run again after power cuts; it is in its environment as
    /// `DISKSMITH_LAB_BOOT`. 1 by default.
    pub boot: u32,
    /// Time after which an interrupted command is killed.
    pub grace: Duration,
}

impl MachineOptions {
    /// A machine of 1 GiB and two processors without disks.
    pub fn new(packages: Packages, cache: &Path, binary: &Path, command: Vec<OsString>) -> Self {
        MachineOptions {
            packages,
            cache: cache.to_path_buf(),
            binary: binary.to_path_buf(),
            command,
            prepare: None,
            copies: Vec::new(),
            disks: Vec::new(),
            merge: true,
            memory: Bytes::gib(1),
            cpus: 2,
            timeout: None,
            ledger_out: None,
            state: None,
            accel: Accel::Auto,
            boot: 1,
            grace: GRACE,
        }
    }

    /// The volumes, followed by the machine's own disk.
    pub(super) fn all_disks(&self) -> Result<Vec<Disk>> {
        let mut disks = self.disks.clone();
        if let Some(path) = &self.state {
            disks.push(Disk {
                source: DiskContent::File(path.clone()),
                serial: STATE_SERIAL.to_owned(),
            });
        }
        if disks.len() > MAX_DISKS {
            return Err(Error::Unavailable(format!(
                "the lab's machine has places for {MAX_DISKS} disks, and {} are wanted",
                disks.len()
            )));
        }
        if self.disks.iter().any(|disk| disk.serial == STATE_SERIAL) {
            return Err(Error::Unavailable(format!(
                "a volume cannot have the serial number {STATE_SERIAL}: it is that of the machine's \
                 own disk"
            )));
        }
        if let Some(disk) = disks
            .iter()
            .find(|disk| disk.serial.len() > MAX_SERIAL_BYTES)
        {
            return Err(Error::Unavailable(format!(
                "the serial number {} is longer than the {MAX_SERIAL_BYTES} bytes that a virtio disk \
                 has for it",
                disk.serial
            )));
        }
        if self.memory < MIN_MEMORY {
            return Err(Error::Unavailable(format!(
                "{} of memory is too little for the lab's machine: it needs {MIN_MEMORY}",
                self.memory
            )));
        }
        Ok(disks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> MachineOptions {
        let packages = Packages {
            tree: PathBuf::new(),
            kernel: PathBuf::new(),
            modules: PathBuf::new(),
        };
        MachineOptions::new(packages, Path::new(""), Path::new(""), Vec::new())
    }

    fn disk(serial: &str) -> Disk {
        Disk {
            source: DiskContent::File(PathBuf::from("disk.img")),
            serial: serial.to_owned(),
        }
    }

    #[test]
    fn the_machines_own_disk_stands_behind_the_volumes() {
        let options = MachineOptions {
            disks: vec![disk("a")],
            state: Some(PathBuf::from("state")),
            ..options()
        };
        let disks = options.all_disks().unwrap();
        let serials: Vec<&str> = disks.iter().map(|disk| disk.serial.as_str()).collect();
        assert_eq!(serials, ["a", STATE_SERIAL]);
    }

    #[test]
    fn options_that_no_machine_can_have_are_refused() {
        let is_refused = |options: MachineOptions, words: &str| {
            let error = options.all_disks().unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        };
        let many = vec![disk("a"); MAX_DISKS + 1];
        is_refused(
            MachineOptions {
                disks: many,
                ..options()
            },
            "217 are wanted",
        );
        let long = vec![disk("123456789012345678901")];
        is_refused(
            MachineOptions {
                disks: long,
                ..options()
            },
            "longer than the 20 bytes",
        );
        let own = vec![disk(STATE_SERIAL)];
        is_refused(
            MachineOptions {
                disks: own,
                ..options()
            },
            "machine's own disk",
        );
        let memory = Bytes::mib(64);
        is_refused(
            MachineOptions {
                memory,
                ..options()
            },
            "too little",
        );
    }
}
