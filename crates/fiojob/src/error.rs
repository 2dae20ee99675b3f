//! Errors in a job file, with their places.

use std::fmt;

/// A line of a job file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct JobFileLine {
    /// The file's name, as given by the user or in an include line.
    pub file: String,
    /// The number of the line, from 1; 0 for a command line.
    pub line: usize,
}

impl fmt::Display for JobFileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}, line {line}", self.file),
        }
    }
}

impl JobFileLine {
    /// An error with this text about this line.
    pub fn error(&self, text: impl Into<String>) -> FioError {
        FioError {
            place: self.clone(),
            option: None,
            text: text.into(),
        }
    }

    /// An error with this text about the option in this line.
    pub fn error_in(&self, option: &str, text: impl Into<String>) -> FioError {
        FioError {
            place: self.clone(),
            option: Some(option.to_owned()),
            text: text.into(),
        }
    }
}

/// A line that is invalid, or requests something unsupported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{text}", .option.as_ref().map(|name| format!("{name}: ")).unwrap_or_default())]
pub struct FioError {
    /// Place of the error.
    pub place: JobFileLine,
    /// The option, as it is written.
    pub option: Option<String>,
    /// The error, and a correct form.
    pub text: String,
}

/// Errors of one job file, in the order of its lines; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileErrors(Vec<FioError>);

impl From<FioError> for JobFileErrors {
    fn from(error: FioError) -> JobFileErrors {
        JobFileErrors(vec![error])
    }
}

impl JobFileErrors {
    /// Returns `value`, or the errors if there are any. An error that several jobs have in the same line is kept once.
    ///
    /// # Errors
    /// When there is any.
    pub fn or<T>(errors: Vec<FioError>, value: T) -> Result<T, JobFileErrors> {
        let mut known: Vec<FioError> = Vec::new();
        for error in errors {
            if !known.contains(&error) {
                known.push(error);
            }
        }
        match known.is_empty() {
            true => Ok(value),
            false => Err(JobFileErrors(known)),
        }
    }

    /// Appends other errors.
    pub(crate) fn and(mut self, others: JobFileErrors) -> JobFileErrors {
        self.0.extend(others.0);
        self
    }

    /// All errors.
    pub fn all(&self) -> &[FioError] {
        &self.0
    }
}

impl fmt::Display for JobFileErrors {
    /// One error in each line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { "\n" };
            write!(f, "{between}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for JobFileErrors {}
