//! Patterns of names: `*` for any characters, `?` for one, `[a-c]` and `[!a-c]` for one of several,
//! and a backslash before what stands for itself (glob(7)).

/// Whether a name holds anything but characters that stand for themselves.
pub(super) fn is_pattern(name: &[u8]) -> bool {
    name.iter().any(|byte| b"*?[\\".contains(byte))
}

/// Whether a pattern matches all of a name. A leading dot must be matched by one.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    matches_from(pattern, name)
}

fn matches_from(mut pattern: &[u8], mut name: &[u8]) -> bool {
    // Where the last star is, and what it has taken so far: only that one may need to take more.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            star = Some((rest, name));
            pattern = rest;
            continue;
        }
        let step = name.split_first().and_then(|(first, after)| {
            let rest = one(pattern, *first)?;
            Some((rest, after))
        });
        match step {
            Some((rest, after)) => (pattern, name) = (rest, after),
            None if pattern.is_empty() && name.is_empty() => return true,
            None => {
                let Some((after_star, [_, longer @ ..])) = star else {
                    return false;
                };
                star = Some((after_star, longer));
                (pattern, name) = (after_star, longer);
            }
        }
    }
}

/// What is left of the pattern when its first part matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [b'[', rest @ ..] => match set(rest, byte) {
            Some((is_in, rest)) => is_in.then_some(rest),
            // Without its end, a bracket is a bracket.
            None => (byte == b'[').then_some(rest),
        },
        [own, rest @ ..] => (*own == byte).then_some(rest),
    }
}

/// Whether a byte is in the set whose inside begins here, and what follows the set. `None` where it
/// does not end.
fn set(inside: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (negated, mut rest) = match inside {
        [b'!' | b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut is_in = false;
    let mut first = true;
    loop {
        rest = match rest {
            [] => return None,
            [b']', after @ ..] if !first => return Some((is_in != negated, after)),
            [low, b'-', high, after @ ..] if *high != b']' => {
                is_in |= (*low..=*high).contains(&byte);
                after
            }
            [own, after @ ..] => {
                is_in |= *own == byte;
                after
            }
        };
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            let found = matches(pattern.as_bytes(), name.as_bytes());
            assert_eq!(found, wanted, "{pattern} {name}");
        }
        assert!(is_pattern(b"*.ibd") && !is_pattern(b"ibdata1"));
    }

    proptest! {
        #[test]
        fn any_bytes_end(pattern: Vec<u8>, name: Vec<u8>) {
            let _ = matches(&pattern, &name);
        }

        #[test]
        fn a_name_matches_itself_with_a_part_replaced(name in "[a-z.]{1,20}", at in 0_usize..20, len in 0_usize..20) {
            let start = at.min(name.len());
            let end = (start + len).min(name.len());
            let pattern = format!("{}*{}", &name[..start], &name[end..]);
            prop_assume!(!name.starts_with('.'));
            prop_assert!(matches(pattern.as_bytes(), name.as_bytes()), "{}", pattern);
        }
    }
}
