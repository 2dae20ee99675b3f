//! Outputs of other tools, read and written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixtures;
mod iostat;
mod jobs;
mod mutations;
mod round_trips;
mod support;
mod sysstat;
mod written;
