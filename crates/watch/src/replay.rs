//! Replay of a recording.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jiff::{SignedDuration, Timestamp};
use ledger::{Ledger, Mark, RecordedSpan, RecordingSummary, ReplayedSample};
use linux::{machine, remedy};
use record::Nanos;
use record::sample::{RecordedInterval, Sample, SourceKind};
use study::watch::{ChangeKind, EventChange};

use crate::args::WatchArgs;
use crate::views::replay as render;
use crate::views::replay::SummaryTable;
use domain::moment::MomentOrDay;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output::OutputFile;
use ui::{format, signals};

use super::filter::Filter;
use super::report::{ReportPage, with_hosts};
use super::screen;
use super::view::{OutputForm, takes_the_terminal};

/// Default length of a replay.
const DEFAULT_LENGTH: SignedDuration = SignedDuration::from_mins(10);

/// Time before the start of a replay that the screen also loads, for its sparklines and to go back to.
const LEAD_TIME: SignedDuration = SignedDuration::from_mins(2);

/// A part of the recordings of a host.
pub(crate) struct RecordingPart {
    /// Name of the host that was recorded.
    pub host: String,
    /// Start of the part.
    pub from: Timestamp,
    /// End of the part.
    pub to: Timestamp,
    /// Marks in the part.
    pub marks: Vec<Mark>,
    /// The host.
    pub source: record::sample::SampleSource,
}

impl RecordingPart {
    /// The part that the arguments select.
    ///
    /// # Errors
    /// When the ledger cannot be read, or has only recordings of several other hosts.
    fn find(
        at: MomentOrDay,
        span: Option<Nanos>,
        ledger: &Ledger,
        context: &Context,
    ) -> Result<RecordingPart, Failure> {
        let recordings = ledger.recordings().midway()?;
        let host = host(&recordings, machine::hostname(&context.root))?;
        let length =
            span.map(|span| SignedDuration::from_nanos(i64::try_from(span.0).unwrap_or(i64::MAX)));
        let to = match (length, at.day_ends) {
            (Some(length), _) => at.at.checked_add(length),
            (None, Some(ends)) => Ok(ends),
            (None, None) => at.at.checked_add(DEFAULT_LENGTH),
        };
        let to = to.unwrap_or(Timestamp::MAX);
        let known = recordings.iter().rev().find(|one| one.host == host);
        let source = record::sample::SampleSource {
            kind: SourceKind::Recorded,
            ..known.map(|one| one.source.clone()).unwrap_or_default()
        };
        Ok(RecordingPart {
            marks: ledger.marks(at.at, to).midway()?,
            host,
            from: at.at,
            to,
            source,
        })
    }

    /// The samples of the part.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn play<'a>(&self, ledger: &'a Ledger) -> Result<RecordedSpan<'a>, Failure> {
        ledger.replay(&self.host, self.from, self.to).midway()
    }
}

/// Host whose recordings are shown: the only one in the ledger, which may be copied from another host, or this one.
fn host(recordings: &[RecordingSummary], here: String) -> Result<String, Failure> {
    let mut hosts: Vec<&str> = recordings.iter().map(|one| one.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    match hosts.as_slice() {
        [only] => Ok((*only).to_owned()),
        several if several.len() > 1 && !several.contains(&here.as_str()) => {
            Err(Failure::refused(format!(
                "the ledger has recordings of {}, and none of this host, {here}; copy the wanted \
                 one to a ledger of its own",
                several.join(", ")
            )))
        }
        _ => Ok(here),
    }
}

/// Changes of events in a sample of a replay.
pub(crate) fn changes(played: &ReplayedSample) -> Vec<EventChange> {
    let change = |kind: ChangeKind| {
        move |event: &study::watch::WatchEvent| EventChange {
            kind,
            event: event.clone(),
        }
    };
    let opened = played.opened.iter().map(change(ChangeKind::Opened));
    let closed = played.closed.iter().map(change(ChangeKind::Closed));
    opened.chain(closed).collect()
}

/// Shows the recording from a time on.
pub(super) fn replay(
    at: MomentOrDay,
    args: &WatchArgs,
    page: Option<OutputFile>,
    context: &mut Context,
    interrupt: &Arc<AtomicBool>,
) -> Outcome {
    let Some(ledger) = context.open_ledger_if_there()? else {
        let record = remedy::command("watch --record");
        context.notice(&format!(
            "Nothing was recorded on this host; record with: {record}"
        ));
        return Ok(CommandEnd::No);
    };
    let span = args.record.span.map(|span| span.0);
    let part = RecordingPart::find(at, span, &ledger, context)?;
    if takes_the_terminal(args) {
        return on_screen(&part, args, &ledger, context, interrupt);
    }
    let mut shown = ReplayView::begin(args, page, &part, context)?;
    // Means are over the whole time, including that in which a device was idle.
    let all = args.all || !matches!(shown, ReplayView::Lines { .. });
    let mut filter = Filter::of_arguments(&args.devices, all);
    let mut missing = filter.names().to_vec();
    let mut some = false;
    let mut show = || -> Result<(), Failure> {
        for played in part.play(&ledger)? {
            if interrupt.load(Relaxed) {
                break;
            }
            let played = match played {
                Ok(played) => played,
                // A damaged part is skipped; the rest is shown.
                Err(error @ ledger::Error::UnreadableRecording { .. }) => {
                    context.notice(&format!("{error}."));
                    continue;
                }
                Err(error) => return Err(error).midway(),
            };
            some = true;
            remove_present(&mut missing, &played.recorded.sample);
            let mut changes = changes(&played);
            let mut recorded = played.recorded;
            changes.retain(|change| filter.wants_change(change, &recorded.sample));
            let idle = remove_others(&filter, &mut recorded);
            shown.take(&recorded, &changes, idle, context)?;
        }
        Ok(())
    };
    let read = show();
    if !some {
        read?;
        context.notice(&no_recording_text(&part, &ledger)?);
        return Ok(CommandEnd::No);
    }
    for name in &missing {
        context.notice(&absent(name, &part));
    }
    if !missing.is_empty() && missing.len() == args.devices.len() {
        read?;
        return Ok(CommandEnd::No);
    }
    // The page is written even if the rest could not be read.
    let ended = shown.end(context);
    read.and(ended)
}

/// Removes the names of the devices that a sample has.
fn remove_present(missing: &mut Vec<String>, sample: &Sample) {
    missing.retain(|name| !sample.devices.iter().any(|one| one.device.is_called(name)));
}

/// Note on a named device that was not seen.
fn absent(name: &str, part: &RecordingPart) -> String {
    format!(
        "None of the samples of {} that were shown has a device {name}; --all without a name shows \
         which devices there are.",
        part.host
    )
}

/// Plays a part on the screen of a terminal.
fn on_screen(
    part: &RecordingPart,
    args: &WatchArgs,
    ledger: &Ledger,
    context: &Context,
    interrupt: &Arc<AtomicBool>,
) -> Outcome {
    // Without samples, a sentence is printed instead of an empty screen.
    if !part.play(ledger)?.any(|played| played.is_ok()) {
        signals::second_ends_at_once(interrupt).refused()?;
        context.notice(&no_recording_text(part, ledger)?);
        return Ok(CommandEnd::No);
    }
    let before = part.from.checked_sub(LEAD_TIME).unwrap_or(Timestamp::MIN);
    let mut filter = Filter::of_arguments(&args.devices, true);
    let mut missing = filter.names().to_vec();
    let mut damaged = Vec::new();
    let recording = ledger
        .replay(&part.host, before, part.to)
        .midway()?
        .filter_map(|played| match played {
            Ok(played) => {
                remove_present(&mut missing, &played.recorded.sample);
                let mut changes = changes(&played);
                let mut sample = played.recorded.sample;
                changes.retain(|change| filter.wants_change(change, &sample));
                filter.remove_others(&mut sample);
                Some(Ok((sample, changes)))
            }
            // A damaged part is skipped; the rest is shown.
            Err(error @ ledger::Error::UnreadableRecording { .. }) => {
                damaged.push(format!("{error}."));
                None
            }
            Err(error) => Some(Err(error).midway()),
        });
    // Named devices are shown even if they are idle.
    let all = args.all || !args.devices.is_empty();
    let ended = screen::replay(
        part.source.clone(),
        all,
        with_hosts(ledger.marks(before, part.to).midway()?, &part.host),
        recording,
        Some(part.from),
        interrupt,
    );
    signals::second_ends_at_once(interrupt).refused()?;
    damaged.iter().for_each(|sentence| context.notice(sentence));
    for name in &missing {
        context.notice(&absent(name, part));
    }
    ended
}

/// Removes the devices that are not selected. Returns the number of devices that were removed because they are idle.
fn remove_others(filter: &Filter, recorded: &mut RecordedInterval) -> usize {
    let idle = filter.remove_others(&mut recorded.sample);
    if let Some(spread) = &mut recorded.spread {
        let kept: HashSet<_> = recorded
            .sample
            .devices
            .iter()
            .map(|one| one.device.id)
            .collect();
        for sample in [&mut spread.least, &mut spread.most] {
            sample.devices.retain(|one| kept.contains(&one.device.id));
        }
    }
    idle
}

/// Form of the replay.
enum ReplayView {
    Lines {
        view: OutputForm,
        marks: std::vec::IntoIter<Mark>,
        next: Option<Mark>,
        samples: u64,
    },
    Table(Box<SummaryTable>),
    Page(Box<ReportPage>),
}

impl ReplayView {
    fn begin(
        args: &WatchArgs,
        page: Option<OutputFile>,
        part: &RecordingPart,
        context: &mut Context,
    ) -> Result<ReplayView, Failure> {
        let marks = with_hosts(part.marks.clone(), &part.host);
        if let Some(page) = page {
            let mut report = ReportPage::begin(page, part.source.clone());
            report.mark(marks);
            return Ok(ReplayView::Page(Box::new(report)));
        }
        let to_a_person = !args.plain && !args.json && context.answers_a_person;
        if args.record.table || to_a_person {
            return Ok(ReplayView::Table(Box::new(SummaryTable::new(
                part.from,
                part.to,
                marks,
                args.all || !args.devices.is_empty(),
            ))));
        }
        let mut view = OutputForm::of(args);
        view.begin(&part.source, context)?;
        // In JSON, each mark has its host's name.
        let marks = match view {
            OutputForm::Json => part.marks.clone(),
            _ => marks,
        };
        let mut marks = marks.into_iter();
        Ok(ReplayView::Lines {
            view,
            next: marks.next(),
            marks,
            samples: 1,
        })
    }

    fn take(
        &mut self,
        recorded: &RecordedInterval,
        changes: &[EventChange],
        idle: usize,
        context: &mut Context,
    ) -> Result<(), Failure> {
        match self {
            ReplayView::Table(table) => {
                table.observe(recorded, changes);
                Ok(())
            }
            ReplayView::Page(report) => {
                report.observe(recorded, changes);
                Ok(())
            }
            ReplayView::Lines {
                view,
                marks,
                next,
                samples,
            } => {
                let now = recorded.sample.at.wall;
                while let Some(mark) = next.take_if(|mark| now.is_some_and(|now| mark.at <= now)) {
                    let is_json = matches!(view, OutputForm::Json);
                    context.print(&render::mark(&mark, is_json))?;
                    *next = marks.next();
                }
                let is_json = matches!(view, OutputForm::Json);
                let many = recorded.samples();
                // The last sample of a minute may have fewer, which is not a change of resolution.
                if !is_json && (many > 1) != (*samples > 1) {
                    context.print(&render::resolution(recorded))?;
                }
                *samples = many;
                view.show(&recorded.sample, changes, idle, context)?;
                match &recorded.spread {
                    Some(spread) if is_json => context.print(&render::spread(spread)),
                    _ => Ok(()),
                }
            }
        }
    }

    fn end(self, context: &mut Context) -> Outcome {
        match self {
            ReplayView::Lines {
                next, marks, view, ..
            } => {
                let is_json = matches!(view, OutputForm::Json);
                for mark in next.into_iter().chain(marks) {
                    context.print(&render::mark(&mark, is_json))?;
                }
            }
            ReplayView::Table(table) => context.print(&table.text(context.columns))?,
            ReplayView::Page(report) => report.end(context)?,
        }
        Ok(CommandEnd::Done)
    }
}

/// Sentence on the existing recordings, where nothing was recorded at the requested time.
fn no_recording_text(part: &RecordingPart, ledger: &Ledger) -> Result<String, Failure> {
    let recordings = ledger.recordings().midway()?;
    let of_host: Vec<&RecordingSummary> = recordings
        .iter()
        .filter(|one| one.host == part.host)
        .collect();
    let missing = format!(
        "Nothing was recorded of {} from {} to {}.",
        part.host,
        format::local_date(part.from),
        format::local_date(part.to)
    );
    let before = of_host
        .iter()
        .filter(|one| one.to <= part.from)
        .max_by_key(|one| one.to);
    let after = of_host
        .iter()
        .filter(|one| one.from >= part.to)
        .min_by_key(|one| one.from);
    let there = match (before, after) {
        (Some(before), Some(after)) => format!(
            "The recording before ends at {}, and the next begins at {}.",
            format::local_date(before.to),
            format::local_date(after.from)
        ),
        (Some(before), None) => format!(
            "The recordings end at {}, and begin at {}.",
            format::local_date(before.to),
            of_host
                .iter()
                .map(|one| one.from)
                .min()
                .map_or_else(String::new, format::local_date)
        ),
        (None, Some(after)) => {
            format!(
                "The recordings begin at {}.",
                format::local_date(after.from)
            )
        }
        (None, None) if of_host.is_empty() => {
            let record = remedy::command("watch --record");
            format!("There is no recording of this host; record with: {record}")
        }
        (None, None) => "The recording has a gap at that time.".to_owned(),
    };
    Ok(format!("{missing} {there}"))
}
