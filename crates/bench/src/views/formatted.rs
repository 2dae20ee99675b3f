//! A run in the formats for other programs, beside JSON.

use formats::WriteError;
use record::{ImportedRun, Run};

use super::csv;
use crate::answer_format::AnswerFormat;
use crate::conclusion::Conclusion;
use crate::judged::ImportConclusion;

/// A run that was measured here.
///
/// # Errors
/// When the format has no place for any of its phases.
pub(crate) fn measured(
    format: AnswerFormat,
    run: &Run,
    conclusion: &Conclusion,
) -> Result<String, WriteError> {
    match format {
        AnswerFormat::Csv => Ok(csv::measured(run, conclusion)),
        AnswerFormat::Tool(format) => formats::write(format, &formats::sum_up(run)),
    }
}

/// A run of another tool.
///
/// # Errors
/// As [`measured`].
pub(crate) fn imported(
    format: AnswerFormat,
    run: &ImportedRun,
    judged: &ImportConclusion,
) -> Result<String, WriteError> {
    match format {
        AnswerFormat::Csv => Ok(csv::imported(run, judged)),
        AnswerFormat::Tool(format) => formats::write(format, &run.summary),
    }
}
