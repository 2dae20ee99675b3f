//! Mounts, from `/proc/self/mountinfo` (proc(5), section mountinfo).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::root::{self, Error, Result, Root, shown, unescape};
use record::sample::DeviceNumber;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Id of the mount, unique at one moment.
    pub id: u64,
    /// `st_dev` of its files. Major 0 means no single block device: tmpfs, NFS, overlay, and also btrfs.
    pub device: DeviceNumber,
    /// The folder of the file system that is mounted; not `/` for a bind mount or a subvolume.
    pub root: PathBuf,
    /// Mount point.
    pub point: PathBuf,
    /// Options of this mount.
    pub options: String,
    /// The file system's type, such as `ext4`.
    pub kind: String,
    /// Source: usually a path under `/dev`; free text for file systems without a device.
    pub source: OsString,
    /// Options of the file system, shared by all its mounts.
    pub super_options: String,
}

impl Mount {
    /// The directories in the options of an overlay (`upperdir`, `lowerdir`, `workdir`).
    pub fn overlay_folders(&self) -> Vec<PathBuf> {
        if self.kind != "overlay" {
            return Vec::new();
        }
        self.super_options
            .split(',')
            .filter_map(|option| option.split_once('='))
            .filter(|(key, _)| matches!(*key, "upperdir" | "lowerdir" | "lowerdir+"))
            .flat_map(|(_, folders)| folders.split(':'))
            .filter(|folder| folder.starts_with('/'))
            .map(PathBuf::from)
            .collect()
    }

    /// True if this mount is read-only.
    pub fn is_read_only(&self) -> bool {
        let has_ro = |options: &str| options.split(',').any(|option| option == "ro");
        has_ro(&self.options) || has_ro(&self.super_options)
    }
}

/// The present mounts, in the order of their creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    list: Vec<Mount>,
}

impl Mounts {
    /// The mounts that this process sees.
    ///
    /// # Errors
    /// When mountinfo cannot be read, or has a line that does not parse: an unreadable line must not count as "not
    /// mounted".
    pub fn read(root: &Root) -> Result<Mounts> {
        Self::read_file(&root.proc.join("self/mountinfo"))
    }

    /// The mounts that this process sees, and those that only process 1 sees: in a container with the host's process
    /// ids, the host's.
    ///
    /// # Errors
    /// As [`read`](Mounts::read). If process 1 may not be examined, its mounts are left out: a mounted device still
    /// refuses an open with O_EXCL.
    pub fn read_everywhere(root: &Root) -> Result<Mounts> {
        let mut mounts = Self::read(root)?;
        if let Ok(first) = Self::read_file(&root.proc.join("1/mountinfo")) {
            for mount in first.list {
                if !mounts.has(&mount) {
                    mounts.list.push(mount);
                }
            }
        }
        Ok(mounts)
    }

    /// The mounts of the other mount namespaces that have a process, each namespace once, with the id of such a
    /// process: containers, services with private mounts, other sessions. Mounts that `seen` contains, and namespaces
    /// that may not be examined, are left out.
    ///
    /// # Errors
    /// When the processes cannot be listed.
    pub fn read_elsewhere(root: &Root, seen: &Mounts) -> Result<Vec<(u32, Mounts)>> {
        let namespace = |process: &Path| std::fs::read_link(process.join("ns/mnt")).ok();
        let mut known: Vec<PathBuf> = ["self", "1"]
            .iter()
            .filter_map(|process| namespace(&root.proc.join(process)))
            .collect();
        let mut elsewhere = Vec::new();
        for name in root::names_in(&root.proc)? {
            let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let folder = root.proc.join(name);
            let Some(space) = namespace(&folder).filter(|space| !known.contains(space)) else {
                continue;
            };
            // A process that has ended has no list; another may be in the same namespace.
            let Ok(mut mounts) = Self::read_file(&folder.join("mountinfo")) else {
                continue;
            };
            known.push(space);
            mounts.list.retain(|mount| !seen.has(mount));
            elsewhere.push((process, mounts));
        }
        Ok(elsewhere)
    }

    /// True if the same file system is mounted at the same mount point.
    fn has(&self, mount: &Mount) -> bool {
        let is_same = |known: &Mount| known.device == mount.device && known.point == mount.point;
        self.list.iter().any(is_same)
    }

    fn read_file(path: &Path) -> Result<Mounts> {
        Self::parse(&root::read_bytes(path)?).map_err(|(line, what)| Error::Parse {
            path: path.to_path_buf(),
            line,
            what,
        })
    }

    /// Parses the text of a mountinfo file.
    ///
    /// # Errors
    /// The number of the first line that is not a mount, and what is wrong with it.
    pub fn parse(text: &[u8]) -> std::result::Result<Mounts, (usize, String)> {
        let mut list = Vec::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            if !line.is_empty() {
                list.push(parse_line(line).map_err(|what| (index + 1, what))?);
            }
        }
        Ok(Mounts { list })
    }

    /// All mounts.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.list.iter()
    }

    /// Mounts whose files have this device number.
    pub fn on(&self, device: DeviceNumber) -> impl Iterator<Item = &Mount> {
        self.list.iter().filter(move |mount| mount.device == device)
    }

    /// The mount with this id.
    pub fn by_id(&self, id: u64) -> Option<&Mount> {
        self.list.iter().find(|mount| mount.id == id)
    }

    /// The mount that contains an absolute path without symbolic links: the one with the longest mount point, and of
    /// several at one mount point the last, which covers the others.
    pub fn containing(&self, path: &Path) -> Option<&Mount> {
        self.list
            .iter()
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
    }
}

/// Parses a line: `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse_line(line: &[u8]) -> std::result::Result<Mount, String> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let field = |index: usize, name: &str| {
        fields
            .get(index)
            .copied()
            .ok_or_else(|| format!("the field '{name}' is missing in '{}'", shown(line)))
    };
    let id = field(0, "mount id")?;
    let device = field(2, "major:minor")?;
    // The fields from the seventh on are optional; a single hyphen ends them.
    let after = fields
        .iter()
        .skip(6)
        .position(|&field| field == b"-")
        .map(|index| index + 7)
        .ok_or_else(|| format!("no hyphen ends the optional fields in '{}'", shown(line)))?;
    Ok(Mount {
        id: shown(id)
            .parse()
            .map_err(|_| format!("the mount id '{}' is not a number", shown(id)))?,
        device: shown(device)
            .parse()
            .map_err(|_| format!("'{}' is not a major:minor pair", shown(device)))?,
        root: unescape(field(3, "root")?).into(),
        point: unescape(field(4, "mount point")?).into(),
        options: text(field(5, "mount options")?),
        kind: text(field(after, "file system type")?),
        source: unescape(field(after + 1, "mount source")?),
        // Missing only in damaged input; a file system without options has an empty field.
        super_options: text(field(after + 2, "super options")?),
    })
}

fn text(field: &[u8]) -> String {
    unescape(field).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEEN: &[u8] = b"\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
40 27 259:3 /sub /mnt/my\\040data rw,noatime - xfs /dev/nvme1n1p1 rw,attr2
41 40 0:44 / /mnt/my\\040data rw - tmpfs  rw
42 27 0:45 / /merged ro - overlay overlay rw,lowerdir=/a:/b,upperdir=/up,workdir=/w
";

    fn seen() -> Mounts {
        Mounts::parse(SEEN).unwrap()
    }

    #[test]
    fn every_field_is_read() {
        let mounts = seen();
        let mount = mounts.by_id(40).unwrap();
        assert_eq!(mount.device, DeviceNumber::new(259, 3));
        assert_eq!(mount.root, Path::new("/sub"));
        assert_eq!(mount.point, Path::new("/mnt/my data"));
        assert_eq!(mount.options, "rw,noatime");
        assert_eq!(mount.kind, "xfs");
        assert_eq!(mount.source, "/dev/nvme1n1p1");
        assert_eq!(mount.super_options, "rw,attr2");
    }

    #[test]
    fn optional_fields_and_an_empty_source_are_passed_over() {
        let mounts = seen();
        assert_eq!(mounts.by_id(27).unwrap().source, "/dev/vda");
        assert_eq!(mounts.by_id(41).unwrap().source, "");
        assert_eq!(mounts.by_id(41).unwrap().kind, "tmpfs");
    }

    #[test]
    fn the_longest_mount_point_holds_a_path_and_the_last_covers() {
        let mounts = seen();
        let id = |path: &str| mounts.containing(Path::new(path)).unwrap().id;
        assert_eq!(id("/mnt/my data/x"), 41);
        assert_eq!(id("/mnt/my database"), 27);
        assert_eq!(id("/"), 27);
    }

    #[test]
    fn an_overlay_names_the_folders_that_it_lies_on() {
        let mounts = seen();
        let folders = mounts.by_id(42).unwrap().overlay_folders();
        assert_eq!(folders, ["/a", "/b", "/up"].map(PathBuf::from));
        assert!(mounts.by_id(42).unwrap().is_read_only());
        assert!(mounts.by_id(27).unwrap().overlay_folders().is_empty());
    }

    #[test]
    fn a_line_that_is_no_mount_is_an_error_with_its_number() {
        let (line, what) =
            Mounts::parse(b"\n22 27 0:21 / /proc rw - proc proc rw\nnonsense\n").unwrap_err();
        assert_eq!(line, 3);
        assert!(what.contains("missing"), "{what}");
    }

    #[test]
    fn the_first_process_adds_what_this_one_does_not_see() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        for (name, text) in [
            ("self", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"),
            (
                "1",
                "9 0 8:1 / / rw - ext4 /dev/sda1 rw\n5 9 8:17 / /host rw - ext4 /dev/sdb1 rw\n",
            ),
        ] {
            std::fs::create_dir_all(root.proc.join(name)).unwrap();
            std::fs::write(root.proc.join(name).join("mountinfo"), text).unwrap();
        }
        let points = |mounts: Mounts| mounts.iter().map(|m| m.point.clone()).collect::<Vec<_>>();
        assert_eq!(points(Mounts::read(&root).unwrap()), [Path::new("/")]);
        assert_eq!(
            points(Mounts::read_everywhere(&root).unwrap()),
            [Path::new("/"), Path::new("/host")]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text: Vec<u8>) {
            let _ = Mounts::parse(&text);
        }

        #[test]
        fn a_damaged_line_is_read_or_refused(cut in 0_usize..400, byte: u8) {
            let mut text = SEEN.to_vec();
            let at = cut % text.len();
            text[at] = byte;
            let _ = Mounts::parse(&text);
            let _ = Mounts::parse(&text[..at]);
        }
    }
}
