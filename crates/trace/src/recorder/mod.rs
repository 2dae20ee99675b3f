//! `trace record`.

mod capture;
mod dataset;
mod rate;
mod target;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use linux::block::Devices;
use linux::tracefs::{cpu_time, now};
use record::{Bytes, Nanos};
use serde::Serialize;

use crate::args::RecordArgs;
use crate::file::{Tick, TraceWriter};
use crate::io::{Device, Header};
use crate::tracepoints::{BufferBounds, BufferSize};
use capture::{Capture, RecordingNames};
use dataset::Dataset;
use rate::RequestRate;
use target::Target;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output::{OutputFile, OutputFormat};

/// Interval at which the kernel's buffers are read.
const INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time for which I/Os stay in memory before their block is written.
const MAX_BLOCK_TIME: Nanos = Nanos::from_secs(10);

/// Reason why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum RecordingEnd {
    /// A signal.
    Signal,
    /// `--for` was over.
    Time,
    /// `--max-size` was reached.
    Size,
    /// The file system of the trace is full.
    DiskFull,
}

/// The document of `trace record --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document {
    /// Path of the trace.
    file: String,
    /// Names of the devices that were recorded.
    devices: Vec<String>,
    /// Duration of the recording, in seconds.
    seconds: f64,
    /// Number of I/Os that were recorded.
    ios: u64,
    /// Size of the trace in bytes.
    bytes: u64,
    /// Number of events that were lost.
    lost_events: u64,
    /// Number of completions that fitted more than one request, or none.
    ambiguous_pairs: u64,
    /// Size of the kernel's buffer for events of each processor, in bytes.
    buffer_bytes_per_processor: u64,
    /// Processor time of the recorder, in seconds.
    cpu_seconds: f64,
    /// Event that ended the recording.
    ended_by: RecordingEnd,
}

/// Records the I/O of devices until a signal, or a limit.
pub(crate) fn record(args: &RecordArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let devices = Devices::read(&context.root).refused()?;
    let targets = target::find(&context.root, &devices, &args.devices)?;
    let output = OutputFile::check(&args.output, OutputFormat::Trace, args.force)?;
    target::is_elsewhere(&context.root, &devices, &targets, &args.output)?;
    let mut rate = RequestRate::start(&context.root, &targets);
    // Files are mapped before tracing starts, since nothing reads the event buffers meanwhile.
    let dataset = args.dataset.as_deref();
    let dataset = dataset.map(|folder| Dataset::start(&context.root, &devices, &targets, folder));
    let dataset = dataset.transpose()?;
    let buffer = match args.buffer {
        Some(size) => BufferSize::Exactly(size.0),
        None => BufferSize::ForRate(rate.measure()),
    };
    let mut capture = Capture::start(&context.root, &targets, args, buffer).refused()?;
    let header = Header {
        format: "disksmith",
        started: Some(Timestamp::now()),
        devices: targets.iter().map(Target::described).collect(),
        has_completions: true,
        has_flushes: true,
    };
    // Once the header is in the file, every further I/O is recorded.
    capture.begin();
    let writer = begin(&output, &header)?;
    if context.watched {
        let names: Vec<&str> = header
            .devices
            .iter()
            .map(|device| device.name.as_str())
            .collect();
        context.notice(&format!(
            "recording {}; end it with Ctrl-C",
            names.join(", ")
        ));
    }
    let mut recording = Recording {
        capture,
        rate,
        writer,
        dataset,
        described: RecordingNames::new(header.devices),
        begun: now(),
        closed: now(),
    };
    let ended = recording.run(args, interrupt);
    let ended = ended.map_err(|error| Failure::Midway(unwritten(&args.output, error)))?;
    let (highest, bounds) = (recording.rate.highest(), recording.capture.bounds());
    let document = recording.finish(args, ended)?;
    context.print(&match args.json {
        true => ui::json::document("trace record", &document),
        false => ui::table::wrap(&text(&document, highest, bounds), context.columns, "  "),
    })?;
    Ok(CommandEnd::Done)
}

/// Begins the trace under another name, so that an existing file is replaced only if there is space for the new one.
fn begin(output: &OutputFile, header: &Header) -> Result<TraceWriter, Failure> {
    let begun = output.begin().and_then(|new| {
        let writer = TraceWriter::new(new.file.try_clone()?, header, Tick::RECORDED)?;
        output.put(new)?;
        Ok(writer)
    });
    begun
        .with_context(|| format!("the trace {} could not be written", output.path().display()))
        .refused()
}

fn unwritten(path: &Path, error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!(
        "the trace {} could not be written any further; it is readable up to its last block",
        path.display()
    ))
}

/// True if a file system is full, or its user's quota is used up.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// A running recording.
struct Recording {
    capture: Capture,
    rate: RequestRate,
    writer: TraceWriter,
    dataset: Option<Dataset>,
    described: RecordingNames,
    begun: Nanos,
    /// Time at which a block was last written early.
    closed: Nanos,
}

impl Recording {
    fn run(&mut self, args: &RecordArgs, interrupt: &AtomicBool) -> io::Result<RecordingEnd> {
        let longest = args.duration.map(|time| time.0);
        loop {
            self.rate.poll();
            let ended = if interrupt.load(Ordering::Relaxed) {
                Some(RecordingEnd::Signal)
            } else if longest.is_some_and(|longest| now() - self.begun >= longest) {
                Some(RecordingEnd::Time)
            } else if args
                .max_size
                .is_some_and(|most| self.writer.length() >= most.0)
            {
                Some(RecordingEnd::Size)
            } else {
                None
            };
            let taken = match ended {
                Some(_) => self.capture.end().and_then(|()| self.take()),
                None => self.capture.poll().and_then(|()| self.take()),
            };
            match (taken, ended) {
                (Err(error), _) if is_full(&error) => return Ok(RecordingEnd::DiskFull),
                (Err(error), _) => return Err(error),
                (Ok(()), Some(ended)) => return Ok(ended),
                (Ok(()), None) => sleep(INTERVAL),
            }
        }
    }

    /// Writes the complete requests.
    fn take(&mut self) -> io::Result<()> {
        self.writer.set_caveats(self.capture.caveats());
        while let Some(mut io) = self.capture.pop() {
            if let Some(dataset) = &mut self.dataset
                && let Some(name) = dataset.file_of(&io)
            {
                io.file = Some(self.described.file(&name));
            }
            self.writer
                .write(&io, &self.described.with(&self.capture))?;
        }
        if now() - self.closed >= MAX_BLOCK_TIME {
            self.closed = now();
            self.writer.close_block()?;
        }
        Ok(())
    }

    fn finish(mut self, args: &RecordArgs, ended: RecordingEnd) -> Result<Document, Failure> {
        let caveats = self.capture.caveats();
        let seconds = (now() - self.begun).as_secs_f64();
        let buffer = self.capture.buffer();
        let unwritten = |error| Failure::Midway(unwritten(&args.output, error));
        let ended = match self.writer.close_block() {
            // The end block has preallocated space, a block of I/Os does not.
            Err(error) if is_full(&error) => RecordingEnd::DiskFull,
            closed => closed.map(|()| ended).map_err(unwritten)?,
        };
        let ios = self.writer.finish().map_err(unwritten)?;
        let devices = self.described.devices.iter();
        Ok(Document {
            file: args.output.display().to_string(),
            devices: devices.map(|device: &Device| device.name.clone()).collect(),
            seconds,
            ios,
            bytes: fs::metadata(&args.output).map_or(0, |metadata| metadata.len()),
            lost_events: caveats.lost,
            ambiguous_pairs: caveats.ambiguous,
            buffer_bytes_per_processor: buffer.0,
            cpu_seconds: cpu_time().as_secs_f64(),
            ended_by: ended,
        })
    }
}

fn text(document: &Document, highest_rate: f64, bounds: BufferBounds) -> String {
    let per_io = match document.ios {
        0 => String::new(),
        ios => format!(" ({:.1} bytes an I/O)", document.bytes as f64 / ios as f64),
    };
    let why = match document.ended_by {
        RecordingEnd::Signal | RecordingEnd::Time => "",
        RecordingEnd::Size => "; --max-size was reached",
        RecordingEnd::DiskFull => "; the disk of the trace is full, and the trace ends there",
    };
    let mut out = format!(
        "{}: {} of {} in {}, {}{per_io}, {:.2} s of processor time{why}\n",
        document.file,
        ui::format::count(document.ios as usize, "I/O"),
        document.devices.join(", "),
        ui::format::seconds(document.seconds),
        Bytes(document.bytes),
        document.cpu_seconds,
    );
    if document.lost_events > 0 {
        let buffer = Bytes(document.buffer_bytes_per_processor);
        let lost = ui::format::count(document.lost_events as usize, "event");
        out.push_str(&match bounds.larger(highest_rate, buffer) {
            Some(option) => format!("lost {lost}: record again with {option}"),
            None => format!(
                "lost {lost}, and buffers of more than {buffer} a processor would take too much of the memory: record \
                 fewer devices at once, or write the trace to a disk that answers sooner"
            ),
        });
        // Devices without counters have no rate; neither has a recording of less than a second with --buffer.
        if highest_rate > 0.0 {
            let rate = ui::format::number(highest_rate);
            out.push_str(&format!("; the highest rate was {rate} requests a second"));
        }
        out.push('\n');
    }
    out
}
