//! Command that continues a zeroing, for the user to type.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use linux::Root;
use linux::consent::Consent;
use linux::exec;
use linux::volume_id::name_disk;

/// State of the disks of a command that is to be run again.
pub(crate) struct RerunState<'a> {
    /// Root of the kernel's files, in which the disk of a volume id is looked up.
    pub root: &'a Root,
    /// Disks that carry a stamp and no signature. Their former content need not be named any more, and is left out of
    /// the command: after a reboot the path may be that of another disk with such content.
    pub erased: Vec<&'a Path>,
    /// Disks that are done, and are left out: the command would zero them again.
    pub done: Vec<&'a Path>,
}

/// Command line that continues with the disks, quoted for a shell. `words` are those of the first command line.
pub(crate) fn rerun_command(
    words: impl IntoIterator<Item = OsString>,
    settled: &RerunState<'_>,
) -> String {
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
            let value = OsString::from(OsStr::from_bytes(value));
            if let Some(value) = settled.consent(value) {
                kept.extend(["--destroy".into(), value]);
            }
        } else if word == "--planned" {
            // A planned disk's identity is that of the first start; a disk that was begun is recognized by its stamp.
            words.next();
        } else if word != "--anew" && !settled.is_done(&word) {
            kept.push(word);
        }
    }
    exec::line(&program, &kept)
}

impl RerunState<'_> {
    /// The path of the disk that a word names.
    fn path_of(&self, word: &OsStr) -> PathBuf {
        let mut path = word.to_owned();
        // A volume id without a disk, of a volume that is detached by now, is not one of the disks that are done.
        let _ = name_disk(&mut path, self.root);
        path.into()
    }

    fn is_done(&self, word: &OsStr) -> bool {
        !self.done.is_empty() && self.done.contains(&self.path_of(word).as_path())
    }

    /// The value of a `--destroy` as it is still needed; `None` where the disk is done.
    fn consent(&self, value: OsString) -> Option<OsString> {
        let Ok(consent) = Consent::parse(&value) else {
            return Some(value);
        };
        let path = self.path_of(consent.path.as_os_str());
        let is_in = |paths: &[&Path]| paths.contains(&path.as_path());
        if is_in(&self.done) {
            return None;
        }
        if consent.signatures.is_empty() || !is_in(&self.erased) {
            return Some(value);
        }
        Some(plain_consent(consent.path))
    }
}

/// A consent to a path that names no signature.
fn plain_consent(path: PathBuf) -> OsString {
    let mut word = path.clone().into_os_string();
    // An additional `=`, where the end of the path would be parsed as a signature.
    if Consent::parse(&word).is_ok_and(|read| read.path != path) {
        word.push("=");
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(words: &[&str], erased: &[&str], done: &[&str]) -> String {
        message_on(&Root::under(Path::new("/no/such")), words, erased, done)
    }

    fn message_on(root: &Root, words: &[&str], erased: &[&str], done: &[&str]) -> String {
        let settled = RerunState {
            root,
            erased: erased.iter().map(Path::new).collect(),
            done: done.iter().map(Path::new).collect(),
        };
        rerun_command(words.iter().map(OsString::from), &settled)
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

    #[test]
    fn a_volume_is_known_by_its_id() {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        for (index, name) in ["nvme1n1", "nvme2n1"].into_iter().enumerate() {
            let folder = root.sys.join("class/block").join(name);
            std::fs::create_dir_all(folder.join("device")).unwrap();
            let put = |file: &str, text: String| std::fs::write(folder.join(file), text).unwrap();
            put("dev", format!("259:{index}\n"));
            put("size", "2048\n".to_owned());
            put("device/serial", format!("vol0000000{index}\n"));
        }
        let words = [
            "disksmith",
            "zero",
            "vol-00000000",
            "vol-00000001",
            "--destroy=vol-00000000=ext4",
            "--destroy",
            "vol-00000001=xfs",
        ];
        assert_eq!(
            message_on(&root, &words, &["/dev/nvme2n1"], &["/dev/nvme1n1"]),
            "disksmith zero vol-00000001 --destroy vol-00000001"
        );
    }
}
