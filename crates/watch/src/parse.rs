//! Logs: samples that iostat, sar, vmstat or node_exporter recorded are shown and searched for findings like live ones.

mod arrays;
mod log;
mod progress;

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use formats::disk_log::{LogError, Reader};
use formats::text::Utf8;
use record::sample::{Sample, SampleSource};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::time::Timespec;
use study::watch::{EventChange, Settings, Watch};

use crate::args::WatchArgs;
use ui::context::Context;
use ui::exit::{CommandEnd, Failure, Outcome};
use ui::output::OutputFile;

use arrays::Arrays;
use log::{Log, Origin, place};
use progress::Progress;

use super::filter::Filter;
use super::report::ReportPage;
use super::view::OutputForm;

/// Bytes of a log that are read at a time.
const CHUNK: usize = 1 << 20;
/// Interval at which signals and the rate of reading are polled while no data arrive.
const POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Reads a log to its end, or until it is interrupted.
pub(super) fn parse(
    path: &Path,
    args: &WatchArgs,
    page: Option<OutputFile>,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let arrays = args.log.arrays().map_err(Failure::refused)?;
    let log = Log::open(path)?;
    let is_silent = page.is_some() && !args.plain && !args.json;
    let watched = context.watched && (is_silent || !is_answer_seen());
    let progress = Progress::new(log.bytes, watched);
    let input = InterruptibleReader {
        input: BufReader::with_capacity(
            CHUNK,
            Utf8::new(InterruptibleLog {
                source: log.source,
                progress: &progress,
                interrupt,
            }),
        ),
        interrupt,
    };
    let report = page.map(|page| ReportPage::begin(page, SampleSource::default()));
    let filter = LogFilter::new(args);
    let mut parsing = Parsing {
        path,
        is_binary: log.is_binary,
        reader: Reader::new(input, args.log.options()),
        arrays: Arrays::new(arrays),
        watch: Watch::new(Settings {
            stall: args.stall.0,
            names: filter.filter.names().to_vec(),
        }),
        filter,
        view: match is_silent {
            true => OutputForm::Silent,
            false => OutputForm::of(args),
        },
        report,
        seen: 0,
        devices: false,
        run: Run::default(),
    };
    let read = parsing.read(args.count, interrupt, context);
    progress.end();
    let read = read.and_then(|()| parsing.end(interrupt.load(Relaxed), context));
    // The page is written even if the rest of the log could not be read.
    let drawn = match parsing.report.take() {
        Some(mut report) if !matches!(read, Err(Failure::Refused(_))) => {
            report.of(parsing.reader.source().clone());
            report.end(context)
        }
        _ => Ok(()),
    };
    read.and(drawn).map(|()| CommandEnd::Done)
}

/// True if the output may appear on the terminal of the progress bar, directly or through a pipe: it would break the
/// bar, and shows the progress itself.
fn is_answer_seen() -> bool {
    let out = rustix::stdio::stdout();
    match fstat(out).map(|facts| FileType::from_raw_mode(facts.st_mode)) {
        Ok(FileType::RegularFile) => false,
        // Such as /dev/null.
        Ok(FileType::CharacterDevice) => rustix::termios::isatty(out),
        _ => true,
    }
}

/// A log that is being read.
struct Parsing<'a, R: BufRead> {
    path: &'a Path,
    /// True for a file of sar, which sadf reads.
    is_binary: bool,
    reader: Reader<R>,
    arrays: Arrays,
    filter: LogFilter,
    watch: Watch,
    view: OutputForm,
    report: Option<ReportPage>,
    /// Number of samples seen.
    seen: u64,
    /// True if any of the reports has a device.
    devices: bool,
    run: Run,
}

/// State of the current run of the tool that wrote the log.
#[derive(Default)]
struct Run {
    /// Number of the run.
    number: u64,
    /// The run's interval, as long as it is the only one.
    only: Option<Sample>,
}

impl<R: BufRead> Parsing<'_, R> {
    /// Reads and shows samples, until the end of the log or until `count` were seen.
    fn read(
        &mut self,
        count: Option<u64>,
        interrupt: &AtomicBool,
        context: &mut Context,
    ) -> Result<(), Failure> {
        while let Some(reading) = self.reader.next() {
            let reading = match reading {
                // The error follows from the interruption.
                Err(_) if interrupt.load(Relaxed) => break,
                reading => reading.map_err(|error| self.parse_failure(error))?,
            };
            self.devices |= !reading.sample.devices.is_empty();
            // Reports with CPU shares alone are not shown.
            if (reading.since_boot && !reading.alone) || !self.devices {
                continue;
            }
            if self.seen == 0 {
                self.view.begin(self.reader.source(), context)?;
            }
            self.seen += 1;
            let mut sample = reading.sample;
            self.arrays.add_arrays(&mut sample);
            let found = match reading.alone {
                true => self.watch.see_alone(&sample),
                false => self.observe(reading.run, &sample),
            };
            let (changes, idle) = self.filter.remove_others(&mut sample, found);
            if let Some(report) = &mut self.report {
                report.take(sample.clone(), &changes);
            }
            self.view.show(&sample, &changes, idle, context)?;
            if interrupt.load(Relaxed) || count.is_some_and(|count| self.seen >= count) {
                break;
            }
        }
        Ok(())
    }

    /// Failure of reading the log: refused where nothing was shown yet, otherwise midway.
    fn parse_failure(&self, error: LogError) -> Failure {
        let place = place(self.path);
        let error = anyhow::Error::new(error).context(match self.is_binary {
            false => format!("{place} is not read as a log of disks"),
            true => format!(
                "{place} is a binary file of sar; where it is of another version than the installed sadf, convert it \
                 with 'sadf -c {place} > NEW', or give what 'sadf -d FILE -- -d' prints on the host that wrote it"
            ),
        });
        match self.seen {
            0 => Failure::Refused(error),
            _ => Failure::Midway(error),
        }
    }

    /// Examines an interval of a run for findings. The rules for a single report apply where the run has no other.
    fn observe(&mut self, run: u64, sample: &Sample) -> Vec<EventChange> {
        // A report without devices, as at the end of a truncated log, is not a second interval.
        if self.run.number == run || sample.devices.is_empty() {
            self.run.only.take_if(|_| !sample.devices.is_empty());
            return self.watch.observe(sample);
        }
        let mut found = self.end_run();
        self.run = Run {
            number: run,
            only: Some(sample.clone()),
        };
        found.extend(self.watch.observe(sample));
        found
    }

    /// Events from the only interval of the last run.
    fn end_run(&mut self) -> Vec<EventChange> {
        let only = self.run.only.take();
        only.map(|sample| self.watch.see_alone(&sample))
            .unwrap_or_default()
    }

    /// Shows the findings that end with the log, and reports problems of reading it.
    fn end(&mut self, interrupted: bool, context: &mut Context) -> Result<(), Failure> {
        if !self.devices && !interrupted {
            return Err(Failure::refused(format!(
                "{} has reports and no device in any of them: as iostat -c prints them, or iostat of a \
                 device that is gone; use the output of iostat -xt 1",
                place(self.path)
            )));
        }
        if self.seen == 0 {
            self.view.begin(self.reader.source(), context)?;
        }
        let mut last = self.end_run();
        last.extend(self.watch.finish());
        let (changes, _) = self.filter.remove_others(&mut Sample::default(), last);
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
            let note = format!("{} has no device {name}.", place(self.path));
            self.view.note(&note, context)?;
        }
        Ok(())
    }
}

/// A log that is read only when data are available: a blocking read cannot be interrupted, since the kernel restarts it
/// after a signal.
struct InterruptibleLog<'a> {
    source: Box<dyn Origin>,
    progress: &'a Progress,
    interrupt: &'a AtomicBool,
}

impl Read for InterruptibleLog<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut fds = [PollFd::new(&self.source, PollFlags::IN)];
            match poll(&mut fds, Some(&POLL)) {
                Err(Errno::INTR) | Ok(0) if self.interrupt.load(Relaxed) => return Ok(0),
                Err(Errno::INTR) => {}
                Ok(0) => self.progress.wait(),
                // A source that cannot be polled is read directly.
                _ => {
                    let length = self.source.read(buffer)?;
                    self.progress.add(length);
                    return Ok(length);
                }
            }
        }
    }
}

/// A log that ends at a signal, since gigabytes may be read between two reports.
struct InterruptibleReader<'a> {
    input: BufReader<Utf8<InterruptibleLog<'a>>>,
    interrupt: &'a AtomicBool,
}

impl Read for InterruptibleReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for InterruptibleReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.interrupt.load(Relaxed) {
            return Ok(&[]);
        }
        self.input.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        self.input.consume(length);
    }
}

/// Filter of the devices that are shown, with the named devices that were not seen yet.
struct LogFilter {
    filter: Filter,
    missing: Vec<String>,
}

impl LogFilter {
    fn new(args: &WatchArgs) -> LogFilter {
        // A graph without idle devices would have gaps where they were idle.
        let all = args.all || args.record.report.is_some();
        let filter = Filter::of_arguments(&args.devices, all);
        let members = args.log.arrays.iter();
        let members = members.flat_map(|array| array.members.iter().cloned());
        LogFilter {
            missing: filter.names().iter().cloned().chain(members).collect(),
            filter,
        }
    }

    /// Removes the devices that are not selected, and their findings. Returns the remaining findings, and the number of
    /// devices that were removed because they are idle.
    fn remove_others(
        &mut self,
        sample: &mut Sample,
        mut changes: Vec<EventChange>,
    ) -> (Vec<EventChange>, usize) {
        self.missing.retain(|name| sample.named(name).is_none());
        changes.retain(|change| self.filter.wants_change(change, sample));
        let idle = self.filter.remove_others(sample);
        (changes, idle)
    }

    /// The named devices that the log has not shown.
    fn missing(&self) -> &[String] {
        &self.missing
    }
}
