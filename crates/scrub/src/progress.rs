//! The lines that a person watches, one an array. They go to standard error, and only to a terminal.
//!
//! They are drawn by threads of their own: a terminal that does not take what is written (Ctrl-S, a
//! connection that hangs) holds up whoever writes to it, and that may not be who steers a check.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use indicatif::ProgressBar;
use jiff::{SignedDuration, Zoned};
use linux::md::sync::Sectors;

use super::drive::At;
use ui::context::tell;
use ui::progress::Bars;
use ui::units::{rate as rate_words, span};
use ui::words::{percent, short_latency};

/// All lines.
pub(crate) struct Lines(Bars);

impl Lines {
    /// Lines, if somebody watches.
    pub(crate) fn new(watched: bool) -> Lines {
        Lines(Bars::new(watched))
    }

    /// The line of an array.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn line(&self, name: &str) -> io::Result<Line> {
        let bar = self.0.add(name, 1);
        Line::start(move |word| match (word, &bar) {
            (Word::Said(text), Some(bar)) => bar.suspend(|| tell(&text)),
            (Word::Said(text), None) => tell(&text),
            (Word::Stands(at, rate), Some(bar)) => show(bar, &at, rate),
            (Word::Over, Some(bar)) => bar.finish_and_clear(),
            (Word::Stands(..) | Word::Over, None) => {}
        })
    }
}

/// What is to be shown.
enum Word {
    /// How the work stands, which so far made so many bytes a second.
    Stands(Box<At>, Option<f64>),
    /// A sentence for the user.
    Said(String),
    /// The work is over; the line goes.
    Over,
}

/// The line of one array. Nothing here waits for it to be shown, but [`Line::end`].
pub(crate) struct Line {
    words: SyncSender<Word>,
    thread: JoinHandle<()>,
}

impl Line {
    fn start(mut shown: impl FnMut(Word) + Send + 'static) -> io::Result<Line> {
        // One waits at most: the next one says how it stands then.
        let (words, arriving) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("line".to_owned())
            .spawn(move || arriving.into_iter().for_each(&mut shown))?;
        Ok(Line { words, thread })
    }

    /// Shows how the work stands, which so far made `rate` bytes a second, unless an earlier state is
    /// still to be shown.
    pub(crate) fn show(&self, at: &At, rate: Option<f64>) {
        let _ = self
            .words
            .try_send(Word::Stands(Box::new(at.clone()), rate));
    }

    /// Says a sentence. Whether it will be shown: not while something else still is to be.
    pub(crate) fn say(&self, text: String) -> bool {
        self.words.try_send(Word::Said(text)).is_ok()
    }

    /// The work is over; the line goes, when all was shown.
    pub(crate) fn end(self) {
        let _ = self.words.send(Word::Over);
        drop(self.words);
        let _ = self.thread.join();
    }
}

fn show(bar: &ProgressBar, at: &At, rate: Option<f64>) {
    bar.set_length(at.of.0.max(1));
    bar.set_position(at.live.0);
    bar.set_message(message(at, rate, &Zoned::now()));
}

/// How work stands that makes so many bytes a second: how far it is, how fast, what others feel and what
/// is kept for them, what is left, and when it will be done.
pub(super) fn message(at: &At, rate: Option<f64>, now: &Zoned) -> String {
    let mut parts = Vec::new();
    if at.of.0 > 0 {
        parts.push(percent(at.live.0 as f64 / at.of.0 as f64));
    }
    if at.measuring {
        parts.push("measuring the foreground".to_owned());
    }
    if let Some(rate) = rate {
        parts.push(rate_words(rate));
    }
    let against = |name: &str, felt: Option<f64>, target: Option<f64>| {
        let felt = short_latency(felt?);
        Some(match target {
            Some(target) => format!("{name} {felt} of {}", short_latency(target)),
            None => format!("{name} {felt}"),
        })
    };
    let targets = at.targets.unwrap_or_default();
    if at.company {
        parts.extend(against("p99", at.p99, targets.p99));
        parts.extend(against("mean", at.mean, targets.mean));
    } else {
        parts.push("nobody else there".to_owned());
    }
    if at.mismatches_seen > 0 {
        parts.push(format!("{} mismatches", at.mismatches_seen));
    }
    let left = Sectors(at.of.0.saturating_sub(at.live.0)).bytes().0 as f64;
    if let Some(rate) = rate.filter(|_| at.of.0 > 0) {
        let seconds = left / rate;
        let end = SignedDuration::try_from_secs_f64(seconds)
            .ok()
            .and_then(|left| now.checked_add(left).ok());
        let date = end.map(|end| format!(", done {}", end.strftime("%a %d %b %H:%M")));
        parts.push(format!(
            "{} left{}",
            span(seconds),
            date.unwrap_or_default()
        ));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::foreground_latency::Targets;
    use super::*;

    #[test]
    fn who_steers_does_not_wait_for_a_terminal_that_takes_nothing() {
        let (go, stuck) = std::sync::mpsc::channel::<()>();
        let (told, said) = std::sync::mpsc::channel();
        let line = Line::start(move |word| {
            let _ = stuck.recv();
            if let Word::Said(text) = word {
                told.send(text).unwrap();
            }
        })
        .unwrap();
        let began = std::time::Instant::now();
        let at = At::default();
        (0..1000).for_each(|_| line.show(&at, None));
        assert!(!line.say("lost".to_owned()), "it is to be said again");
        assert!(began.elapsed().as_secs() < 5);
        drop(go);
        let mut tries = 0;
        while !line.say("heard".to_owned()) && tries < 1000 {
            tries += 1;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        line.end();
        assert_eq!(said.iter().collect::<Vec<_>>(), ["heard"]);
    }

    #[test]
    fn a_line_says_how_far_how_fast_and_what_it_does_to_others() {
        let now: Zoned = "2026-11-22T17:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let at = At {
            live: Sectors(1 << 20),
            of: Sectors(1 << 22),
            p99: Some(0.0031),
            mean: Some(0.001),
            targets: Some(Targets {
                mean: None,
                p99: Some(0.005),
            }),
            company: true,
            mismatches_seen: 8,
            ..At::default()
        };
        assert_eq!(
            message(&at, Some(1_048_576.0), &now),
            "25 %, 1.0 MiB/s, p99 3.1 ms of 5 ms, mean 1 ms, 8 mismatches, 26 min left, done Sun 22 \
             Nov 17:25"
        );
        let begins = At::default();
        assert_eq!(message(&begins, None, &now), "nobody else there");
    }
}
