//! Rejected lines, kept in a file with the reason: they can be examined later, and do not block their source.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::event::Rejection;

/// Size of the file beyond which lines are only counted.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum bytes kept of a line.
const MAX_LINE_BYTES: usize = 4096;
/// Maximum bytes that wait in memory for the next flush.
const MAX_PENDING_BYTES: usize = 1 << 20;

/// The file of rejected lines, which is created with the first one.
#[derive(Debug)]
pub struct DeadLetters {
    path: PathBuf,
    file: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    size: u64,
    /// The text that is not written yet.
    text: String,
    failed: bool,
}

#[derive(Serialize)]
struct DeadLetter<'a> {
    at: jiff::Timestamp,
    source: &'a str,
    reason: String,
    line: &'a str,
}

impl DeadLetters {
    /// The file at this path.
    pub fn at(path: &Path) -> DeadLetters {
        DeadLetters {
            path: path.to_owned(),
            file: Mutex::default(),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, unless the file has reached its maximum size.
    pub(crate) fn add(&self, source: &str, reason: Rejection, line: &[u8]) {
        let mut state = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if state.size + state.text.len() as u64 > MAX_FILE_BYTES {
            return;
        }
        let letter = DeadLetter {
            at: jiff::Timestamp::now(),
            source,
            reason: reason.to_string(),
            line: &String::from_utf8_lossy(&line[..line.len().min(MAX_LINE_BYTES)]),
        };
        if let Ok(text) = serde_json::to_string(&letter) {
            state.text.push_str(&text);
            state.text.push('\n');
        }
        if state.text.len() > MAX_PENDING_BYTES {
            self.put(&mut state);
        }
    }

    /// Writes the added lines to the disk. They are lost if this fails, which is reported once.
    pub(crate) fn sync(&self) {
        let mut state = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.text.is_empty() {
            self.put(&mut state);
        }
    }

    fn put(&self, state: &mut State) {
        let text = std::mem::take(&mut state.text);
        if let Err(error) = self.write(state, &text)
            && !state.failed
        {
            state.failed = true;
            crate::notices::report(&format!(
                "Rejected lines cannot be kept in {}: {error}",
                self.path.display()
            ));
        }
    }

    fn write(&self, state: &mut State, text: &str) -> std::io::Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            None => {
                let mut options = File::options();
                let file = options
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .open(&self.path)?;
                state.size = file.metadata()?.len();
                state.file.insert(file)
            }
        };
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        state.size += text.len() as u64;
        Ok(())
    }
}
