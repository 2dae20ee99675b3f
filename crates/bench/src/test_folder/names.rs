//! Names of the directory and the files of the tests of small files. A name counts as this program's only if it is
//! exactly the one that would be written for its numbers.

use std::ffi::CString;

use engine::derive_seed;

/// Prefix of the directory's name.
const PREFIX: &str = ".disksmith-";
const SUFFIX: &str = ".dir";
/// Number of hexadecimal digits of a file's number.
const DIGITS: usize = 10;
/// Maximum number of letters and digits after or before a file's number.
const LETTERS: usize = 12;

/// Round of small files: ascending names, or names in random order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Sequential,
    Random,
}

/// The name of a directory for small files: the process id, and a number that is unique within the process.
pub(crate) fn folder(process: u32, number: u64) -> String {
    format!("{PREFIX}{process}-{number}{SUFFIX}")
}

/// True if [`folder`] gives this name.
pub(crate) fn is_folder(name: &[u8]) -> bool {
    let numbers = || {
        let name = std::str::from_utf8(name).ok()?;
        let inner = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let (process, number) = inner.split_once('-')?;
        Some((process.parse().ok()?, number.parse().ok()?))
    };
    numbers().is_some_and(|(process, number)| folder(process, number).as_bytes() == name)
}

/// The name of a subdirectory.
pub(crate) fn subdirectory(number: u32) -> String {
    format!("{number:05}")
}

/// True if [`subdirectory`] gives this name.
pub(crate) fn is_subdirectory(name: &[u8]) -> bool {
    let text = std::str::from_utf8(name).ok();
    let number = text.and_then(|text| text.parse().ok());
    number.is_some_and(|number| subdirectory(number).as_bytes() == name)
}

/// Name of a file: its number, followed by up to twelve random letters and digits, or preceded by them in the round of
/// random order.
pub(crate) fn file(round: Round, number: u32, random: u64) -> CString {
    const SIGNS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let count = random % (LETTERS as u64 + 1);
    let letters: String = (0..count)
        .map(|at| char::from(SIGNS[(derive_seed(random, at) % 62) as usize]))
        .collect();
    let text = match round {
        Round::Sequential => format!("{number:0DIGITS$x}{letters}"),
        Round::Random => format!("{letters}{number:0DIGITS$x}"),
    };
    // The text has no zero byte.
    CString::new(text).unwrap_or_default()
}

/// The number in a file's name, if [`file`] can give the name in this round.
pub(crate) fn number_of(round: Round, name: &[u8]) -> Option<u32> {
    let letters = name.len().checked_sub(DIGITS)?;
    if letters > LETTERS || !name.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    let digits = match round {
        Round::Sequential => &name[..DIGITS],
        Round::Random => &name[letters..],
    };
    let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (format!("{number:0DIGITS$x}").as_bytes() == digits).then_some(number)
}

/// True if [`file`] can give this name.
pub(crate) fn is_file(name: &[u8]) -> bool {
    let rounds = [Round::Sequential, Round::Random];
    let mut known = rounds.into_iter().map(|round| number_of(round, name));
    known.any(|number| number.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_again() {
        assert!(is_folder(folder(71, 1_700_000_000).as_bytes()));
        for number in [0, 7, 99_999, 100_000] {
            assert!(is_subdirectory(subdirectory(number).as_bytes()));
        }
        for round in [Round::Sequential, Round::Random] {
            for number in [0, 1, 16_383, u32::MAX] {
                for random in 0..200 {
                    let name = file(round, number, random);
                    assert_eq!(number_of(round, name.to_bytes()), Some(number), "{name:?}");
                    assert!(is_file(name.to_bytes()));
                }
            }
        }
    }

    #[test]
    fn names_that_look_alike_are_not_taken() {
        for name in [
            ".disksmith-archive.dir",
            ".disksmith-1.dir",
            ".disksmith-1-x.dir",
            ".disksmith-01-2.dir",
            ".disksmith-1-+2.dir",
            ".disksmith-1-2-3.dir",
            "disksmith-1-2.dir",
            ".disksmith-1-2.tmp",
        ] {
            assert!(!is_folder(name.as_bytes()), "{name}");
        }
        for name in ["notes", "Music", "1", "000001", "+0001", "12a45"] {
            assert!(!is_subdirectory(name.as_bytes()), "{name}");
        }
        for name in [
            "20231105120000",
            "deadbeefcafe",
            "65fac16aaaaaaa",
            "000000001",
            "000000000A",
            "0000000001-b",
            "0000000001abcdefghijklm",
            "+000000001",
        ] {
            assert!(!is_file(name.as_bytes()), "{name}");
        }
    }
}
