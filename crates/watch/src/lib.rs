//! The verb `watch`: the activity of the disks, and findings about it.

pub mod args;
pub mod args_log;
pub mod args_record;
mod capabilities;
mod check;
mod collect;
mod filter;
mod follow;
mod html;
mod live;
mod log_array;
pub mod mark;
mod marks;
mod parse;
mod prepared;
mod record;
pub(crate) mod replay;
mod report;
pub(crate) mod screen;
mod serve;
mod thresholds;
pub mod tls;
mod view;
mod views;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use ::record::sample::Sample;
use study::watch::{Settings, Watch};

use crate::args::WatchArgs;
use collect::Collector;
use filter::Filter;
use live::Ticks;
use marks::LateMarks;
use prepared::{PreparedWatch, page};
use record::Recorder;
use report::ReportPage;
use screen::Screen;
use serve::Server;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::service_manager::notify;
use view::OutputForm;

pub use check::misused as misused_check;
pub use follow::follow;
pub use view::takes_the_terminal;

/// Checks the arguments, without sampling or serving.
///
/// # Errors
/// Those of a start with these arguments.
pub fn validate(args: &WatchArgs, context: &Context) -> Result<(), Failure> {
    if args.check {
        return check::validate(args);
    }
    if args.log.parse.is_none() && args.record.at.is_none() {
        return PreparedWatch::of(args, context).map(drop);
    }
    args.log.arrays().map_err(Failure::refused)?;
    page(args).map(drop)
}

/// Watches until it is interrupted, or the requested time is over.
pub fn watch(args: &WatchArgs, context: &mut Context, interrupt: &Arc<AtomicBool>) -> Outcome {
    if args.check {
        return check::check(args, context, interrupt);
    }
    if let Some(path) = &args.log.parse {
        let page = page(args)?;
        if let Some(page) = &page {
            page.is_not(path)?;
        }
        return parse::parse(path, args, page, context, interrupt);
    }
    if let Some(at) = args.record.at {
        return replay::replay(at, args, page(args)?, context, interrupt);
    }
    let PreparedWatch {
        page,
        filter,
        of_report,
        keep,
        guard,
    } = PreparedWatch::of(args, context)?;
    let mut collector = Collector::new(&context.root, args.interval.0.into()).refused()?;
    if args.latency {
        collector.trace_requests(filter.names()).refused()?;
    }
    let source = collector.source();
    // Started before the terminal's screen is taken, so that its messages remain there afterwards. It is then also
    // dropped after the screen, whatever ends the watch.
    let mut recorder = Recorder::start(keep, &source, context)?;
    let notes = recorder.as_mut().map(Recorder::take_notes);
    let notes = notes.unwrap_or_default();
    notes.iter().for_each(|sentence| context.notice(sentence));
    let mut view = OutputForm::live(args, &source, interrupt)?;
    if args.prometheus.is_some() {
        let needed = capabilities::of_watch(args, collector.reads_vendor_pages());
        if let Err(error) = capabilities::keep_only(needed) {
            context.notice(&format!(
                "disksmith: capabilities could not be dropped: {error}"
            ));
        }
    }
    let server = Server::start(args, guard, &context.root)?;
    view.begin(&source, context)?;
    if let OutputForm::Live(screen) = &view {
        notes.iter().for_each(|sentence| screen.note(sentence));
    }
    let marks = match (&view, &recorder) {
        (OutputForm::Live(_), None) => LateMarks::begin(source.hostname.as_deref(), context),
        // The recorder reads the marks itself.
        _ => None,
    };
    let mut live = LiveConsumers {
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
        report: page.map(|page| ReportPage::begin(page, source)),
    };
    notify("READY=1");
    let seen = live.run(args, &mut view, context, interrupt);
    let report = live.report.take();
    drop(live);
    // The terminal is restored before anything is printed.
    let ended = view.end();
    drop(recorder);
    // The report is drawn also where the watch has failed.
    let drawn = match report {
        Some(report) if !matches!(seen, Err(Failure::Refused(_))) => report.end(context),
        _ => Ok(()),
    };
    seen.and(ended).and_then(|answer| drawn.map(|()| answer))
}

/// Consumers of each live sample.
struct LiveConsumers<'a> {
    collector: Collector,
    watch: Watch,
    filter: Filter,
    of_report: Filter,
    recorder: Option<&'a mut Recorder>,
    /// Reader of the marks that the screen shows, where nothing is recorded.
    marks: Option<LateMarks>,
    server: Option<Server>,
    report: Option<ReportPage>,
}

impl LiveConsumers<'_> {
    /// Watches until it is interrupted, or has seen enough.
    fn run(
        &mut self,
        args: &WatchArgs,
        view: &mut OutputForm,
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
            if let OutputForm::Live(screen) = &mut *view {
                self.show_ledger(screen);
            }
            if let Some(sample) = sample {
                seen += 1;
                self.take(sample, view, context)?;
            }
        }
        Ok(CommandEnd::Done)
    }

    /// Passes the ledger's marks to the screen.
    fn show_ledger(&self, screen: &mut Screen) {
        if let Some(recorder) = &self.recorder {
            screen.show_recording(recorder.is_writing());
            screen.mark(recorder.marks());
        }
        if let Some(marks) = &self.marks {
            screen.mark(marks.marks());
        }
    }

    fn take(
        &mut self,
        mut sample: Sample,
        view: &mut OutputForm,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let mut changes = self.watch.observe(&sample);
        if let Some(recorder) = &mut self.recorder {
            recorder.observe(&sample, &changes);
        }
        if let Some(server) = &self.server {
            server.publish(&sample, self.watch.open(), &changes);
        }
        changes.retain(|change| self.filter.wants_change(change, &sample));
        if let Some(report) = &mut self.report {
            let mut drawn = sample.clone();
            self.of_report.remove_others(&mut drawn);
            report.take(drawn, &changes);
        }
        let idle = self.filter.remove_others(&mut sample);
        view.show(&sample, &changes, idle, context)
    }
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    let mut types = views::json::document_types();
    types.push(mark::document_type());
    types
}
