//! The command that goes on, as the user is told to type it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use linux::consent::Consent;
use linux::exec;

/// State of the disks of a command that is to be run again.
pub(crate) struct Settled<'a> {
    /// Those that carry a stamp and no signature. What they carried need not be named any more, and
    /// is not: after a reboot the path may lead to another disk that carries it.
    pub erased: Vec<&'a Path>,
    /// Those that are done, and would be begun anew.
    pub done: Vec<&'a Path>,
}

/// The command of these words with which the disks are gone on with, quoted for a shell.
pub(crate) fn again(words: impl IntoIterator<Item = OsString>, settled: &Settled<'_>) -> String {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        let joined = word.as_bytes().strip_prefix(b"--destroy=");
        if word == "--destroy" {
            if let Some(value) = words.next().and_then(|value| settled.consent(value)) {
                kept.extend([word, value]);
            }
        } else if let Some(value) = joined {
            let value = OsString::from(std::ffi::OsStr::from_bytes(value));
            if let Some(value) = settled.consent(value) {
                kept.extend(["--destroy".into(), value]);
            }
        } else if word == "--planned" {
            // The plan was of then; where a disk was begun it is known by its stamp.
            words.next();
        } else if word != "--anew" && !settled.done.contains(&Path::new(&word)) {
            kept.push(word);
        }
    }
    exec::line(&program, &kept)
}

impl Settled<'_> {
    /// The value of a `--destroy` that is still needed.
    fn consent(&self, value: OsString) -> Option<OsString> {
        let Ok(consent) = Consent::parse(&value) else {
            return Some(value);
        };
        let is_in = |paths: &[&Path]| paths.contains(&consent.path.as_path());
        if is_in(&self.done) {
            return None;
        }
        if consent.signatures.is_empty() || !is_in(&self.erased) {
            return Some(value);
        }
        Some(bare(consent.path))
    }
}

/// A consent to a path that names no signature.
fn bare(path: PathBuf) -> OsString {
    let mut word = path.clone().into_os_string();
    // One more `=` where the path's own end would be read as a signature.
    if Consent::parse(&word).is_ok_and(|read| read.path != path) {
        word.push("=");
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(words: &[&str], erased: &[&str], done: &[&str]) -> String {
        let settled = Settled {
            erased: erased.iter().map(Path::new).collect(),
            done: done.iter().map(Path::new).collect(),
        };
        again(words.iter().map(OsString::from), &settled)
    }

    #[test]
    fn a_signature_that_is_erased_is_not_named_again() {
        let words = [
            "disksmith",
            "--ledger",
            "/my ledger",
            "zero",
            "/dev/a",
            "/dev/b",
            "/dev/c=ext4",
            "--destroy",
            "/dev/a=ext4",
            "--destroy=/dev/b=xfs",
            "--destroy",
            "/dev/c=ext4=xfs",
            "--anew",
        ];
        assert_eq!(
            message(&words, &["/dev/a", "/dev/c=ext4"], &[]),
            "disksmith --ledger '/my ledger' zero /dev/a /dev/b /dev/c=ext4 --destroy /dev/a \
             --destroy /dev/b=xfs --destroy /dev/c=ext4="
        );
    }

    #[test]
    fn a_disk_that_is_done_is_left_out() {
        let words = [
            "disksmith",
            "zero",
            "/dev/a",
            "/dev/b",
            "--destroy=/dev/a=ext4",
            "--planned",
            "{}",
            "--destroy",
            "/dev/b",
            "--json",
        ];
        assert_eq!(
            message(&words, &[], &["/dev/a"]),
            "disksmith zero /dev/b --destroy /dev/b --json"
        );
    }
}
