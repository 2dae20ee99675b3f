//! Inputs that are changed at random from a fixed seed, so that a failure can be repeated.

use record::random::SplitMix64;

/// A whole number below `end`, or zero where there is none.
pub(crate) fn below(random: &mut SplitMix64, end: usize) -> usize {
    random.below(end.max(1) as u64) as usize
}

/// `text` with some changes: cut, with a piece left out, doubled, or replaced by one of `words` (over which
/// parsers stumble) or by a piece of `other`; with another number, or another byte.
pub(crate) fn mutated(
    text: &[u8],
    other: &[u8],
    words: &[&str],
    random: &mut SplitMix64,
) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..=below(random, 4) {
        let at = below(random, bytes.len());
        let end = (at + below(random, 50)).min(bytes.len());
        let word = words[below(random, words.len())];
        match below(random, 7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..end, word.bytes())),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let from = below(random, other.len());
                bytes.splice(at..end, other.iter().skip(from).take(250).copied());
            }
            // A number becomes another one: most of the mutations of the rest hit no figure.
            5 => {
                let digit = bytes[at..].iter().position(u8::is_ascii_digit);
                if let Some(place) = digit.map(|digit| at + digit) {
                    bytes.splice(place..=place, word.bytes());
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.bits() as u8;
                }
            }
        }
    }
    bytes
}
