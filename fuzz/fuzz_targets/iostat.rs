//! No log makes the reader panic, and no sample goes back in time or has figures that cannot be.

#![no_main]

use formats::disk_log::{Options, Reader};
use libfuzzer_sys::fuzz_target;
use record::Nanos;

fuzz_target!(|data: &[u8]| {
    let mut elapsed = Nanos(0);
    for reading in Reader::new(data, Options::default()) {
        let Ok(reading) = reading else { return };
        let sample = reading.sample;
        assert!(sample.at.elapsed >= elapsed);
        elapsed = sample.at.elapsed;
        for device in &sample.devices {
            let rates = [device.all.iops.map(|iops| iops.0), device.mean_in_flight];
            for rate in rates.into_iter().flatten() {
                assert!(rate.is_finite() && rate >= 0.0);
            }
        }
    }
});
