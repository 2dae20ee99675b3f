//! The grammar: `[COUNTx]WHAT:SIZE`.

use std::str::FromStr;

use record::Bytes;

use super::apply::{self, KEYS};
use super::{LONGEST_SERIAL, Profile, VolumeSpec};

/// The most volumes of one group; a machine has no more places for disks than that.
const MOST_VOLUMES: u32 = 256;

/// The smallest unit of a volume's size.
const SIZE_UNIT: Bytes = Bytes::kib(4);

/// Volumes of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeGroup {
    /// Number of volumes; 1 to 256.
    pub count: u32,
    /// Specification of each.
    pub spec: VolumeSpec,
}

/// Reason for which a `--volumes` value was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No size behind the last colon.
    #[error("'{0}' has no size; write WHAT:SIZE, such as gp3:16GiB or 8xiops=400:1GiB")]
    NoSize(String),
    /// The size cannot be that of a volume.
    #[error(
        "'{0}' is not the size of a volume; write a multiple of 4 KiB, such as 512MiB or 16GiB"
    )]
    Size(String),
    /// The number of volumes.
    #[error("'{0}' volumes cannot be made; write a number from 1 to {MOST_VOLUMES} before the x")]
    Count(String),
    /// A word that is no profile, or a profile that is not the first word.
    #[error(
        "'{0}' is neither a profile at the beginning ({profiles}) nor a key=value pair",
        profiles = Profile::names()
    )]
    Word(String),
    /// No such key.
    #[error("there is no key '{0}'; the keys are {keys}", keys = KEYS.join(", "))]
    Key(String),
    /// A key that may be given once.
    #[error("{0} is given twice; it may be given once")]
    Twice(String),
    /// A value that the key does not take.
    #[error("{key}={value} is not understood; {key} takes {takes}")]
    Value {
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// Correct values.
        takes: String,
    },
    /// A quantity without its unit, which would be taken for bytes or seconds.
    #[error("{key}={value} lacks a unit: {bare} has none; write {key}={example}")]
    Unit {
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// The bare number.
        bare: String,
        /// The same with units, as it was probably meant.
        example: String,
    },
    /// Values that do not go together.
    #[error("{0}")]
    Together(String),
}

impl FromStr for VolumeGroup {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<VolumeGroup, SpecError> {
        let (what, size) = text
            .rsplit_once(':')
            .ok_or_else(|| SpecError::NoSize(text.to_owned()))?;
        let (count, what) = split_count(what)?;
        let spec = parse_what(what, parse_size(size)?)?;
        Ok(VolumeGroup { count, spec })
    }
}

/// Splits "8xgp3" into 8 and "gp3".
fn split_count(text: &str) -> Result<(u32, &str), SpecError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let Some(what) = text[digits..].strip_prefix('x').filter(|_| digits > 0) else {
        return Ok((1, text));
    };
    match text[..digits].parse() {
        Ok(count) if (1..=MOST_VOLUMES).contains(&count) => Ok((count, what)),
        _ => Err(SpecError::Count(text[..digits].to_owned())),
    }
}

fn parse_size(text: &str) -> Result<Bytes, SpecError> {
    let bad = || SpecError::Size(text.to_owned());
    let size: Bytes = text.parse().map_err(|_| bad())?;
    // File offsets are signed.
    if size.0 == 0 || !size.0.is_multiple_of(SIZE_UNIT.0) || i64::try_from(size.0).is_err() {
        return Err(bad());
    }
    Ok(size)
}

fn parse_what(text: &str, size: Bytes) -> Result<VolumeSpec, SpecError> {
    let mut words = text.split(',').peekable();
    let profile = words.peek().and_then(|word| Profile::named(word));
    if profile.is_some() {
        words.next();
    }
    let pairs: Vec<(&str, &str)> = words
        .map(|word| {
            word.split_once('=')
                .ok_or_else(|| SpecError::Word(word.to_owned()))
        })
        .collect::<Result<_, _>>()?;
    apply::volume(profile, size, &pairs)
}

impl VolumeGroup {
    /// The single volumes: each has its own serial number and seed where they were given.
    pub fn volumes(&self) -> impl Iterator<Item = VolumeSpec> + '_ {
        (0..self.count).map(|index| {
            let mut spec = self.spec.clone();
            spec.seed = spec.seed.map(|seed| seed.wrapping_add(u64::from(index)));
            if self.count > 1 {
                spec.serial = spec.serial.map(|serial| number(&serial, index + 1));
            }
            spec
        })
    }
}

/// A serial number with a number behind it, shortened where both do not fit.
fn number(serial: &str, number: u32) -> String {
    let end = format!("-{number}");
    // Serial numbers are ASCII, so that a character is a byte.
    let kept = serial.len().min(LONGEST_SERIAL - end.len());
    format!("{}{end}", &serial[..kept])
}
