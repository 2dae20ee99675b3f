//! No slow log makes the parser panic, and a statement that it gives is one that can be cut into words.

#![no_main]

use formats::slow_log::tokens::{fingerprint, tokens};
use formats::slow_log::{distinct, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let statements = parse(&text);
    for statement in &statements {
        assert!(!statement.text.trim().is_empty());
        for token in tokens(&statement.text).unwrap_or_default() {
            assert_eq!(&statement.text[token.at..token.end()], token.text);
            assert!(token.bare().len() <= token.text.len());
        }
    }
    let kinds = distinct(statements.clone());
    assert!(kinds.len() <= statements.len());
    for kind in &kinds {
        let same = |other: &&formats::slow_log::Statement| {
            other.schema == kind.schema && fingerprint(&other.text) == fingerprint(&kind.text)
        };
        assert_eq!(kinds.iter().filter(same).count(), 1);
    }
});
