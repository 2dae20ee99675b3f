//! Record of the units that were turned off for this program's timer, beside its units, so that they can be
//! turned on again: also by another user's ledger, and after this program was installed anew.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::keys::Change;

/// Unit or entry that was turned off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplacedCheck {
    /// Units and entries in the order in which they were turned off.
    pub list: Vec<DisabledCheck>,
}

/// A unit or entry that was turned off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum DisabledCheck {
    /// A timer that was enabled and was disabled.
    Disabled {
        /// Name of the unit.
        unit: String,
    },
    /// A timer that something else enables or starts, and was masked.
    Masked {
        /// Name of the unit.
        unit: String,
        /// True if it was running.
        active: bool,
    },
    /// A variable in a file.
    Set {
        /// The file, as a path on the host.
        file: PathBuf,
        /// The line.
        change: Change,
    },
}

impl ReplacedCheck {
    /// Reads it; empty where there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is not what was written.
    pub(crate) fn read(path: &Path) -> anyhow::Result<ReplacedCheck> {
        let unread = || format!("{} could not be read", path.display());
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(unread),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ReplacedCheck::default()),
            Err(error) => Err(error).with_context(unread),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        replace(path, &text)
    }
}

/// Writes a file so that it is there whole or not at all; one that is there keeps its owner and mode,
/// and a link to it stays one.
///
/// # Errors
/// When it cannot be written. Nothing is left of the attempt.
pub(crate) fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = real.parent().unwrap_or(&real);
    let write = || {
        fs::create_dir_all(folder)?;
        // A name that neither cron nor systemd heeds, where a kill leaves it.
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
