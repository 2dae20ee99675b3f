//! The logs of iostat: what every version printed is read for what it means.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod damage;
mod forms;
#[path = "../support/mutation.rs"]
mod mutation;
mod mutations;
mod times;
mod versions;
mod wrapped;
