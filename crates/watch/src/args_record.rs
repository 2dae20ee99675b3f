//! The arguments of `watch` that record samples, show them again, and draw them.

use std::path::PathBuf;

use clap::Args;

use domain::moment::MomentOrDay;
use domain::values::{Size, Span};

/// Recording, and views of earlier recordings.
#[derive(Args, Debug)]
pub struct RecordArgs {
    /// Record the samples and findings in the ledger
    #[arg(long, conflicts_with_all = ["check", "parse", "at"])]
    pub record: bool,
    /// With --record: size limit for all recordings in the ledger; above it the oldest are thinned out
    /// sooner, and then dropped [default: 256MiB]
    #[arg(long, value_name = "SIZE", requires = "record")]
    pub record_limit: Option<Size>,
    /// Show what was recorded from this moment on: '2026-11-20 03:00', a date, a time of today, -2h,
    /// or RFC 3339
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        conflicts_with_all = ["check", "parse", "prometheus", "interval", "count"]
    )]
    pub at: Option<MomentOrDay>,
    /// Length of what is shown or recorded [default: with --at 10m, or the whole day if it names a day; else until
    /// Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", conflicts_with_all = ["check", "parse"])]
    pub span: Option<Span>,
    /// With --at: one line for each device, with the mean and the maximum of its figures
    #[arg(long, requires = "at", conflicts_with_all = ["json", "plain", "report"])]
    pub table: bool,
    /// Write an HTML page that opens offline, of what was recorded (--at), of an old log (--parse), or of what is seen
    /// until the end
    #[arg(long, value_name = "FILE.html", conflicts_with = "check")]
    pub report: Option<PathBuf>,
    /// With --report: replace a file that is not a report of disksmith
    #[arg(long, requires = "report")]
    pub force: bool,
}
