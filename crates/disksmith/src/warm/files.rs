//! The files that `--first` names, and where on the volumes their data lies.

mod glob;
mod walk;

use std::ffi::OsString;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linux::Root;
use linux::block::{DevNum, Devices};
use linux::extents::{self, Place, Placed};
use linux::mapping::Map;
use record::Ranges;

use super::finding::{Code, Finding};
use super::volume::Volume;
use crate::context::Context;
use crate::failure::Failure;

/// So many files are named in a finding; the others are counted.
const MOST_NAMED: usize = 5;

/// For each volume, the bytes of it that hold the data of what is named, and what is to be said of
/// that.
///
/// # Errors
/// When a pattern names nothing: it is a mistake more often than not, and what should be first would
/// be last.
pub(crate) fn find(
    patterns: &[OsString],
    devices: &Devices,
    volumes: &[Volume],
    context: &Context,
) -> Result<Vec<(Ranges, Vec<Finding>)>, Failure> {
    let mut paths = Vec::new();
    let mut problems = Vec::new();
    for pattern in patterns {
        match walk::files(Path::new(pattern)) {
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
        maps: Vec::new(),
        found: volumes.iter().map(|_| Vec::new()).collect(),
        trouble: Trouble::default(),
    };
    paths.iter().for_each(|path| search.add(path));
    let Search { found, trouble, .. } = search;
    let mut each: Vec<(Ranges, Vec<Finding>)> = found
        .into_iter()
        .map(|ranges| (ranges.into_iter().collect(), Vec::new()))
        .collect();
    // What is wrong with a file is wrong with it on every volume: it is said once.
    if let Some((_, findings)) = each.first_mut() {
        findings.extend(trouble.findings());
    }
    Ok(each)
}

/// The way from a file system's device to one of the volumes.
struct Way {
    from: DevNum,
    volume: usize,
    map: Map,
}

struct Search<'a> {
    root: &'a Root,
    devices: &'a Devices,
    volumes: &'a [Volume],
    maps: Vec<Way>,
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
        if let Err(why) = self.learn(number) {
            return self.trouble.elsewhere.add(path, &why);
        }
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
        for way in self.maps.iter().filter(|way| way.from == number) {
            self.found[way.volume].extend(way.map.ranges(&own).iter());
        }
    }

    /// Finds the ways from a device to the volumes, once.
    fn learn(&mut self, from: DevNum) -> Result<(), String> {
        if self.maps.iter().any(|way| way.from == from) {
            return Ok(());
        }
        let mut why = None;
        for (volume, to) in self.volumes.iter().enumerate() {
            match Map::down(self.root, self.devices, from, to.number()) {
                Ok(map) => self.maps.push(Way { from, volume, map }),
                Err(error) => why = Some(error.to_string()),
            }
        }
        match why {
            Some(why) if !self.maps.iter().any(|way| way.from == from) => Err(why),
            _ => Ok(()),
        }
    }
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
    elsewhere: Named,
    unlisted: Named,
    unwritten: Named,
    inside: Named,
}

impl Trouble {
    fn findings(&self) -> Vec<Finding> {
        let kinds = [
            (
                &self.lost,
                "could not be opened, and its place is not known; it is warmed with the rest",
            ),
            (
                &self.elsewhere,
                "is on none of these volumes, or how it lies on them is not known; what of it is on \
                 them is warmed with the rest",
            ),
            (
                &self.unlisted,
                "has no places that are known; it is warmed with what is used",
            ),
            (
                &self.unwritten,
                "has data that is only in memory so far; what is written is not cold",
            ),
            (
                &self.inside,
                "lies in part within the file system's own blocks, which are warmed with what is used",
            ),
        ];
        kinds
            .into_iter()
            .filter_map(|(files, what)| {
                let shown = files.shown()?;
                Some(Finding::note(
                    Code::NotMapped,
                    format!("Of what --first names, this {what}: {shown}."),
                ))
            })
            .collect()
    }
}
