//! The formats other than JSON in which `bench` and `show` print for other programs.

mod csv;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use formats::{Format, WriteError};
use record::{ImportedRun, Run};

use crate::conclusion::Conclusion;
use crate::judged::ImportConclusion;

/// This program's own formats, one row each.
static OWN: [OwnFormat; 1] = [OwnFormat {
    name: "csv",
    help: "A row for each kind of request of each phase",
    measured: csv::measured,
    imported: csv::imported,
}];

/// A format of this program's own.
#[derive(Debug)]
pub struct OwnFormat {
    /// Name on the command line.
    name: &'static str,
    /// A line of help.
    help: &'static str,
    /// Writes a run that was measured here.
    measured: fn(&Run, &Conclusion) -> String,
    /// Writes a run of another tool.
    imported: fn(&ImportedRun, &ImportConclusion) -> String,
}

/// Format in which the result of a run is printed.
#[derive(Clone, Copy, Debug)]
pub enum AnswerFormat {
    /// A format of this program's own.
    Own(&'static OwnFormat),
    /// A format of another tool.
    Tool(Format),
}

impl AnswerFormat {
    fn all() -> impl Iterator<Item = AnswerFormat> {
        let own = OWN.iter().map(AnswerFormat::Own);
        own.chain(Format::ALL.map(AnswerFormat::Tool))
    }

    /// Name of the format on the command line, and a line of help.
    fn describe(self) -> (&'static str, &'static str) {
        match self {
            AnswerFormat::Own(format) => (format.name, format.help),
            AnswerFormat::Tool(format) => format.describe(),
        }
    }

    /// A parser of the name.
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

    /// Text of a run that was measured here.
    ///
    /// # Errors
    /// When the format cannot represent any of its phases.
    pub(crate) fn measured(self, run: &Run, conclusion: &Conclusion) -> Result<String, WriteError> {
        match self {
            AnswerFormat::Own(format) => Ok((format.measured)(run, conclusion)),
            AnswerFormat::Tool(format) => formats::write(format, &formats::sum_up(run)),
        }
    }

    /// Text of a run of another tool.
    ///
    /// # Errors
    /// As [`AnswerFormat::measured`].
    pub(crate) fn imported(
        self,
        run: &ImportedRun,
        judged: &ImportConclusion,
    ) -> Result<String, WriteError> {
        match self {
            AnswerFormat::Own(format) => Ok((format.imported)(run, judged)),
            AnswerFormat::Tool(format) => formats::write(format, &run.summary),
        }
    }
}
