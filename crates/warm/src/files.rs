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

/// Maximum number of files that a finding names; the others are counted.
const MAX_NAMED_FILES: usize = 5;

/// Places of the data of the named files.
pub(crate) struct FileBlocks {
    /// Ranges of each volume that hold data of the named files.
    pub each: Vec<Ranges>,
    /// Findings about the files, whichever volumes they lie on.
    pub findings: Vec<Finding>,
    /// True if part of the data is, or may be, on the volumes at unknown places.
    pub has_unknown: bool,
    /// True if a part of the data is, or may be, on volumes that are not named.
    pub is_elsewhere: bool,
}

/// Finds the data of the files that the patterns name, until `interrupt` is set.
///
/// # Errors
/// When a pattern matches no file: usually that is a mistake, and the data that should be read first would be read
/// last.
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
        file_system_devices: Vec::new(),
        found: volumes.iter().map(|_| Vec::new()).collect(),
        problems: FileProblems::default(),
    };
    for path in &paths {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        search.add(path);
    }
    let Search {
        found, problems, ..
    } = search;
    Ok(FileBlocks {
        each: found
            .into_iter()
            .map(|ranges| ranges.into_iter().collect())
            .collect(),
        findings: problems.findings(),
        has_unknown: problems.has_unknown(),
        is_elsewhere: problems.elsewhere.count > 0 || problems.nowhere.count > 0,
    })
}

/// Position of a file system's device on the volumes.
struct DeviceRange {
    from: DeviceNumber,
    /// Indices of the volumes that it lies on, each with the mapping from its bytes to the volume's.
    mappings: Vec<(usize, Map)>,
    /// Reasons why the mapping to other volumes is not known.
    unknown: Vec<String>,
    /// Volumes below it that are not named on the command line.
    beyond: Vec<String>,
    /// True if it lies, wholly or in part, on the named volumes; `None` where that is not known.
    is_here: Option<bool>,
}

struct Search<'a> {
    root: &'a Root,
    devices: &'a Devices,
    volumes: &'a [Volume],
    interrupt: &'a AtomicBool,
    file_system_devices: Vec<DeviceRange>,
    /// Ranges found so far, by volume.
    found: Vec<Vec<std::ops::Range<u64>>>,
    problems: FileProblems,
}

impl Search<'_> {
    fn add(&mut self, path: &Path) {
        let file =
            File::open(path).map_err(|error| self.problems.lost.add(path, &error.to_string()));
        let number = match fs::metadata(path) {
            Ok(metadata) => DeviceNumber::from_raw(metadata.dev()),
            // A file that was deleted meanwhile need not be warm.
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.problems.nowhere.add(path, &error.to_string()),
        };
        let reach = self.device_index(number, path);
        let is_here = self.file_system_devices[reach].is_here;
        if !self.file_system_devices[reach].beyond.is_empty() {
            let beyond = self.file_system_devices[reach].beyond.join(" ");
            self.problems.elsewhere.add(path, &format!("on {beyond}"));
        }
        match (is_here, file) {
            (Some(true), Ok(file)) => self.list(path, &file, reach),
            (None, _) => self.problems.nowhere.add(path, ""),
            (Some(_), _) => {}
        }
    }

    /// Adds the ranges of a file whose file system lies, at least in part, on the named volumes.
    fn list(&mut self, path: &Path, file: &File, reach: usize) {
        let mut own = Vec::new();
        let mut found = (false, false);
        let listed = extents::placed(file, |placed: LocatedExtent| {
            own.extend(placed.on_device());
            found.0 |= placed.place == ExtentLocation::Nowhere;
            found.1 |= placed.place == ExtentLocation::Unaligned;
            if self.interrupt.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        match listed {
            Ok(()) => {}
            // The realtime device of the file system is not looked up.
            Err(error @ LocationUnknown::Realtime) => {
                return self.problems.nowhere.add(path, &error.to_string());
            }
            Err(error) => return self.problems.unlisted.add(path, &error.to_string()),
        }
        if found.0 {
            self.problems.unwritten.add(path, "");
        }
        if found.1 {
            self.problems.inside.add(path, "");
        }
        let own: Ranges = own.into_iter().collect();
        let reach = &self.file_system_devices[reach];
        for (volume, map) in &reach.mappings {
            self.found[*volume].extend(map.ranges(&own).iter());
        }
        if !reach.unknown.is_empty() {
            self.problems.unmapped.add(path, &reach.unknown.join("; "));
        }
    }

    /// Index, in `file_system_devices`, of the device of the file system that holds this file. Its position on the
    /// volumes is looked up once.
    fn device_index(&mut self, from: DeviceNumber, path: &Path) -> usize {
        if let Some(known) = self
            .file_system_devices
            .iter()
            .position(|reach| reach.from == from)
        {
            return known;
        }
        let named: Vec<DeviceNumber> = self.volumes.iter().map(Volume::number).collect();
        let (mut mappings, mut unknown) = (Vec::new(), Vec::new());
        let under = self.devices_under(from, path);
        let leaves = volumes_under(self.devices, &under, &named);
        if self.devices.get(from).is_none() {
            unknown.push(format!(
                "its file system's device {from} is not listed, as of btrfs and network file systems"
            ));
        } else {
            for (volume, to) in named.into_iter().enumerate() {
                match Map::down(self.root, self.devices, from, to) {
                    Ok(map) => mappings.push((volume, map)),
                    Err(error)
                        if matches!(
                            error.why,
                            MappingUnknown::Unrelated | MappingUnknown::Nothing
                        ) => {}
                    Err(error) => unknown.push(error.to_string()),
                }
            }
        }
        self.file_system_devices.push(DeviceRange {
            from,
            is_here: (!under.is_empty()).then_some(leaves.has_named || !mappings.is_empty()),
            mappings,
            unknown,
            beyond: leaves.beyond,
        });
        self.file_system_devices.len() - 1
    }

    /// The block devices of the file system that holds this file. A file system such as btrfs reports a device number
    /// that is not a block device; its devices are then those that the kernel lists for its mount. Empty where any of
    /// them is not known.
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

/// The volumes below a set of devices.
struct LeafVolumes {
    /// Paths of the volumes that the command line does not name.
    beyond: Vec<String>,
    /// True if the command line names any of them.
    has_named: bool,
}

/// The volumes below these devices. A volume counts as named if it is, or if it is a partition of a named disk.
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

/// Files that have the same problem.
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

    /// Text such as `a, b and 7 more (why)`; `None` where there are no such files.
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

/// Files whose data is not found, or not certainly found, on the volumes, by reason.
#[derive(Default)]
struct FileProblems {
    /// Files that could not be opened.
    lost: ProblemFiles,
    /// Files on a device whose mapping to some of the volumes is not known.
    unmapped: ProblemFiles,
    /// Files that lie, wholly or in part, on volumes that are not named.
    elsewhere: ProblemFiles,
    /// Files whose volumes are not known.
    nowhere: ProblemFiles,
    /// Files whose extents the file system does not list.
    unlisted: ProblemFiles,
    /// Files with data that is not written yet.
    unwritten: ProblemFiles,
    /// Files with data inside the file system's metadata blocks.
    inside: ProblemFiles,
}

impl FileProblems {
    /// True if data may be on the volumes at unknown places.
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
                "could not be opened, and its location is not known; it is warmed with the rest",
            ),
            (
                &self.unmapped,
                Warn,
                "may lie on these volumes, at unknown offsets; the part of it on them is warmed with the \
                 space in use",
            ),
            (
                &self.elsewhere,
                Warn,
                "is, wholly or in part, on other volumes, and is not warm before these are: name them \
                 too",
            ),
            (
                &self.nowhere,
                Warn,
                "lies on unknown volumes, and is not counted as warm; the part of it on these volumes is \
                 warmed with the space in use",
            ),
            (
                &self.unlisted,
                Warn,
                "has unknown offsets; it is warmed with the space in use",
            ),
            (
                &self.unwritten,
                Note,
                "has data that is not yet written to the volume; newly written blocks are not cold",
            ),
            (
                &self.inside,
                Note,
                "lies in part within the file system's metadata, which is warmed with the space in use",
            ),
        ];
        kinds
            .into_iter()
            .filter_map(|(files, severity, what)| {
                let shown = files.summary()?;
                let text = format!("Of the files that --first names, this {what}: {shown}.");
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
        let mut problems = FileProblems::default();
        problems.unwritten.add(Path::new("a"), "");
        problems.elsewhere.add(Path::new("a"), "on /dev/sdb");
        assert!(!problems.has_unknown());
        problems.unmapped.add(Path::new("b"), "encrypted");
        assert!(problems.has_unknown());
        let findings = problems.findings();
        assert_eq!(findings[0].severity, Severity::Warn);
        assert!(findings[0].text.contains("b (encrypted)"), "{findings:?}");
    }
}
