//! Answers that are not yet collected, in a folder beside the user's ledger: root's in `/var/lib/disksmith/fleet`,
//! others' in `~/.local/state/disksmith/fleet`.
//!
//! An answer is stored there before it is sent, and removed when `fleet` has it in its ledger. An answer that is not
//! collected is kept for [`RETENTION_DAYS`] days; beyond [`MAX_ANSWERS`] the oldest are removed first.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::protocol::EndedVerb;

/// Days for which an answer is kept.
const RETENTION_DAYS: u64 = 30;
/// Maximum number of answers that are kept.
const MAX_ANSWERS: usize = 64;
/// Suffix of an answer's file.
const SUFFIX: &str = ".json";
/// Suffix of an answer that cannot be read.
const UNREADABLE_SUFFIX: &str = "unread";

/// Folder of answers; `None` if the user has no suitable folder.
pub(super) struct Spool {
    folder: Option<PathBuf>,
}

impl Spool {
    /// The spool of the current user.
    pub(super) fn of_user() -> Spool {
        let is_root = rustix::process::geteuid().is_root();
        let ledger = ledger::default_path(|name| std::env::var_os(name), is_root).ok();
        let folder = ledger.and_then(|ledger| Some(ledger.parent()?.join("fleet")));
        let spool = Spool { folder };
        spool.remove_old();
        spool
    }

    /// The names of the kept answers, the oldest first.
    pub(super) fn names(&self) -> Vec<String> {
        let files = self.files();
        files.into_iter().map(|(_, name)| name).collect()
    }

    /// Keeps an answer. If it cannot be written, as on a full disk, the answer is still sent while the connection
    /// lasts.
    pub(super) fn keep(&self, ended: &EndedVerb) {
        if let Some(folder) = &self.folder {
            let _ = write(folder, ended);
        }
    }

    /// The answer with this name.
    ///
    /// # Errors
    /// A sentence, if it does not exist or cannot be read.
    pub(super) fn get(&self, name: &str) -> Result<EndedVerb, String> {
        let file = self
            .file(name)
            .ok_or_else(|| format!("'{name}' is not the name of a stored answer"))?;
        let bytes = fs::read(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        serde_json::from_slice(&bytes).map_err(|why| {
            // It may be of another version, which can read it.
            let aside = file.with_extension(UNREADABLE_SUFFIX);
            let _ = fs::rename(&file, &aside);
            format!(
                "an answer cannot be read by this version, and stays in {}: {why}",
                aside.display()
            )
        })
    }

    /// Removes an answer, and the folder when it is empty.
    pub(super) fn forget(&self, name: &str) {
        if let Some(file) = self.file(name) {
            let _ = fs::remove_file(file);
        }
        self.remove_empty();
    }

    /// Removes answers that are too old, and the oldest if there are too many.
    fn remove_old(&self) {
        self.remove_old_aside();
        let files = self.files();
        let excess = files.len().saturating_sub(MAX_ANSWERS);
        let limit = Duration::from_secs(RETENTION_DAYS * 24 * 60 * 60);
        let now = SystemTime::now();
        for (at, (changed, name)) in files.iter().enumerate() {
            let age = now.duration_since(*changed).unwrap_or_default();
            if at < excess || age > limit {
                self.forget(name);
            }
        }
    }

    /// Removes unreadable answers that are too old.
    fn remove_old_aside(&self) {
        let Some(Ok(entries)) = self.folder.as_ref().map(fs::read_dir) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let changed = entry.metadata().and_then(|about| about.modified());
            let age = changed.ok().and_then(|changed| changed.elapsed().ok());
            let is_old =
                age.is_some_and(|age| age > Duration::from_secs(RETENTION_DAYS * 24 * 60 * 60));
            if is_old && path.extension().is_some_and(|end| end == UNREADABLE_SUFFIX) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes an empty folder, and its parent that was created for it.
    fn remove_empty(&self) {
        if let Some(folder) = &self.folder {
            let above = folder.parent();
            // This call only removes empty folders.
            if fs::remove_dir(folder).is_ok()
                && let Some(above) = above
            {
                let _ = fs::remove_dir(above);
            }
        }
    }

    /// Names of the answers, the oldest first, with the times at which they were written.
    fn files(&self) -> Vec<(SystemTime, String)> {
        let Some(Ok(entries)) = self.folder.as_ref().map(fs::read_dir) else {
            return Vec::new();
        };
        let file = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.strip_suffix(SUFFIX)?.to_owned();
            Some((entry.metadata().ok()?.modified().ok()?, name))
        };
        let mut files: Vec<_> = entries.flatten().filter_map(file).collect();
        files.sort();
        files
    }

    /// Path of the file of an answer; `None` for a name that could lead to another folder.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fits = !name.is_empty() && !name.starts_with('.') && name.bytes().all(plain);
        let folder = self.folder.as_ref().filter(|_| fits)?;
        Some(folder.join(format!("{name}{SUFFIX}")))
    }
}

/// Writes an answer under another name first, and renames it: an incomplete answer is worthless.
fn write(folder: &Path, ended: &EndedVerb) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let bytes = serde_json::to_vec(ended)?;
    let half = folder.join(format!(".{}", ended.name));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&half)
        .and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&half, folder.join(format!("{}{SUFFIX}", ended.name))));
    if written.is_err() {
        let _ = fs::remove_file(&half);
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::{EndedBy, VerbRequest};

    fn ended(name: &str) -> EndedVerb {
        EndedVerb {
            name: name.to_owned(),
            order: VerbRequest {
                fleet: "f".to_owned(),
                host: "h".to_owned(),
                args: vec!["devices".to_owned()],
                program: false,
            },
            by: EndedBy::Loss,
            status: Some(3),
            seconds: 1.5,
            answer: json!({ "a": 1 }),
            stderr: "x\n".to_owned(),
            runs: Vec::new(),
        }
    }

    fn spool(place: &Path) -> Spool {
        Spool {
            folder: Some(place.join("disksmith/fleet")),
        }
    }

    #[test]
    fn an_answer_is_kept_until_it_is_collected_and_nothing_stays() {
        let place = tempfile::tempdir().unwrap();
        let spool = spool(place.path());
        assert_eq!(spool.names(), [""; 0]);
        spool.keep(&ended("f.h.1"));
        assert_eq!(spool.names(), ["f.h.1"]);
        assert_eq!(spool.get("f.h.1").unwrap(), ended("f.h.1"));
        spool.forget("f.h.1");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        assert!(spool.get("f.h.1").is_err());
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("x.json"), "{}").unwrap();
        let spool = spool(place.path());
        for name in ["../../x", "", "a/b", "..", ".x"] {
            assert!(spool.get(name).is_err());
            spool.forget(name);
        }
        assert!(place.path().join("x.json").exists());
    }

    #[test]
    fn unreadable_answers_are_put_aside_and_of_very_many_the_oldest_go() {
        let place = tempfile::tempdir().unwrap();
        let spool = spool(place.path());
        for at in 0..MAX_ANSWERS + 3 {
            spool.keep(&ended(&format!("f.{at:03}.1")));
            std::thread::sleep(Duration::from_millis(2));
        }
        spool.remove_old();
        let names = spool.names();
        assert_eq!((names.len(), names[0].as_str()), (MAX_ANSWERS, "f.003.1"));
        let file = spool.file("f.003.1").unwrap();
        fs::write(&file, "{\"half").unwrap();
        let error = spool.get("f.003.1").unwrap_err();
        assert!(
            error.contains("stays in") && error.contains("f.003.1.unread"),
            "{error}"
        );
        assert!(!file.exists() && file.with_extension(UNREADABLE_SUFFIX).exists());
        assert!(!spool.names().contains(&"f.003.1".to_owned()));
    }

    #[test]
    fn a_place_that_may_not_be_written_is_no_error() {
        let none = Spool { folder: None };
        none.keep(&ended("a"));
        let file = tempfile::NamedTempFile::new().unwrap();
        let spool = Spool {
            folder: Some(file.path().join("x")),
        };
        spool.keep(&ended("a"));
        assert_eq!(spool.names(), [""; 0]);
    }
}
