//! The files that `--first` names, and where on the volumes their data lies.

mod glob;
mod walk;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use linux::Root;
use linux::block::{DeviceNumber, Devices, place_of};
use linux::extents::{self, ExtentLocation, LocatedExtent, LocationUnknown};
use linux::mapping::{Map, MappingUnknown};
use record::{Ranges, Severity};

use super::finding::{Finding, FindingCode};
use reader::Volume;
use ui::context::Context;
use ui::exit::Failure;

/// The most files to name in a finding; the others are counted.
const MAX_NAMED_FILES: usize = 5;

/// Places of the data of the named files.
pub(crate) struct FileBlocks {
    /// Bytes of each volume that hold such data.
    pub each: Vec<Ranges>,
    /// Findings about the files, whichever volumes they lie on.
    pub findings: Vec<Finding>,
    /// True if a part of the data is on the volumes at unknown places.
    pub has_unknown: bool,
    /// True if a part of the data is, or may be, on volumes that are not named.
    pub is_elsewhere: bool,
}

/// Finds the data of what is named, until it is interrupted.
///
/// # Errors
/// When a pattern names nothing: it is a mistake more often than not, and what should be first would
/// be last.
pub(crate) fn find(
    patterns: &[OsString],
    devices: &Devices,
    volumes: &[Volume],
    context: &Context,
    interrupt: &AtomicBool,
) -> Result<FileBlocks, Failure> {
    let mut paths = Vec::new();
    let mut problems = Vec::new();
    for pattern in patterns {
        match walk::files(Path::new(pattern), interrupt) {
            Ok(found) => paths.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() && !interrupt.load(Ordering::Relaxed) {
        return Err(Failure::refused(problems.join("\n")));
    }
    let mut search = Search {
        root: &context.root,
        devices,
        volumes,
        interrupt,
        reached: Vec::new(),
        found: volumes.iter().map(|_| Vec::new()).collect(),
        trouble: FileProblems::default(),
    };
    for path in &paths {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        search.add(path);
    }
    let Search { found, trouble, .. } = search;
    Ok(FileBlocks {
        each: found
            .into_iter()
            .map(|ranges| ranges.into_iter().collect())
            .collect(),
        findings: trouble.findings(),
        has_unknown: trouble.has_unknown(),
        is_elsewhere: trouble.elsewhere.count > 0 || trouble.nowhere.count > 0,
    })
}

/// Part of a file system's device that the volumes hold.
struct DeviceRange {
    from: DeviceNumber,
    /// The volumes that it lies on, where it is known how.
    ways: Vec<(usize, Map)>,
    /// Reasons why it is not known of the others.
    unknown: Vec<String>,
    /// Other devices that it lies on.
    beyond: Vec<String>,
    /// True if it lies on these volumes as a whole or in part; `None` where that is not known.
    is_here: Option<bool>,
}

struct Search<'a> {
    root: &'a Root,
    devices: &'a Devices,
    volumes: &'a [Volume],
    interrupt: &'a AtomicBool,
    reached: Vec<DeviceRange>,
    /// Ranges found, of each volume.
    found: Vec<Vec<std::ops::Range<u64>>>,
    trouble: FileProblems,
}

impl Search<'_> {
    fn add(&mut self, path: &Path) {
        let file =
            File::open(path).map_err(|error| self.trouble.lost.add(path, &error.to_string()));
        let number = match fs::metadata(path) {
            Ok(metadata) => DeviceNumber::from_raw(metadata.dev()),
            // What is gone meanwhile need not be hot.
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.trouble.nowhere.add(path, &error.to_string()),
        };
        let reach = self.device_index(number, path);
        let is_here = self.reached[reach].is_here;
        if !self.reached[reach].beyond.is_empty() {
            let beyond = self.reached[reach].beyond.join(" ");
            self.trouble.elsewhere.add(path, &format!("on {beyond}"));
        }
        match (is_here, file) {
            (Some(true), Ok(file)) => self.list(path, &file, reach),
            (None, _) => self.trouble.nowhere.add(path, ""),
            (Some(_), _) => {}
        }
    }

    /// Finds the places of a file whose file system lies on these volumes, at least in part.
    fn list(&mut self, path: &Path, file: &File, reach: usize) {
        let mut own = Vec::new();
        let mut odd = (false, false);
        let listed = extents::placed(file, |placed: LocatedExtent| {
            own.extend(placed.on_device());
            odd.0 |= placed.place == ExtentLocation::Nowhere;
            odd.1 |= placed.place == ExtentLocation::Unaligned;
            if self.interrupt.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        match listed {
            Ok(()) => {}
            // Which device that is, is not resolved.
            Err(error @ LocationUnknown::Realtime) => {
                return self.trouble.nowhere.add(path, &error.to_string());
            }
            Err(error) => return self.trouble.unlisted.add(path, &error.to_string()),
        }
        if odd.0 {
            self.trouble.unwritten.add(path, "");
        }
        if odd.1 {
            self.trouble.inside.add(path, "");
        }
        let own: Ranges = own.into_iter().collect();
        let reach = &self.reached[reach];
        for (volume, map) in &reach.ways {
            self.found[*volume].extend(map.ranges(&own).iter());
        }
        if !reach.unknown.is_empty() {
            self.trouble.unmapped.add(path, &reach.unknown.join("; "));
        }
    }

    /// The place in the list of how the device of a file's system lies on the volumes, which is found
    /// out once.
    fn device_index(&mut self, from: DeviceNumber, path: &Path) -> usize {
        if let Some(known) = self.reached.iter().position(|reach| reach.from == from) {
            return known;
        }
        let named: Vec<DeviceNumber> = self.volumes.iter().map(Volume::number).collect();
        let (mut ways, mut unknown) = (Vec::new(), Vec::new());
        let under = self.devices_under(from, path);
        let leaves = volumes_under(self.devices, &under, &named);
        if self.devices.get(from).is_none() {
            unknown.push(format!(
                "its file system's device {from} is not listed, as of btrfs and network file systems"
            ));
        } else {
            for (volume, to) in named.into_iter().enumerate() {
                match Map::down(self.root, self.devices, from, to) {
                    Ok(map) => ways.push((volume, map)),
                    Err(error)
                        if matches!(
                            error.why,
                            MappingUnknown::Unrelated | MappingUnknown::Nothing
                        ) => {}
                    Err(error) => unknown.push(error.to_string()),
                }
            }
        }
        self.reached.push(DeviceRange {
            from,
            is_here: (!under.is_empty()).then_some(leaves.has_named || !ways.is_empty()),
            ways,
            unknown,
            beyond: leaves.beyond,
        });
        self.reached.len() - 1
    }

    /// The block devices of a file's system: its own one or, where that stands for none, those that the
    /// kernel lists elsewhere, as of btrfs. Empty where they are not known, of any of them.
    fn devices_under(&self, from: DeviceNumber, path: &Path) -> Vec<DeviceNumber> {
        if self.devices.get(from).is_some() {
            return vec![from];
        }
        let place = place_of(self.root, self.devices, path).unwrap_or_default();
        let is_known = |number: &DeviceNumber| self.devices.get(*number).is_some();
        if place.devices.iter().all(is_known) {
            place.devices
        } else {
            Vec::new()
        }
    }
}

/// The volumes under some devices.
struct LeafVolumes {
    /// Paths of the volumes that are not named.
    beyond: Vec<String>,
    /// True if any is named.
    has_named: bool,
}

/// The volumes under some devices. One is named if itself is, or the disk of which it is a partition.
fn volumes_under(devices: &Devices, from: &[DeviceNumber], named: &[DeviceNumber]) -> LeafVolumes {
    let mut leaves = LeafVolumes {
        beyond: Vec::new(),
        has_named: false,
    };
    let mut seen = Vec::new();
    let mut todo = from.to_vec();
    while let Some(number) = todo.pop() {
        if seen.contains(&number) {
            continue;
        }
        seen.push(number);
        let Some(device) = devices.get(number) else {
            continue;
        };
        let disk = device.partition_of();
        if named.contains(&number) || disk.is_some_and(|disk| named.contains(&disk)) {
            leaves.has_named = true;
            continue;
        }
        let below = devices.parents(number);
        // On a partition of another disk it is the partition that is to be named.
        if disk.is_some() || below.is_empty() {
            leaves.beyond.push(device.node().display().to_string());
        } else {
            todo.extend(below.iter().map(|device| device.number));
        }
    }
    leaves.beyond.sort();
    leaves
}

/// Files that something is the matter with.
#[derive(Default)]
struct ProblemFiles {
    count: usize,
    first: Vec<PathBuf>,
    why: String,
}

impl ProblemFiles {
    fn add(&mut self, path: &Path, why: &str) {
        if self.first.is_empty() {
            why.clone_into(&mut self.why);
        }
        if self.first.len() < MAX_NAMED_FILES {
            self.first.push(path.to_path_buf());
        }
        self.count += 1;
    }

    /// `a, b and 7 more (why)`; `None` where there is none.
    fn summary(&self) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        let names: Vec<String> = self
            .first
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let more = match self.count - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why = if self.why.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.why)
        };
        Some(format!("{}{more}{why}", names.join(", ")))
    }
}

/// Files whose data is not, or not surely, found on the volumes, by the reason.
#[derive(Default)]
struct FileProblems {
    lost: ProblemFiles,
    unmapped: ProblemFiles,
    elsewhere: ProblemFiles,
    nowhere: ProblemFiles,
    unlisted: ProblemFiles,
    unwritten: ProblemFiles,
    inside: ProblemFiles,
}

impl FileProblems {
    /// True if data may be on the volumes at a place that is not known.
    fn has_unknown(&self) -> bool {
        let kinds = [
            &self.lost,
            &self.unmapped,
            &self.nowhere,
            &self.unlisted,
            &self.inside,
        ];
        kinds.iter().any(|kind| kind.count > 0)
    }

    fn findings(&self) -> Vec<Finding> {
        use Severity::{Note, Warn};
        let kinds = [
            (
                &self.lost,
                Warn,
                "could not be opened, and its place is not known; it is warmed with the rest",
            ),
            (
                &self.unmapped,
                Warn,
                "lies on these volumes in a way that is not known, if it does; what of it is on them \
                 is warmed with what is used",
            ),
            (
                &self.elsewhere,
                Warn,
                "is on other volumes, as a whole or in part, and is not warm before these are too: \
                 name them beside these",
            ),
            (
                &self.nowhere,
                Warn,
                "lies on volumes that are not known, and is not called hot; what of it is on these is \
                 warmed with what is used",
            ),
            (
                &self.unlisted,
                Warn,
                "has no places that are known; it is warmed with what is used",
            ),
            (
                &self.unwritten,
                Note,
                "has data that is only in memory so far; what is written is not cold",
            ),
            (
                &self.inside,
                Note,
                "lies in part within the file system's own blocks, which are warmed with what is used",
            ),
        ];
        kinds
            .into_iter()
            .filter_map(|(files, severity, what)| {
                let shown = files.summary()?;
                let text = format!("Of what --first names, this {what}: {shown}.");
                Some(Finding {
                    severity,
                    ..Finding::note(FindingCode::NotMapped, text)
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_on_half_of_an_array_names_the_other_half() {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        let folder = |name: &str| root.sys.join("class/block").join(name);
        for (minor, name) in ["sda", "sdb", "md0", "sdc"].iter().enumerate() {
            fs::create_dir_all(folder(name).join("queue")).unwrap();
            fs::write(folder(name).join("dev"), format!("8:{minor}\n")).unwrap();
            fs::write(folder(name).join("size"), "2048\n").unwrap();
        }
        for member in ["sda", "sdb"] {
            fs::create_dir_all(folder("md0").join("slaves").join(member)).unwrap();
        }
        let devices = Devices::read(&root).unwrap();
        let number = |name: &str| {
            let device = devices.iter().find(|device| device.name == name);
            device.unwrap().number
        };
        let volumes_under = |from: &str, named: &[&str]| {
            let named: Vec<DeviceNumber> = named.iter().map(|name| number(name)).collect();
            super::volumes_under(&devices, &[number(from)], &named)
        };
        let beyond = |from: &str, named: &[&str]| volumes_under(from, named).beyond;
        assert_eq!(beyond("md0", &["sda"]), ["/dev/sdb"]);
        assert_eq!(beyond("md0", &["sdc"]), ["/dev/sda", "/dev/sdb"]);
        assert!(beyond("md0", &["sda", "sdb"]).is_empty());
        assert!(beyond("sdc", &["sdc"]).is_empty());
        assert!(volumes_under("md0", &["sda"]).has_named);
        assert!(!volumes_under("md0", &["sdc"]).has_named);
    }

    #[test]
    fn only_what_is_known_to_be_in_memory_leaves_nothing_unknown() {
        let mut trouble = FileProblems::default();
        trouble.unwritten.add(Path::new("a"), "");
        trouble.elsewhere.add(Path::new("a"), "on /dev/sdb");
        assert!(!trouble.has_unknown());
        trouble.unmapped.add(Path::new("b"), "encrypted");
        assert!(trouble.has_unknown());
        let findings = trouble.findings();
        assert_eq!(findings[0].severity, Severity::Warn);
        assert!(findings[0].text.contains("b (encrypted)"), "{findings:?}");
    }
}
