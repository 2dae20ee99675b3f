//! Virtual volumes as their clients and the lab's machine see them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it measured"
)]

#[path = "../client/mod.rs"]
mod client;
mod machine;
mod mapped_arrays;
mod real_clients;
mod requests;
#[path = "../specs/mod.rs"]
mod specs;
