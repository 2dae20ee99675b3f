//! Failures of a machine, and of several actions at the end of a command.

use ui::context::Context;
use ui::exit::{Failure, sentence};

pub(super) fn of_machine(error: crate::machine::Error) -> Failure {
    match error {
        // A closed pipe ends the command quietly, as everywhere.
        crate::machine::Error::Output(source) => Failure::Midway(source.into()),
        error => Failure::Midway(error.into()),
    }
}

/// Returns the first failure; the others are reported, so that none is lost.
pub(super) fn all<T, const N: usize>(
    context: &Context,
    first: Result<T, Failure>,
    others: [Result<(), Failure>; N],
) -> Result<T, Failure> {
    others
        .into_iter()
        .fold(first, |first, next| match (first, next) {
            (Ok(_), Err(failure)) => Err(failure),
            (Err(failure), Err(Failure::Refused(error) | Failure::Midway(error))) => {
                context.notice(&format!("disksmith: {}", sentence(&error)));
                Err(failure)
            }
            (first, Ok(())) => first,
        })
}
