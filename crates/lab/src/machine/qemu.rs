//! The command line of QEMU.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::arch::Arch;
use super::{Disk, DiskContent};

/// Accelerator that a machine runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// KVM, on the host's processor.
    Kvm,
    /// QEMU's emulation: computations are 10 to 30 times slower; disks keep their speed.
    Emulation,
}

/// The first slot of the PCI bus for disks, and the number of disks in a slot. The lower slots are for the ports.
const FIRST_SLOT: usize = 4;
const DISKS_PER_SLOT: usize = 8;

/// Maximum number of disks on the bus.
pub(super) const MAX_DISKS: usize = (31 - FIRST_SLOT) * DISKS_PER_SLOT;

/// Streams of the machine: paths of pipes that are open in this process. The control port is QEMU's standard input and
/// output.
#[derive(Debug)]
pub(super) struct Streams {
    pub console: PathBuf,
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

/// Hardware of the machine, for the arguments of QEMU.
#[derive(Debug)]
pub(super) struct Hardware<'a> {
    pub arch: &'a Arch,
    pub accelerator: Accelerator,
    pub memory_mib: u64,
    pub cpus: u32,
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    pub streams: &'a Streams,
    /// Disks in the order in which the machine names them.
    pub disks: &'a [Disk],
    /// True if adjacent requests may be merged.
    pub merge: bool,
}

impl Hardware<'_> {
    /// The arguments of QEMU.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut line = Line::default();
        line.base(self.arch, self.accelerator);
        line.add("-m", format!("{}M", self.memory_mib));
        line.add("-smp", self.cpus.to_string());
        line.path("-kernel", self.kernel);
        line.path("-initrd", self.initramfs);
        line.add("-append", self.kernel_line());
        self.ports(&mut line);
        self.drives(&mut line);
        line.0
    }

    /// Few messages, so that the end of the console shows the failure; a panic ends the machine; no mitigations, since
    /// the machine has no other user.
    fn kernel_line(&self) -> String {
        let Arch {
            console,
            parameters,
            ..
        } = self.arch;
        format!(
            "console={console} quiet loglevel=4 panic=-1 rdinit=/init mitigations=off{parameters}"
        )
    }

    fn ports(&self, line: &mut Line) {
        let streams = self.streams;
        line.option("-chardev", "file,id=console,path=", &streams.console, "");
        line.add("-serial", "chardev:console");
        line.add("-device", "virtio-serial-pci,id=ports,addr=2");
        line.option("-chardev", "file,id=stdout,path=", &streams.stdout, "");
        line.option("-chardev", "file,id=stderr,path=", &streams.stderr, "");
        // The control port is bidirectional.
        line.add("-chardev", "stdio,id=control,signal=off");
        for (number, name) in ["stdout", "stderr", "control"].iter().enumerate() {
            let number = number + 1;
            let port = format!("virtserialport,chardev={name},name=lab.{name},nr={number}");
            line.add("-device", port);
        }
    }

    fn drives(&self, line: &mut Line) {
        // Requests are processed in another thread than the ports and the console.
        line.add("-object", "iothread,id=disks");
        let queues = self.cpus.clamp(1, 2);
        let merging = if self.merge { "on" } else { "off" };
        for (index, disk) in self.disks.iter().enumerate() {
            match &disk.source {
                DiskContent::Socket { path, export } => {
                    let before = format!("nbd,node-name=disk{index},server.type=unix,server.path=");
                    let after = format!(",export={},discard=unmap", export.replace(',', ",,"));
                    line.option("-blockdev", &format!("driver={before}"), path, &after);
                }
                DiskContent::File(path) => {
                    let before = format!("driver=file,node-name=disk{index},filename=");
                    line.option("-blockdev", &before, path, ",discard=unmap");
                }
            }
            let (slot, function) = (FIRST_SLOT + index / DISKS_PER_SLOT, index % DISKS_PER_SLOT);
            line.add(
                "-device",
                format!(
                    "virtio-blk-pci,drive=disk{index},serial={},iothread=disks,\
                     num-queues={queues},write-cache=on,request-merging={merging},addr={slot:x}.{function},multifunction=on",
                    disk.serial.replace(',', ",,")
                ),
            );
        }
    }
}

/// The arguments of a machine that only starts a kernel, with its console on standard output.
pub(super) fn bare(arch: &Arch, accelerator: Accelerator, kernel: &Path) -> Vec<OsString> {
    let mut line = Line::default();
    line.base(arch, accelerator);
    line.add("-m", "256M");
    line.path("-kernel", kernel);
    line.add("-append", format!("console={} panic=-1", arch.console));
    line.add("-serial", "stdio");
    line.0
}

#[derive(Debug, Default)]
struct Line(Vec<OsString>);

impl Line {
    fn base(&mut self, arch: &Arch, accelerator: Accelerator) {
        self.0
            .extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(OsString::from));
        self.add("-name", "disksmith-lab");
        self.add("-display", "none");
        self.add("-machine", arch.machine);
        let (accelerator, cpu) = match accelerator {
            Accelerator::Kvm => ("kvm", "host"),
            Accelerator::Emulation => ("tcg,thread=multi", "max"),
        };
        self.add("-accel", accelerator);
        self.add("-cpu", cpu);
    }

    fn add(&mut self, name: &str, value: impl Into<OsString>) {
        self.0.push(name.into());
        self.0.push(value.into());
    }

    fn path(&mut self, name: &str, path: &Path) {
        self.add(name, path);
    }

    fn option(&mut self, name: &str, before: &str, path: &Path, after: &str) {
        let mut value = OsString::from(before);
        value.push(escaped(path));
        value.push(after);
        self.add(name, value);
    }
}

/// A path as one of several values: commas in it are doubled.
fn escaped(path: &Path) -> OsString {
    let bytes = OsStr::as_bytes(path.as_os_str());
    let mut escaped = Vec::with_capacity(bytes.len());
    for byte in bytes {
        escaped.push(*byte);
        if *byte == b',' {
            escaped.push(b',');
        }
    }
    OsString::from_vec(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disks(count: usize) -> Vec<Disk> {
        let socket = |index| Disk {
            source: DiskContent::Socket {
                path: PathBuf::from(format!("/run/a,b/{index}.sock")),
                export: String::new(),
            },
            serial: format!("vol-{index}"),
        };
        (0..count).map(socket).collect()
    }

    fn arguments(disks: &[Disk]) -> Vec<String> {
        let streams = Streams {
            console: "/proc/1/fd/3".into(),
            stdout: "/proc/1/fd/4".into(),
            stderr: "/proc/1/fd/5".into(),
        };
        let hardware = Hardware {
            arch: Arch::host().unwrap(),
            accelerator: Accelerator::Emulation,
            memory_mib: 1024,
            cpus: 2,
            kernel: Path::new("/boot/vmlinuz"),
            initramfs: Path::new("/proc/1/fd/8"),
            streams: &streams,
            disks,
            merge: true,
        };
        let words = hardware.arguments().into_iter();
        words.map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn disks_stand_on_the_bus_in_their_order() {
        let arguments = arguments(&disks(10));
        let places: Vec<&str> = arguments
            .iter()
            .filter(|word| word.starts_with("virtio-blk-pci"))
            .map(|word| {
                word.split("addr=")
                    .nth(1)
                    .unwrap()
                    .split(',')
                    .next()
                    .unwrap()
            })
            .collect();
        let wanted = [
            "4.0", "4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "5.0", "5.1",
        ];
        assert_eq!(places, wanted);
    }

    #[test]
    fn a_comma_in_a_path_is_no_separator() {
        let arguments = arguments(&disks(1));
        let drive = arguments
            .iter()
            .find(|word| word.contains("driver=nbd"))
            .unwrap();
        assert!(
            drive.contains("server.path=/run/a,,b/0.sock,export="),
            "{drive}"
        );
    }
}
