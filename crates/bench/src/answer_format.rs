//! The formats in which `bench` and `show` answer other programs, beside JSON: their names, and what makes them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use formats::{Format, WriteError};
use record::{ImportedRun, Run};

use crate::conclusion::Conclusion;
use crate::judged::Judged;
use crate::views;

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFormat {
    /// A table with a row for each kind of request of each phase.
    Csv,
    /// Another tool's format.
    Tool(Format),
}

impl AnswerFormat {
    fn all() -> impl Iterator<Item = AnswerFormat> {
        [AnswerFormat::Csv]
            .into_iter()
            .chain(Format::ALL.map(AnswerFormat::Tool))
    }

    /// Its name on the command line, and a line of help.
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

    /// A run that was measured here.
    ///
    /// # Errors
    /// When the format has no place for any of its phases.
    pub(crate) fn measured(self, run: &Run, conclusion: &Conclusion) -> Result<String, WriteError> {
        match self {
            AnswerFormat::Csv => Ok(views::csv::measured(run, conclusion)),
            AnswerFormat::Tool(format) => formats::write(format, &formats::sum_up(run)),
        }
    }

    /// A run of another tool.
    ///
    /// # Errors
    /// As [`AnswerFormat::measured`].
    pub(crate) fn imported(self, run: &ImportedRun, judged: &Judged) -> Result<String, WriteError> {
        match self {
            AnswerFormat::Csv => Ok(views::csv::imported(run, judged)),
            AnswerFormat::Tool(format) => formats::write(format, &run.summary),
        }
    }
}
