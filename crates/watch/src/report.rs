//! Collection of samples and findings for the HTML page.

use ledger::Mark;
use record::sample::{RecordedInterval, Sample, SampleSource};
use study::watch::EventChange;

use crate::html::{FigureSeries, write_file};
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure, sentence};
use ui::output::OutputFile;

/// A page that is written at the end.
pub(super) struct ReportPage {
    output: OutputFile,
    source: SampleSource,
    course: FigureSeries,
    marks: Vec<Mark>,
    notes: Vec<String>,
}

impl ReportPage {
    /// A page to be written to `output`.
    pub(super) fn begin(output: OutputFile, source: SampleSource) -> ReportPage {
        ReportPage {
            output,
            source,
            course: FigureSeries::default(),
            marks: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the marks to show; those outside the time of the page are left out.
    pub(super) fn mark(&mut self, marks: Vec<Mark>) {
        self.marks = marks;
    }

    /// Adds a note on data that are missing, with the reason.
    pub(super) fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    /// Sets the source of the samples.
    pub(super) fn of(&mut self, source: SampleSource) {
        self.source = source;
    }

    /// Adds an interval of a recording.
    pub(super) fn observe(&mut self, recorded: &RecordedInterval, changes: &[EventChange]) {
        self.course.observe(recorded, changes);
    }

    /// Adds a live sample.
    pub(super) fn take(&mut self, sample: Sample, changes: &[EventChange]) {
        self.observe(&RecordedInterval::taken(sample), changes);
    }

    /// Adds the findings that end with the watch.
    pub(super) fn close(&mut self, changes: &[EventChange]) {
        self.course.close(changes);
    }

    /// Reads the marks of the ledger, if there is one, and writes the page. If the ledger cannot be read, the page has
    /// a note instead of marks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn end(mut self, context: &mut Context) -> Result<(), Failure> {
        if self.marks.is_empty() {
            match marks(context) {
                Ok(marks) => {
                    self.marks = match &self.source.hostname {
                        Some(host) => with_hosts(marks, host),
                        None => marks,
                    };
                }
                Err(Failure::Refused(error) | Failure::Midway(error)) => {
                    let note = format!("No marks are drawn: {}.", sentence(&error));
                    context.notice(&note);
                    self.note(&note);
                }
            }
        }
        write_file(
            &self.output,
            &self.course,
            &self.marks,
            &self.source,
            &self.notes,
        )
        .midway()?;
        context.notice(&format!("The page is {}.", self.output.path().display()));
        Ok(())
    }
}

/// Marks with the host's name added to those of other hosts: hosts may share a ledger.
pub(super) fn with_hosts(marks: Vec<Mark>, host: &str) -> Vec<Mark> {
    let named = |mark: Mark| match mark.host == host {
        true => mark,
        false => Mark {
            text: format!("{}: {}", mark.host, mark.text),
            ..mark
        },
    };
    marks.into_iter().map(named).collect()
}

/// The marks of the ledger; empty where there is no ledger.
fn marks(context: &Context) -> Result<Vec<Mark>, Failure> {
    match context.open_ledger_if_there()? {
        Some(ledger) => ledger
            .marks(jiff::Timestamp::MIN, jiff::Timestamp::MAX)
            .midway(),
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_other_hosts_have_their_names() {
        let mark = |host: &str| Mark {
            number: 1,
            at: jiff::Timestamp::UNIX_EPOCH,
            host: host.to_owned(),
            text: "deploy".to_owned(),
        };
        let named = with_hosts(vec![mark("db-1"), mark("db-2")], "db-1");
        let texts: Vec<&str> = named.iter().map(|mark| mark.text.as_str()).collect();
        assert_eq!(texts, ["deploy", "db-2: deploy"]);
    }
}
