//! Opens a trace of any format.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use linux::{exec, remedy};

use crate::decode::{Decode, DecodedTrace, Sink, TimeOrigin};
use crate::file;
use crate::foreign::blkparse::{self, Blkparse};
use crate::foreign::blkreplay::{self, Blkreplay};
use crate::foreign::blktrace::{self, Blktrace};
use crate::foreign::csv::{self, Csv, CsvLines};
use crate::foreign::fio::{self, Iolog, Version};
use crate::foreign::hfplayer::{self, Hfplayer};
use crate::input::{self, Input};
use crate::io::{ReadError, TraceReader};
use crate::text::{LineFormat, TextDecoder};

/// Number of bytes by which a format is recognized: some files begin with notices of this size.
const RECOGNITION_BYTES: usize = 64 << 10;

/// Opens a trace; its format is recognized by its content. A file compressed with gzip or zstd is decompressed while it
/// is read. For blktrace's files, one per processor, it is enough to name one, such as `sda.blktrace.0`.
///
/// # Errors
/// When the file cannot be read, or its format is unknown.
pub fn open(path: &Path) -> Result<Box<dyn TraceReader>, ReadError> {
    let input = input::open(path).map_err(failed(path))?;
    let mut others = Vec::new();
    for other in blktrace::of_all_processors(path) {
        if other != path {
            others.push((input::open(&other).map_err(failed(&other))?, other));
        }
    }
    read(input, path, others)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ReadError {
    move |error| {
        let path = path.to_path_buf();
        let output = match error.kind() {
            io::ErrorKind::IsADirectory => path.join("trace.dst"),
            _ => path.clone(),
        };
        let words = ["trace", "record", "DEVICE", "--output"].map(OsString::from);
        let words = [&words[..], &[output.into()]].concat();
        let record = exec::line("disksmith".as_ref(), &words);
        let reason = remedy::file(&error, &format!("a trace is recorded by: {record}"));
        ReadError::Unopened { path, reason }
    }
}

/// Reads a trace from any input; `path` is its name in errors, and `others` are blktrace's files of the other
/// processors.
fn read(
    input: Input,
    path: &Path,
    others: Vec<(Input, std::path::PathBuf)>,
) -> Result<Box<dyn TraceReader>, ReadError> {
    let (start, input) = input::peek(input, RECOGNITION_BYTES).map_err(failed(path))?;
    if start.is_empty() {
        return Err(ReadError::Empty {
            path: path.to_path_buf(),
        });
    }
    let input: Input = Box::new(input);
    if file::matches(&start) {
        return Ok(Box::new(file::FileReader::open(input, path)?));
    }
    let sink = |name, zero: TimeOrigin| Sink::new(path, name, zero);
    if blktrace::matches(&start) {
        let mut inputs = others;
        inputs.insert(0, (input, path.to_path_buf()));
        let sink = sink(blktrace::NAME, blktrace::ZERO).with_flushes();
        return decoded(Blktrace::new(inputs), sink);
    }
    let text = String::from_utf8_lossy(&start);
    if let Some(version) = Version::of(&text) {
        let sink = sink(version.name(), fio::ZERO).with_flushes();
        return lines(Iolog::new(version), input, sink, path);
    }
    if blkparse::matches(&text) {
        let sink = sink(blkparse::NAME, blkparse::ZERO).with_flushes();
        return lines(Blkparse::default(), input, sink, path);
    }
    if let Some(csv) = Csv::of(&text) {
        return lines(CsvLines::new(csv), input, sink(csv.name(), csv::ZERO), path);
    }
    if hfplayer::matches(&text) {
        let sink = sink(hfplayer::NAME, hfplayer::ZERO);
        return lines(Hfplayer::default(), input, sink, path);
    }
    if blkreplay::matches(&text) {
        let sink = sink(blkreplay::NAME, blkreplay::ZERO);
        return lines(Blkreplay::default(), input, sink, path);
    }
    Err(ReadError::Unknown {
        path: path.to_path_buf(),
    })
}

fn lines<F: LineFormat + 'static>(
    format: F,
    input: Input,
    sink: Sink,
    path: &Path,
) -> Result<Box<dyn TraceReader>, ReadError> {
    decoded(TextDecoder::new(format, input, path), sink)
}

fn decoded<D: Decode + 'static>(decoder: D, sink: Sink) -> Result<Box<dyn TraceReader>, ReadError> {
    Ok(Box::new(DecodedTrace::open(decoder, sink)?))
}
