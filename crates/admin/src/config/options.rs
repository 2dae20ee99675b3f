//! Conversion of a file of options to a command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};
use serde::Serialize;
use serde_json::Value;
use ui::exit::sentence;

use super::program::Program;

/// Values of options by their names.
type Options = BTreeMap<String, Value>;

/// Error in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Path of the file.
    pub file: String,
    /// Line of the file, from 1; `null` where it is not known.
    pub line: Option<usize>,
    /// The error as a sentence.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.reason),
            None => write!(f, "{}: {}", self.file, self.reason),
        }
    }
}

/// The command line of `verb` that the file states: `key = value` for `--key=value`, `true` for a flag, a list for an
/// option that is given several times. A positional argument goes by its name, such as `devices`. It is checked as far
/// as the start of the verb checks it before it asks a network.
///
/// # Errors
/// All that is wrong in it.
pub(super) fn command_line(
    file: &Path,
    text: &str,
    verb: &str,
    program: &Program,
) -> Result<Vec<OsString>, Vec<Problem>> {
    let problem = |(line, reason)| Problem {
        file: file.display().to_string(),
        line,
        reason,
    };
    let options: Options = basic_toml::from_str(text).map_err(|error| {
        let reason = error.to_string();
        vec![problem((line_in(&reason), reason))]
    })?;
    let mut command = program.command.clone();
    command.build();
    let words = words(text, verb, &options, &command)
        .map_err(|problems| problems.into_iter().map(problem).collect::<Vec<_>>())?;
    if let Err(error) = command.try_get_matches_from_mut(&words) {
        let reason = reason_of(&error);
        let line = line_of_error(text, &options, &error);
        let line = line.or_else(|| line_named(text, &options, &reason));
        return Err(vec![problem((line, reason))]);
    }
    (program.validate)(&words).map_err(|failure| {
        let reason = sentence(&failure.error());
        vec![problem((line_named(text, &options, &reason), reason))]
    })?;
    Ok(words)
}

/// The words of a command line with these options, or each option that is none, with its line and the reason.
fn words(
    text: &str,
    verb: &str,
    options: &Options,
    program: &Command,
) -> Result<Vec<OsString>, Vec<(Option<usize>, String)>> {
    let Some(command) = program.find_subcommand(verb) else {
        return Err(vec![(None, format!("there is no verb '{verb}'"))]);
    };
    let mut words = vec!["disksmith".to_owned(), verb.to_owned()];
    let (mut last, mut problems) = (Vec::new(), Vec::new());
    for (key, value) in options {
        let given = match find(command, key) {
            Some(arg) if arg.is_positional() => values(value).map(|values| last.extend(values)),
            Some(arg) => option(arg, key, value).map(|given| words.extend(given)),
            None => Err(format!(
                "'{key}' is not an option of 'disksmith {verb}'; 'disksmith {verb} --help' lists them"
            )),
        };
        if let Err(reason) = given {
            problems.push((line_of(text, key), reason));
        }
    }
    if !last.is_empty() {
        words.push("--".to_owned());
        words.extend(last);
    }
    match problems.is_empty() {
        true => Ok(words.into_iter().map(OsString::from).collect()),
        false => Err(problems),
    }
}

/// The argument of a key: an option by its long name, or a positional by its name.
fn find<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .find(|arg| match arg.is_positional() {
            true => arg.get_id().as_str().replace('_', "-") == key,
            false => arg.get_long() == Some(key),
        })
}

/// An option, as words of a command line.
fn option(arg: &Arg, key: &str, value: &Value) -> Result<Vec<String>, String> {
    match (arg.get_action().takes_values(), value) {
        (false, Value::Bool(true)) => Ok(vec![format!("--{key}")]),
        (false, Value::Bool(false)) => Ok(Vec::new()),
        (false, _) => Err(format!("'{key}' is true or false, not {value}")),
        (true, _) => Ok(values(value)
            .map_err(|reason| format!("'{key}': {reason}"))?
            .into_iter()
            .map(|value| format!("--{key}={value}"))
            .collect()),
    }
}

/// The values of a key: one, or a list of them.
fn values(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Number(number) => Ok(vec![number.to_string()]),
        Value::Array(items) if !items.iter().any(Value::is_array) => {
            let lists: Result<Vec<_>, _> = items.iter().map(values).collect();
            Ok(lists?.concat())
        }
        other => Err(format!(
            "a string, a number or a list is expected, not {other}"
        )),
    }
}

/// The line in which a key is set.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let sets = |line: &str| {
        let line = line.trim_start().trim_start_matches(['"', '\'']);
        line.strip_prefix(key).is_some_and(|rest| {
            rest.trim_start_matches(['"', '\''])
                .trim_start()
                .starts_with('=')
        })
    };
    text.lines().position(sets).map(|at| at + 1)
}

/// The line that a message of the TOML reader ends with: `… at line 3 column 5`.
fn line_in(message: &str) -> Option<usize> {
    let (_, rest) = message.rsplit_once("at line ")?;
    rest.split(' ').next()?.parse().ok()
}

/// The line of the option that a sentence names first, by its name or by its value.
fn line_named(text: &str, options: &Options, sentence: &str) -> Option<usize> {
    let named = options.iter().filter_map(|(key, value)| {
        let words = values(value).unwrap_or_default().into_iter();
        let words = words.chain([format!("--{key}")]);
        let place = words.filter_map(|word| place_of(&word, sentence)).min()?;
        Some((place, key))
    });
    let (_, key) = named.min()?;
    line_of(text, key)
}

/// Place of a word in a sentence, where it is not a part of a longer one.
fn place_of(word: &str, sentence: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let places = sentence.match_indices(word).map(|(at, _)| at);
    places.filter(|_| !word.is_empty()).find(|&at| {
        let before = sentence[..at].chars().next_back();
        let after = sentence[at + word.len()..].chars().next();
        !before.into_iter().chain(after).any(is_part)
    })
}

/// The line of the option that an error of the command line is about.
fn line_of_error(text: &str, options: &Options, error: &clap::Error) -> Option<usize> {
    let named = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(named) => named.clone(),
        ContextValue::Strings(several) => several.concat(),
        _ => return None,
    };
    let named = named.trim_start_matches("--");
    let word = named.split([' ', '=', '<']).next()?;
    let key = options.keys().find(|key| key.as_str() == word)?;
    line_of(text, key)
}

/// The first sentence of an error of the command line.
fn reason_of(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let answer = words.join(" ");
    let answer = answer.strip_prefix("error: ").unwrap_or(&answer);
    answer.replace(" For more information, try '--help'.", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{ArgAction, value_parser};
    use ui::exit::Failure;

    fn program() -> Program {
        let watch = Command::new("watch")
            .arg(Arg::new("devices").num_args(0..))
            .arg(Arg::new("record").long("record").action(ArgAction::SetTrue))
            .arg(
                Arg::new("limit")
                    .long("record-limit")
                    .requires("record")
                    .value_parser(value_parser!(u64)),
            )
            .arg(Arg::new("from").long("from").action(ArgAction::Append));
        Program {
            command: Command::new("disksmith").subcommand(watch),
            validate: |words| match words.contains(&OsString::from("--from=never")) {
                true => Err(Failure::refused(
                    "never is not to be had: name another --from",
                )),
                false => Ok(()),
            },
        }
    }

    fn of(text: &str) -> Result<Vec<OsString>, Vec<String>> {
        let words = command_line(Path::new("/etc/x.toml"), text, "watch", &program());
        words.map_err(|problems| problems.iter().map(Problem::to_string).collect())
    }

    #[test]
    fn keys_become_options_flags_lists_and_positional_arguments() {
        let text = "# a comment\nrecord = true\nrecord-limit = 5\nfrom = [\"a b\", \"c\"]\ndevices = [\"md0\"]\n";
        let words = [
            "disksmith",
            "watch",
            "--from=a b",
            "--from=c",
            "--record",
            "--record-limit=5",
            "--",
            "md0",
        ];
        assert_eq!(of(text).unwrap(), words.map(OsString::from));
        for text in ["record = false\n", ""] {
            assert_eq!(
                of(text).unwrap(),
                ["disksmith", "watch"].map(OsString::from)
            );
        }
    }

    #[test]
    fn each_problem_names_file_line_and_reason() {
        for (text, begins, holds) in [
            ("\nrecord = \"yes\"\n", "/etc/x.toml:2: ", "true or false"),
            (
                "record = true\nrecrod = 1\n",
                "/etc/x.toml:2: ",
                "'recrod' is not an option",
            ),
            (
                "record = true\n\nrecord-limit = \"x\"\n",
                "/etc/x.toml:3: ",
                "invalid value 'x'",
            ),
            ("a = 1\nb = = 2\n", "/etc/x.toml:2: ", "line 2"),
            (
                "record-limit = { a = 1 }\n",
                "/etc/x.toml:1: ",
                "is expected",
            ),
            ("record-limit = 5\n", "/etc/x.toml: ", "--record"),
            (
                "record = true\nfrom = \"never\"\n",
                "/etc/x.toml:2: ",
                "not to be had",
            ),
        ] {
            let problems = of(text).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].starts_with(begins), "{problems:?}");
            assert!(problems[0].contains(holds), "{problems:?}");
        }
    }

    #[test]
    fn a_sentence_is_about_the_option_that_it_names_first() {
        let text = "a = \"/x\"\nb = [\"/y\", \"1s\"]\nfrom = true\n";
        let options: Options = basic_toml::from_str(text).unwrap();
        for (sentence, line) in [
            ("/y is not there; name --a", Some(2)),
            ("--a and /y", Some(1)),
            ("--from is nothing", Some(3)),
            ("it takes 11s, or --from-now", None),
            ("", None),
        ] {
            assert_eq!(line_named(text, &options, sentence), line, "{sentence}");
        }
    }

    #[test]
    fn all_problems_are_named_at_once() {
        assert_eq!(of("x = 1\ny = 2\n").unwrap_err().len(), 2);
    }
}
