//! No text makes a reader panic, and no figure that is read is negative or no number.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(summaries) = formats::read(&String::from_utf8_lossy(data)) else {
        return;
    };
    for flow in summaries.iter().flat_map(|s| &s.phases).flat_map(|p| &p.flows) {
        for rate in [flow.ops_per_s, flow.bytes_per_s].into_iter().flatten() {
            assert!(rate.is_finite() && rate >= 0.0);
        }
    }
});
