//! The grammar: `[COUNTx]WHAT:SIZE`.

use std::str::FromStr;

use record::Bytes;

use super::apply;
use super::error::{MAX_VOLUMES, SpecError};
use super::{MAX_SERIAL_CHARS, Profile, VolumeSpec};

/// Smallest unit of a volume's size.
const SIZE_UNIT: Bytes = Bytes::kib(4);

/// Volumes of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeGroup {
    /// Number of volumes; 1 to 256.
    pub count: u32,
    /// Specification of each.
    pub spec: VolumeSpec,
}

impl FromStr for VolumeGroup {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<VolumeGroup, SpecError> {
        let (what, size) = text
            .rsplit_once(':')
            .ok_or_else(|| SpecError::NoSize(text.to_owned()))?;
        let (count, what) = split_count(what)?;
        let spec = parse_spec(what, parse_size(size)?)?;
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
        Ok(count) if (1..=MAX_VOLUMES).contains(&count) => Ok((count, what)),
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

fn parse_spec(text: &str, size: Bytes) -> Result<VolumeSpec, SpecError> {
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
    /// The single volumes, with different serial numbers and seeds if these were given.
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

/// A serial number with an index appended, shortened if necessary.
fn number(serial: &str, number: u32) -> String {
    let end = format!("-{number}");
    // Serial numbers are ASCII, so that a character is a byte.
    let kept = serial.len().min(MAX_SERIAL_CHARS - end.len());
    format!("{}{end}", &serial[..kept])
}
