//! Escaping of data, which appears in the page as text, whatever its contents.

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

/// Units that are kept on one line with the number before them.
const UNITS: [&str; 20] = [
    "%", "ns", "us", "µs", "ms", "s", "min", "h", "days", "IOPS", "B", "KiB", "MiB", "GiB", "TiB",
    "B/s", "KiB/s", "MiB/s", "GiB/s", "sectors",
];

/// Maximum length of an option that is kept on one line, in characters: a longer word could be wider than the page.
const MAX_OPTION_CHARS: usize = 30;

/// A word without surrounding punctuation.
fn bare(word: &str) -> &str {
    word.trim_matches(|c| ".,;:()".contains(c))
}

/// A sentence as markup, without line breaks within an option or between a number and its unit.
pub fn sentence(text: &str) -> String {
    let mut markup = String::new();
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut whole = word.to_owned();
        let is_number = word.ends_with(|c: char| c.is_ascii_digit());
        let unit = words.next_if(|next| is_number && UNITS.contains(&bare(next)));
        if let Some(unit) = unit {
            whole = format!("{word} {unit}");
        }
        let is_option = bare(word).starts_with("--") && word.chars().count() <= MAX_OPTION_CHARS;
        let is_whole = unit.is_some() || is_option;
        let (begin, end) = match is_whole {
            true => ("<span class=\"whole\">", "</span>"),
            false => ("", ""),
        };
        markup.push_str(begin);
        // Writing to a string does not fail.
        let _ = Html.write_escaped_str(&mut markup, &whole);
        markup.push_str(end);
        if words.peek().is_some() {
            markup.push(' ');
        }
    }
    markup
}

/// `text` for charts, which show markup as it is.
pub fn plain(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// A visible replacement for a character. Control characters are invisible, and those that change the text direction
/// would show another path than the measured one.
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
    fn options_and_numbers_with_their_units_stay_in_one_line() {
        let whole = |text: &str| format!("<span class=\"whole\">{text}</span>");
        assert_eq!(
            sentence("not to ±3 %; give <more> --seconds (8.0 s)."),
            format!(
                "not to {} give &lt;more&gt; {} {}",
                whole("±3 %;"),
                whole("--seconds"),
                whole("(8.0 s).")
            )
        );
        assert_eq!(
            sentence("a -- b 3 disks"),
            "a <span class=\"whole\">--</span> b 3 disks"
        );
        assert_eq!(sentence(""), "");
        let path = format!("--{}", "x".repeat(MAX_OPTION_CHARS));
        assert_eq!(sentence(&path), path);
    }

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
