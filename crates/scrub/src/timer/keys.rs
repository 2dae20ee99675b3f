//! Change of a variable in a file that a shell reads, such as `/etc/default/mdadm`, and its reversal, without any other
//! change to the file.

use serde::{Deserialize, Serialize};

/// A line that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The former line; `None` where the line was added at the end.
    pub before: Option<String>,
    /// The new line.
    pub after: String,
}

/// Sets a variable by a line such as `ENABLED=no`. Returns the new text and the change. It changes the last line that
/// sets the variable, which is the one that counts for a shell.
pub(crate) fn set(text: &str, after: &str) -> (String, Change) {
    let name = after.split('=').next().unwrap_or(after);
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let sets = |line: &&str| {
        let rest = line.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('='))
    };
    let change = |before| Change {
        before,
        after: after.to_owned(),
    };
    let Some(at) = lines.iter().rposition(sets) else {
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        return (format!("{text}{end}{after}\n"), change(None));
    };
    let before = lines[at].trim_end_matches('\n').to_owned();
    let end = if lines[at].ends_with('\n') { "\n" } else { "" };
    let new = format!("{after}{end}");
    lines[at] = &new;
    (lines.concat(), change(Some(before)))
}

/// Reverses a change. `None` where another program has changed the line since.
pub(crate) fn put_back(text: &str, change: &Change) -> Option<String> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let is_it = |line: &String| line.trim_end_matches('\n') == change.after;
    let at = lines.iter().rposition(is_it)?;
    match &change.before {
        Some(before) => {
            let end = if lines[at].ends_with('\n') { "\n" } else { "" };
            lines[at] = format!("{before}{end}");
        }
        None => {
            lines.remove(at);
        }
    }
    Some(lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_variable_is_set_and_everything_else_kept() {
        let text = "# AUTOCHECK=x\nAUTOCHECK=true # mine\nAUTOSCAN=true\n";
        let (new, change) = set(text, "AUTOCHECK=false");
        assert_eq!(new, "# AUTOCHECK=x\nAUTOCHECK=false\nAUTOSCAN=true\n");
        assert_eq!(change.before.as_deref(), Some("AUTOCHECK=true # mine"));
        let edited = new.replace("AUTOSCAN=true", "AUTOSCAN=false");
        let back = put_back(&edited, &change).unwrap();
        assert_eq!(back, text.replace("AUTOSCAN=true", "AUTOSCAN=false"));
        assert_eq!(put_back("AUTOCHECK=maybe\n", &change), None);
    }

    proptest! {
        #[test]
        fn keys_that_are_set_and_put_back_are_as_they_were(
            lines in prop::collection::vec("(K=[a-z]{0,3}|# K=|L=1|)", 0..5), ends: bool,
        ) {
            let mut text = lines.join("\n");
            if ends && !text.is_empty() {
                text.push('\n');
            }
            let (new, change) = set(&text, "K=no");
            let back = put_back(&new, &change).unwrap();
            // An added line needs a newline before it.
            let kept = back == text || (change.before.is_none() && back == format!("{text}\n"));
            prop_assert!(kept, "{text:?} {back:?}");
        }
    }
}
