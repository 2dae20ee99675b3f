//! Owners of bytes of an array: files, free space, swap, metadata, or unknown.

use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use linux::block::{Device, DeviceNumber, Devices};
use linux::extents::{self, LocationUnknown};
use linux::mapping::Map;
use linux::mounts::{Mount, Mounts};
use linux::{Root, spacemap, swaps};
use record::Ranges;

use super::upward::above;
use super::walk::walk;

/// Maximum number of files that are named; the others are counted.
const MAX_NAMED_FILES: usize = 1000;

/// Owner of some bytes of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The bytes of the array.
    pub array: Ranges,
    /// Kind of the owner.
    pub what: OwnerKind,
}

/// Owner of a range of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnerKind {
    /// Parts of a file.
    File {
        /// The file.
        path: PathBuf,
        /// Ranges of the file, in bytes.
        parts: Ranges,
        /// True if a snapshot or another file shares them.
        shared: bool,
    },
    /// Space that is allocated to a file and was never written: it reads as zeros, whatever the disk holds.
    Unwritten {
        /// The file.
        path: PathBuf,
    },
    /// Free space of the file system with this mount point.
    Free(PathBuf),
    /// Space in use by the file system with this mount point, but by no visible file: metadata, its log, a file that
    /// was deleted and is still open, or a file below another mount.
    Nameless(PathBuf),
    /// Swap on a device.
    Swap(String),
    /// Bytes whose owner is not known, for this reason.
    Unknown(String),
}

/// Owners that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    /// The owners; files in the order in which they were found.
    pub list: Vec<Owner>,
    /// Number of further files with such bytes.
    pub more_files: u64,
    /// Number of files and folders that could not be examined.
    pub unseen: u64,
    /// True if the search was interrupted before all files were examined.
    pub interrupted: bool,
}

/// Finds the owners of bytes of an array, through all devices that are stacked on it. The files of each file system on
/// it are examined until the owners of all the bytes are known.
///
/// # Errors
/// When mounts or swap cannot be read.
pub(crate) fn owners(
    root: &Root,
    devices: &Devices,
    array: DeviceNumber,
    wanted: &Ranges,
    interrupt: &AtomicBool,
) -> linux::Result<Owners> {
    let mounts = Mounts::read(root)?;
    let swaps = swaps::read(root)?;
    let mut found = Owners::default();
    let mut rest = wanted.clone();
    let stack = devices.get(array).into_iter();
    for device in stack.chain(devices.stack_above(array)) {
        let is_swap = swaps
            .iter()
            .any(|swap| swap.devices(root, devices).contains(&device.number));
        let mount = best_mount(&mounts, device.number);
        if mount.is_none() && !is_swap {
            continue;
        }
        let map = match Map::down(root, devices, device.number, array) {
            Ok(map) => map,
            Err(error) => {
                found.add(Ranges::new(), OwnerKind::Unknown(error.to_string()));
                continue;
            }
        };
        let on = above(&map, device.size, wanted);
        let down = |ranges: &Ranges| map.ranges(ranges).intersect(wanted);
        rest = rest.subtract(&down(&on));
        match mount {
            _ if on.is_empty() => {}
            Some(mount) => Search {
                mount,
                wanted: &on,
                down: &down,
                found: &mut found,
            }
            .run(interrupt),
            None => found.add(down(&on), OwnerKind::Swap(device.label())),
        }
    }
    if !rest.is_empty() {
        found.add(rest, OwnerKind::Unknown(unmounted(devices, array)));
    }
    Ok(found)
}

/// Reason why the owner of the remaining bytes is not known.
fn unmounted(devices: &Devices, array: DeviceNumber) -> String {
    let above = devices.stack_above(array);
    let label = devices.get(array).map(Device::label).unwrap_or_default();
    match above.is_empty() {
        true => format!("{label} has no mounted file system; mount it to name the files"),
        false => {
            "no mounted file system lies there: partition table, LVM's metadata, unused space, \
                  or a file system that is not mounted"
                .to_owned()
        }
    }
}

/// A mount of the root folder of a device's file system, or else any of its mounts.
fn best_mount(mounts: &Mounts, device: DeviceNumber) -> Option<&Mount> {
    let whole = mounts.on(device).find(|mount| mount.root == Path::new("/"));
    whole.or_else(|| mounts.on(device).next())
}

impl Owners {
    fn add(&mut self, array: Ranges, what: OwnerKind) {
        self.list.push(Owner { array, what });
    }

    fn add_file(&mut self, array: Ranges, what: OwnerKind) {
        if self.list.len() < MAX_NAMED_FILES {
            self.add(array, what);
        } else {
            self.more_files += 1;
        }
    }
}

/// The search in one file system.
struct Search<'a> {
    mount: &'a Mount,
    /// Bytes of the file system's device.
    wanted: &'a Ranges,
    /// Maps ranges of the device to ranges of the array.
    down: &'a dyn Fn(&Ranges) -> Ranges,
    found: &'a mut Owners,
}

impl Search<'_> {
    fn run(&mut self, interrupt: &AtomicBool) {
        let point = &self.mount.point;
        let is_unwanted = || interrupt.load(Ordering::Relaxed);
        let free = match File::open(point).map(|folder| spacemap::of_file(&folder, &is_unwanted)) {
            Ok(Ok(space)) => space.free.intersect(self.wanted),
            // The file system does not list its free space: it counts as space without a visible file.
            Ok(Err(_)) | Err(_) => Ranges::new(),
        };
        if !free.is_empty() {
            let array = (self.down)(&free);
            self.found.add(array, OwnerKind::Free(point.clone()));
        }
        let nameless = self.walk(self.wanted.subtract(&free), interrupt);
        if !nameless.is_empty() {
            let array = (self.down)(&nameless);
            self.found.add(array, OwnerKind::Nameless(point.clone()));
        }
    }

    /// Adds the files that hold the bytes `left`. Returns the bytes that no file holds.
    fn walk(&mut self, mut left: Ranges, interrupt: &AtomicBool) -> Ranges {
        if left.is_empty() {
            return left;
        }
        let sought: Vec<Range<u64>> = left.iter().collect();
        let mut refusal = None;
        let mut unseen = 0;
        let point = self.mount.point.clone();
        let walked = walk(&point, self.mount.device, interrupt, &mut |path, file| {
            match Hits::of(file, &sought) {
                Ok(hits) => {
                    left = left.subtract(&hits.written.union(&hits.unwritten));
                    self.name(path, hits);
                }
                Err(error @ LocationUnknown::OtherPlaces(_)) => {
                    refusal = Some(error.to_string());
                    return ControlFlow::Break(());
                }
                Err(_) => unseen += 1,
            }
            match left.is_empty() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        self.found.unseen += unseen;
        match walked {
            Ok(walked) => {
                self.found.unseen += walked.unseen;
                let is_done = walked.complete || left.is_empty() || refusal.is_some();
                self.found.interrupted |= !is_done;
            }
            Err(error) => {
                refusal = Some(format!("{} could not be opened: {error}", point.display()))
            }
        }
        if let Some(why) = refusal {
            let array = (self.down)(&left);
            self.found.add(array, OwnerKind::Unknown(why));
            return Ranges::new();
        }
        left
    }

    /// Adds a file, with the ranges that it holds.
    fn name(&mut self, path: &Path, hits: Hits) {
        if !hits.written.is_empty() {
            let what = OwnerKind::File {
                path: path.to_path_buf(),
                parts: hits.parts.into_iter().collect(),
                shared: hits.shared,
            };
            self.found.add_file((self.down)(&hits.written), what);
        }
        if !hits.unwritten.is_empty() {
            let path = path.to_path_buf();
            let what = OwnerKind::Unwritten { path };
            self.found.add_file((self.down)(&hits.unwritten), what);
        }
    }
}

/// The bytes that are searched for and that a file holds.
#[derive(Default)]
struct Hits {
    written: Ranges,
    unwritten: Ranges,
    /// Ranges of the file that were written.
    parts: Vec<Range<u64>>,
    shared: bool,
}

impl Hits {
    fn of(file: &File, sought: &[Range<u64>]) -> Result<Hits, LocationUnknown> {
        let mut hits = Hits::default();
        extents::placed(file, |placed| {
            let (range, is_written) = match &placed.place {
                extents::ExtentLocation::Written(range) => (range.clone(), true),
                extents::ExtentLocation::Unwritten(range) => (range.clone(), false),
                extents::ExtentLocation::Unaligned | extents::ExtentLocation::Nowhere => {
                    return ControlFlow::Continue(());
                }
            };
            for hit in parts_within(sought, &range) {
                if is_written {
                    let from = placed.logical + (hit.start - range.start);
                    hits.parts.push(from..from + (hit.end - hit.start));
                    hits.shared |= placed.shared;
                    hits.written.insert(hit);
                } else {
                    hits.unwritten.insert(hit);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(hits)
    }
}

/// Parts of ranges in ascending order that lie within another range.
fn parts_within(sought: &[Range<u64>], range: &Range<u64>) -> Vec<Range<u64>> {
    let first = sought.partition_point(|own| own.end <= range.start);
    let rest = sought.get(first..).unwrap_or_default();
    rest.iter()
        .take_while(|own| own.start < range.end)
        .map(|own| own.start.max(range.start)..own.end.min(range.end))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    proptest! {
        #[test]
        fn an_intersection_has_the_bytes_of_both(
            sought in prop::collection::vec((0_u64..100, 1_u64..10), 0..8), from in 0_u64..100, len in 1_u64..40,
        ) {
            let sought: Ranges = sought.iter().map(|(at, len)| *at..at + len).collect();
            let list: Vec<Range<u64>> = sought.iter().collect();
            let range = from..from + len;
            let found: Ranges = parts_within(&list, &range).into_iter().collect();
            prop_assert_eq!(found, sought.intersect(&Ranges::from(range)));
        }
    }

    /// A search in the file system of a folder, as if it were mounted there.
    fn search(folder: &Path, wanted: &Ranges) -> Owners {
        let device = DeviceNumber::from_raw(fs::metadata(folder).unwrap().dev());
        let line = format!("1 0 {device} / {} rw - ext4 /dev/x rw\n", folder.display());
        let mounts = Mounts::parse(line.as_bytes()).unwrap();
        let mut found = Owners::default();
        Search {
            mount: mounts.iter().next().unwrap(),
            wanted,
            down: &Ranges::clone,
            found: &mut found,
        }
        .run(&AtomicBool::new(false));
        found
    }

    #[test]
    fn a_file_is_named_by_the_places_of_its_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(folder.path().join("b"), vec![1; 1 << 20]).unwrap();
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        let mut place = None;
        let listed = extents::placed(&file, |placed| {
            place = placed.on_device().map(|range| (placed.logical, range));
            ControlFlow::Break(())
        });
        // Not every file system lists the extents of its files.
        let (Ok(()), Some((logical, range))) = (listed, place) else {
            return;
        };
        let wanted = Ranges::from(range.start + 4096..range.start + 8192);
        let found = search(folder.path(), &wanted);
        let owner = Owner {
            array: wanted,
            what: OwnerKind::File {
                path,
                parts: Ranges::from(logical + 4096..logical + 8192),
                shared: false,
            },
        };
        assert_eq!(found.list, [owner]);
    }
}
