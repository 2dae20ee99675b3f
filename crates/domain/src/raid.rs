//! RAID levels as arguments, and layouts of RAID 10 (md(4)).

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
pub use record::raid::{Level, MdLevel, Placement, Redundancy};
use serde::{Deserialize, Serialize};

/// Layout of the copies of RAID 10 (md(4), section RAID10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Two copies side by side
    #[default]
    N2,
    /// The second copy in the second half of the next member
    F2,
    /// The second copy in the next row of chunks, one member further
    O2,
}

impl Layout {
    /// The word that mdadm takes.
    pub fn word(self) -> &'static str {
        match self {
            Layout::N2 => "n2",
            Layout::F2 => "f2",
            Layout::O2 => "o2",
        }
    }
}

/// Parses a level that can be built, as mdadm or md calls it: `10` or `raid10`.
pub fn level_parser() -> impl TypedValueParser<Value = Level> {
    let values = Level::BUILT.map(|level| {
        let value = PossibleValue::new(level.word()).help(level.help());
        match level.md_word() {
            same if same == level.word() => value,
            alias => value.alias(alias),
        }
    });
    PossibleValuesParser::new(values).try_map(|word| {
        let mut built = Level::BUILT.into_iter();
        built
            .find(|level| word == level.word() || word == level.md_word())
            .ok_or("this level is not built")
    })
}
