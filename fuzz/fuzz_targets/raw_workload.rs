#![no_main]
#[path = "../../crates/disksmith/src/cli/values.rs"]
#[allow(dead_code)]
mod values;
libfuzzer_sys::fuzz_target!(|text: &str| { let _ = text.parse::<values::WorkloadText>(); });
