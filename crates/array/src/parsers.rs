//! Parsers of levels, layouts and file systems as arguments, which list the possible values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use domain::filesystem::Fs;
use domain::raid::{Level, Raid10Layout};

/// Parses a level that can be built, as mdadm or md calls it: `10` or `raid10`.
pub fn level_parser() -> impl TypedValueParser<Value = Level> {
    let values = Level::BUILT.map(|level| {
        let value = PossibleValue::new(level.mdadm_name()).help(level.help());
        match level.md_name() {
            same if same == level.mdadm_name() => value,
            alias => value.alias(alias),
        }
    });
    PossibleValuesParser::new(values).try_map(|word| {
        let mut built = Level::BUILT.into_iter();
        built
            .find(|level| word == level.mdadm_name() || word == level.md_name())
            .ok_or("this level is not built")
    })
}

/// Parses a layout of RAID 10, as mdadm calls it.
pub fn layout_parser() -> impl TypedValueParser<Value = Raid10Layout> {
    let values =
        Raid10Layout::ALL.map(|layout| PossibleValue::new(layout.name()).help(layout.help()));
    PossibleValuesParser::new(values).try_map(|word| {
        let mut layouts = Raid10Layout::ALL.into_iter();
        layouts
            .find(|layout| word == layout.name())
            .ok_or("this layout is not known")
    })
}

/// Parses a file system, as mount calls it.
pub fn fs_parser() -> impl TypedValueParser<Value = Fs> {
    let values = Fs::ALL.map(|fs| PossibleValue::new(fs.name()).help(fs.help()));
    PossibleValuesParser::new(values).try_map(|word| {
        let mut all = Fs::ALL.into_iter();
        all.find(|fs| word == fs.name())
            .ok_or("this file system is not made")
    })
}
