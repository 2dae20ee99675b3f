//! Old logs: what iostat wrote is shown, and searched for findings, as what happens now.

mod arrays;
mod progress;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context as _;
use formats::iostat::Reader;
use record::sample::{Sample, Source};
use study::watch::{Change, Settings, Watch};

use crate::cli::WatchArgs;
use crate::context::{Context, printable};
use crate::failure::{Answer, Failure, Outcome, Standing as _};

use arrays::Arrays;
use progress::Progress;

use super::View;
use super::filter::Filter;
use super::report::Report;

/// How much of a log is read at a time.
const CHUNK: usize = 1 << 20;

/// Reads a log to its end, or until it is interrupted.
pub(super) fn parse(
    path: &Path,
    args: &WatchArgs,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let arrays = args.log.arrays().map_err(Failure::refused)?;
    let log = Log::open(path)?;
    let page = args.record.report.as_ref();
    let is_silent = page.is_some() && !args.plain && !args.json;
    // On one terminal with the lines, a bar would be torn by them, and they show how far it is.
    let watched = context.watched && (is_silent || !context.answers_a_person);
    let progress = Progress::new(log.bytes, watched);
    let input = Heeding {
        input: log.input,
        progress: &progress,
        interrupt,
    };
    let report = page.map(|page| Report::begin(page, Source::default()));
    let mut parsing = Parsing {
        path,
        reader: Reader::new(input, args.log.options()),
        arrays: Arrays::new(arrays),
        filter: LogFilter::new(args),
        watch: Watch::new(Settings {
            stall: args.stall.0,
        }),
        view: match is_silent {
            true => View::Silent,
            false => View::of(args),
        },
        report,
        seen: 0,
    };
    let read = parsing.read(args.count, interrupt, context);
    progress.end();
    let read = read.and_then(|()| parsing.end(context));
    // What was read is drawn also where the rest could not be.
    let drawn = match parsing.report.take() {
        Some(mut report) if !matches!(read, Err(Failure::Refused(_))) => {
            report.of(parsing.reader.source().clone());
            report.end(context)
        }
        _ => Ok(()),
    };
    read.and(drawn).map(|()| Answer::Done)
}

/// A log that is being read.
struct Parsing<'a, R: BufRead> {
    path: &'a Path,
    reader: Reader<R>,
    arrays: Arrays,
    filter: LogFilter,
    watch: Watch,
    view: View,
    report: Option<Report>,
    /// How many samples were seen.
    seen: u64,
}

impl<R: BufRead> Parsing<'_, R> {
    /// Shows the samples, until there are no more, or so many were seen.
    fn read(
        &mut self,
        count: Option<u64>,
        interrupt: &AtomicBool,
        context: &mut Context,
    ) -> Result<(), Failure> {
        while let Some(reading) = self.reader.next() {
            let reading = match reading {
                // Nothing was found in what was read until then, which is no wonder.
                Err(_) if interrupt.load(Relaxed) => break,
                reading => reading.map_err(|error| broken(self.path, error, self.seen))?,
            };
            if reading.since_boot {
                continue;
            }
            if self.seen == 0 {
                self.view.begin(self.reader.source(), context)?;
            }
            self.seen += 1;
            let mut sample = reading.sample;
            self.arrays.lay(&mut sample);
            let found = self.watch.see(&sample);
            let changes = self.filter.cut(&mut sample, found);
            if let Some(report) = &mut self.report {
                report.take(sample.clone(), &changes);
            }
            self.view.show(&sample, &changes, context)?;
            if interrupt.load(Relaxed) || count.is_some_and(|count| self.seen >= count) {
                break;
            }
        }
        Ok(())
    }

    /// Shows what is over at the end, and says what could not be read.
    fn end(&mut self, context: &mut Context) -> Result<(), Failure> {
        if self.seen == 0 {
            self.view.begin(self.reader.source(), context)?;
        }
        let changes = self.filter.cut(&mut Sample::default(), self.watch.finish());
        if let Some(report) = &mut self.report {
            report.close(&changes);
        }
        self.view.close(&changes, context)?;
        for note in self.reader.notes().sentences() {
            if let Some(report) = &mut self.report {
                report.note(&note);
            }
            self.view.note(&note, context)?;
        }
        for name in self.filter.missing() {
            let note = format!("{} does not speak of {name}.", place(self.path));
            self.view.note(&note, context)?;
        }
        Ok(())
    }
}

/// Why a log is not read further: nothing was shown of it yet, or some was.
fn broken(path: &Path, error: formats::iostat::LogError, seen: u64) -> Failure {
    let error = anyhow::Error::new(error);
    let error = error.context(format!("{} is not read as a log of iostat", place(path)));
    match seen {
        0 => Failure::Refused(error),
        _ => Failure::Midway(error),
    }
}

/// The log in words.
fn place(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    printable(&path.display().to_string()).into_owned()
}

/// A log, and how long it is.
struct Log {
    input: Box<dyn BufRead>,
    /// `None` where it comes through a pipe.
    bytes: Option<u64>,
}

impl Log {
    fn open(path: &Path) -> Result<Log, Failure> {
        if path == Path::new("-") {
            return Ok(Log {
                input: Box::new(BufReader::with_capacity(CHUNK, Standard(io::stdin()))),
                bytes: None,
            });
        }
        let open = || -> io::Result<(File, std::fs::Metadata)> {
            let file = File::open(path)?;
            let facts = file.metadata()?;
            Ok((file, facts))
        };
        let (file, facts) = open()
            .with_context(|| format!("{} cannot be read", path.display()))
            .refused()?;
        if facts.is_dir() {
            return Err(Failure::refused(format!(
                "{} is a directory; name a file that iostat wrote",
                path.display()
            )));
        }
        Ok(Log {
            input: Box::new(BufReader::with_capacity(CHUNK, file)),
            bytes: facts.is_file().then_some(facts.len()),
        })
    }
}

/// Standard input, which another thread could read too.
struct Standard(io::Stdin);

impl Read for Standard {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().read(buffer)
    }
}

/// A log that seems to end when somebody wants to: gigabytes without a report are read between two
/// of them.
struct Heeding<'a> {
    input: Box<dyn BufRead>,
    progress: &'a Progress,
    interrupt: &'a AtomicBool,
}

impl Read for Heeding<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Heeding<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.interrupt.load(Relaxed) {
            return Ok(&[]);
        }
        self.input.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        self.progress.add(length);
        self.input.consume(length);
    }
}

/// Which devices are shown, and which of those that were named the log has.
struct LogFilter {
    filter: Filter,
    missing: Vec<String>,
}

impl LogFilter {
    fn new(args: &WatchArgs) -> LogFilter {
        // A graph that left out what does nothing would have gaps where there was only rest.
        let all = args.all || args.record.report.is_some();
        let filter = Filter::of_words(&args.devices, all);
        let members = args.log.arrays.iter();
        let members = members.flat_map(|array| array.members.iter().cloned());
        LogFilter {
            missing: filter.names().iter().cloned().chain(members).collect(),
            filter,
        }
    }

    /// Leaves what is wanted in a sample, and in what was found in it.
    fn cut(&mut self, sample: &mut Sample, mut changes: Vec<Change>) -> Vec<Change> {
        self.missing.retain(|name| sample.named(name).is_none());
        changes.retain(|change| self.filter.wants_change(change, sample));
        self.filter.cut(sample);
        changes
    }

    /// The names that the log has not shown.
    fn missing(&self) -> &[String] {
        &self.missing
    }
}
