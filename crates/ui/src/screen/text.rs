//! Text of a screen: its styles, and the signs and colours that a terminal can show.

use std::borrow::Cow;

use ratatui_core::style::{Color, Style};
use ratatui_core::text::{Line, Span};

/// Style of a piece of text. No information is carried by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextStyle {
    /// The terminal's own style.
    #[default]
    Plain,
    /// Less emphasis: for what has no effect, or belongs to something else.
    Faint,
    /// Heads and names.
    Strong,
    /// Marks: moments that were named, such as a deploy.
    Mark,
    /// A warning: yellow.
    Warning,
    /// A note: cyan.
    Note,
    /// Text that must not be overlooked: foreground and background are swapped.
    Reverse,
}

impl From<TextStyle> for Style {
    fn from(text_style: TextStyle) -> Style {
        let style = Style::new();
        match text_style {
            TextStyle::Plain => style,
            TextStyle::Faint => style.dim(),
            TextStyle::Strong | TextStyle::Mark => style.bold(),
            TextStyle::Warning => style.bold().fg(Color::Yellow),
            TextStyle::Note => style.fg(Color::Cyan),
            TextStyle::Reverse => style.reversed(),
        }
    }
}

/// Lines of pieces of text, each with its style.
pub trait Pieces: Sized {
    /// A line of one style.
    fn of(text: impl Into<String>, text_style: TextStyle) -> Self;

    /// Adds a piece at its end.
    fn push(&mut self, text: impl Into<String>, text_style: TextStyle);
}

impl Pieces for Line<'static> {
    fn of(text: impl Into<String>, text_style: TextStyle) -> Line<'static> {
        let mut line = Line::default();
        line.push(text, text_style);
        line
    }

    fn push(&mut self, text: impl Into<String>, text_style: TextStyle) {
        self.push_span(Span::styled(text.into(), text_style));
    }
}

/// The signs and colours that a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// True if it shows signs beyond ASCII.
    pub unicode: bool,
    /// True if it shows colours.
    pub colour: bool,
}

impl Capabilities {
    /// Capabilities by the environment: the locale's charset, in the order in which setlocale(3) takes the
    /// variables, and `NO_COLOR` (no-color.org).
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Capabilities {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"];
        let locale = locale.iter().find_map(set);
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        Capabilities {
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            colour: set(&"NO_COLOR").is_none(),
        }
    }

    /// Capabilities by the environment of this process.
    pub(super) fn of_process() -> Capabilities {
        Capabilities::of(|name| std::env::var(name).ok())
    }

    /// The sign that can be shown: `unicode` where the charset has it, otherwise `ascii`.
    pub fn sign(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }

    /// The line with only such signs as the terminal shows in one column each, and such styles as it has.
    pub fn line<'a>(self, mut line: Line<'a>) -> Line<'a> {
        for span in &mut line.spans {
            let is_safe = |sign: char| safe(sign, self) == sign;
            if !span.content.chars().all(is_safe) {
                let text: String = span.content.chars().map(|sign| safe(sign, self)).collect();
                span.content = Cow::Owned(text);
            }
            if !self.colour {
                (span.style.fg, span.style.bg) = (None, None);
            }
        }
        line
    }
}

/// A sign that takes one column and that no terminal obeys. Names come from outside: of signs of an
/// unknown width, a question mark is left.
fn safe(sign: char, capabilities: Capabilities) -> char {
    match sign {
        ' '..='~' => sign,
        _ if !capabilities.unicode => ascii(sign),
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
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
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
    use ratatui_core::buffer::Buffer;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Modifier;
    use ratatui_core::widgets::Widget as _;

    use super::*;

    const PLAIN: Capabilities = Capabilities {
        unicode: false,
        colour: false,
    };
    const FULL: Capabilities = Capabilities {
        unicode: true,
        colour: true,
    };

    #[test]
    fn the_environment_says_what_can_be_shown() {
        let of = |variables: &[(&str, &str)]| {
            let found = |name: &str| variables.iter().find(|(key, _)| *key == name);
            Capabilities::of(|name| found(name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(
            of(&[]),
            Capabilities {
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

    /// A line as it is on a screen of so many columns.
    fn drawn(line: Line<'static>, columns: u16, capabilities: Capabilities) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, 1));
        capabilities.line(line).render(buffer.area, &mut buffer);
        buffer
    }

    fn text(buffer: &Buffer) -> String {
        let symbols: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
        symbols.trim_end().to_owned()
    }

    #[test]
    fn a_line_is_cut_and_holds_nothing_that_a_terminal_obeys() {
        let mut line = Line::of("a\u{1b}[2J", TextStyle::Strong);
        line.push("漢×µ", TextStyle::Plain);
        let shown = |columns, capabilities| text(&drawn(line.clone(), columns, capabilities));
        assert_eq!(shown(99, FULL), "a?[2J?×µ");
        assert_eq!(shown(99, PLAIN), "a?[2J?xu");
        assert_eq!(shown(3, FULL), "a?[");
        assert_eq!(shown(0, FULL), "");
    }

    #[test]
    fn without_colours_a_warning_is_still_strong() {
        let cell = |text_style, capabilities| {
            drawn(Line::of("x", text_style), 1, capabilities).content[0].clone()
        };
        let warning = cell(TextStyle::Warning, PLAIN);
        assert_eq!(
            (warning.modifier, warning.fg),
            (Modifier::BOLD, Color::Reset)
        );
        let warning = cell(TextStyle::Warning, FULL);
        assert_eq!(
            (warning.modifier, warning.fg),
            (Modifier::BOLD, Color::Yellow)
        );
        for text_style in [TextStyle::Note, TextStyle::Warning] {
            assert_eq!(cell(text_style, PLAIN).fg, Color::Reset);
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
