//! Opening a target, and claiming it for being overwritten.

use std::fs::{self, File, FileType, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use record::Bytes;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::file_system::{FileSystem, file_system_of};
use super::identity::Storage;
use super::lease::has_writers;
use super::lock::{LockKind, lock, persists};
use super::option::Consent;
use super::programs::ProgramUse;
use super::reason::{Reason, Refusal};
use super::unjudged::OpenError;
use super::users::DeviceUsers;
use super::uses::add_content;
use crate::block::DeviceNumber;
use crate::root::Root;
use crate::signature::Content;

/// The file or device that a path led to at one moment, pinned: the path may change, this does not.
///
/// It is open with `O_PATH`, which neither reads nor claims anything, and does not wake a device.
#[derive(Debug)]
pub struct PinnedTarget {
    path: PathBuf,
    handle: File,
    metadata: Metadata,
}

impl PinnedTarget {
    /// Follows a path to the file or block device that it leads to now.
    ///
    /// # Errors
    /// When it leads nowhere, or to something else.
    pub fn at(path: &Path) -> Result<PinnedTarget, OpenError> {
        let refused = |errno| OpenError::Refused {
            path: path.to_path_buf(),
            errno,
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let handle = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(refused)?);
        let metadata = handle
            .metadata()
            .map_err(|error| refused(errno_of(&error)))?;
        let kind = metadata.file_type();
        if kind.is_file() && file_system_of(&handle).map_err(refused)? == FileSystem::Kernel {
            return Err(OpenError::Unsuited {
                path: path.to_path_buf(),
                what: "a file of the kernel's own, which holds no data",
            });
        }
        if kind.is_file() || kind.is_block_device() {
            return Ok(PinnedTarget {
                path: path.to_path_buf(),
                handle,
                metadata,
            });
        }
        Err(OpenError::Unsuited {
            path: path.to_path_buf(),
            what: type_label(kind),
        })
    }

    /// The number of the device that was opened; `None` for a file.
    pub fn device(&self) -> Option<DeviceNumber> {
        self.metadata
            .file_type()
            .is_block_device()
            .then(|| DeviceNumber::from_raw(self.metadata.rdev()))
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn read(self) -> Result<ReadTarget, OpenError> {
        let refused = |errno| OpenError::Refused {
            path: self.path.clone(),
            errno,
        };
        let file = reopen(&self.handle, OFlags::RDONLY).map_err(refused)?;
        Ok(ReadTarget {
            size: size_of(&file).map_err(refused)?,
            device: self.device(),
            file,
            path: self.path,
        })
    }

    /// Claims it for being overwritten, or says everything that speaks against that.
    ///
    /// The claim comes first and the reading of the kernel's lists second, so that nothing can come
    /// between them.
    ///
    /// # Errors
    /// When there is any reason not to.
    pub fn claim(self, root: &Root, consents: &[Consent]) -> Result<DestroyTarget, Refusal> {
        let mut reasons = Vec::new();
        let named = self.named_by(consents, &mut reasons);
        let unseen = self.written_elsewhere().then_some(ProgramUse::Writing);
        let (file, failure) = self.open_exclusively(!named.is_empty());
        let mut unreadable = 0;
        let mut listed = Vec::new();
        let mut content = Content::default();
        let mut related = Vec::new();
        match DeviceUsers::read(root) {
            Ok(uses) => {
                self.add_uses(&uses, &mut reasons, &mut unreadable);
                listed.extend(
                    self.device()
                        .iter()
                        .flat_map(|&number| uses.partitions(number)),
                );
                // Only where all else is well: a claim is a use itself.
                if let Some(number) = self
                    .device()
                    .filter(|_| reasons.is_empty() && failure.is_none())
                {
                    related = uses.claim_related(number, &mut reasons);
                }
            }
            Err(error) => reasons.push(Reason::Unknown {
                error: error.to_string(),
            }),
        }
        reasons.extend(failure);
        if let Some(file) = &file {
            let locked = || {
                (!named.is_empty() && !lock(file, LockKind::Exclusive))
                    .then_some(ProgramUse::Locked)
            };
            if !reasons.iter().any(Reason::is_use)
                && let Some(hold) = unseen.or_else(locked)
            {
                let path = self.path.clone();
                reasons.push(Reason::Unseen { path, hold });
            }
            match Content::of(file, &listed) {
                Ok(found) => {
                    add_content(&self.path, &found, &named, &mut reasons);
                    content = found;
                }
                Err(error) => reasons.push(Reason::Unprobed {
                    path: self.path.clone(),
                    error: error.to_string(),
                }),
            }
        }
        let size = file.as_ref().map(size_of);
        match (file, size) {
            (Some(file), Some(Ok(size))) if reasons.is_empty() => Ok(DestroyTarget {
                file,
                size,
                device: self.device(),
                path: self.path,
                content,
                related,
                unreadable,
            }),
            (_, size) => {
                if let Some(Err(errno)) = size {
                    reasons.push(self.refused(errno));
                }
                Err(Refusal {
                    path: self.path,
                    reasons,
                })
            }
        }
    }

    fn refused(&self, errno: Errno) -> Reason {
        Reason::Open(OpenError::Refused {
            path: self.path.clone(),
            errno,
        })
    }

    /// The consents that name what was opened. They are compared by what their path leads to now,
    /// not by how it is written: a consent to a link is one to the device behind it.
    fn named_by<'a>(&self, consents: &'a [Consent], reasons: &mut Vec<Reason>) -> Vec<&'a Consent> {
        let named: Vec<_> = consents
            .iter()
            .filter(|consent| self.is_at(&consent.path))
            .collect();
        if named.is_empty() {
            let path = self.path.clone();
            reasons.push(if consents.iter().any(|consent| consent.path == path) {
                Reason::Moved { path }
            } else {
                Reason::NotNamed {
                    misunderstood: consents
                        .iter()
                        .find_map(|consent| consent.misunderstood(&path)),
                    path,
                }
            });
        }
        named
    }

    /// True if a path leads to what was opened: for a device to its number, for a file to its
    /// inode.
    fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| match self.device() {
            Some(number) => {
                found.file_type().is_block_device()
                    && DeviceNumber::from_raw(found.rdev()) == number
            }
            None => (found.dev(), found.ino()) == (self.metadata.dev(), self.metadata.ino()),
        })
    }

    /// True if a file is open for writing, by whomever. To be called before this program opens it so.
    fn written_elsewhere(&self) -> bool {
        self.device().is_none()
            && reopen(&self.handle, OFlags::RDONLY)
                .is_ok_and(|reader| persists(|| has_writers(&reader)))
    }

    /// Opens it with a claim; where that fails, for reading, so that signatures can be searched for
    /// all the same. What the user has not consented to is not opened for writing at all: closing
    /// such a file makes udev probe the device again.
    fn open_exclusively(&self, consented: bool) -> (Option<File>, Option<Reason>) {
        let access = if consented {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        };
        // For files O_EXCL without O_CREAT means nothing (open(2)).
        let claim = if self.device().is_some() {
            OFlags::EXCL
        } else {
            OFlags::empty()
        };
        match reopen(&self.handle, access | claim) {
            Ok(file) => (Some(file), None),
            Err(errno) => {
                let reason = if errno == Errno::BUSY {
                    Reason::Busy {
                        path: self.path.clone(),
                    }
                } else {
                    self.refused(errno)
                };
                (reopen(&self.handle, OFlags::RDONLY).ok(), Some(reason))
            }
        }
    }

    /// Adds the users of it, by the kernel's lists and by the files that programs have open.
    fn add_uses(&self, uses: &DeviceUsers, reasons: &mut Vec<Reason>, unreadable: &mut usize) {
        let Some(own) = Storage::of(&self.metadata) else {
            return;
        };
        let storage = match own {
            Storage::Device(number) => {
                reasons.extend(uses.reasons(number));
                uses.storage_of(number)
            }
            Storage::File(..) => {
                reasons.extend(uses.file_reasons(&self.path, own));
                self.add_file_facts(reasons);
                vec![own]
            }
        };
        match uses.programs(own, &storage) {
            Ok((found, unseen)) => {
                reasons.extend(found);
                *unreadable = unseen;
            }
            Err(error) => reasons.push(Reason::Unknown {
                error: error.to_string(),
            }),
        }
    }

    fn add_file_facts(&self, reasons: &mut Vec<Reason>) {
        let names = self.metadata.nlink();
        if names > 1 {
            reasons.push(Reason::HardLinked {
                path: self.path.clone(),
                names,
            });
        }
        if let Ok(FileSystem::PassThrough(kind)) = file_system_of(&self.handle) {
            reasons.push(Reason::UnclearFile {
                path: self.path.clone(),
                kind,
            });
        }
    }
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn type_label(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "of a kind that holds no data"
    }
}

/// Opens the inode behind a descriptor again. The link in `/proc/self/fd` leads to the inode itself,
/// not to the path it was once found at (proc(5)); it is this process's own, no fact about the
/// machine, and so not read under a [`Root`]. That it did lead there is checked all the same: ESTALE
/// says that it did not.
fn reopen(handle: &File, flags: OFlags) -> Result<File, Errno> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let opened = rustix::fs::open(link, flags | OFlags::CLOEXEC, Mode::empty())?;
    let opened = File::from(opened);
    let identity = |file: &File| -> Result<(u64, u64, u64), Errno> {
        let metadata = file.metadata().map_err(|error| errno_of(&error))?;
        Ok((metadata.dev(), metadata.ino(), metadata.rdev()))
    };
    if identity(handle)? == identity(&opened)? {
        Ok(opened)
    } else {
        Err(Errno::STALE)
    }
}

/// The size of a file or block device; `st_size` of a device is zero.
fn size_of(file: &File) -> Result<Bytes, Errno> {
    let end = rustix::fs::seek(file, SeekFrom::End(0))?;
    rustix::fs::seek(file, SeekFrom::Start(0))?;
    Ok(Bytes(end))
}

/// A file or block device, open for reading.
#[derive(Debug)]
pub struct ReadTarget {
    /// The path by which it was opened.
    pub path: PathBuf,
    /// The open file.
    pub file: File,
    /// Number of the device, if it is a block device.
    pub device: Option<DeviceNumber>,
    /// Size of the file or device.
    pub size: Bytes,
}

impl ReadTarget {
    /// Opens another descriptor of the same file for reading, with flags such as `O_DIRECT`. It does not go
    /// through the path.
    ///
    /// # Errors
    /// When the kernel refuses: EINVAL where there is no direct I/O.
    pub fn reopen(&self, flags: OFlags) -> io::Result<File> {
        Ok(reopen(&self.file, OFlags::RDONLY | flags)?)
    }
}

/// A file or block device that may be overwritten. A device is claimed (`O_EXCL`) until this is
/// dropped; keep it until the last byte is written.
#[derive(Debug)]
pub struct DestroyTarget {
    /// The path by which it was opened.
    pub path: PathBuf,
    /// The open file, for reading and writing.
    pub file: File,
    /// Number of the device, if it is a block device.
    pub device: Option<DeviceNumber>,
    /// Size of the file or device.
    pub size: Bytes,
    /// Content when it was claimed.
    pub content: Content,
    /// The claims on devices that share its storage under other names, and locks on files that they show.
    pub related: Vec<File>,
    /// Number of processes that could not be examined, for want of permission. One of them may have it open.
    pub unreadable: usize,
}

impl DestroyTarget {
    /// A sentence on the processes that could not be examined; `None` when all of them were.
    pub fn unreadable_note(&self) -> Option<String> {
        let processes = match self.unreadable {
            0 => return None,
            1 => "1 process of another user".to_owned(),
            count => format!("{count} processes of other users"),
        };
        Some(format!(
            "{processes} could not be examined; run as root to find out whether one has {} open",
            self.path.display()
        ))
    }

    /// Opens another descriptor of the same file for reading and writing, with flags such as `O_DIRECT`. It does
    /// not go through the path, and leaves the claim to this target.
    ///
    /// # Errors
    /// When the kernel refuses: EINVAL where there is no direct I/O.
    pub fn reopen(&self, flags: OFlags) -> io::Result<File> {
        Ok(reopen(&self.file, OFlags::RDWR | flags)?)
    }
}

/// Opens another descriptor of an open file, which does not go through its path and shares no flags with the first.
/// An access that the first was not allowed may be refused.
///
/// # Errors
/// When the kernel refuses.
pub fn open_again(file: &File, flags: OFlags) -> io::Result<File> {
    Ok(reopen(file, flags)?)
}

/// Opens a file or block device for reading.
///
/// # Errors
/// When it cannot be opened, or is neither.
pub fn open_for_reading(path: &Path) -> Result<ReadTarget, OpenError> {
    PinnedTarget::at(path)?.read()
}

/// Opens a file or block device for being overwritten, and claims it.
///
/// # Errors
/// When anything speaks against it; the refusal names all of it.
pub fn open_for_destroying(
    root: &Root,
    path: &Path,
    consents: &[Consent],
) -> Result<DestroyTarget, Refusal> {
    match PinnedTarget::at(path) {
        Ok(opened) => opened.claim(root, consents),
        Err(error) => Err(Refusal {
            path: path.to_path_buf(),
            reasons: vec![Reason::Open(error)],
        }),
    }
}
