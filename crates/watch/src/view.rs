//! Form in which samples and events are shown: lines, JSON, or the screen.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use record::sample::{Sample, SampleSource};
use study::watch::EventChange;

use crate::args::WatchArgs;
use crate::screen::Screen;
use crate::views::{journal, json, plain};
use ui::context::{Context, notice};
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::journal::is_standard_output;
use ui::signals;

/// True if the screen is shown: on a terminal, without options for lines, a check, metrics, or a table or page of a
/// recording.
pub fn takes_the_terminal(args: &WatchArgs) -> bool {
    let is_text = args.plain || args.json || args.check || args.prometheus.is_some();
    let is_drawn = args.record.at.is_some() && (args.record.table || args.record.report.is_some());
    !is_text && !is_drawn && args.log.parse.is_none() && ui::screen::is_possible()
}

/// Form of samples and events.
pub(crate) enum OutputForm {
    Plain(plain::Lines),
    Json,
    /// The screen of a terminal.
    Live(Screen),
    /// Findings as entries of systemd's journal, for a service.
    Journal,
    /// No output.
    Silent,
}

impl OutputForm {
    pub(crate) fn of(args: &WatchArgs) -> OutputForm {
        if args.json {
            OutputForm::Json
        } else if args.prometheus.is_some() && !args.plain {
            OutputForm::Journal
        } else {
            OutputForm::Plain(plain::Lines::default())
        }
    }

    /// Output form of a live watch: the screen, if there is a terminal for it.
    pub(crate) fn live(
        args: &WatchArgs,
        source: &SampleSource,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<OutputForm, Failure> {
        if !takes_the_terminal(args) {
            // A line for each second would only fill the journal.
            let is_in_journal = is_standard_output() && !args.json && !args.plain;
            return Ok(match is_in_journal {
                true => OutputForm::Journal,
                false => OutputForm::of(args),
            });
        }
        // Named devices are shown even if they are idle.
        let all = args.all || !args.devices.is_empty();
        match Screen::start(source.clone(), all, interrupt) {
            Ok(screen) => Ok(OutputForm::Live(screen)),
            // Plain lines need no terminal.
            Err(error) => {
                signals::second_ends_at_once(interrupt).refused()?;
                notice(&format!(
                    "The screen is not drawn ({error}); these are plain lines."
                ));
                Ok(OutputForm::of(args))
            }
        }
    }

    /// Restores the terminal.
    pub(crate) fn end(self) -> Outcome {
        match &self {
            OutputForm::Live(screen) if screen.has_failed() => {
                Err(Failure::Midway(anyhow::anyhow!(
                    "the screen failed, which is a fault of disksmith; --plain prints lines instead"
                )))
            }
            OutputForm::Live(screen) => match screen.error() {
                Some(error) => Err(Failure::Midway(anyhow::anyhow!(
                    "the terminal could not be used any longer: {error}; --plain prints lines instead"
                ))),
                None => Ok(CommandEnd::Done),
            },
            _ => Ok(CommandEnd::Done),
        }
    }

    pub(crate) fn begin(
        &mut self,
        source: &SampleSource,
        context: &mut Context,
    ) -> Result<(), Failure> {
        match self {
            OutputForm::Plain(_)
            | OutputForm::Live(_)
            | OutputForm::Journal
            | OutputForm::Silent => Ok(()),
            OutputForm::Json => context.print(&json::start(source)),
        }
    }

    /// Shows a note on data that are missing, with the reason.
    pub(crate) fn note(&mut self, note: &str, context: &mut Context) -> Result<(), Failure> {
        match self {
            OutputForm::Plain(_) | OutputForm::Journal | OutputForm::Silent => {
                notice(note);
                Ok(())
            }
            OutputForm::Live(screen) => {
                screen.note(note);
                Ok(())
            }
            OutputForm::Json => context.print(&json::note(note)),
        }
    }

    /// Shows the events that end with a log.
    pub(crate) fn close(
        &mut self,
        changes: &[EventChange],
        context: &mut Context,
    ) -> Result<(), Failure> {
        let text = match self {
            OutputForm::Plain(lines) => lines.text(&Sample::default(), changes),
            OutputForm::Json => json::changes(changes),
            OutputForm::Live(_) | OutputForm::Journal | OutputForm::Silent => return Ok(()),
        };
        context.print(&text)
    }

    /// Shows a sample and its changes of findings. `idle` is the number of idle devices that are left out. Plain lines
    /// report that all devices are idle: without any output the program would seem to hang.
    pub(crate) fn show(
        &mut self,
        sample: &Sample,
        changes: &[EventChange],
        idle: usize,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let text = match self {
            OutputForm::Plain(lines) => {
                let mut text = lines.text(sample, changes);
                text.extend(lines.rest(sample, idle));
                text
            }
            OutputForm::Json => json::lines(sample, changes),
            OutputForm::Live(screen) => {
                screen.show(sample, changes);
                return Ok(());
            }
            OutputForm::Journal => {
                journal::write(changes);
                return Ok(());
            }
            OutputForm::Silent => return Ok(()),
        };
        context.print(&text)
    }
}
