//! The target: its kind, the consent to overwrite it, and the file through which it is measured.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use linux::block::{BlockDeviceKind, Device, DeviceNumber, Devices};
use linux::consent::{Consent, DestroyTarget, ReadTarget, open_for_destroying, open_for_reading};
use linux::diskstats::Counter;
use linux::space::{self, FilesystemMedium};
use linux::{Root, block, remedy};
use record::{Bytes, Target, TargetKind};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::phase_plan::PhasePlan;
use super::test_folder::{self, LeftoverFolder};
use super::testfile;
use crate::args::BenchArgs;
use domain::plan_binding::{self, BoundTarget, PlannedDisk};
use ui::exit::{ExitClass as _, Failure};

/// A target that can be measured. Its files stay open and claimed until this is dropped.
pub(crate) struct Prepared {
    /// The target, for the record.
    pub target: Target,
    /// The file descriptor that is measured.
    pub file: File,
    /// True if it may be written.
    pub writable: bool,
    /// The counters of the disks below.
    pub counters: Vec<Counter>,
    /// Alignment of requests that bypass the page cache.
    pub alignment: Bytes,
    /// The largest request that the disks below take in one piece, where it is known.
    pub largest_request: Option<Bytes>,
    /// Notes for the user, as sentences.
    pub notes: Vec<String>,
    /// Claim on the opened target (safety rule 4); a test file needs no claim.
    claim: Claim,
}

impl Prepared {
    /// The block device that the target is; `None` for a test file.
    ///
    /// # Errors
    /// Refused, where the kernel does not list the device.
    pub(crate) fn block_device(&self, root: &Root) -> Result<Option<Device>, Failure> {
        if self.target.kind != TargetKind::Block {
            return Ok(None);
        }
        let number = DeviceNumber::from_raw(self.file.metadata().refused()?.rdev());
        let devices = Devices::read(root).refused()?;
        match devices.get(number) {
            Some(device) => Ok(Some(device.clone())),
            None => Err(Failure::refused(format!(
                "{} is not listed in /sys/class/block, which tells what it takes",
                self.target.path
            ))),
        }
    }
}

/// Claim that prevents others from taking the target.
enum Claim {
    TestFile,
    Read(#[allow(dead_code)] ReadTarget),
    Destroy(DestroyTarget),
}

/// Determines what `path` is and opens it. Nothing is written to it; in a directory, an empty file without a name is
/// created.
pub(crate) fn prepare(
    root: &Root,
    path: &Path,
    args: &BenchArgs,
    phases: &[PhasePlan],
) -> Result<Prepared, Failure> {
    prepare_sized(
        root,
        path,
        args,
        args.shared.size.map(|size| size.0),
        phases,
    )
}

/// Like [`prepare`], with a given size of the test file in a directory.
pub(crate) fn prepare_sized(
    root: &Root,
    path: &Path,
    args: &BenchArgs,
    size: Option<Bytes>,
    phases: &[PhasePlan],
) -> Result<Prepared, Failure> {
    let metadata = fs::metadata(path).map_err(|error| unreachable_path(path, &error))?;
    let consents = consents(path, args)?;
    let mut prepared = if metadata.is_dir() {
        if !consents.is_empty() {
            return Err(Failure::refused(format!(
                "{} is a directory, and nothing in it is ever destroyed; leave --destroy out",
                path.display()
            )));
        }
        directory(path, size)?
    } else if metadata.is_file() || metadata.file_type().is_block_device() {
        if size.is_some() {
            return Err(Failure::refused(
                "--size is for the test file in a directory; use --span to measure only a part \
                 of a file or device",
            ));
        }
        existing(root, path, &consents, &args.planned)?
    } else {
        return Err(Failure::refused(format!(
            "{} is neither a directory, a file nor a block device",
            path.display()
        )));
    };
    let alignment = prepared.place(root, path)?;
    // The page cache accepts any size.
    let alignment = if args.shared.buffered {
        Bytes(1)
    } else {
        alignment
    };
    prepared.alignment = alignment;
    check_fit(&prepared.target, phases, alignment)?;
    keep_access_time(&prepared.file);
    prepared.target.direct = !args.shared.buffered && set_direct(&prepared.file).refused()?;
    Ok(prepared)
}

fn unreachable_path(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::refused(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "there is no {path}; the disks are listed by 'disksmith devices', and this directory is measured by: disksmith bench ."
        ),
        io::ErrorKind::PermissionDenied => {
            format!(
                "{path} may not be examined by this user; {}",
                remedy::as_root()
            )
        }
        _ => format!("{path} cannot be examined: {error}"),
    })
}

/// The user's consents to overwrite `path`. A consent may only name a target.
fn consents(path: &Path, args: &BenchArgs) -> Result<Vec<Consent>, Failure> {
    let consents: Vec<Consent> = args
        .destroy
        .iter()
        .map(|text| Consent::parse(text))
        .collect::<Result<_, _>>()
        .refused()?;
    // A consent that names the target with a mistyped signature is left to the claim, which explains it.
    let others = args.target.iter().chain(&args.more_targets);
    let targets: Vec<&Path> = others.map(PathBuf::as_path).chain([path]).collect();
    let is_stray = |consent: &&Consent| !targets.iter().any(|target| consent.names(target));
    match consents.iter().find(is_stray) {
        None => Ok(consents
            .into_iter()
            .filter(|consent| consent.names(path))
            .collect()),
        Some(consent) => Err(Failure::refused(format!(
            "--destroy names {}, which is not the target {}",
            consent.path.display(),
            path.display()
        ))),
    }
}

fn directory(path: &Path, size: Option<Bytes>) -> Result<Prepared, Failure> {
    let notes = testfile::remove_left_over(path)
        .into_iter()
        .map(LeftoverFolder::Removed)
        .chain(test_folder::remove_left_over(path))
        .map(|left| left.note())
        .collect();
    let space = space::of(path).refused()?;
    if space.read_only {
        return Err(Failure::refused(format!(
            "the file system of {} is mounted read-only, so no test file can be laid out there; measure another directory: \
             disksmith bench DIRECTORY",
            path.display()
        )));
    }
    let size = testfile::size_for(size, space.available).map_err(|why| {
        let path = path.display();
        Failure::refused(match testfile::fitting(space.available) {
            Some(size) => format!("{path}: {why}; give a --size that fits: disksmith bench {path} --size {}M", size.0 >> 20),
            None => format!("{path}: {why}; free some space, or measure another directory: disksmith bench DIRECTORY"),
        })
    })?;
    let file = testfile::create(path).map_err(|error| {
        Failure::refused(match error.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "{} may not be written by this user; measure one that may be (disksmith bench ~), or {}",
                path.display(),
                remedy::as_root()
            ),
            _ => format!("no test file can be created in {}: {error}", path.display()),
        })
    })?;
    Ok(Prepared {
        target: described(path, TargetKind::Directory, size),
        file,
        writable: true,
        counters: Vec::new(),
        largest_request: None,
        alignment: Bytes(512),
        notes,
        claim: Claim::TestFile,
    })
}

/// An existing file or device.
fn existing(
    root: &Root,
    path: &Path,
    consents: &[Consent],
    planned: &[PlannedDisk],
) -> Result<Prepared, Failure> {
    let (file, size, device, claim) = if consents.is_empty() {
        let opened = open_for_reading(path).refused()?;
        let file = opened.reopen(OFlags::CLOEXEC).refused()?;
        (file, opened.size, opened.device, Claim::Read(opened))
    } else {
        let opened = open_for_destroying(root, path, consents).refused()?;
        plan_binding::check(planned, &opened, root).map_err(Failure::refused)?;
        let file = opened.reopen(OFlags::CLOEXEC).refused()?;
        (file, opened.size, opened.device, Claim::Destroy(opened))
    };
    let kind = match device {
        Some(_) => TargetKind::Block,
        None => TargetKind::File,
    };
    if size.0 == 0 {
        return Err(Failure::refused(format!(
            "{} is empty: there is nothing to read",
            path.display()
        )));
    }
    let notes = match &claim {
        Claim::Destroy(target) => target.unreadable_note().into_iter().collect(),
        _ => Vec::new(),
    };
    Ok(Prepared {
        target: described(path, kind, size),
        file,
        notes,
        writable: matches!(claim, Claim::Destroy(_)),
        counters: Vec::new(),
        largest_request: None,
        alignment: Bytes(512),
        claim,
    })
}

fn described(path: &Path, kind: TargetKind, size: Bytes) -> Target {
    // An absolute path, since the ledger is read from other folders.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    Target {
        path: absolute.display().to_string(),
        kind,
        device: None,
        disks: Vec::new(),
        model: None,
        serial: None,
        size,
        unwritten_fraction: None,
        zero_fraction: None,
        direct: false,
        in_memory: false,
        caches: Vec::new(),
    }
}

impl Prepared {
    /// The target whose data is overwritten; `None` where it is only read, or is this program's test file.
    ///
    /// # Errors
    /// Reason why it is not known, as a sentence.
    pub(crate) fn destroy_target(&self, root: &Root) -> Result<Option<BoundTarget>, String> {
        let Claim::Destroy(claim) = &self.claim else {
            return Ok(None);
        };
        let devices = Devices::read(root).map_err(|why| why.to_string())?;
        BoundTarget::of(claim, &devices, root).map(Some)
    }

    /// Determines the device and the disks below, and opens their counters. Returns the size that requests must be
    /// multiples of.
    fn place(&mut self, root: &Root, path: &Path) -> Result<Bytes, Failure> {
        let sector = Bytes(512);
        // Without /sys, as in some containers, the target can still be measured.
        let Ok(devices) = Devices::read(root) else {
            return Ok(sector);
        };
        let place = block::place_of(root, &devices, path).refused()?;
        let medium = space::of_file(&self.file).map(|space| space.medium());
        let on_disk = self.target.kind != TargetKind::Block;
        self.target.in_memory = on_disk && matches!(medium, Ok(FilesystemMedium::Memory));
        let Some(device) = place
            .devices
            .first()
            .and_then(|number| devices.get(*number))
        else {
            return Ok(sector);
        };
        let mut disks: Vec<&block::Device> = Vec::new();
        for number in &place.devices {
            for disk in devices.stack_below(*number) {
                if !disks.iter().any(|known| known.number == disk.number) {
                    disks.push(disk);
                }
            }
        }
        let first = disks.first().copied().unwrap_or(device);
        let of_any = |fact: fn(&block::Device) -> &Option<String>| {
            fact(device).clone().or_else(|| fact(first).clone())
        };
        self.target.device = Some(device.name.clone());
        self.target.disks = disks.iter().map(|disk| disk.name.clone()).collect();
        self.target.model = of_any(|device| &device.model);
        self.target.serial = of_any(|device| &device.serial);
        self.target.in_memory |= disks.iter().any(|disk| disk.kind == BlockDeviceKind::Ram);
        self.target.caches = caches_below(root, &devices, &place.devices);
        let splits = disks.iter().copied().chain([device]);
        self.largest_request = splits.filter_map(|disk| disk.largest_request(root)).min();
        if disks.iter().all(|disk| disk.is_counted(root)) {
            self.counters = disks
                .iter()
                .map(|disk| Counter::open(root, disk))
                .collect::<Result<_, _>>()
                .unwrap_or_default();
        }
        Ok(device.logical_block.unwrap_or(sector))
    }
}

/// The caches below the devices of a target, each once.
fn caches_below(root: &Root, devices: &Devices, numbers: &[DeviceNumber]) -> Vec<record::Cache> {
    let mut caches = Vec::new();
    for number in numbers {
        for cache in linux::cache::below(root, devices, *number) {
            if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
    }
    caches
}

/// Refuses a phase that cannot run on a target of this size, before anything is written.
fn check_fit(target: &Target, phases: &[PhasePlan], alignment: Bytes) -> Result<(), Failure> {
    for PhasePlan { name, workload, .. } in phases {
        let block = workload.block;
        if !block.0.is_multiple_of(alignment.0) {
            return Err(Failure::refused(format!(
                "{name}: direct I/O on {} needs blocks that are multiples of {}, and {} is \
                 not",
                target.path,
                alignment.exact(),
                block.exact()
            )));
        }
        let span = workload.span.unwrap_or(target.size);
        if span > target.size {
            return Err(Failure::refused(format!(
                "{name}: a span of {} is more than the {} of {}",
                span.exact(),
                target.size.exact(),
                target.path
            )));
        }
        if span.0 / block.0 < u64::from(workload.threads) {
            return Err(Failure::refused(format!(
                "{name}: {} of {} have no room for blocks of {} on {} thread(s)",
                span.exact(),
                target.path,
                block.exact(),
                workload.threads
            )));
        }
    }
    Ok(())
}

/// Enables direct I/O; false if the file system refuses it.
pub(crate) fn set_direct(file: &File) -> io::Result<bool> {
    let flags = fcntl_getfl(file.as_fd())?;
    match fcntl_setfl(file.as_fd(), flags | OFlags::DIRECT) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Disables updates of the access time, since a measurement is no use. Only a file's owner and root may request that
/// (open(2), O_NOATIME); for others the refusal is ignored.
pub(crate) fn keep_access_time(file: &File) {
    if let Ok(flags) = fcntl_getfl(file.as_fd()) {
        let _ = fcntl_setfl(file.as_fd(), flags | OFlags::NOATIME);
    }
}
