//! The verb `serve`: response times, disks and verdicts in a browser.
//!
//! [`sources`] read the ledger, the stores of `tally` and Prometheus onto one time [`axis`]. [`view`] and [`verdicts`]
//! make [`documents`] of them, which [`http`] serves as JSON and CSV, and [`pages`] shows.

pub mod args;
mod axis;
mod csv;
mod documents;
mod http;
mod markers;
mod metrics;
mod pages;
mod run;
mod sources;
mod verdicts;
mod view;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use args::{ServeArgs, ServeVerb};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};

/// Checks the arguments as [`serve`] does, without listening.
///
/// # Errors
/// Those of [`serve`] before it listens.
pub fn validate(args: &ServeArgs, context: &Context) -> Result<(), Failure> {
    match args.verb {
        None => run::ServerSettings::of(args, context).map(drop),
        Some(_) => Ok(()),
    }
}

/// Serves until interrupted, or adds a token to the token file and prints it.
pub fn serve(args: &ServeArgs, context: &mut Context, interrupt: &Arc<AtomicBool>) -> Outcome {
    match &args.verb {
        None => run::run(args, context, interrupt),
        Some(ServeVerb::Token {
            role,
            token_file,
            name,
        }) => {
            let token = http::tokens::add(token_file, role.role(), name).refused()?;
            context.print(&format!("{token}\n"))?;
            Ok(CommandEnd::Done)
        }
    }
}

/// Types of the JSON documents of this crate.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use documents::Document as _;
    use ui::schema::DocumentType;
    vec![
        DocumentType::of_kind::<documents::Error>("serve", documents::Error::KIND),
        DocumentType::of_kind::<documents::Markers>("serve", documents::Markers::KIND),
        DocumentType::of_kind::<documents::NowDocument>("serve", documents::NowDocument::KIND),
        DocumentType::of_kind::<documents::ResponseTimes>("serve", documents::ResponseTimes::KIND),
        DocumentType::of_kind::<documents::Runs>("serve", documents::Runs::KIND),
        DocumentType::of_kind::<documents::Tags>("serve", documents::Tags::KIND),
        DocumentType::of_kind::<documents::Verdicts>("serve", documents::Verdicts::KIND),
    ]
}
