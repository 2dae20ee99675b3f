//! The command's side of every capability: where answers go and how wide they may be, progress, tables,
//! formats of numbers and times, signals, and exit statuses.

pub mod charset;
pub mod confirm;
pub mod context;
pub mod csv;
pub mod deferred;
pub mod exit;
pub mod format;
pub mod journal;
pub mod json;
pub mod ledger_args;
pub mod output;
pub mod progress;
pub mod relative;
#[cfg(feature = "schema")]
pub mod schema;
pub mod screen;
pub mod service_manager;
pub mod signals;
pub mod table;
pub mod units;
mod usage;
pub mod window;

/// Content type of Prometheus' text format, which Prometheus 3 refuses to guess.
pub const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
