//! Record of the checks that were turned off for this program's timer. It lies beside the timer's units, so that the
//! checks can be turned on again with another ledger, and after this program was installed again.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::keys::Change;

/// The checks that were turned off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplacedCheck {
    /// Units and settings, in the order in which they were turned off.
    pub list: Vec<DisabledCheck>,
}

/// A unit or setting by which a check was turned off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum DisabledCheck {
    /// A timer that was enabled and was disabled.
    Disabled {
        /// Name of the unit.
        unit: String,
    },
    /// A timer that another unit enables or starts, and that was masked.
    Masked {
        /// Name of the unit.
        unit: String,
        /// True if the timer was active.
        active: bool,
    },
    /// A variable in a file.
    Set {
        /// The file, as a path on the host.
        file: PathBuf,
        /// The change of its line.
        change: Change,
    },
}

impl ReplacedCheck {
    /// Reads the record; empty where the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read or parsed.
    pub(crate) fn read(path: &Path) -> anyhow::Result<ReplacedCheck> {
        let unread = || format!("{} could not be read", path.display());
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(unread),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ReplacedCheck::default()),
            Err(error) => Err(error).with_context(unread),
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        replace(path, &text)
    }
}

/// Replaces a file atomically. An existing file keeps its owner and mode, and a symbolic link to it remains a link.
///
/// # Errors
/// When the file cannot be written. No temporary file is left.
pub(crate) fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = real.parent().unwrap_or(&real);
    let write = || {
        fs::create_dir_all(folder)?;
        // cron and systemd ignore this name, if a kill leaves the file behind.
        let mut new = tempfile::Builder::new()
            .prefix(".disksmith-")
            .suffix(".new")
            .tempfile_in(folder)?;
        let mode = match fs::metadata(&real) {
            Ok(found) => {
                fchown(new.as_file(), Some(found.uid()), Some(found.gid()))?;
                found.mode() & 0o7777
            }
            Err(_) => 0o644,
        };
        let mode = fs::Permissions::from_mode(mode);
        new.as_file().set_permissions(mode)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(&real).map_err(|error| error.error)
    };
    write().with_context(|| format!("{} could not be written", path.display()))?;
    Ok(())
}
