//! Errors in a job file, with their places.

use std::fmt;

/// A line of a job file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The file's name, as it was given or included.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file, self.line)
    }
}

impl Place {
    /// The error that says `text` of this line.
    pub fn error(&self, text: impl Into<String>) -> FioError {
        FioError {
            place: self.clone(),
            option: None,
            text: text.into(),
        }
    }

    /// The error that says `text` of the option that is in this line.
    pub fn error_in(&self, option: &str, text: impl Into<String>) -> FioError {
        FioError {
            place: self.clone(),
            option: Some(option.to_owned()),
            text: text.into(),
        }
    }
}

/// A line that cannot be read, or asks for something that is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{text}", .option.as_ref().map(|name| format!("{name}: ")).unwrap_or_default())]
pub struct FioError {
    /// Place of the error.
    pub place: Place,
    /// The option, as it is there.
    pub option: Option<String>,
    /// The error, and a correct form.
    pub text: String,
}
