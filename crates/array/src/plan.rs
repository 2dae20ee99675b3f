//! The array to build, and the command lines that build it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linux::exec::Exec;
use linux::{Root, root};
use record::Bytes;

use super::bitmap::Bitmap;
use super::geometry::Geometry;
use domain::filesystem::Fs;
use domain::raid::{Placement, Raid10Layout};

/// Size from which mdadm keeps a bitmap of what is being written by default, so that after a crash only that is
/// resynchronized (mdadm(8), `--bitmap`). The bitmap is named on the command line, so that mdadm does not ask.
const BITMAP_FROM: Bytes = Bytes::gib(100);

/// Longest time for making a file system. With large disks most of it is their discard.
const MKFS_LIMIT: Duration = Duration::from_secs(3600);

/// An array to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayPlan {
    /// The array's shape.
    pub geometry: Geometry,
    /// The members, as the user wrote them.
    pub members: Vec<PathBuf>,
    /// The hot spares, as the user wrote them.
    pub spares: Vec<PathBuf>,
    /// Name of the array; `None` for one that only has a number.
    pub name: Option<String>,
    /// Device node of the array: `/dev/md/NAME` or `/dev/mdN`.
    pub node: PathBuf,
    /// UUID of the array, chosen here, so that its superblocks can be recognized after a failure midway. Empty in
    /// commands that are only shown, where mdadm chooses.
    pub uuid: String,
    /// Bytes left for data.
    pub capacity: Bytes,
    /// The bitmap; `None` leaves it to the capacity.
    pub bitmap: Option<Bitmap>,
    /// True if copies or parity are taken to be consistent.
    pub assume_clean: bool,
    /// The file system.
    pub fs: Option<FsPlan>,
}

/// The file system that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsPlan {
    /// The file system.
    pub fs: Fs,
    /// UUID of the file system, chosen here, so that the line for fstab is known before. Empty in commands that are
    /// only shown, where mkfs chooses.
    pub uuid: String,
    /// Mount point.
    pub mount: Option<PathBuf>,
    /// True if the file system is only made to be measured: then nothing is discarded, which takes long on large
    /// disks and makes blocks cold again, and ext4 does not write its inode tables meanwhile.
    pub trial: bool,
}

/// A new UUID from the kernel.
///
/// # Errors
/// When the kernel gives none.
pub fn new_uuid(root: &Root) -> root::Result<String> {
    root::read_text(&root.proc.join("sys/kernel/random/uuid"))
}

/// A UUID as mdadm writes it: `01234567:89abcdef:01234567:89abcdef`.
pub fn md_uuid(uuid: &str) -> String {
    let digits: Vec<char> = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    let words: Vec<String> = digits.chunks(8).map(|word| word.iter().collect()).collect();
    words.join(":")
}

impl ArrayPlan {
    /// Command that makes the array. It belongs to no host, so that it keeps its name when the instance's
    /// changes, as cloud images do.
    pub fn mdadm(&self) -> Exec {
        let Geometry { level, chunk, .. } = self.geometry;
        let mut mdadm = Exec::new("mdadm").arg("--create").arg(&self.node).args([
            "--run",
            "--metadata=1.2",
            "--homehost=any",
        ]);
        if !self.uuid.is_empty() {
            mdadm = mdadm.arg(format!("--uuid={}", self.uuid));
        }
        if let Some(name) = &self.name {
            mdadm = mdadm.arg(format!("--name={name}"));
        }
        mdadm = mdadm.arg(format!("--level={}", level.mdadm_name()));
        if let Some(layout) = self.layout() {
            mdadm = mdadm.arg(format!("--layout={}", layout.name()));
        }
        if let Some(chunk) = chunk {
            mdadm = mdadm.arg(format!("--chunk={}", chunk.0 >> 10));
        }
        if let Some(bitmap) = self.bitmap() {
            mdadm = mdadm.arg(format!("--bitmap={}", bitmap.name()));
        }
        if level.is_redundant() && self.assume_clean {
            mdadm = mdadm.arg("--assume-clean");
        }
        mdadm = mdadm.arg(format!("--raid-devices={}", self.members.len()));
        if !self.spares.is_empty() {
            mdadm = mdadm.arg(format!("--spare-devices={}", self.spares.len()));
        }
        mdadm.args(&self.members).args(&self.spares)
    }

    /// Bitmap of the array; `None` at levels that can have none.
    pub(crate) fn bitmap(&self) -> Option<Bitmap> {
        let by_capacity = match self.capacity >= BITMAP_FROM {
            true => Bitmap::Internal,
            false => Bitmap::None,
        };
        let is_redundant = self.geometry.level.is_redundant();
        is_redundant.then(|| self.bitmap.unwrap_or(by_capacity))
    }

    /// Command that makes the file system on the array's node. It is forced: content of the members from before shows
    /// through at places, and the user has agreed to lose it.
    pub fn mkfs(&self, node: &Path) -> Option<Exec> {
        let FsPlan {
            fs, uuid, trial, ..
        } = self.fs.as_ref()?;
        let mkfs = match fs {
            Fs::Xfs => {
                let mkfs = Exec::new(fs.tool()).args(["-q", "-f"]);
                let mkfs = if uuid.is_empty() {
                    mkfs
                } else {
                    mkfs.arg("-m").arg(format!("uuid={uuid}"))
                };
                let mkfs = if *trial { mkfs.arg("-K") } else { mkfs };
                match self.geometry.xfs() {
                    Some(aligned) => mkfs.args(["-d", &aligned]),
                    None => mkfs,
                }
            }
            Fs::Ext4 => {
                let mkfs = Exec::new(fs.tool()).args(["-q", "-F", "-b", "4096"]);
                let mkfs = if uuid.is_empty() {
                    mkfs
                } else {
                    mkfs.args(["-U", uuid])
                };
                // One list: of two, mkfs.ext4 takes only the last.
                let aligned = self.geometry.ext4();
                let kept = trial.then(|| "nodiscard".to_owned());
                let extended: Vec<String> = aligned.into_iter().chain(kept).collect();
                if extended.is_empty() {
                    mkfs
                } else {
                    mkfs.args(["-E", &extended.join(",")])
                }
            }
        };
        Some(mkfs.arg(node).limit(MKFS_LIMIT))
    }

    /// Mount point, and the command that mounts the file system there; `None` without one.
    pub fn mount(&self, node: &Path) -> Option<(&Path, Exec)> {
        let FsPlan {
            fs, mount, trial, ..
        } = self.fs.as_ref()?;
        let point = mount.as_deref()?;
        // ext4(5), `noinit_itable`.
        let options = match fs {
            Fs::Ext4 if *trial => "noatime,noinit_itable",
            _ => "noatime",
        };
        let mount = Exec::new("mount")
            .args(["-t", fs.name(), "-o", options])
            .arg(node)
            .arg(point);
        Some((point, mount))
    }

    /// The line for mdadm.conf, which gives the array its node at the next boot.
    pub(crate) fn conf_line(&self) -> String {
        format!(
            "ARRAY {} metadata=1.2 UUID={}",
            self.node.display(),
            self.uuid
        )
    }

    /// Layout of the copies; `None` at levels other than RAID 10.
    pub(crate) fn layout(&self) -> Option<Raid10Layout> {
        let Geometry { level, layout, .. } = self.geometry;
        (level.placement() == Placement::StripedCopies).then_some(layout)
    }

    /// Rule for udev that sets the read-ahead whenever the array is assembled (udev(7)). It names the array by the id
    /// that mdadm's own rules report; its number may be another after a boot.
    pub(crate) fn udev_rule(&self) -> Option<String> {
        let read_ahead = self.geometry.read_ahead()?;
        Some(format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", ENV{{MD_UUID}}==\"{}\", \
             ATTR{{queue/read_ahead_kb}}=\"{}\"",
            self.uuid,
            read_ahead.0 >> 10
        ))
    }

    /// Line for fstab. It has `nofail`, since an instance that waits for a volume that does not exist cannot be
    /// reached to repair that.
    pub(crate) fn fstab_line(&self) -> Option<String> {
        let FsPlan {
            fs, uuid, mount, ..
        } = self.fs.as_ref()?;
        let point = fstab_field(mount.as_deref()?);
        // ext4 is checked after the root file system; xfs has nothing to check (fsck.xfs(8)).
        let pass = match fs {
            Fs::Xfs => 0,
            Fs::Ext4 => 2,
        };
        Some(format!(
            "UUID={uuid} {point} {} noatime,nofail 0 {pass}",
            fs.name()
        ))
    }
}

/// A path as fstab takes it: blanks and backslashes as octal numbers (fstab(5)).
pub(crate) fn fstab_field(path: &Path) -> String {
    let mut field = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            ' ' | '\t' | '\n' | '\\' => field.push_str(&format!("\\{:03o}", u32::from(c))),
            _ => field.push(c),
        }
    }
    field
}

/// Command that erases the signatures on a disk. It is forced because of our own claim on the disk, which wipefs
/// would take for a foreign one.
pub(crate) fn wipe(path: &Path) -> Exec {
    Exec::new("wipefs")
        .args(["--all", "--force", "--quiet"])
        .arg(path)
}

/// Command that takes an array down.
pub(crate) fn stop(node: &Path) -> Exec {
    Exec::new("mdadm").arg("--stop").arg(node)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use domain::raid::Level;

    pub(crate) fn plan(level: Level, members: &[&str]) -> ArrayPlan {
        ArrayPlan {
            geometry: Geometry {
                level,
                members: members.len() as u64,
                chunk: level.has_chunks().then_some(Bytes::kib(256)),
                layout: Raid10Layout::N2,
            },
            members: members.iter().map(PathBuf::from).collect(),
            spares: Vec::new(),
            name: Some("data".to_owned()),
            node: "/dev/md/data".into(),
            uuid: md_uuid("01234567-89ab-cdef-0123-456789abcdef"),
            capacity: Bytes::gib(2),
            bitmap: None,
            assume_clean: false,
            fs: Some(FsPlan {
                fs: Fs::Xfs,
                uuid: "u-1".to_owned(),
                mount: Some("/data".into()),
                trial: false,
            }),
        }
    }

    #[test]
    fn the_commands_of_a_raid_10_with_xfs() {
        let plan = plan(Level::Ten, &["/dev/b", "/dev/c", "/dev/d", "/dev/e"]);
        assert_eq!(
            plan.mdadm().line(),
            "mdadm --create /dev/md/data --run --metadata=1.2 --homehost=any \
             --uuid=01234567:89abcdef:01234567:89abcdef --name=data --level=10 --layout=n2 \
             --chunk=256 --bitmap=none --raid-devices=4 /dev/b /dev/c /dev/d /dev/e"
        );
        let node = Path::new("/dev/md127");
        assert_eq!(
            plan.mkfs(node).unwrap().line(),
            "mkfs.xfs -q -f -m uuid=u-1 -d su=256k,sw=2 /dev/md127"
        );
        let (point, mount) = plan.mount(node).unwrap();
        assert_eq!(point, Path::new("/data"));
        assert_eq!(mount.line(), "mount -t xfs -o noatime /dev/md127 /data");
        assert_eq!(
            plan.fstab_line().unwrap(),
            "UUID=u-1 /data xfs noatime,nofail 0 0"
        );
        assert_eq!(
            plan.conf_line(),
            "ARRAY /dev/md/data metadata=1.2 UUID=01234567:89abcdef:01234567:89abcdef"
        );
    }

    #[test]
    fn spares_stand_behind_the_members_and_a_bitmap_is_as_it_was_chosen() {
        let mut plan = plan(Level::Ten, &["/dev/b", "/dev/c"]);
        plan.spares = vec!["/dev/d".into(), "/dev/e".into()];
        plan.bitmap = Some(Bitmap::Internal);
        plan.geometry.layout = Raid10Layout::O2;
        let line = plan.mdadm().line();
        for words in [
            " --layout=o2 --chunk=256 --bitmap=internal --raid-devices=2 --spare-devices=2 ",
            " /dev/b /dev/c /dev/d /dev/e",
        ] {
            assert!(line.contains(words), "no '{words}' in {line}");
        }
        plan.capacity = Bytes::gib(200);
        plan.bitmap = Some(Bitmap::None);
        let line = plan.mdadm().line();
        assert!(line.contains("--bitmap=none "), "{line}");
    }

    #[test]
    fn the_commands_of_other_levels() {
        let mut large = plan(Level::Five, &["/dev/b", "/dev/c", "/dev/d"]);
        large.capacity = Bytes::gib(200);
        large.assume_clean = true;
        large.name = None;
        large.node = "/dev/md0".into();
        let line = large.mdadm().line();
        assert!(
            line.contains(" --level=5 --chunk=256 --bitmap=internal --assume-clean --raid"),
            "{line}"
        );
        assert!(!line.contains("--name"), "{line}");
        for level in [Level::One, Level::Linear] {
            let line = plan(level, &["/dev/b", "/dev/c"]).mdadm().line();
            assert!(
                !line.contains("chunk") && !line.contains("layout"),
                "{line}"
            );
        }
        // A bitmap, and synchronized copies, mean nothing where there is no copy.
        let mut zero = plan(Level::Zero, &["/dev/b", "/dev/c"]);
        zero.assume_clean = true;
        let line = zero.mdadm().line();
        assert!(
            !line.contains("bitmap") && !line.contains("clean"),
            "{line}"
        );
    }

    #[test]
    fn blocks_are_kept_where_that_is_requested() {
        let mut plan = plan(Level::Zero, &["/dev/b", "/dev/c"]);
        for (fs, options) in [
            (Fs::Xfs, "-m uuid=u-1 -K -d su=256k,sw=2 "),
            (Fs::Ext4, "-E stride=64,stripe_width=128,nodiscard "),
        ] {
            plan.fs = Some(FsPlan {
                fs,
                uuid: "u-1".to_owned(),
                mount: None,
                trial: true,
            });
            let line = plan.mkfs(Path::new("/dev/md0")).unwrap().line();
            assert!(line.contains(options), "{line}");
        }
    }

    #[test]
    fn ext4_is_aligned_in_blocks_and_checked_at_boot() {
        let mut plan = plan(Level::Zero, &["/dev/b", "/dev/c"]);
        plan.fs = Some(FsPlan {
            fs: Fs::Ext4,
            uuid: "u-1".to_owned(),
            mount: Some("/my data".into()),
            trial: false,
        });
        assert_eq!(
            plan.mkfs(Path::new("/dev/md0")).unwrap().line(),
            "mkfs.ext4 -q -F -b 4096 -U u-1 -E stride=64,stripe_width=128 /dev/md0"
        );
        assert_eq!(
            plan.fstab_line().unwrap(),
            "UUID=u-1 /my\\040data ext4 noatime,nofail 0 2"
        );
    }
}
