//! The formats in which `bench` and `show` print for other programs, beside JSON. `views/formatted.rs` makes them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use formats::Format;

/// Format in which the result of a run is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFormat {
    /// A table with a row for each kind of request of each phase.
    Csv,
    /// A format of another tool.
    Tool(Format),
}

impl AnswerFormat {
    fn all() -> impl Iterator<Item = AnswerFormat> {
        [AnswerFormat::Csv]
            .into_iter()
            .chain(Format::ALL.map(AnswerFormat::Tool))
    }

    /// Name of the format on the command line, and a line of help.
    fn describe(self) -> (&'static str, &'static str) {
        match self {
            AnswerFormat::Csv => ("csv", "A row for each kind of request of each phase"),
            AnswerFormat::Tool(format) => format.describe(),
        }
    }

    /// Parses its name.
    pub(crate) fn parser() -> impl TypedValueParser<Value = AnswerFormat> {
        let values = AnswerFormat::all().map(|format| {
            let (name, help) = format.describe();
            PossibleValue::new(name).help(help)
        });
        PossibleValuesParser::new(values).try_map(|word| {
            AnswerFormat::all()
                .find(|format| format.describe().0 == word)
                .ok_or("this format is not known")
        })
    }
}
