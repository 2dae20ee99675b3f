//! Keys, decoded from what a terminal sends (ECMA-48, and the sequences of xterm's ctlseqs).

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A letter, digit or sign.
    Char(char),
    /// A letter with Ctrl.
    Ctrl(char),
    /// Enter.
    Enter,
    /// Escape on its own.
    Escape,
    /// Backspace.
    Backspace,
    /// The arrows.
    Up,
    /// Down.
    Down,
    /// Left.
    Left,
    /// Right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
}

/// A sequence that is longer than this is none.
const MAX_SEQUENCE_BYTES: usize = 32;

/// Makes keys of bytes, which may be cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pending: Vec<u8>,
}

impl Keys {
    /// The keys that are complete with these bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        while at < self.pending.len() {
            match parse(&self.pending[at..]) {
                ParsedKey::Key(key, length) => {
                    keys.extend(key);
                    at += length;
                }
                ParsedKey::Cut if self.pending.len() - at > MAX_SEQUENCE_BYTES => at += 1,
                ParsedKey::Cut => break,
            }
        }
        self.pending.drain(..at);
        keys
    }

    /// True if the input ends within the sequence of a key.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Ends a pending sequence after a pause without input: a lone escape was the key, anything else is no key.
    pub(super) fn give_up(&mut self) -> Option<Key> {
        let alone = self.pending == [ESCAPE];
        self.pending.clear();
        alone.then_some(Key::Escape)
    }
}

const ESCAPE: u8 = 0x1b;

enum ParsedKey {
    /// A key, or `None` for a sequence that is not known, and its length in bytes.
    Key(Option<Key>, usize),
    /// More is to come.
    Cut,
}

fn parse(bytes: &[u8]) -> ParsedKey {
    let one = |key| ParsedKey::Key(Some(key), 1);
    match *bytes {
        [] => ParsedKey::Cut,
        [ESCAPE] => ParsedKey::Cut,
        [ESCAPE, b'[', ref rest @ ..] => sequence(rest),
        [ESCAPE, b'O', ref rest @ ..] => match rest {
            [] => ParsedKey::Cut,
            [last, ..] => ParsedKey::Key(named(*last), 3),
        },
        [ESCAPE, ..] => one(Key::Escape),
        [b'\r' | b'\n', ..] => one(Key::Enter),
        [0x7f | 0x08, ..] => one(Key::Backspace),
        [code @ 1..=26, ..] => one(Key::Ctrl(char::from(b'a' + code - 1))),
        [0..=31, ..] => ParsedKey::Key(None, 1),
        _ => character(bytes),
    }
}

/// A control sequence after `ESC [`: parameters, and a final byte that gives its kind.
fn sequence(rest: &[u8]) -> ParsedKey {
    // The Linux console sends function keys as `ESC [ [ A`.
    if let [b'[', _, ..] = rest {
        return ParsedKey::Key(None, 4);
    }
    let Some(end) = rest
        .iter()
        .position(|byte| (0x40..=0x7e).contains(byte) && *byte != b'[')
    else {
        return ParsedKey::Cut;
    };
    let first = rest[..end].split(|byte| *byte == b';').next();
    let key = match (rest[end], first.unwrap_or_default()) {
        (b'~', b"1" | b"7") => Some(Key::Home),
        (b'~', b"4" | b"8") => Some(Key::End),
        (b'~', b"5") => Some(Key::PageUp),
        (b'~', b"6") => Some(Key::PageDown),
        (last, _) => named(last),
    };
    ParsedKey::Key(key, end + 3)
}

fn named(last: u8) -> Option<Key> {
    match last {
        b'A' => Some(Key::Up),
        b'B' => Some(Key::Down),
        b'C' => Some(Key::Right),
        b'D' => Some(Key::Left),
        b'H' => Some(Key::Home),
        b'F' => Some(Key::End),
        _ => None,
    }
}

/// A character in UTF-8, as far as it has come.
fn character(bytes: &[u8]) -> ParsedKey {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return ParsedKey::Key(None, 1),
    };
    let Some(whole) = bytes.get(..length) else {
        return ParsedKey::Cut;
    };
    match std::str::from_utf8(whole)
        .ok()
        .and_then(|text| text.chars().next())
    {
        Some(letter) => ParsedKey::Key(Some(Key::Char(letter)), length),
        None => ParsedKey::Key(None, 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        Keys::default().take(bytes)
    }

    #[test]
    fn letters_arrows_and_others_are_known() {
        assert_eq!(keys(b"qS"), [Key::Char('q'), Key::Char('S')]);
        assert_eq!(keys("é".as_bytes()), [Key::Char('é')]);
        assert_eq!(
            keys(b"\x1b[A\x1bOB\x1b[1;5C"),
            [Key::Up, Key::Down, Key::Right]
        );
        assert_eq!(
            keys(b"\x1b[5~\x1b[6~\x1b[H\x1b[4~"),
            [Key::PageUp, Key::PageDown, Key::Home, Key::End]
        );
        assert_eq!(
            keys(b"\r\x7f\x03\x1a"),
            [Key::Enter, Key::Backspace, Key::Ctrl('c'), Key::Ctrl('z')]
        );
        assert_eq!(
            keys(b"\x1b[15~\x1b[[Aq"),
            [Key::Char('q')],
            "F5 and F1 are nothing"
        );
    }

    #[test]
    fn a_key_that_is_cut_waits_for_its_rest() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"\x1b"), []);
        assert!(keys.is_pending());
        assert_eq!(keys.take(b"["), []);
        assert_eq!(keys.take(b"B"), [Key::Down]);
        assert!(!keys.is_pending());
        assert_eq!(keys.take(b"\x1b"), []);
        assert_eq!(keys.give_up(), Some(Key::Escape));
        assert_eq!(keys.take(b"\x1b["), []);
        assert_eq!(keys.give_up(), None);
    }

    #[test]
    fn rubbish_without_end_does_not_pile_up() {
        let mut keys = Keys::default();
        keys.take(b"\x1b[");
        for _ in 0..1000 {
            keys.take(b"1;");
        }
        assert!(keys.pending.len() <= MAX_SEQUENCE_BYTES + 2);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_keys(
            bytes in prop::collection::vec(any::<u8>(), 0..30),
            cut in 0_usize..30,
        ) {
            let whole = keys(&bytes);
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            let mut pieces = Keys::default();
            let mut parts = pieces.take(head);
            parts.extend(pieces.take(tail));
            prop_assert_eq!(whole, parts);
        }
    }
}
