//! I/O limits of control groups, and the groups' use of them (linux, Documentation/admin-guide/cgroup-v2.rst,
//! `io.max`; cgroup-v1/blkio-controller.rst, `blkio.throttle.*`).
//!
//! A request beyond a limit waits before it reaches the disk, so that the disk's counters do not show it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use record::sample::LimitKind;

use super::pressure::PressureCounts;
use crate::block::DeviceNumber;
use crate::root::{Result, Root, read_bytes};

/// Interval at which groups are searched for again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// Inverse of the maximum share of time for this search: if it takes long, the interval is longer.
const SHARE: u32 = 50;
/// Maximum number of groups to examine. Hosts of containers have hundreds.
const MAX_GROUPS: usize = 10_000;
/// Maximum number of limits to monitor.
const MAX_LIMITS: usize = 256;

/// The file of version 1 with a limit.
fn limit_file(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Reads => "blkio.throttle.read_iops_device",
        LimitKind::Writes => "blkio.throttle.write_iops_device",
        LimitKind::ReadBytes => "blkio.throttle.read_bps_device",
        LimitKind::WrittenBytes => "blkio.throttle.write_bps_device",
    }
}

/// The file of version 1 with the use, and the word in its lines.
fn count_file(kind: LimitKind) -> (&'static str, &'static str) {
    match kind {
        LimitKind::Reads => ("blkio.throttle.io_serviced", "Read"),
        LimitKind::Writes => ("blkio.throttle.io_serviced", "Write"),
        LimitKind::ReadBytes => ("blkio.throttle.io_service_bytes", "Read"),
        LimitKind::WrittenBytes => ("blkio.throttle.io_service_bytes", "Write"),
    }
}

/// The keys of version 2 for a limit and for the use.
fn keys(kind: LimitKind) -> (&'static str, &'static str) {
    match kind {
        LimitKind::Reads => ("riops", "rios"),
        LimitKind::Writes => ("wiops", "wios"),
        LimitKind::ReadBytes => ("rbps", "rbytes"),
        LimitKind::WrittenBytes => ("wbps", "wbytes"),
    }
}

/// A limit of a group on a device, and the group's use so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// The group's path in its hierarchy, such as `/system.slice/db.service`.
    pub group: Arc<str>,
    /// Device whose I/O is limited.
    pub device: DeviceNumber,
    /// Quantity that is limited.
    pub kind: LimitKind,
    /// The limit, a second.
    pub limit: u64,
    /// Use since the group's creation.
    pub used: u64,
    /// Time for which tasks of the group waited for I/O (`some` of `io.pressure`); `None` if the group has no such
    /// file, as in version 1.
    pub pressure: Option<Duration>,
}

/// The version of a hierarchy, on which its files depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A group with limits.
#[derive(Debug)]
struct Group {
    name: Arc<str>,
    folder: PathBuf,
    /// Path of its pressure file.
    pressure: PathBuf,
    version: Version,
    limits: Vec<(DeviceNumber, LimitKind, u64)>,
}

/// Reads the limits of the groups of a host.
#[derive(Debug)]
pub struct GroupReader {
    /// `/sys/fs/cgroup`.
    top: PathBuf,
    groups: Vec<Group>,
    listed: Option<Instant>,
    cost: Duration,
}

impl GroupReader {
    /// A reader of the hierarchies under `/sys/fs/cgroup`: version 1, 2 or both.
    pub fn new(root: &Root) -> GroupReader {
        GroupReader {
            top: root.sys.join("fs/cgroup"),
            groups: Vec::new(),
            listed: None,
            cost: Duration::ZERO,
        }
    }

    /// The present limits. A limit that cannot be read is left out: a group may be removed at any time.
    pub fn read(&mut self) -> Vec<GroupLimit> {
        let fresh = REFRESH_INTERVAL.max(self.cost * SHARE);
        if self.listed.is_none_or(|listed| listed.elapsed() >= fresh) {
            let began = Instant::now();
            self.groups = list(&self.top);
            self.cost = began.elapsed();
            self.listed = Some(began);
        }
        let mut limits = Vec::new();
        for group in &self.groups {
            limits.extend(group.read().unwrap_or_default());
        }
        limits
    }
}

/// The groups with limits, of all hierarchies that limit I/O.
fn list(top: &Path) -> Vec<Group> {
    let two = [top.to_owned(), top.join("unified")];
    let two = two
        .into_iter()
        .find(|path| path.join("cgroup.controllers").exists());
    let one = top.join("blkio");
    let mut groups = Vec::new();
    let mut left = MAX_GROUPS;
    if one.is_dir() {
        // systemd gives a group the same name in both.
        walk(&one, two.as_deref(), Version::One, &mut left, &mut groups);
    }
    if let Some(two) = two {
        walk(&two, Some(&two), Version::Two, &mut left, &mut groups);
    }
    groups
}

fn walk(
    top: &Path,
    pressures: Option<&Path>,
    version: Version,
    left: &mut usize,
    groups: &mut Vec<Group>,
) {
    let mut todo = vec![top.to_owned()];
    let mut count: usize = groups.iter().map(|group| group.limits.len()).sum();
    while let Some(folder) = todo.pop() {
        if *left == 0 || count >= MAX_LIMITS {
            return;
        }
        *left -= 1;
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        todo.extend(
            entries
                .flatten()
                .filter(is_folder)
                .map(|entry| entry.path()),
        );
        let limits = limits(&folder, version);
        if limits.is_empty() {
            continue;
        }
        count += limits.len();
        let within = folder.strip_prefix(top).unwrap_or(Path::new(""));
        // The pressure of the root group is the host's own.
        let shown = pressures.filter(|_| within != Path::new(""));
        groups.push(Group {
            name: format!("/{}", within.display()).into(),
            pressure: shown.map_or_else(PathBuf::new, |path| path.join(within).join("io.pressure")),
            folder,
            version,
            limits,
        });
    }
}

fn limits(folder: &Path, version: Version) -> Vec<(DeviceNumber, LimitKind, u64)> {
    let text = |file: &str| {
        let bytes = read_bytes(&folder.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    match version {
        Version::One => {
            let of = |what: LimitKind| {
                let pairs = pairs(&text(limit_file(what)));
                pairs
                    .into_iter()
                    .map(move |(device, limit)| (device, what, limit))
            };
            LimitKind::ALL.into_iter().flat_map(of).collect()
        }
        Version::Two => {
            let text = text("io.max");
            let of = |line: &str| {
                let (device, rest) = numbered(line)?;
                let rest = rest.to_owned();
                let known = move |what: LimitKind| {
                    Some((device, what, keyed(&rest, keys(what).0)?.parse().ok()?))
                };
                Some(LimitKind::ALL.into_iter().filter_map(known))
            };
            text.lines().filter_map(of).flatten().collect()
        }
    }
}

/// Lines with a device and a number.
fn pairs(text: &str) -> Vec<(DeviceNumber, u64)> {
    let pair = |line: &str| {
        let (device, rest) = numbered(line)?;
        Some((device, rest.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// A line that begins with a device's number, and the rest of it.
fn numbered(line: &str) -> Option<(DeviceNumber, &str)> {
    let (device, rest) = line.trim().split_once(' ')?;
    Some((device.parse().ok()?, rest))
}

/// The value of `key=value` in a line.
fn keyed<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut words = line.split_ascii_whitespace();
    words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

impl Group {
    fn read(&self) -> Result<Vec<GroupLimit>> {
        let pressure = read_bytes(&self.pressure).ok();
        let pressure = pressure.and_then(|text| PressureCounts::parse(&text));
        let pressure = pressure.map(|counts| counts.some.total);
        let mut texts: Vec<(&str, String)> = Vec::new();
        let mut found = Vec::with_capacity(self.limits.len());
        for (device, kind, limit) in &self.limits {
            let file = match self.version {
                Version::One => count_file(*kind).0,
                Version::Two => "io.stat",
            };
            if !texts.iter().any(|(known, _)| *known == file) {
                let bytes = read_bytes(&self.folder.join(file))?;
                texts.push((file, String::from_utf8_lossy(&bytes).into_owned()));
            }
            let text = texts.iter().find(|(known, _)| *known == file);
            let text = text.map_or("", |(_, text)| text.as_str());
            found.push(GroupLimit {
                group: Arc::clone(&self.name),
                device: *device,
                kind: *kind,
                limit: *limit,
                used: device_use(text, *device, *kind, self.version),
                pressure,
            });
        }
        Ok(found)
    }
}

/// Use of a device; zero if the device is not listed.
fn device_use(text: &str, device: DeviceNumber, kind: LimitKind, version: Version) -> u64 {
    let of = |line: &str| {
        let (_, rest) = numbered(line).filter(|(of, _)| *of == device)?;
        match version {
            Version::One => rest.strip_prefix(count_file(kind).1)?.trim().parse().ok(),
            Version::Two => keyed(rest, keys(kind).1)?.parse().ok(),
        }
    };
    text.lines().find_map(of).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A captured tree of files.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, GroupReader) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        for (path, text) in files {
            let path = root.sys.join("fs/cgroup").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let reader = GroupReader::new(&root);
        (folder, reader)
    }

    const PRESSURE: &str = "some avg10=50.00 avg60=1.00 avg300=1.00 total=4000000\n\
                            full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

    #[test]
    fn limits_of_version_2_are_read_with_what_the_group_used() {
        let (_folder, mut reader) = tree(&[
            ("cgroup.controllers", "cpu io memory\n"),
            (
                "system.slice/io.stat",
                "259:1 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n",
            ),
            ("system.slice/io.max", ""),
            (
                "system.slice/db.service/io.max",
                "259:1 rbps=max wbps=1048576 riops=100 wiops=max\n8:0 rbps=max wbps=max riops=7 \
                 wiops=max\n",
            ),
            (
                "system.slice/db.service/io.stat",
                "259:1 rbytes=4096 wbytes=8192 rios=11 wios=22 dbytes=0 dios=0\n",
            ),
            ("system.slice/db.service/io.pressure", PRESSURE),
        ]);
        let limits = reader.read();
        let shown: Vec<_> = limits
            .iter()
            .map(|one| (one.device.minor, one.kind, one.limit, one.used))
            .collect();
        assert_eq!(
            shown,
            [
                (1, LimitKind::Reads, 100, 11),
                (1, LimitKind::WrittenBytes, 1 << 20, 8192),
                (0, LimitKind::Reads, 7, 0),
            ]
        );
        assert!(
            limits
                .iter()
                .all(|one| &*one.group == "/system.slice/db.service")
        );
        assert!(
            limits
                .iter()
                .all(|one| one.pressure == Some(Duration::from_secs(4)))
        );
    }

    #[test]
    fn limits_of_version_1_are_read_with_the_pressure_of_a_hybrid() {
        let files = [
            ("blkio/blkio.throttle.read_iops_device", ""),
            (
                "blkio/docker/7f/blkio.throttle.read_iops_device",
                "8:16 50\n",
            ),
            (
                "blkio/docker/7f/blkio.throttle.write_bps_device",
                "8:16 1048576\n",
            ),
            (
                "blkio/docker/7f/blkio.throttle.io_serviced",
                "8:0 Read 9\n8:0 Total 9\n8:16 Read 120\n8:16 Write 30\n8:16 Total 150\nTotal 159\n",
            ),
            (
                "blkio/docker/7f/blkio.throttle.io_service_bytes",
                "8:16 Read 1\n8:16 Write 4096\nTotal 4097\n",
            ),
            ("unified/cgroup.controllers", ""),
            ("unified/docker/7f/io.pressure", PRESSURE),
        ];
        let shown = |limits: &[GroupLimit]| {
            let shown = limits.iter().map(|one| (one.kind, one.limit, one.used));
            shown.collect::<Vec<_>>()
        };
        let expected = [
            (LimitKind::Reads, 50, 120),
            (LimitKind::WrittenBytes, 1 << 20, 4096),
        ];
        let (_folder, mut hybrid) = tree(&files);
        let limits = hybrid.read();
        assert_eq!(shown(&limits), expected);
        assert_eq!(&*limits[0].group, "/docker/7f");
        assert_eq!(limits[0].pressure, Some(Duration::from_secs(4)));
        let (_folder, mut one) = tree(&files[..5]);
        let limits = one.read();
        assert_eq!(shown(&limits), expected);
        assert_eq!(limits[0].pressure, None);
    }

    #[test]
    fn a_host_without_groups_has_no_limits() {
        let (_folder, mut reader) = tree(&[]);
        assert!(reader.read().is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, rest: String) {
            for version in [Version::One, Version::Two] {
                for kind in LimitKind::ALL {
                    device_use(&text, DeviceNumber::new(8, 0), kind, version);
                    device_use(&format!("8:0 {rest}"), DeviceNumber::new(8, 0), kind, version);
                }
            }
            pairs(&text);
            pairs(&format!("8:0 {rest}"));
        }
    }
}
