//! Escaping of data, which gets into the page as text, whatever it holds.

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

/// `text` for Plotly, which reads a few tags and entities in names (plotly.js, src/lib/svg_text_utils.js), and
/// no names of quotes.
pub fn for_plotly(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(visible(c)),
        }
    }
    out
}

/// A character as one that is seen. Control characters are not, and those that turn the reading
/// direction would show another path than was measured.
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
        assert_eq!(
            for_plotly("<b a='1' c=\"2\">&"),
            "&lt;b a='1' c=\"2\"&gt;&amp;"
        );
        assert_eq!(for_plotly("données ☃"), "données ☃");
        assert_eq!(
            for_plotly("a\u{202e}b\u{0}c\nd"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d"
        );
    }
}
