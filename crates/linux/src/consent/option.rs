//! The user's consent on the command line: `--destroy PATH[=SIGNATURE[,SIGNATURE…]]`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::identity::Storage;
use crate::signature::{Content, SignatureKind};

/// The user's word that something may be overwritten, and which signatures on it are known to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// Path that may be overwritten.
    pub path: PathBuf,
    /// The signatures that may be overwritten with it.
    pub signatures: Vec<SignatureKind>,
    /// True if overwriting it has begun earlier in the same work: its former content need not be there any
    /// more, and data of an unknown kind is the work's own.
    pub begun: bool,
    /// The stamps of zeroings that may continue: a disk that carries one is as if its overwriting had begun.
    pub zeroings: Vec<String>,
}

/// A `--destroy` that names nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names nothing to destroy; write a path, such as /dev/sdf or /dev/sdf=ext4")]
pub struct ConsentError(String);

impl Consent {
    /// Reads the value of `--destroy`.
    ///
    /// A path may hold `=`, so what follows the last one counts as signatures only if each of its
    /// words, between commas, is a known one (blkid's word, such as `ext4`, or a common other one,
    /// such as `mdraid`). Otherwise all of it is the path. A path that itself ends like a signature
    /// or in `=` is written with one more `=` behind it: `/data/disk=ext4=` is the file
    /// `/data/disk=ext4`, and no signature.
    ///
    /// So a mistyped signature becomes a path that does not exist: it never widens the consent, and
    /// the refusal says what was not understood.
    ///
    /// # Errors
    /// When no path is left.
    pub fn parse(text: &OsStr) -> Result<Consent, ConsentError> {
        let bytes = text.as_bytes();
        let (path, signatures) = match split_at_last_equals(bytes) {
            Some((path, b"")) => (path, Vec::new()),
            Some((path, suffix)) => match signatures_in(suffix) {
                Some(signatures) => (path, signatures),
                None => (bytes, Vec::new()),
            },
            None => (bytes, Vec::new()),
        };
        if path.is_empty() {
            return Err(ConsentError(text.to_string_lossy().into_owned()));
        }
        Ok(Consent {
            path: OsString::from_vec(path.to_vec()).into(),
            signatures,
            begun: false,
            zeroings: Vec::new(),
        })
    }

    /// True if this is about a target: by the same path, also with signatures that were not understood, or by
    /// another path to the same file or device. Which storage it is in the end, the claim decides.
    pub fn names(&self, target: &Path) -> bool {
        let storage = |path: &Path| Storage::of(&fs::metadata(path).ok()?);
        self.path == target
            || self.misunderstood(target).is_some()
            || storage(&self.path).is_some_and(|named| storage(target) == Some(named))
    }

    /// The same for work that continues.
    pub fn begun(self) -> Consent {
        Consent {
            begun: true,
            ..self
        }
    }

    /// The same for zeroings that continue, by their stamps.
    pub fn zeroing(self, stamps: Vec<String>) -> Consent {
        Consent {
            zeroings: stamps,
            ..self
        }
    }

    /// True if overwriting this content has begun under this consent.
    pub(super) fn has_begun(&self, content: &Content) -> bool {
        let stamp = content.zeroing.as_ref();
        self.begun || stamp.is_some_and(|stamp| self.zeroings.contains(stamp))
    }

    /// The words after an `=` that were not understood, when without them this would be consent to
    /// `path`.
    pub(super) fn misunderstood(&self, path: &Path) -> Option<String> {
        let (before, after) = split_at_last_equals(self.path.as_os_str().as_bytes())?;
        (before == path.as_os_str().as_bytes())
            .then(|| OsStr::from_bytes(after).to_string_lossy().into_owned())
    }
}

fn split_at_last_equals(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().rposition(|&byte| byte == b'=')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// The signatures that a list of words names; `None` when one of them is not known.
fn signatures_in(list: &[u8]) -> Option<Vec<SignatureKind>> {
    std::str::from_utf8(list)
        .ok()?
        .split(',')
        .map(SignatureKind::from_name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Consent {
        Consent::parse(OsStr::new(text)).unwrap()
    }

    #[test]
    fn a_target_is_named_by_any_path_to_it_and_by_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("disk"), "").unwrap();
        fs::write(at("other"), "").unwrap();
        std::os::unix::fs::symlink(at("disk"), at("link")).unwrap();
        let consent = |name: &str| parse(at(name).to_str().unwrap());
        for (named, target, expected) in [
            ("disk", "disk", true),
            ("link", "disk", true),
            ("disk", "link", true),
            ("link=ext4", "disk", true),
            ("disk=ext5", "disk", true),
            ("other", "disk", false),
            ("gone", "disk", false),
            ("gone", "gone", true),
            (".", "disk", false),
        ] {
            let answer = consent(named).names(&at(target));
            assert_eq!(answer, expected, "{named} for {target}");
        }
    }

    #[test]
    fn a_path_may_be_followed_by_signatures() {
        use SignatureKind::{Ext4, Gpt, LinuxRaidMember};
        for (text, path, signatures) in [
            ("/dev/sdf", "/dev/sdf", vec![]),
            ("/dev/sdf=ext4", "/dev/sdf", vec![Ext4]),
            (
                "/dev/sdf=gpt,mdraid",
                "/dev/sdf",
                vec![Gpt, LinuxRaidMember],
            ),
            ("/data/a=b/file", "/data/a=b/file", vec![]),
            ("/data/a=b=ext4", "/data/a=b", vec![Ext4]),
            ("/data/disk=ext4=", "/data/disk=ext4", vec![]),
            ("/data/disk==", "/data/disk=", vec![]),
        ] {
            let consent = parse(text);
            assert_eq!(consent.path, Path::new(path), "{text}");
            assert_eq!(consent.signatures, signatures, "{text}");
        }
    }

    #[test]
    fn a_word_that_is_not_known_never_becomes_a_signature() {
        for text in ["/dev/sdf=ext5", "/dev/sdf=ext4,", "/dev/sdf=ext4,nonsense"] {
            assert_eq!(parse(text).path, Path::new(text));
            assert!(parse(text).misunderstood(Path::new("/dev/sdf")).is_some());
        }
        assert_eq!(parse("/dev/sdf").misunderstood(Path::new("/dev/sdf")), None);
    }

    #[test]
    fn a_path_need_not_be_utf8() {
        let consent = Consent::parse(OsStr::from_bytes(b"/d/\xff=xfs")).unwrap();
        assert_eq!(consent.path.as_os_str().as_bytes(), b"/d/\xff");
        assert_eq!(consent.signatures, [SignatureKind::Xfs]);
    }

    #[test]
    fn without_a_path_nothing_is_consented_to() {
        for text in ["", "=", "=ext4"] {
            assert!(Consent::parse(OsStr::new(text)).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text: Vec<u8>) {
            if let Ok(consent) = Consent::parse(OsStr::from_bytes(&text)) {
                prop_assert!(text.starts_with(consent.path.as_os_str().as_bytes()));
            }
        }

        #[test]
        fn one_more_equals_sign_makes_any_path_plain(path in prop::collection::vec(any::<u8>(), 1..40)) {
            let mut text = path.clone();
            text.push(b'=');
            let consent = Consent::parse(OsStr::from_bytes(&text)).unwrap();
            prop_assert_eq!(consent.path.as_os_str().as_bytes(), &path[..]);
            prop_assert_eq!(consent.signatures, vec![]);
        }
    }
}
