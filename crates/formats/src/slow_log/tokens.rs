//! Tokenizer for statements of MySQL, sufficient to find clauses, literals and columns.

/// Kind of a token of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in backquotes.
    Name,
    /// A string in single or double quotes.
    Text,
    /// A numeric literal.
    Number,
    /// Any other character.
    Symbol,
}

/// A token, and its offset in the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Kind of the token.
    pub kind: TokenKind,
    /// Text of the token, with its quotes.
    pub text: &'a str,
    /// Offset of its first byte.
    pub at: usize,
}

impl Token<'_> {
    /// True if the token is this keyword.
    pub fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Offset of the byte after the token.
    pub fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// The name or text without its quotes.
    pub fn bare(&self) -> &str {
        match self.kind {
            TokenKind::Name | TokenKind::Text => self
                .text
                .get(1..self.text.len().saturating_sub(1))
                .unwrap_or_default(),
            _ => self.text,
        }
    }
}

/// Tokens of a statement, without comments. `None` if a quote or comment does not end, or a comment is one that servers
/// execute.
pub fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if is_line_comment(rest) {
            at += rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
            continue;
        }
        if rest.starts_with(b"/*") {
            if matches!(rest.get(2), Some(b'!' | b'M')) {
                return None;
            }
            at += 2 + text.get(at + 2..)?.find("*/")? + 2;
            continue;
        }
        let (kind, length) = match byte {
            b'\'' | b'"' => (TokenKind::Text, quoted(rest, true)?),
            b'`' => (TokenKind::Name, quoted(rest, false)?),
            b'0'..=b'9' => (TokenKind::Number, number(rest)),
            c if is_word(c) => (TokenKind::Word, run(rest, is_word)),
            _ => (TokenKind::Symbol, 1),
        };
        found.push(Token {
            kind,
            text: text.get(at..at + length)?,
            at,
        });
        at += length;
    }
    Some(found)
}

/// Context at the end of a line: a semicolon ends the statement only outside quotes and comments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEndContext {
    /// Outside quotes and comments.
    #[default]
    Statement,
    /// Inside quotes of this kind.
    Quotes(u8),
    /// Inside a `/* */` comment, which servers may execute.
    Comment,
}

impl LineEndContext {
    /// Context at the end of `line`, which begins in this context.
    pub fn after(mut self, line: &str) -> LineEndContext {
        let mut rest = line.as_bytes();
        while let Some(&byte) = rest.first() {
            let mut length = 1;
            self = match self {
                LineEndContext::Comment if rest.starts_with(b"*/") => {
                    length = 2;
                    LineEndContext::Statement
                }
                LineEndContext::Comment => LineEndContext::Comment,
                // A doubled quote closes and opens again.
                LineEndContext::Quotes(quote) if byte == quote => LineEndContext::Statement,
                LineEndContext::Quotes(quote) => {
                    length += usize::from(byte == b'\\' && quote != b'`');
                    LineEndContext::Quotes(quote)
                }
                LineEndContext::Statement if is_line_comment(rest) => {
                    return LineEndContext::Statement;
                }
                LineEndContext::Statement if rest.starts_with(b"/*") => {
                    length = 2;
                    LineEndContext::Comment
                }
                LineEndContext::Statement if matches!(byte, b'\'' | b'"' | b'`') => {
                    LineEndContext::Quotes(byte)
                }
                LineEndContext::Statement => LineEndContext::Statement,
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        self
    }
}

fn is_line_comment(rest: &[u8]) -> bool {
    rest.starts_with(b"#")
        || (rest.starts_with(b"--") && rest.get(2).is_none_or(u8::is_ascii_whitespace))
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$' || c == b'@' || c >= 0x80
}

fn run(bytes: &[u8], is_part: fn(u8) -> bool) -> usize {
    let end = bytes.iter().position(|c| !is_part(*c));
    end.unwrap_or(bytes.len())
}

/// Length of a number, or of a name that begins with a digit.
fn number(bytes: &[u8]) -> usize {
    run(bytes, |c| is_word(c) || c == b'.')
}

/// Length of a quoted text, with its quotes; a doubled quote is part of the text.
fn quoted(bytes: &[u8], has_escapes: bool) -> Option<usize> {
    let quote = *bytes.first()?;
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if has_escapes => at += 2,
            c if c == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            c if c == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The statement without the parts that differ between executions: literals become `?`, lists of them a single one,
/// and names lower case.
pub fn fingerprint(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for token in tokens(text).unwrap_or_default() {
        let word = match token.kind {
            TokenKind::Text | TokenKind::Number => "?".to_owned(),
            _ => token.bare().to_lowercase(),
        };
        let is_list = word == "?" && words.len() >= 2 && words.ends_with(&["?".into(), ",".into()]);
        match is_list {
            true => drop(words.pop()),
            false => words.push(word),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text)
            .unwrap()
            .iter()
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn statements_are_cut_into_words() {
        assert_eq!(
            texts("select a.`b c` from t where v='it''s \\' ok' and n>=1.5 -- end"),
            [
                "select",
                "a",
                ".",
                "`b c`",
                "from",
                "t",
                "where",
                "v",
                "=",
                "'it''s \\' ok'",
                "and",
                "n",
                ">",
                "=",
                "1.5"
            ]
        );
        assert_eq!(texts("a /* b */ c # d\ne"), ["a", "c", "e"]);
        for open in [
            "'a",
            "\"a\\\"",
            "`a",
            "/* a",
            "/*!50000 a */",
            "/*M!100 a */",
        ] {
            assert_eq!(tokens(open), None, "{open}");
        }
    }

    #[test]
    fn statements_that_differ_in_literals_are_one() {
        let one = fingerprint("SELECT * FROM t WHERE a IN (1, 2,3) AND b = 'x'");
        assert_eq!(
            one,
            fingerprint("select * from `t` where a in (7) and b = \"y\"")
        );
        assert_ne!(
            one,
            fingerprint("select * from t where a in (7) and c = 'y'")
        );
    }

    proptest! {
        #[test]
        fn a_text_ends_within_quotes_where_it_cannot_be_cut(text in "[a'\"`/*# \n\\\\-]{0,40}") {
            let lines = text.split('\n');
            let end = lines.fold(LineEndContext::default(), |within, line| within.after(line));
            prop_assert_eq!(tokens(&text).is_some(), end == LineEndContext::Statement);
        }

        #[test]
        fn any_text_is_cut_or_refused(text: String) {
            for token in tokens(&text).unwrap_or_default() {
                prop_assert_eq!(&text[token.at..token.end()], token.text);
                let _ = token.bare();
            }
            let _ = fingerprint(&text);
        }
    }
}
