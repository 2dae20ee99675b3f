//! The measured target, and the machine.

use std::path::Path;

use record::{Bytes, Cloud, Machine, PhaseSummary, Summary, Target, TargetKind};
use serde::Serialize;

/// The measured target.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct TargetDocument<'a> {
    /// Path as it was given; bytes that are not UTF-8 are shown as U+FFFD.
    path: &'a str,
    kind: &'a TargetKind,
    /// Block device below the target, such as `nvme1n1`; null where there is none (tmpfs, NFS).
    device: Option<&'a str>,
    /// Physical disks below that device, through partitions, md and dm.
    disks: &'a [String],
    /// Model of the device, or of the first of the disks; null where it is not known.
    model: Option<&'a str>,
    /// Serial number or volume id of the device, or of the first of the disks; null where it is not known.
    serial: Option<&'a str>,
    /// Usable size of the test files, the file or the device.
    size_bytes: Bytes,
    /// Share of the size that was never written (holes, unwritten extents), 0 to 1; null where the file system does
    /// not report it.
    unwritten_fraction: Option<f64>,
    /// Share of the blocks sampled on a block device that held only zeros, 0 to 1; null for files.
    zero_fraction: Option<f64>,
    /// True if the page cache was bypassed.
    direct: bool,
    /// True if the file system keeps its data in memory, or has no block device below.
    in_memory: bool,
    /// Layers below the target that may serve requests instead of the disk, nearest first.
    caches: Vec<CacheDocument<'a>>,
}

/// A layer below the target that may serve requests from memory or from a faster disk.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CacheDocument<'a> {
    /// Device, or mount point of the file system, that is or has the cache.
    layer: &'a str,
    /// `page-cache`, `memory`, or the type or driver that caches, such as `zfs` or `bcache`.
    kind: String,
}

impl<'a> TargetDocument<'a> {
    pub(super) fn of(target: &'a Target) -> TargetDocument<'a> {
        let caches = target.caches.iter().map(|cache| CacheDocument {
            layer: &cache.layer,
            kind: ui::format::cache(&cache.kind).to_string(),
        });
        TargetDocument {
            path: &target.path,
            kind: &target.kind,
            device: target.device.as_deref(),
            disks: &target.disks,
            model: target.model.as_deref(),
            serial: target.serial.as_deref(),
            size_bytes: target.size,
            unwritten_fraction: target.unwritten_fraction,
            zero_fraction: target.zero_fraction,
            direct: target.direct,
            in_memory: target.in_memory,
            caches: caches.collect(),
        }
    }
}

/// The measured target, as far as the tool reports it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ImportedTarget<'a> {
    /// File, directory or device that was measured; null where the tool does not say.
    path: Option<&'a str>,
    /// Null: not known of an imported run, as the three keys below.
    kind: (),
    /// Null: device below the target.
    device: (),
    /// Null: model of the device.
    model: (),
    /// Null: size of the target.
    size_bytes: (),
    /// True if the page cache was bypassed; null where that is not known of all phases, or differs between them.
    direct: Option<bool>,
}

impl<'a> ImportedTarget<'a> {
    pub(super) fn of(summary: &'a Summary) -> ImportedTarget<'a> {
        ImportedTarget {
            path: summary.target.as_deref(),
            kind: (),
            device: (),
            model: (),
            size_bytes: (),
            direct: direct(&summary.phases),
        }
    }
}

fn direct(phases: &[PhaseSummary]) -> Option<bool> {
    let first = phases.first()?.work.direct?;
    let all = phases.iter().all(|phase| phase.work.direct == Some(first));
    all.then_some(first)
}

/// Facts about the machine, as every document has them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineDocument<'a> {
    /// Name of the host.
    hostname: &'a str,
    /// Release of the kernel, such as `6.1.0-13-cloud-amd64`.
    kernel: &'a str,
    /// Architecture of the processor, such as `x86_64`.
    arch: &'a str,
    /// Model of the processor.
    cpu: &'a str,
    /// Processors that the program may use.
    cores: u32,
    /// Memory of the machine.
    memory_bytes: Bytes,
    /// Tightest memory limit of the program's control groups; null where none is below the machine's memory.
    memory_limit_bytes: Option<Bytes>,
    /// Type of the file system that the target lies on, such as `ext4`; null for a block device, as the two keys
    /// below.
    filesystem: Option<&'a str>,
    /// Mount point of that file system.
    mount_point: Option<&'a Path>,
    /// Mount options and super-block options of that file system.
    mount_options: Option<&'a str>,
    /// I/O scheduler of the device below the target; null where it is not known, as the three keys below.
    scheduler: Option<&'a str>,
    /// Read-ahead of that device.
    read_ahead_bytes: Option<Bytes>,
    /// True if that device reports itself as rotational.
    rotational: Option<bool>,
    /// Write cache of that device as the kernel sees it: `write back` or `write through`.
    write_cache: Option<&'a str>,
    /// Description of the instance by the cloud's metadata service; null outside of a cloud.
    cloud: &'a Option<Cloud>,
}

impl<'a> MachineDocument<'a> {
    /// Facts about the machine that a run was made on.
    pub fn of(machine: &'a Machine) -> MachineDocument<'a> {
        let filesystem = machine.filesystem.as_ref();
        MachineDocument {
            hostname: &machine.hostname,
            kernel: &machine.kernel,
            arch: &machine.arch,
            cpu: &machine.cpu,
            cores: machine.cores,
            memory_bytes: machine.memory,
            memory_limit_bytes: machine.memory_limit,
            filesystem: filesystem.map(|filesystem| filesystem.kind.as_str()),
            mount_point: filesystem.map(|filesystem| Path::new(&filesystem.mount_point)),
            mount_options: filesystem.map(|filesystem| filesystem.options.as_str()),
            scheduler: machine.scheduler.as_deref(),
            read_ahead_bytes: machine.read_ahead,
            rotational: machine.rotational,
            write_cache: machine.write_cache.as_deref(),
            cloud: &machine.cloud,
        }
    }
}

/// The machine, as far as the tool reports it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ImportedMachine<'a> {
    /// Host that the tool ran on; null where its output does not say.
    hostname: Option<&'a str>,
}

impl<'a> ImportedMachine<'a> {
    pub(super) fn of(summary: &'a Summary) -> ImportedMachine<'a> {
        ImportedMachine {
            hostname: summary.host.as_deref(),
        }
    }
}
