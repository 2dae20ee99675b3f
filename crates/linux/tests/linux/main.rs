//! Block devices, their stacks and their users as this crate reads them: on captured and modelled trees, and on real loop
//! devices.

// A failed unwrap fails the test; a skipped test says so.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod caches;
mod mapping;
mod md;
mod refusal;
mod refusal_of_files;
mod root_loop;
mod root_space;
mod served;
mod shared_storage;
mod stack;
mod support;
