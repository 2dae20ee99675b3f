//! The arguments of `mark`.

use clap::Args;

use domain::moment::MomentOrDay;

/// Arguments of `mark`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith mark \"deploy 1.4.2\"
  disksmith mark \"failover\" --at '2026-11-20 03:12'
  disksmith mark --list
  disksmith mark --remove 3")]
pub struct MarkArgs {
    /// Text of the marker
    #[arg(required_unless_present_any = ["list", "remove"])]
    pub text: Option<String>,
    /// When, if not now: '2026-11-20 03:00', a time of today, -2h, or RFC 3339
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        requires = "text"
    )]
    pub at: Option<MomentOrDay>,
    /// List all marks
    #[arg(long, conflicts_with_all = ["text", "remove"])]
    pub list: bool,
    /// Remove a mark, by its number
    #[arg(long, value_name = "NUMBER", conflicts_with = "text")]
    pub remove: Option<i64>,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}
