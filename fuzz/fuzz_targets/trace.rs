//! No file makes a reader of traces panic, and I/Os come in the order of their issue.

#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use record::Nanos;

fuzz_target!(|data: &[u8]| {
    let Ok(mut file) = tempfile::NamedTempFile::new() else {
        return;
    };
    if file.write_all(data).is_err() {
        return;
    }
    let Ok(reader) = trace::open(file.path()) else {
        return;
    };
    let mut last = Nanos(0);
    for io in reader {
        let Ok(io) = io else { return };
        assert!(io.issued >= last);
        last = io.issued;
    }
});
