//! The verb `watch`: what the disks are doing, and what that means.

pub mod args;
pub mod args_log;
pub mod args_record;
mod check;
mod collect;
mod filter;
mod html;
mod live;
pub mod mark;
mod marks;
mod parse;
mod record;
pub(crate) mod replay;
mod report;
pub(crate) mod screen;
mod serve;
mod views;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use ::record::sample::{Sample, Source};
use study::watch::{Change, Settings, Watch};

use crate::args::WatchArgs;
use crate::views::{json, plain};
use collect::Collector;
use filter::Filter;
use live::Ticks;
use marks::LateMarks;
use record::Recorder;
use report::Report;
use screen::Screen;
use serve::Server;
use ui::context::{Context, notice};
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};
use ui::output::{Format, OutputFile};
use ui::signals;

pub use check::misused as misused_check;

/// True if the screen is drawn: not for lines, a check, metrics, nor a table or page of a recording, and only
/// on a terminal.
pub fn takes_the_terminal(args: &WatchArgs) -> bool {
    let is_said = args.plain || args.json || args.check || args.prometheus.is_some();
    let is_drawn = args.record.at.is_some() && (args.record.table || args.record.report.is_some());
    !is_said && !is_drawn && args.log.parse.is_none() && ui::screen::is_possible()
}

/// Watches until it is interrupted, or has seen enough.
pub fn watch(args: &WatchArgs, context: &mut Context, interrupt: &Arc<AtomicBool>) -> Outcome {
    if args.check {
        return check::check(args, context, interrupt);
    }
    let (page, force) = (args.record.report.as_ref(), args.record.force);
    let page = OutputFile::check_if_any(page, Format::Page, force)?;
    if let Some(path) = &args.log.parse {
        if let Some(page) = &page {
            page.is_not(path)?;
        }
        return parse::parse(path, args, page, context, interrupt);
    }
    if let Some(at) = args.record.at {
        return replay::replay(at, args, page, context, interrupt);
    }
    // On the screen, what does nothing can be chosen to be seen at any time.
    let all = args.all || takes_the_terminal(args);
    let filter = Filter::new(&args.devices, all, &context.root)?;
    // A graph that left out what does nothing would have gaps where there was only rest.
    let of_report = Filter::new(&args.devices, true, &context.root)?;
    let collector = Collector::new(&context.root, args.interval.0.into()).refused()?;
    let source = collector.source();
    // Before the terminal is taken: what it has to say should be found there afterwards. So it is also
    // dropped after that, whatever ends the watch.
    let mut recorder = Recorder::start(&args.record, &source, context)?;
    let said = recorder.as_mut().map(Recorder::take_notes);
    let said = said.unwrap_or_default();
    said.iter().for_each(|sentence| context.notice(sentence));
    let mut view = View::live(args, &source, interrupt)?;
    let server = args
        .prometheus
        .map(|address| Server::start(address.0, &context.root))
        .transpose()?;
    view.begin(&source, context)?;
    if let View::Live(screen) = &view {
        said.iter().for_each(|sentence| screen.note(sentence));
    }
    let marks = match (&view, &recorder) {
        (View::Live(_), None) => LateMarks::begin(source.hostname.as_deref(), context),
        // The recorder has the ledger open.
        _ => None,
    };
    let mut live = Live {
        collector,
        watch: Watch::new(Settings {
            stall: args.stall.0,
            names: filter.names().to_vec(),
        }),
        filter,
        of_report,
        recorder: recorder.as_mut(),
        marks,
        server,
        report: page.map(|page| Report::begin(page, source)),
    };
    let seen = live.run(args, &mut view, context, interrupt);
    let report = live.report.take();
    drop(live);
    // The terminal is a person's again before anything is said.
    let ended = view.end();
    drop(recorder);
    // What was seen is drawn also where the watch has failed.
    let drawn = match report {
        Some(report) if !matches!(seen, Err(Failure::Refused(_))) => report.end(context),
        _ => Ok(()),
    };
    seen.and(ended).and_then(|answer| drawn.map(|()| answer))
}

/// Consumers of each present sample.
struct Live<'a> {
    collector: Collector,
    watch: Watch,
    filter: Filter,
    of_report: Filter,
    recorder: Option<&'a mut Recorder>,
    /// The marks that the screen shows, where nothing is recorded.
    marks: Option<LateMarks>,
    server: Option<Server>,
    report: Option<Report>,
}

impl Live<'_> {
    /// Watches until it is interrupted, or has seen enough.
    fn run(
        &mut self,
        args: &WatchArgs,
        view: &mut View,
        context: &mut Context,
        interrupt: &AtomicBool,
    ) -> Outcome {
        self.collector.sample().refused()?;
        let mut seen = 0;
        let mut ticks = Ticks::every(args.interval.0.into());
        let end = args.record.span.map(|span| Instant::now() + span.0.into());
        let is_over = |seen: u64| {
            args.count.is_some_and(|count| seen >= count)
                || end.is_some_and(|end| Instant::now() >= end)
        };
        while !is_over(seen) && ticks.wait(interrupt) {
            let sample = self.collector.sample().midway()?;
            let mut notes = self.collector.take_notes();
            if let Some(recorder) = &mut self.recorder {
                notes.extend(recorder.take_notes());
            }
            for note in notes {
                view.note(&note, context)?;
            }
            if let View::Live(screen) = &mut *view {
                self.tell_ledger(screen);
            }
            if let Some(sample) = sample {
                seen += 1;
                self.take(sample, view, context)?;
            }
        }
        Ok(Answer::Done)
    }

    /// Tells the screen what the ledger has for it.
    fn tell_ledger(&self, screen: &mut Screen) {
        if let Some(recorder) = &self.recorder {
            screen.tell_recording(recorder.is_writing());
            screen.mark(recorder.marks());
        }
        if let Some(marks) = &self.marks {
            screen.mark(marks.marks());
        }
    }

    fn take(
        &mut self,
        mut sample: Sample,
        view: &mut View,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let mut changes = self.watch.see(&sample);
        if let Some(recorder) = &mut self.recorder {
            recorder.see(&sample, &changes);
        }
        if let Some(server) = &self.server {
            server.tell(&sample, self.watch.open(), &changes);
        }
        changes.retain(|change| self.filter.wants_change(change, &sample));
        if let Some(report) = &mut self.report {
            let mut drawn = sample.clone();
            self.of_report.cut(&mut drawn);
            report.take(drawn, &changes);
        }
        let idle = self.filter.cut(&mut sample);
        view.show(&sample, &changes, idle, context)
    }
}

/// Form of samples and events.
enum View {
    Plain(plain::Lines),
    Json,
    /// On the screen of a terminal.
    Live(Screen),
    /// Others ask for it.
    Silent,
}

impl View {
    fn of(args: &WatchArgs) -> View {
        if args.json {
            View::Json
        } else if args.prometheus.is_some() && !args.plain {
            View::Silent
        } else {
            View::Plain(plain::Lines::default())
        }
    }

    /// Watches the host, on the screen where there is a terminal for it.
    fn live(
        args: &WatchArgs,
        source: &Source,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<View, Failure> {
        if !takes_the_terminal(args) {
            return Ok(View::of(args));
        }
        // Who names a device wants to see it, whatever it does.
        let all = args.all || !args.devices.is_empty();
        match Screen::start(source.clone(), all, interrupt) {
            Ok(screen) => Ok(View::Live(screen)),
            // Lines need no keys.
            Err(error) => {
                signals::second_ends_at_once(interrupt).refused()?;
                notice(&format!(
                    "The screen is not drawn ({error}); these are plain lines."
                ));
                Ok(View::of(args))
            }
        }
    }

    /// Gives the terminal back.
    fn end(self) -> Outcome {
        match &self {
            View::Live(screen) if screen.has_failed() => Err(Failure::Midway(anyhow::anyhow!(
                "the screen failed, which is a fault of disksmith; --plain prints lines instead"
            ))),
            View::Live(screen) => match screen.error() {
                Some(error) => Err(Failure::Midway(anyhow::anyhow!(
                    "the terminal could not be used any longer: {error}; --plain prints lines instead"
                ))),
                None => Ok(Answer::Done),
            },
            _ => Ok(Answer::Done),
        }
    }

    fn begin(&mut self, source: &Source, context: &mut Context) -> Result<(), Failure> {
        match self {
            View::Plain(_) | View::Live(_) | View::Silent => Ok(()),
            View::Json => context.print(&json::start(source)),
        }
    }

    /// Something that cannot be seen, and why.
    fn note(&mut self, note: &str, context: &mut Context) -> Result<(), Failure> {
        match self {
            View::Plain(_) | View::Silent => {
                notice(note);
                Ok(())
            }
            View::Live(screen) => {
                screen.note(note);
                Ok(())
            }
            View::Json => context.print(&json::note(note)),
        }
    }

    /// Events that are over at the end of a log.
    fn close(&mut self, changes: &[Change], context: &mut Context) -> Result<(), Failure> {
        let text = match self {
            View::Plain(lines) => lines.text(&Sample::default(), changes),
            View::Json => json::changes(changes),
            View::Live(_) | View::Silent => return Ok(()),
        };
        context.print(&text)
    }

    /// A sample, from which so many devices are left out because they do nothing, and what became of events in
    /// it. Plain lines say where nothing is shown for that, which looks like a program that hangs.
    fn show(
        &mut self,
        sample: &Sample,
        changes: &[Change],
        idle: usize,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let text = match self {
            View::Plain(lines) => {
                let mut text = lines.text(sample, changes);
                text.extend(lines.rest(sample, idle));
                text
            }
            View::Json => json::lines(sample, changes),
            View::Live(screen) => {
                screen.show(sample, changes);
                return Ok(());
            }
            View::Silent => return Ok(()),
        };
        context.print(&text)
    }
}
