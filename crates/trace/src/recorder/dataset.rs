//! Maps offsets on the recorded devices to the files of a data folder.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use linux::Root;
use linux::block::{DeviceNumber, Devices};
use linux::extents::map_placed;

use super::target::Target;
use crate::io::{DeviceIndex, Io};
use ui::exit::Failure;

/// Interval at which the files are mapped again.
const INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of extents held: 64 MiB.
const MAX_EXTENTS: usize = 1 << 20;

/// An extent of a file on a device.
#[derive(Clone, Debug)]
struct Run {
    device: DeviceIndex,
    begin: u64,
    end: u64,
    file: Arc<str>,
}

/// The files' extents, refreshed while the recording runs.
pub(super) struct Dataset {
    /// Sorted by device and begin.
    runs: Vec<Run>,
    next: Receiver<Vec<Run>>,
}

/// A folder and the devices below it.
struct Folder {
    path: PathBuf,
    /// Recorded devices by the device numbers of files, and the offset of the file's device (a partition) on them.
    devices: HashMap<DeviceNumber, (DeviceIndex, u64)>,
}

/// State of a walk through a folder: extents found so far, and folders that are left.
#[derive(Default)]
struct FolderWalk {
    runs: Vec<Run>,
    /// Device and inode of the files and folders seen so far.
    seen: HashSet<(u64, u64)>,
    /// Folders whose entries are not examined yet.
    folders: Vec<PathBuf>,
}

impl Dataset {
    /// Maps the files of a folder, and repeats this in a thread of its own.
    pub(super) fn start(
        root: &Root,
        devices: &Devices,
        targets: &[Target],
        path: &Path,
    ) -> Result<Dataset, Failure> {
        let refused = |why: &str| {
            Failure::refused(format!(
                "the files of {} cannot be told apart: {why}",
                path.display()
            ))
        };
        let path = fs::canonicalize(path).map_err(|error| refused(&error.to_string()))?;
        let mut known = HashMap::new();
        for (index, target) in targets.iter().enumerate() {
            let index = DeviceIndex(index as u16);
            known.insert(target.device.number, (index, 0));
            for number in &target.partitions {
                let Some(part) = devices.get(*number) else {
                    continue;
                };
                let start = root
                    .sys
                    .join("class/block")
                    .join(part.sysfs_name())
                    .join("start");
                if let Some(sectors) = linux::root::number::<u64>(&start) {
                    known.insert(*number, (index, sectors * 512));
                }
            }
        }
        let own = fs::metadata(&path)
            .map_err(|error| refused(&error.to_string()))?
            .dev();
        if !known.contains_key(&DeviceNumber::from_raw(own)) {
            return Err(refused(
                "its file system does not lie on a recorded device or a partition of one. Record the device that it is \
                 mounted from",
            ));
        }
        let folder = Folder {
            path,
            devices: known,
        };
        let runs = folder.runs();
        let (send, next) = sync_channel(1);
        thread::spawn(move || refresh(&folder, &send));
        Ok(Dataset { runs, next })
    }

    /// The file to which an I/O belongs.
    pub(super) fn file_of(&mut self, io: &Io) -> Option<Arc<str>> {
        if let Ok(runs) = self.next.try_recv() {
            self.runs = runs;
        }
        let behind = self
            .runs
            .partition_point(|run| (run.device, run.begin) <= (io.device, io.offset.0));
        let run = self.runs.get(behind.checked_sub(1)?)?;
        let is_in = run.device == io.device && io.offset.0 < run.end && io.length.0 > 0;
        is_in.then(|| run.file.clone())
    }
}

/// Maps the files at intervals until the recording has ended.
fn refresh(folder: &Folder, send: &SyncSender<Vec<Run>>) {
    loop {
        thread::sleep(INTERVAL);
        if send.send(folder.runs()).is_err() {
            return;
        }
    }
}

impl Folder {
    /// Extents of the files, and then of those behind symbolic links, such as PostgreSQL's `pg_wal` and tablespaces.
    /// Files on other devices are left out.
    fn runs(&self) -> Vec<Run> {
        let mut walk = FolderWalk::default();
        let mut links = VecDeque::from([self.path.clone()]);
        while walk.runs.len() < MAX_EXTENTS {
            if let Some(folder) = walk.folders.pop() {
                for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                    match is_link {
                        true => links.push_back(entry.path()),
                        false => self.visit(entry.path(), &mut walk),
                    }
                }
            } else if let Some(path) = links.pop_front() {
                self.visit(path, &mut walk);
            } else {
                break;
            }
        }
        let mut runs = walk.runs;
        runs.sort_by_key(|run| (run.device, run.begin));
        runs
    }

    fn visit(&self, path: PathBuf, walk: &mut FolderWalk) {
        // A file that was removed meanwhile is left out.
        let Ok(found) = fs::metadata(&path) else {
            return;
        };
        let is_recorded = self
            .devices
            .contains_key(&DeviceNumber::from_raw(found.dev()));
        if !is_recorded || !walk.seen.insert((found.dev(), found.ino())) {
            return;
        }
        if found.is_dir() {
            walk.folders.push(path);
        } else if found.is_file() && walk.runs.len() < MAX_EXTENTS {
            // So is one that cannot be read.
            let _ = self.add(&path, &mut walk.runs);
        }
    }

    fn add(&self, path: &Path, runs: &mut Vec<Run>) -> Option<()> {
        let file = File::open(path).ok()?;
        let number = DeviceNumber::from_raw(file.metadata().ok()?.dev());
        let (device, start) = *self.devices.get(&number)?;
        let name: Arc<str> = path.strip_prefix(&self.path).ok()?.to_string_lossy().into();
        for extent in map_placed(&file).ok()?? {
            let begin = start.checked_add(extent.physical)?;
            runs.push(Run {
                device,
                begin,
                end: begin.checked_add(extent.length)?,
                file: name.clone(),
            });
        }
        Some(())
    }
}
