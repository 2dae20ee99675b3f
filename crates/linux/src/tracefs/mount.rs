//! Location of tracefs: its mount point, or a mount that only this process sees.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::TracefsError;
use crate::root::Root;

/// tracefs, usable while this is held.
#[derive(Debug)]
pub struct Tracefs {
    folder: PathBuf,
    /// A mount in no namespace: it ends with the process, even if that is killed.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds tracefs, and mounts it for this process alone if it is not mounted.
    ///
    /// # Errors
    /// When it cannot be used; the error has the reason.
    pub fn open(root: &Root) -> Result<Tracefs, TracefsError> {
        let found = Tracefs::find(root)?;
        let instances = found.folder.join("instances");
        match fs::read_dir(&instances) {
            Ok(_) => Ok(found),
            Err(error) => Err(refused(root, instances, error)),
        }
    }

    fn find(root: &Root) -> Result<Tracefs, TracefsError> {
        let mounted = ["kernel/tracing", "kernel/debug/tracing"].map(|path| root.sys.join(path));
        for folder in mounted {
            if folder.join("trace_clock").exists() {
                return Ok(Tracefs {
                    folder,
                    _mount: None,
                });
            }
        }
        // tracefs is part of the kernel, and never a module.
        let known = fs::read_to_string(root.proc.join("filesystems"));
        if known.is_ok_and(|known| known.split_whitespace().all(|name| name != "tracefs")) {
            return Err(TracefsError::NoTracefs);
        }
        let mount = private_mount()
            .map_err(|error| refused(root, PathBuf::from("tracefs"), error.into()))?;
        let folder = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Tracefs {
            folder,
            _mount: Some(mount),
        })
    }

    /// Folder at which tracefs is mounted.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The error for a file of tracefs that cannot be opened.
fn refused(root: &Root, path: PathBuf, source: io::Error) -> TracefsError {
    let lockdown = fs::read_to_string(root.sys.join("kernel/security/lockdown"));
    if source.kind() != io::ErrorKind::PermissionDenied {
        return TracefsError::File { path, source };
    }
    match lockdown {
        Ok(text) if text.contains("[confidentiality]") => TracefsError::LockedDown,
        _ => TracefsError::NotRoot,
    }
}

fn private_mount() -> Result<OwnedFd, Errno> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_tracefs_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        fs::create_dir_all(&root.proc).unwrap();
        fs::write(root.proc.join("filesystems"), "nodev\tsysfs\n\text4\n").unwrap();
        let error = Tracefs::open(&root).unwrap_err().to_string();
        assert!(error.contains("built without CONFIG_TRACING"), "{error}");
    }

    #[test]
    fn a_refusal_names_the_lockdown_or_root_or_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        let security = root.sys.join("kernel/security");
        fs::create_dir_all(&security).unwrap();
        for (mode, errno, words) in [
            ("confidentiality", Errno::PERM, "is locked down"),
            ("integrity", Errno::PERM, "needs root"),
            ("none", Errno::ACCESS, "needs root"),
            ("none", Errno::NOMEM, "instances: "),
        ] {
            let modes = "none integrity confidentiality\n".replace(mode, &format!("[{mode}]"));
            fs::write(security.join("lockdown"), modes).unwrap();
            let error = refused(&root, PathBuf::from("instances"), errno.into()).to_string();
            assert!(error.contains(words), "{mode}, {errno}: {error}");
        }
    }
}
