//! The files that `--first` names, and where on the volumes their data lies.

mod glob;
mod walk;

use std::ffi::OsString;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use linux::Root;
use linux::block::{DevNum, Devices};
use linux::extents::{self, Place, Placed};
use linux::mapping::{Map, Why};
use record::{Ranges, Severity};

use super::finding::{Code, Finding};
use crate::context::Context;
use crate::failure::Failure;
use crate::reading::Volume;

/// So many files are named in a finding; the others are counted.
const MOST_NAMED: usize = 5;

/// What is known of the data of the files that are named.
pub(crate) struct Found {
    /// For each volume, the bytes of it that hold such data, and what is to be said of that.
    pub each: Vec<(Ranges, Vec<Finding>)>,
    /// Whether a part of it is on the volumes and it is not known where.
    pub has_unknown: bool,
    /// Whether a part of it is on volumes that are not named.
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
) -> Result<Found, Failure> {
    let mut paths = Vec::new();
    let mut problems = Vec::new();
    for pattern in patterns {
        match walk::files(Path::new(pattern), interrupt) {
            Ok(found) => paths.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(Failure::refused(problems.join("\n")));
    }
    let mut search = Search {
        root: &context.root,
        devices,
        volumes,
        reached: Vec::new(),
        found: volumes.iter().map(|_| Vec::new()).collect(),
        trouble: Trouble::default(),
    };
    for path in &paths {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        search.add(path);
    }
    let Search { found, trouble, .. } = search;
    let mut each: Vec<(Ranges, Vec<Finding>)> = found
        .into_iter()
        .map(|ranges| (ranges.into_iter().collect(), Vec::new()))
        .collect();
    // What is wrong with a file is wrong with it on every volume: it is said once.
    if let Some((_, findings)) = each.first_mut() {
        findings.extend(trouble.findings());
    }
    Ok(Found {
        each,
        has_unknown: trouble.has_unknown(),
        is_elsewhere: trouble.elsewhere.count > 0,
    })
}

/// How a file system's device lies on the volumes.
struct Reach {
    from: DevNum,
    /// The volumes that it lies on, where it is known how.
    ways: Vec<(usize, Map)>,
    /// Why it is not known of the others.
    unknown: Vec<String>,
    /// What else it lies on.
    beyond: Vec<String>,
}

struct Search<'a> {
    root: &'a Root,
    devices: &'a Devices,
    volumes: &'a [Volume],
    reached: Vec<Reach>,
    /// Of each volume.
    found: Vec<Vec<std::ops::Range<u64>>>,
    trouble: Trouble,
}

impl Search<'_> {
    fn add(&mut self, path: &Path) {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.dev(), file)));
        let (number, file) = match opened {
            Ok((number, file)) => (DevNum::from_raw(number), file),
            Err(error) => return self.trouble.lost.add(path, &error.to_string()),
        };
        let reach = self.reach(number);
        let mut own = Vec::new();
        let mut odd = (false, false);
        let listed = extents::placed(&file, |placed: Placed| {
            own.extend(placed.on_device());
            odd.0 |= placed.place == Place::Nowhere;
            odd.1 |= placed.place == Place::Unaligned;
            ControlFlow::Continue(())
        });
        if let Err(error) = listed {
            return self.trouble.unlisted.add(path, &error.to_string());
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
        if !reach.beyond.is_empty() {
            let beyond = reach.beyond.join(" ");
            self.trouble.elsewhere.add(path, &format!("on {beyond}"));
        }
    }

    /// The place in the list of how a device lies on the volumes, which is found out once.
    fn reach(&mut self, from: DevNum) -> usize {
        if let Some(known) = self.reached.iter().position(|reach| reach.from == from) {
            return known;
        }
        let mut reach = Reach {
            from,
            ways: Vec::new(),
            unknown: Vec::new(),
            beyond: Vec::new(),
        };
        if self.devices.get(from).is_none() {
            reach.unknown.push(format!(
                "its file system's device {from} is not listed, as of btrfs and network file systems"
            ));
        } else {
            let named: Vec<DevNum> = self.volumes.iter().map(Volume::number).collect();
            reach.beyond = beyond(self.devices, from, &named);
            for (volume, to) in named.into_iter().enumerate() {
                match Map::down(self.root, self.devices, from, to) {
                    Ok(map) => reach.ways.push((volume, map)),
                    Err(error) if matches!(error.why, Why::Unrelated | Why::Nothing) => {}
                    Err(error) => reach.unknown.push(error.to_string()),
                }
            }
        }
        self.reached.push(reach);
        self.reached.len() - 1
    }
}

/// The volumes under a device that are none of those named, as paths. One is named if itself is, or
/// the disk of which it is a partition.
fn beyond(devices: &Devices, from: DevNum, named: &[DevNum]) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let mut todo = vec![from];
    while let Some(number) = todo.pop() {
        if named.contains(&number) || seen.contains(&number) {
            continue;
        }
        seen.push(number);
        let Some(device) = devices.get(number) else {
            continue;
        };
        match device.partition_of() {
            Some(disk) if named.contains(&disk) => continue,
            // On a partition of another disk it is the partition that is to be named.
            Some(_) => {}
            None => {
                let below = devices.parents(number);
                if !below.is_empty() {
                    todo.extend(below.iter().map(|device| device.number));
                    continue;
                }
            }
        }
        found.push(device.node().display().to_string());
    }
    found.sort();
    found
}

/// Files that something is the matter with.
#[derive(Default)]
struct Named {
    count: usize,
    first: Vec<PathBuf>,
    why: String,
}

impl Named {
    fn add(&mut self, path: &Path, why: &str) {
        if self.first.is_empty() {
            why.clone_into(&mut self.why);
        }
        if self.first.len() < MOST_NAMED {
            self.first.push(path.to_path_buf());
        }
        self.count += 1;
    }

    /// `a, b and 7 more (why)`; `None` where there is none.
    fn shown(&self) -> Option<String> {
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

/// What can be wrong with files.
#[derive(Default)]
struct Trouble {
    lost: Named,
    unmapped: Named,
    elsewhere: Named,
    unlisted: Named,
    unwritten: Named,
    inside: Named,
}

impl Trouble {
    /// Whether data may be on the volumes at a place that is not known.
    fn has_unknown(&self) -> bool {
        let kinds = [&self.lost, &self.unmapped, &self.unlisted, &self.inside];
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
                let shown = files.shown()?;
                let text = format!("Of what --first names, this {what}: {shown}.");
                Some(Finding {
                    severity,
                    ..Finding::note(Code::NotMapped, text)
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let beyond = |from: &str, named: &[&str]| {
            let named: Vec<DevNum> = named.iter().map(|name| number(name)).collect();
            super::beyond(&devices, number(from), &named)
        };
        assert_eq!(beyond("md0", &["sda"]), ["/dev/sdb"]);
        assert_eq!(beyond("md0", &["sdc"]), ["/dev/sda", "/dev/sdb"]);
        assert!(beyond("md0", &["sda", "sdb"]).is_empty());
        assert!(beyond("sdc", &["sdc"]).is_empty());
    }

    #[test]
    fn only_what_is_known_to_be_in_memory_leaves_nothing_unknown() {
        let mut trouble = Trouble::default();
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
