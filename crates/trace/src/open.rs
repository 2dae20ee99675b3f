//! Opening a trace of any format.

use std::io;
use std::path::Path;

use crate::decode::{Decoded, Sink, Zero};
use crate::file;
use crate::foreign::blkreplay;
use crate::input::{self, Input};
use crate::io::{ReadError, TraceReader};
use crate::text::{LineFormat, TextDecoder};

/// Bytes by which a format is told: the notices in front of some are of this size.
const START: usize = 64 << 10;

/// Opens a trace; its format is told by its content. Packed by gzip or zstd it is unpacked as it is read.
///
/// # Errors
/// When it cannot be read, or is of no format that is known.
pub fn open(path: &Path) -> Result<Box<dyn TraceReader>, ReadError> {
    let input = input::open(path).map_err(failed(path))?;
    read(input, path)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ReadError {
    move |source| ReadError::Io {
        path: path.to_path_buf(),
        source,
    }
}

/// Reads a trace from any input; `path` is its name in errors.
fn read(input: Input, path: &Path) -> Result<Box<dyn TraceReader>, ReadError> {
    let (start, input) = input::peek(input, START).map_err(failed(path))?;
    let input: Input = Box::new(input);
    if file::matches(&start) {
        return Ok(Box::new(file::FileReader::open(input, path)?));
    }
    let text = String::from_utf8_lossy(&start);
    if blkreplay::matches(&text) {
        let format = blkreplay::Blkreplay::default();
        return lines(format, blkreplay::NAME, blkreplay::ZERO, input, path);
    }
    Err(ReadError::Unknown {
        path: path.to_path_buf(),
    })
}

fn lines<F: LineFormat + 'static>(
    format: F,
    name: &'static str,
    zero: Zero,
    input: Input,
    path: &Path,
) -> Result<Box<dyn TraceReader>, ReadError> {
    let decoder = TextDecoder::new(format, input, path);
    let sink = Sink::new(path, name, zero);
    Ok(Box::new(Decoded::open(decoder, sink)?))
}
