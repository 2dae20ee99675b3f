//! Reasons for which something is not overwritten, in sentences that say what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use super::programs::ProgramUse;
use super::unjudged::{BackingUnknown, OpenError};
use crate::block::DeviceNumber;
use crate::signature::{LocatedContent, SignatureKind};

/// Relation of a device that is in use to the one that was to be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The device in use is the target.
    Itself,
    /// The device in use is a partition of the target.
    Partition,
    /// The device in use is built on the target.
    Above,
    /// The target is built on the device in use, or is a part of it.
    Below,
    /// The device in use shows the same file or device under another name.
    Sibling,
}

/// A reason not to overwrite something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No `--destroy` names the target.
    NotNamed {
        /// The target, as the user wrote it.
        path: PathBuf,
        /// Words behind the `=` of a `--destroy` that were not understood.
        misunderstood: Option<String>,
    },
    /// `--destroy` names the path, but the path now leads elsewhere than when it was opened.
    Moved {
        /// Path that `--destroy` names.
        path: PathBuf,
    },
    /// The target holds the running system.
    RootDisk {
        /// The disk, as a label.
        disk: String,
        /// The mount point that makes it so.
        point: PathBuf,
    },
    /// A file system on the target is mounted.
    Mounted {
        /// The device that carries the file system, as a label.
        device: String,
        /// Relation of this device to the target.
        relation: Relation,
        /// Mount point.
        point: PathBuf,
    },
    /// A file system on the target is mounted in another mount namespace.
    MountedElsewhere {
        /// The device or file that carries the file system, as a label.
        device: String,
        /// Relation of that storage to the target.
        relation: Relation,
        /// Mount point in that namespace.
        point: PathBuf,
        /// A process in that namespace.
        process: u32,
    },
    /// The target is used as swap.
    Swap {
        /// The device, as a label, or the file.
        device: String,
        /// Relation of this storage to the target.
        relation: Relation,
    },
    /// Another device is built on the target.
    Held {
        /// The device that is held, as a label.
        device: String,
        /// Relation of the device that is held to the target.
        relation: Relation,
        /// The holder, as a label.
        holder: String,
        /// Advice on taking the holder down.
        advice: &'static str,
    },
    /// A loop device shows the target.
    Loop {
        /// The device or file that is shown, as a label.
        device: String,
        /// Relation of this storage to the target.
        relation: Relation,
        /// The loop device.
        holder: String,
    },
    /// The kernel serves the target, or what shares its storage, to other machines.
    Served {
        /// The device, as a label, or "the file".
        storage: String,
        /// The server, and its name for it.
        server: String,
        /// Advice on ending that.
        advice: &'static str,
    },
    /// A program uses the target, or what shares its storage.
    InUse {
        /// The device, as a label, or "the file".
        storage: String,
        /// Use by the program.
        hold: ProgramUse,
        /// The program's name.
        program: String,
        /// Process id of the program.
        pid: u32,
    },
    /// This program has the same storage open under another name.
    AlsoTarget {
        /// The other name: a device, as a label, or "the file".
        other: String,
    },
    /// A program that cannot be seen from here uses the target.
    Unseen {
        /// The target.
        path: PathBuf,
        /// Use by the program.
        hold: ProgramUse,
    },
    /// A loop device shows a file through a file system that hides which storage that is.
    UnclearLoop {
        /// The target, as a label.
        target: String,
        /// The loop device.
        holder: String,
        /// Reason why it cannot be determined.
        why: BackingUnknown,
    },
    /// The target lies on a file system that hides which storage it is.
    UnclearFile {
        /// The target.
        path: PathBuf,
        /// The file system, such as `FUSE`.
        kind: &'static str,
    },
    /// The device is set read-only.
    ReadOnly {
        /// The device, as a label.
        device: String,
    },
    /// Something has claimed the target (EBUSY from `O_EXCL`).
    Busy {
        /// The target.
        path: PathBuf,
    },
    /// Something has claimed what shares the target's storage.
    BusyBeside {
        /// The device, as a label.
        device: String,
        /// Relation of that storage to the target.
        relation: Relation,
    },
    /// The target could not be opened, or is nothing that can be overwritten.
    Open(OpenError),
    /// The target, or a partition of it, carries something that the consent does not name.
    Carries {
        /// The target.
        path: PathBuf,
        /// Content that is not named, and its place.
        unnamed: Vec<LocatedContent>,
        /// Everything that must be named.
        all: Vec<SignatureKind>,
    },
    /// The consent names what does not exist.
    NotThere {
        /// The target.
        path: PathBuf,
        /// Content that is named and not found.
        named: Vec<SignatureKind>,
        /// Content that is there.
        found: Vec<SignatureKind>,
    },
    /// The target could not be read to look for signatures.
    Unprobed {
        /// The target.
        path: PathBuf,
        /// The kernel's error.
        error: String,
    },
    /// The file has more than one name.
    HardLinked {
        /// The file.
        path: PathBuf,
        /// Number of names.
        names: u64,
    },
    /// The kernel does not list the device, so nothing is known about its use.
    Unlisted {
        /// Number of the device.
        number: DeviceNumber,
    },
    /// The kernel's own lists could not be read.
    Unknown {
        /// Error with which reading them failed.
        error: String,
    },
}

/// "/dev/sda1, a partition of it,": who a sentence is about.
fn subject(device: &str, relation: Relation) -> String {
    match relation {
        Relation::Itself => device.to_owned(),
        Relation::Partition => format!("{device}, a partition of it,"),
        Relation::Above => format!("{device}, which is built on it,"),
        Relation::Below => format!("{device}, which it is a part of or built on,"),
        Relation::Sibling => format!("{device}, which shares its storage,"),
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotNamed {
                path,
                misunderstood: None,
            } => write!(
                f,
                "it is not named with --destroy; if all that is on it may be lost, add \
                 --destroy {}",
                path.display()
            ),
            Reason::NotNamed {
                path,
                misunderstood: Some(word),
            } => write!(
                f,
                "--destroy {0}={word} was not understood: '{word}' is not a signature that \
                 disksmith knows; write --destroy {0}, or a word such as ext4 behind the =",
                path.display()
            ),
            Reason::Moved { path } => write!(
                f,
                "{} leads to another file or device now than when it was opened; find out what \
                 changed it, and try again",
                path.display()
            ),
            Reason::RootDisk { disk, point } => write!(
                f,
                "{disk} holds {} of the running system, and is never overwritten",
                point.display()
            ),
            Reason::Mounted {
                device,
                relation,
                point,
            } => write!(
                f,
                "{} is mounted at {}; unmount it first",
                subject(device, *relation),
                point.display()
            ),
            Reason::MountedElsewhere {
                device,
                relation,
                point,
                process,
            } => write!(
                f,
                "{} is mounted at {} in the mount namespace of process {process}; unmount it there \
                 first",
                subject(device, *relation),
                point.display()
            ),
            Reason::Swap { device, relation } => write!(
                f,
                "{} is in use as swap; turn it off first (swapoff)",
                subject(device, *relation)
            ),
            Reason::Held {
                device,
                relation,
                holder,
                advice,
            } => write!(
                f,
                "{} is in use by {holder}; {advice}",
                subject(device, *relation)
            ),
            Reason::Served {
                storage,
                server,
                advice,
            } => write!(f, "{storage} is served by {server}; {advice}"),
            Reason::InUse {
                storage,
                hold,
                program,
                pid,
            } => write!(
                f,
                "{storage} is {hold} by {program} (pid {pid}); stop that program first, or its service, which is named by: \
                 systemctl status {pid}"
            ),
            Reason::AlsoTarget { other } => write!(
                f,
                "it shares its storage with {other}, which is a target too; name each storage once"
            ),
            Reason::Loop {
                device,
                relation,
                holder,
            } => write!(
                f,
                "{} is shown by the loop device {holder}; detach that first (losetup -d {holder})",
                subject(device, *relation)
            ),
            Reason::ReadOnly { device } => write!(
                f,
                "{device} is set read-only; if it may be written, allow that first \
                 (blockdev --setrw {device})"
            ),
            Reason::Open(error) => error.fmt(f),
            Reason::Busy { .. }
            | Reason::BusyBeside { .. }
            | Reason::Unseen { .. }
            | Reason::UnclearLoop { .. }
            | Reason::UnclearFile { .. }
            | Reason::Carries { .. }
            | Reason::NotThere { .. }
            | Reason::Unprobed { .. }
            | Reason::HardLinked { .. } => self.fmt_content(f),
            Reason::Unlisted { number } => write!(
                f,
                "the kernel does not list the device {number} under /sys/class/block, so its \
                 users are unknown; it may have been removed"
            ),
            Reason::Unknown { error } => write!(f, "its users are unknown: {error}"),
        }
    }
}

fn joined(kinds: &[SignatureKind], between: &str) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    names.join(between)
}

/// The value of `--destroy` that names all of these.
fn argument(path: &Path, kinds: &[SignatureKind]) -> String {
    match kinds {
        [] => path.display().to_string(),
        kinds => format!("{}={}", path.display(), joined(kinds, ",")),
    }
}

impl Reason {
    /// True if the storage is the running system's.
    fn is_root(&self) -> bool {
        matches!(self, Reason::RootDisk { .. })
    }

    /// True if it names a program that uses the storage.
    pub(super) fn is_use(&self) -> bool {
        matches!(
            self,
            Reason::InUse { .. } | Reason::Loop { .. } | Reason::Served { .. }
        )
    }

    /// Reasons that concern the target's content, or facts about it that cannot be determined.
    fn fmt_content(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Busy { path } => write!(
                f,
                "{} is claimed by something (open with O_EXCL returns EBUSY): a file \
                 system mounted here or in a container, an array, a ZFS pool, or another program; \
                 stop that first",
                path.display()
            ),
            Reason::BusyBeside { device, relation } => write!(
                f,
                "{} is claimed by something (open with O_EXCL returns EBUSY): a file system, swap, or \
                 another program; stop that first",
                subject(device, *relation)
            ),
            Reason::Unseen { path, hold } => write!(
                f,
                "{} is {hold} by a program that cannot be seen from here, in another container, of \
                 another user or in the kernel; stop that first",
                path.display()
            ),
            Reason::UnclearLoop {
                target,
                holder,
                why,
            } => {
                match why {
                    BackingUnknown::Hidden(kind) => write!(
                        f,
                        "the loop device {holder} shows a file through {kind}, which hides where \
                         that file is stored"
                    ),
                    BackingUnknown::Unknown => write!(
                        f,
                        "the file of the loop device {holder} cannot be found from here: its node is missing or \
                         may not be opened, or its file system is mounted in another container"
                    ),
                }?;
                if target == holder {
                    return f.write_str(
                        ", so its other names and users are unknown; name the file, or run as root \
                         outside of containers",
                    );
                }
                write!(
                    f,
                    ", so it may be the storage of {target}; detach that first (losetup -d {holder}), or run as \
                     root outside of containers"
                )
            }
            Reason::UnclearFile { path, kind } => write!(
                f,
                "{} is reached through {kind}, which hides where it is stored and who else uses it; name the \
                 file by its path on the file system below, or measure a directory: disksmith bench DIRECTORY",
                path.display()
            ),
            Reason::Carries { path, unnamed, all } => {
                let places: Vec<String> = unnamed.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "{} carries {}; if all of that may be lost, say so: --destroy {}",
                    path.display(),
                    places.join(", "),
                    argument(path, all)
                )
            }
            Reason::NotThere { path, named, found } => {
                let there = match &found[..] {
                    [] => "nothing".to_owned(),
                    found => joined(found, " and "),
                };
                write!(
                    f,
                    "--destroy names {}, which {} not on {} (it carries {there}), so it may not be the disk that \
                     is meant; check it with disksmith devices, and if it is, write --destroy {}",
                    joined(named, " and "),
                    if named.len() == 1 { "is" } else { "are" },
                    path.display(),
                    argument(path, found)
                )
            }
            Reason::Unprobed { path, error } => write!(
                f,
                "{} could not be read to determine its content: {error}",
                path.display()
            ),
            Reason::HardLinked { path, names } => write!(
                f,
                "{} has {names} names (hard links), and would be overwritten under each of them; \
                 make a copy and name that",
                path.display()
            ),
            _ => Ok(()),
        }
    }
}

/// The reasons that decide. No advice on another one would help with a disk of the running system.
pub fn decisive(reasons: &[Reason]) -> Vec<&Reason> {
    let has_root = reasons.iter().any(Reason::is_root);
    let decides = |reason: &&Reason| !has_root || reason.is_root();
    reasons.iter().filter(decides).collect()
}

/// Something is not overwritten, and why: every reason that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The target, as the user wrote it.
    pub path: PathBuf,
    /// The reasons; at least one.
    pub reasons: Vec<Reason>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not overwritten:", self.path.display())?;
        let shown = decisive(&self.reasons);
        match &shown[..] {
            [only] => write!(f, " {only}"),
            reasons => reasons
                .iter()
                .try_for_each(|reason| write!(f, "\n  - {reason}")),
        }?;
        if shown.iter().any(|reason| reason.is_root()) {
            f.write_str("; choose another disk; others are listed by: disksmith devices")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
