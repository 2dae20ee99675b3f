//! Access to the kernel's files: all reads of `/proc`, `/sys` and `/dev` go through here.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fs, io};

/// An error of reading or writing the kernel's files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read.
    #[error("{} could not be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("{} could not be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file has unexpected contents.
    #[error("{}, line {line}: {what}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The wrong field, and the reason.
        what: String,
    },
    /// A device does not exist, or not any more.
    #[error("{0} is not a block device that the kernel lists; it may have been removed")]
    NoDevice(String),
    /// The kernel's list of block devices does not exist.
    #[error("{} does not exist, so it is unknown which devices are in use; mount sysfs", .0.display())]
    NoDevices(PathBuf),
    /// Another file system is mounted over one of the kernel's lists.
    #[error("{} is mounted over the kernel's own lists, which hides devices in use; unmount \
             it", .0.display())]
    Hidden(PathBuf),
}

impl Error {
    /// True if the kernel refused a write for the moment (EBUSY).
    pub fn is_busy(&self) -> bool {
        matches!(self, Error::Write { source, .. } if source.kind() == io::ErrorKind::ResourceBusy)
    }
}

/// The result of reading or writing the kernel's files.
pub type Result<T> = std::result::Result<T, Error>;

/// The folders under which the kernel's files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/dev`.
    pub dev: PathBuf,
}

impl Root {
    /// The machine that this program runs on.
    pub fn host() -> Root {
        Root {
            proc: "/proc".into(),
            sys: "/sys".into(),
            dev: "/dev".into(),
        }
    }

    /// A captured tree: a folder with `proc`, `sys` and `dev`.
    pub fn under(folder: &Path) -> Root {
        Root {
            proc: folder.join("proc"),
            sys: folder.join("sys"),
            dev: folder.join("dev"),
        }
    }

    /// The folder that contains these: `/` on the host, which also contains `etc`.
    pub fn system(&self) -> &Path {
        self.proc.parent().unwrap_or(Path::new("/"))
    }

    /// Path under this root of a path like `/dev/mapper/vg-data`; a path that is not below `/dev` is returned
    /// unchanged.
    pub fn locate(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("/dev") {
            Ok(rest) => self.dev.join(rest),
            Err(_) => path.to_path_buf(),
        }
    }
}

/// The bytes of a file; the error names the file.
///
/// # Errors
/// When it cannot be read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    // The file size is not queried, since the kernel does not report it for its files.
    let mut bytes = Vec::with_capacity(4096);
    let read = File::open(path).and_then(|file| file.take(u64::MAX).read_to_end(&mut bytes));
    read.map_err(|source| Error::Read {
        path: path.to_path_buf(),
        source,
    })?;
    Ok(bytes)
}

/// The text of a file without surrounding white space; bytes that are not UTF-8 become U+FFFD.
///
/// # Errors
/// When it cannot be read.
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = read_bytes(path)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The text of an attribute that some kernels or devices lack, or that disappears while a device is removed (sysfs
/// then returns ENODEV, EIO or EINVAL); `None` if it cannot be read or is empty.
pub fn attribute(path: &Path) -> Option<String> {
    read_text(path).ok().filter(|text| !text.is_empty())
}

/// A number from an attribute; `None` if it cannot be read or parsed.
pub fn number<T: FromStr>(path: &Path) -> Option<T> {
    attribute(path)?.parse().ok()
}

/// A path from an attribute, which the kernel writes unescaped and with a final line feed.
pub fn path_attribute(path: &Path) -> Option<PathBuf> {
    let mut bytes = fs::read(path).ok()?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    (!bytes.is_empty()).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

/// The names in a folder, sorted. Empty if the folder does not exist, since devices may be removed at any time.
///
/// # Errors
/// When it exists and cannot be listed.
pub fn names_in(folder: &Path) -> Result<Vec<OsString>> {
    let failed = |source| Error::Read {
        path: folder.to_path_buf(),
        source,
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = entries
        .map(|entry| entry.map(|entry| entry.file_name()).map_err(failed))
        .collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// True if an error means that a file does not exist, or disappeared while it was read.
fn is_absent(error: &io::Error) -> bool {
    let gone = rustix::io::Errno::NODEV.raw_os_error();
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    ) || error.raw_os_error() == Some(gone)
}

/// Undoes the kernel's escapes such as `\040` for blanks in mountinfo and swaps (proc(5)). A backslash without three
/// octal digits below 256 after it is kept.
pub fn unescape(field: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        match (first, octal(tail)) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                rest = &tail[3..];
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(out)
}

/// The byte of three leading octal digits.
fn octal(text: &[u8]) -> Option<u8> {
    let digits = text.get(..3)?;
    let mut value = 0_u32;
    for digit in digits {
        if !(b'0'..=b'7').contains(digit) {
            return None;
        }
        value = value * 8 + u32::from(digit - b'0');
    }
    u8::try_from(value).ok()
}

/// The last part of a path, as text.
pub(crate) fn last_part(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// Field as text for an error message.
pub(crate) fn shown(field: &[u8]) -> String {
    OsStr::from_bytes(field).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_error_names_the_file() {
        let error = read_text(Path::new("/no/such/file")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/no/such/file could not be read")
        );
    }

    #[test]
    fn octal_escapes_are_undone_and_other_backslashes_stay() {
        for (escaped, plain) in [
            (r"/a\040b", "/a b"),
            (r"/tab\011and\134", "/tab\tand\\"),
            (r"/end\04", r"/end\04"),
            (r"\999\400", r"\999\400"),
        ] {
            assert_eq!(unescape(escaped.as_bytes()), OsStr::new(plain));
        }
    }

    #[test]
    fn a_folder_that_is_gone_has_no_names() {
        assert!(names_in(Path::new("/no/such/folder")).unwrap().is_empty());
    }

    #[test]
    fn a_path_attribute_keeps_its_blanks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backing_file");
        fs::write(&file, "/a b \n").unwrap();
        assert_eq!(path_attribute(&file), Some(PathBuf::from("/a b ")));
    }

    proptest! {
        #[test]
        fn unescaping_takes_any_bytes(field: Vec<u8>) {
            prop_assert!(unescape(&field).len() <= field.len());
        }

        #[test]
        fn escapes_of_the_kernel_are_undone(name: Vec<u8>) {
            let escaped: Vec<u8> = name
                .iter()
                .flat_map(|&byte| match byte {
                    b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
                    other => vec![other],
                })
                .collect();
            prop_assert_eq!(unescape(&escaped), OsString::from_vec(name));
        }
    }
}
