//! A log of all requests that reach the volumes, to compare recordings with.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use record::Nanos;

use crate::model::{Request, RequestKind};

/// A log, a line a request in the order of their arrival: seconds, serial number, operation, offset, length, and `fua`
/// behind a write with forced unit access.
#[derive(Debug)]
pub(crate) struct RequestLog {
    state: Mutex<(BufWriter<File>, Option<io::Error>)>,
}

impl RequestLog {
    /// A log in a new file.
    ///
    /// # Errors
    /// When the file exists, or cannot be created.
    pub(crate) fn create(path: &Path) -> io::Result<RequestLog> {
        let writer = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
        Ok(RequestLog {
            state: Mutex::new((writer, None)),
        })
    }

    /// Adds a request. After an error nothing more is added.
    pub(super) fn note(&self, at: Nanos, serial: &str, request: &Request, fua: bool) {
        let operation = match request.kind {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Flush => "flush",
            RequestKind::Zero => "zero",
            RequestKind::Trim => "trim",
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (writer, failed) = &mut *state;
        if failed.is_none() {
            let written = writeln!(
                writer,
                "{:.9} {serial} {operation} {} {}{}",
                at.as_secs_f64(),
                request.offset,
                request.length,
                if fua { " fua" } else { "" },
            );
            *failed = written.err();
        }
    }

    /// Writes the buffered rest.
    ///
    /// # Errors
    /// The first error since the creation of the log.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.1.take() {
            Some(error) => Err(error),
            None => state.0.flush(),
        }
    }
}
