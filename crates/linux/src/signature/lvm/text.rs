//! LVM2's text format for metadata (man 5 lvm.conf: "sections, assignments, arrays"; lvm2, lib/config): names with
//! values or with sections in braces, and comments after `#`.

/// A value, or a section with its contents.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(u64),
    Text(String),
    List(Vec<Node>),
    Section(Section),
}

/// The assignments and sections of a section, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Section(Vec<(String, Node)>);

/// Maximum nesting; real metadata is nested five deep.
const MAX_NESTING: u32 = 16;

impl Section {
    /// Parses a text; `None` if it is damaged.
    pub(super) fn parse(text: &str) -> Option<Section> {
        let mut tokens = Tokens { rest: text };
        let section = section(&mut tokens, 0)?;
        tokens.next().is_none().then_some(section)
    }

    fn get(&self, name: &str) -> Option<&Node> {
        let mut all = self.0.iter();
        all.find_map(|(known, node)| (known == name).then_some(node))
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Node::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn list(&self, name: &str) -> Option<&[Node]> {
        match self.get(name)? {
            Node::List(list) => Some(list),
            _ => None,
        }
    }

    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        match self.get(name)? {
            Node::Section(section) => Some(section),
            _ => None,
        }
    }

    /// Its subsections, with their names.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&str, &Section)> {
        self.0.iter().filter_map(|(name, node)| match node {
            Node::Section(section) => Some((name.as_str(), section)),
            _ => None,
        })
    }
}

fn section(tokens: &mut Tokens, depth: u32) -> Option<Section> {
    let mut all = Vec::new();
    while let Some(Token::Word(name)) = tokens.peek() {
        tokens.next();
        let node = match tokens.next()? {
            Token::Sign('=') => value(tokens, depth)?,
            Token::Sign('{') if depth < MAX_NESTING => {
                let inner = section(tokens, depth + 1)?;
                (tokens.next()? == Token::Sign('}')).then_some(Node::Section(inner))?
            }
            _ => return None,
        };
        all.push((name.to_owned(), node));
    }
    Some(Section(all))
}

fn value(tokens: &mut Tokens, depth: u32) -> Option<Node> {
    match tokens.next()? {
        Token::Text(text) => Some(Node::Text(text.to_owned())),
        // Real and negative numbers are not needed here.
        Token::Word(word) => Some(match word.parse() {
            Ok(number) => Node::Number(number),
            Err(_) => Node::Text(word.to_owned()),
        }),
        Token::Sign('[') if depth < MAX_NESTING => {
            let mut list = Vec::new();
            loop {
                match tokens.peek()? {
                    Token::Sign(']') => {
                        tokens.next();
                        return Some(Node::List(list));
                    }
                    Token::Sign(',') => drop(tokens.next()),
                    _ => list.push(value(tokens, depth + 1)?),
                }
            }
        }
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(char),
}

#[derive(Clone, Copy)]
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        Tokens { ..*self }.next()
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix('#') {
                Some(comment) => {
                    self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
                }
                None => break,
            }
        }
        let first = self.rest.chars().next()?;
        if let Some(text) = self.rest.strip_prefix('"') {
            // Escaped quotes are kept as written: names have none.
            let end = text
                .char_indices()
                .scan(false, |escaped, (at, sign)| {
                    let is_end = sign == '"' && !*escaped;
                    *escaped = sign == '\\' && !*escaped;
                    Some((at, is_end))
                })
                .find_map(|(at, is_end)| is_end.then_some(at))?;
            self.rest = &text[end + 1..];
            return Some(Token::Text(&text[..end]));
        }
        let is_word = |sign: char| sign.is_ascii_alphanumeric() || "_.+-/".contains(sign);
        if is_word(first) {
            let end = self.rest.find(|sign| !is_word(sign));
            let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            self.rest = rest;
            return Some(Token::Word(word));
        }
        self.rest = &self.rest[first.len_utf8()..];
        Some(Token::Sign(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sections_values_lists_and_comments_are_read() {
        let text = "vg {\nid = \"a-b\" # told \"so\"\nextent_size = 8192\nflags = []\nlogical_volumes {\n\
                    data {\nsegment1 {\nstripes = [\n\"pv0\", 7\n]\n}\n}\n}\n}\nversion = 1\n";
        let all = Section::parse(text).unwrap();
        assert_eq!(all.number("version"), Some(1));
        let group = all.section("vg").unwrap();
        assert_eq!(group.text("id"), Some("a-b"));
        assert_eq!(group.number("extent_size"), Some(8192));
        assert_eq!(group.list("flags"), Some(&[][..]));
        let data = group.section("logical_volumes").unwrap().section("data");
        let stripes = data.unwrap().section("segment1").unwrap().list("stripes");
        let expected = [Node::Text("pv0".to_owned()), Node::Number(7)];
        assert_eq!(stripes, Some(&expected[..]));
        for damaged in ["vg {", "vg }", "= 1", "a = [1", "a = \"b", "a"] {
            assert_eq!(Section::parse(damaged), None, "{damaged}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z0-9 \\[\\]{}=,\"#\\\\\n]{0,200}") {
            let _ = Section::parse(&text);
        }

        #[test]
        fn deep_texts_are_refused_and_do_no_harm(depth in 0_usize..10_000, list: bool) {
            let (open, close) = if list { ("[", "]") } else { ("a {", "}") };
            let text = format!("a = {}{}", open.repeat(depth), close.repeat(depth));
            let _ = Section::parse(&text);
        }
    }
}
