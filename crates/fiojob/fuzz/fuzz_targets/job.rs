//! Any text as a job file.

#![no_main]

mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| check::check(text));
