//! Text for a terminal: control characters are replaced, and in a locale whose charset is not UTF-8 the symbols that
//! this program prints become ASCII.
//!
//! Only sentences and tables are rewritten. A JSON document is UTF-8 in every locale (RFC 8259, 8.1), and names
//! that the user gave are left as they are.

use std::borrow::Cow;
use std::sync::LazyLock;

/// True if the locale's charset is UTF-8. Without a locale it is that of POSIX: ASCII.
static IS_UTF8: LazyLock<bool> = LazyLock::new(|| is_utf8(|name| std::env::var(name).ok()));

/// The symbols that are printed, and their ASCII replacements.
const SIGNS: [(char, &str); 31] = [
    ('µ', "u"),
    ('±', "+/-"),
    ('–', "-"),
    ('−', "-"),
    ('—', "-"),
    ('×', "x"),
    ('…', "..."),
    ('→', "->"),
    ('←', "<-"),
    ('↑', "^"),
    ('↓', "v"),
    ('≥', ">="),
    ('≤', "<="),
    ('²', "^2"),
    ('·', "."),
    ('•', "*"),
    ('✓', "ok"),
    ('✕', "x"),
    ('▁', "_"),
    ('▂', "."),
    ('▃', "-"),
    ('▄', "~"),
    ('▅', "+"),
    ('▆', "="),
    ('▇', "*"),
    ('█', "#"),
    ('─', "-"),
    ('│', "|"),
    ('├', "|"),
    ('└', "`"),
    ('\u{a0}', " "),
];

/// True if the locale's charset is UTF-8. The first of the variables that is set and not empty names the locale
/// (POSIX, XBD 8.2).
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    named.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// True if the locale's charset has symbols beyond ASCII.
pub fn is_unicode() -> bool {
    *IS_UTF8
}

/// Sentences and tables in the locale's charset.
pub fn shown(text: &str) -> Cow<'_, str> {
    match *IS_UTF8 || text.is_ascii() || text.starts_with('{') {
        true => Cow::Borrowed(text),
        false => Cow::Owned(ascii(text)),
    }
}

fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match SIGNS.iter().find(|(sign, _)| *sign == c) {
            Some((_, plain)) => out.push_str(plain),
            None => out.push(c),
        }
    }
    out
}

/// The text with control characters replaced, which a path or a host name may contain and a terminal would interpret.
/// Tabs and line breaks stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    // Those beyond ASCII begin with 0xc2 in UTF-8. Most texts have none of either, which is seen many bytes at
    // a time as long as nothing ends the search.
    let may_be_control = |byte: u8| matches!(byte, 0..=0x08 | 0x0b..=0x1f | 0x7f | 0xc2);
    let is_harmless = |seen: bool, byte: &u8| seen & !may_be_control(*byte);
    if text.as_bytes().iter().fold(true, is_harmless) {
        return Cow::Borrowed(text);
    }
    let harmless = |c: char| {
        if c.is_control() && !matches!(c, '\t' | '\n') {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(harmless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_made_harmless_and_nothing_else_is_changed() {
        for harmless in ["", "a\nb", "é", "µs", "\u{a0}", "×!─█", &"x".repeat(1000)] {
            assert_eq!(printable(harmless), harmless);
        }
        for c in (0..=0xff).filter_map(char::from_u32) {
            let shown = match c {
                '\t' | '\n' => c,
                '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => '\u{fffd}',
                other => other,
            };
            let text = |c: char| format!("some words before it, and é {c} behind");
            assert_eq!(printable(&text(c)), text(shown), "{c:?}");
            assert_eq!(printable(&c.to_string()), shown.to_string());
        }
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        let of = |pairs: &[(&str, &str)]| {
            is_utf8(|name| {
                let found = pairs.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        for (pairs, expected) in [
            (&[][..], false),
            (&[("LANG", "")], false),
            (&[("LANG", "C.UTF-8")], true),
            (&[("LANG", "en_US.utf8")], true),
            (&[("LANG", "C")], false),
            (&[("LANG", "de_DE.ISO-8859-1")], false),
            (&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], false),
            (&[("LC_ALL", ""), ("LANG", "C.UTF-8")], true),
            (
                &[("LC_ALL", ""), ("LC_CTYPE", "POSIX"), ("LANG", "C.UTF-8")],
                false,
            ),
        ] {
            assert_eq!(of(pairs), expected, "{pairs:?}");
        }
    }

    #[test]
    fn signs_become_ascii_and_names_stay() {
        assert_eq!(ascii("3.1 µs ±2 % × 8 → –"), "3.1 us +/-2 % x 8 -> -");
        assert_eq!(ascii("/données"), "/données");
    }
}
