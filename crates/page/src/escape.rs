//! Escaping of data, which stands in the page as text, whatever it holds.

use std::fmt;

use askama::filters::Escaper;

/// The escaper of every template (`askama.toml` names it).
#[derive(Clone, Copy)]
pub struct Html;

impl Escaper for Html {
    fn write_escaped_str<W: fmt::Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => dest.write_str("&amp;")?,
                '<' => dest.write_str("&lt;")?,
                '>' => dest.write_str("&gt;")?,
                '"' => dest.write_str("&quot;")?,
                '\'' => dest.write_str("&#39;")?,
                c => dest.write_char(visible(c))?,
            }
        }
        Ok(())
    }
}

/// `text` for charts, which show markup as it stands.
pub fn plain(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// A character in visible form. Control characters have none, and those that turn the reading direction would show
/// another path than was measured.
fn visible(c: char) -> char {
    match c {
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_what_cannot_be_seen_become_text() {
        let mut out = String::new();
        let text = "<b a='1' c=\"2\">&\u{0}";
        Html.write_escaped_str(&mut out, text).unwrap();
        assert_eq!(out, "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\u{fffd}");
        assert_eq!(plain("<b a='1'>&"), "<b a='1'>&");
        assert_eq!(plain("données ☃"), "données ☃");
        assert_eq!(plain("a\u{202e}b\u{0}c\nd"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
    }
}
