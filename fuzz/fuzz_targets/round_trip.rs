//! Anything that was read and written can be read again.

#![no_main]

use formats::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(summaries) = formats::read(&String::from_utf8_lossy(data)) else {
        return;
    };
    for summary in &summaries {
        for format in Format::ALL {
            if let Ok(written) = formats::write(format, summary) {
                assert!(formats::read(&written).is_ok(), "{written}");
            }
        }
    }
});
