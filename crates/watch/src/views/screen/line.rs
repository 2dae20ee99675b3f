//! Lines of a screen: pieces of text, each with its looks, cut to a width.

/// How a piece of text looks. Nothing is told by a colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    /// As the terminal writes.
    #[default]
    Plain,
    /// Of less weight: what does nothing, and what belongs to something else.
    Faint,
    /// Heads and names.
    Strong,
    /// A warning: yellow.
    Warning,
    /// A note: cyan.
    Note,
    /// What must not be overlooked: light and dark are changed over.
    Reverse,
}

/// Which signs and looks a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// Signs beyond ASCII.
    pub unicode: bool,
    /// Colours.
    pub colour: bool,
}

impl Style {
    /// By what the environment says: the locale's character set, in the order in which setlocale(3) takes
    /// the variables, and `NO_COLOR` (no-color.org).
    pub(crate) fn of(variable: impl Fn(&str) -> Option<String>) -> Style {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"];
        let locale = locale.iter().find_map(set);
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        Style {
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            colour: set(&"NO_COLOR").is_none(),
        }
    }

    /// One of two signs.
    pub(crate) fn sign(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pieces: Vec<(String, Look)>,
}

impl Line {
    /// A line of one look.
    pub(crate) fn of(text: impl Into<String>, look: Look) -> Line {
        let mut line = Line::default();
        line.push(text, look);
        line
    }

    /// Adds a piece at its end.
    pub(crate) fn push(&mut self, text: impl Into<String>, look: Look) {
        let text = text.into();
        if !text.is_empty() {
            self.pieces.push((text, look));
        }
    }

    /// Its width in columns: each sign that is kept takes one.
    pub(crate) fn width(&self) -> usize {
        self.pieces
            .iter()
            .map(|(text, _)| text.chars().count())
            .sum()
    }

    /// Its text without its looks.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|(text, _)| text.as_str()).collect()
    }

    /// The line with only such signs as the terminal shows in one column each, and no longer than
    /// `columns`.
    pub(crate) fn fit(&self, columns: usize, style: Style) -> Line {
        let mut left = columns;
        let mut line = Line::default();
        for (text, look) in &self.pieces {
            let text: String = text
                .chars()
                .take(left)
                .map(|sign| safe(sign, style))
                .collect();
            left -= text.chars().count();
            line.push(text, *look);
        }
        line
    }

    /// What is written for it: the text between the codes of its looks (ECMA-48, SGR).
    pub(crate) fn codes(&self, style: Style) -> String {
        let mut codes = String::new();
        for (text, look) in &self.pieces {
            let code = match (look, style.colour) {
                (Look::Plain, _) => "",
                (Look::Faint, _) => "2",
                (Look::Strong, _) => "1",
                (Look::Warning, true) => "1;33",
                (Look::Warning, false) => "1",
                (Look::Note, true) => "36",
                (Look::Note, false) => "",
                (Look::Reverse, _) => "7",
            };
            if code.is_empty() {
                codes.push_str(text);
            } else {
                codes.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m"));
            }
        }
        codes
    }
}

/// A sign that takes one column and that no terminal obeys. Names come from outside: of signs of an
/// unknown width, a question mark is left.
fn safe(sign: char, style: Style) -> char {
    match sign {
        ' '..='~' => sign,
        _ if !style.unicode => ascii(sign),
        // Latin, and the arrows, lines and blocks that are drawn here. U+00AD may take no column.
        '\u{ad}' => '?',
        '\u{a0}'..='\u{2ff}' | '–' | '…' | '→' | '←' | '↑' | '↓' => sign,
        '\u{2500}'..='\u{259f}' | '▸' | '▾' => sign,
        _ => '?',
    }
}

fn ascii(sign: char) -> char {
    match sign {
        'µ' | 'μ' => 'u',
        '×' => 'x',
        '–' | '─' => '-',
        '…' => '~',
        '·' => '.',
        _ => '?',
    }
}

/// Breaks a text between words, so that no line is longer than `columns`.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    let mut width = 0;
    for word in text.split_whitespace() {
        let mut letters: Vec<char> = word.chars().collect();
        if width > 0 && width + 1 + letters.len() > columns {
            lines.push(String::new());
            width = 0;
        }
        while width == 0 && letters.len() > columns {
            let rest = letters.split_off(columns);
            if let Some(line) = lines.last_mut() {
                line.extend(letters);
            }
            lines.push(String::new());
            letters = rest;
        }
        if let Some(line) = lines.last_mut() {
            if width > 0 {
                line.push(' ');
                width += 1;
            }
            width += letters.len();
            line.extend(letters);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Style = Style {
        unicode: false,
        colour: false,
    };
    const FULL: Style = Style {
        unicode: true,
        colour: true,
    };

    #[test]
    fn the_environment_says_what_can_be_shown() {
        let of = |variables: &[(&str, &str)]| {
            let found = |name: &str| variables.iter().find(|(key, _)| *key == name);
            Style::of(|name| found(name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(
            of(&[]),
            Style {
                unicode: false,
                colour: true
            }
        );
        assert_eq!(of(&[("LANG", "de_DE.UTF-8")]), FULL);
        assert!(of(&[("LC_ALL", ""), ("LANG", "C.utf8")]).unicode);
        assert!(!of(&[("LC_ALL", "C"), ("LANG", "C.utf8")]).unicode);
        assert!(!of(&[("NO_COLOR", "1")]).colour);
        assert!(of(&[("NO_COLOR", "")]).colour);
    }

    #[test]
    fn a_line_is_cut_and_holds_nothing_that_a_terminal_obeys() {
        let mut line = Line::of("a\u{1b}[2J", Look::Strong);
        line.push("漢×µ", Look::Plain);
        assert_eq!(line.fit(99, FULL).text(), "a?[2J?×µ");
        assert_eq!(line.fit(99, PLAIN).text(), "a?[2J?xu");
        assert_eq!(line.fit(3, FULL).text(), "a?[");
        assert_eq!(line.fit(0, FULL), Line::default());
    }

    #[test]
    fn without_colours_a_warning_is_still_strong() {
        let line = Line::of("x", Look::Warning);
        assert_eq!(line.codes(PLAIN), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(line.codes(FULL), "\u{1b}[1;33mx\u{1b}[0m");
        for look in [Look::Note, Look::Warning] {
            assert!(!Line::of("x", look).codes(PLAIN).contains('3'));
        }
    }

    proptest! {
        #[test]
        fn no_line_of_a_broken_text_is_too_long_and_no_letter_is_lost(
            text in "[a-zé ]{0,80}",
            columns in 1_usize..20,
        ) {
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= columns));
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
