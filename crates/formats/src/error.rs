//! Errors in reading a text and in writing a summary.

/// Reason why a text was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A document is damaged.
    #[error("line {line}: {what}")]
    Damaged {
        /// The line where the damage was found, from 1.
        line: usize,
        /// The error, as a clause.
        what: String,
    },
    /// The text holds no document of a known format.
    #[error(
        "it holds no known results: neither fio's JSON (--output-format=json), nor \
         what sysbench fileio prints, nor a line of Bonnie++'s CSV (1.96 or later)"
    )]
    Nothing,
}

impl ReadError {
    /// A document is damaged at `line`.
    pub(crate) fn at(line: usize, what: impl Into<String>) -> ReadError {
        ReadError::Damaged {
            line,
            what: what.into(),
        }
    }

    /// The error that there is no document.
    pub(crate) fn nothing() -> ReadError {
        ReadError::Nothing
    }
}

/// Reason why a summary was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The format has no place for any of the phases.
    #[error("{tool} has no test like any of these phases ({phases}), so nothing is written")]
    NoPlace {
        /// The tool whose format was requested.
        tool: &'static str,
        /// Names of the phases in the summary.
        phases: String,
    },
}

impl WriteError {
    /// `tool` has no place for any phase of `summary`.
    pub(crate) fn no_place(tool: &'static str, summary: &record::Summary) -> WriteError {
        let names: Vec<&str> = summary.phases.iter().map(|p| p.name.as_str()).collect();
        WriteError::NoPlace {
            tool,
            phases: names.join(", "),
        }
    }
}
