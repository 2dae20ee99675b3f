//! No line of events makes a parser or the sums panic, and what is summed is finite.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tally::classes::ClassBounds;
use tally::parse::{EventFormat, Parser};
use tally::sums::Sums;

fuzz_target!(|data: &[u8]| {
    for format in [
        EventFormat::Auto,
        EventFormat::Json,
        EventFormat::Statsd,
        EventFormat::Access,
    ] {
        let mut sums = Sums::new(ClassBounds::default());
        Parser::new(format).lines(data, &mut |line, event| {
            assert!(!line.is_empty());
            if let Ok(event) = event {
                assert!(event.tag.is_empty() || event.check().is_err() || event.count.is_finite());
                let _ = sums.add(&event, 0);
            }
        });
        let names = sums.names().count();
        assert!(
            sums.rows()
                .all(|row| (row.tag as usize) < names && row.count.is_finite())
        );
    }
});
