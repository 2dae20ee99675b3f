//! Code that the tests of this crate share.

pub(crate) mod mutation;

use formats::read;
use record::Summary;

/// Output of a tool, kept in `fixtures`.
pub(crate) fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The one summary that `text` has.
pub(crate) fn only(text: &str) -> Summary {
    let mut all = read(text).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}
