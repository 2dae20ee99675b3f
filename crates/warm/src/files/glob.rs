//! Patterns of file names: `*` matches any characters, `?` one character, `[a-c]` one of a set, `[!a-c]` one outside a
//! set, `{a,b}` either of two; a backslash quotes the next character.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use globset::{GlobBuilder, GlobMatcher};

/// True if a name contains characters that make it a pattern.
pub(super) fn is_pattern(name: &[u8]) -> bool {
    name.iter().any(|byte| b"*?[\\".contains(byte))
}

/// A pattern of names.
pub(super) struct Pattern {
    glob: GlobMatcher,
    /// True if the pattern begins with a dot. A leading dot of a name must be matched by one, as in a shell.
    has_dot: bool,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// When the pattern is invalid.
    pub(super) fn new(text: &str) -> Result<Pattern, globset::Error> {
        let glob = GlobBuilder::new(text)
            .backslash_escape(true)
            .allow_unclosed_class(true)
            .build()?;
        Ok(Pattern {
            glob: glob.compile_matcher(),
            has_dot: text.starts_with('.'),
        })
    }

    /// True if the pattern matches the whole name.
    pub(super) fn matches(&self, name: &OsStr) -> bool {
        let is_hidden = name.as_bytes().starts_with(b".");
        (!is_hidden || self.has_dot) && self.glob.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(OsStr::new(name))
    }

    #[test]
    fn patterns_match_as_a_shell_has_it() {
        for (pattern, name, wanted) in [
            ("*.ibd", "t1.ibd", true),
            ("*.ibd", "t1.ibd.bak", false),
            ("*.ibd", ".hidden.ibd", false),
            (".*", ".hidden", true),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
            ("t?.ibd", "t1.ibd", true),
            ("t?.ibd", "t.ibd", false),
            ("t[0-35].ibd", "t5.ibd", true),
            ("t[0-35].ibd", "t4.ibd", false),
            ("t[!0-3].ibd", "t4.ibd", true),
            ("[]]", "]", true),
            ("[x", "[x", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("t*.{ibd,frm}", "t1.frm", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            let found = matches(pattern, name);
            assert_eq!(found, wanted, "{pattern} {name}");
        }
        assert!(Pattern::new("t*.{ibd").is_err());
        assert!(is_pattern(b"*.ibd") && !is_pattern(b"ibdata1"));
    }

    proptest! {
        #[test]
        fn any_bytes_end(pattern in "(?s).{0,30}|[]*?{}\\\\a,!^-]{0,12}", name: Vec<u8>) {
            let pattern = Pattern::new(&pattern);
            let _ = pattern.map(|pattern| pattern.matches(OsStr::from_bytes(&name)));
        }

        #[test]
        fn a_name_matches_itself_with_a_part_replaced(name in "[a-z.]{1,20}", at in 0_usize..20, len in 0_usize..20) {
            let start = at.min(name.len());
            let end = (start + len).min(name.len());
            let pattern = format!("{}*{}", &name[..start], &name[end..]);
            prop_assume!(!name.starts_with('.'));
            prop_assert!(matches(&pattern, &name), "{}", pattern);
        }
    }
}
