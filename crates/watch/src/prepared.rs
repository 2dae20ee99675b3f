//! Preparation of a live watch: all checks of its arguments and files, before it samples or serves.

use ledger::Retention;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};
use ui::output::{OutputFile, OutputFormat};

use crate::args::WatchArgs;
use crate::filter::Filter;
use crate::record;
use crate::serve::Guard;
use crate::view::takes_the_terminal;

/// Parts of a live watch that follow from its arguments.
pub(crate) struct PreparedWatch {
    /// The page that is written at the end.
    pub(crate) page: Option<OutputFile>,
    /// Devices that are shown.
    pub(crate) filter: Filter,
    /// Devices that are on the page.
    pub(crate) of_report: Filter,
    /// Limits of the recording, if there is one.
    pub(crate) keep: Option<Retention>,
    /// Access control of the metrics.
    pub(crate) guard: Guard,
}

impl PreparedWatch {
    /// Creates the parts from the arguments and the files that they name.
    ///
    /// # Errors
    /// Refused where a file cannot be read or is invalid, or a word names no device.
    pub(crate) fn of(args: &WatchArgs, context: &Context) -> Result<PreparedWatch, Failure> {
        // On the screen, idle devices can be shown at any time.
        let all = args.all || takes_the_terminal(args);
        Ok(PreparedWatch {
            page: page(args)?,
            filter: Filter::new(&args.devices, all, &context.root)?,
            // A graph without idle devices would have gaps where they were only idle.
            of_report: Filter::new(&args.devices, true, &context.root)?,
            keep: record::keep(&args.record)?,
            guard: Guard::new(args.web_config.clone()).refused()?,
        })
    }
}

/// The page to write, if one is requested.
///
/// # Errors
/// Refused where it cannot be written.
pub(crate) fn page(args: &WatchArgs) -> Result<Option<OutputFile>, Failure> {
    OutputFile::check_if_any(
        args.record.report.as_ref(),
        OutputFormat::Page,
        args.record.force,
    )
}
