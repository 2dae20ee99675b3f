//! Reads the repeated output of `vmstat -d`: totals of each disk since boot.

use std::collections::HashMap;

use jiff::Timestamp;
use record::Nanos;

use super::calendar::Calendar;
use super::counters::{Counters, FlowCounters};
use super::notes::Notes;
use super::report::{Reports, Row};
use super::stamp::stamp;

/// Number of figures in a row: requests, merged, sectors and milliseconds of reads and of writes; in flight, and
/// seconds busy.
const FIGURES: usize = 10;
const SECTOR: f64 = 512.0;
/// Minimum length of an interval for which busy time is used: it is counted in whole seconds, 1 % of this.
const MIN_BUSY_INTERVAL_S: f64 = 100.0;
/// Interval if the log does not give it, in seconds.
const DEFAULT_INTERVAL_S: f64 = 1.0;
/// Maximum number of device names, so that a damaged log does not exhaust memory.
const MAX_NAMES: usize = 1 << 16;

/// Reader of vmstat's text.
#[derive(Debug)]
pub(crate) struct Vmstat {
    /// Length of the intervals, if the user gave it.
    given: Option<Nanos>,
    /// Last totals of each device, and the round in which they were printed.
    totals: HashMap<String, (Counters, u64)>,
    /// Number of the current round; all disks are printed once in each round.
    round: u64,
    /// Time of the previous round, and of this one.
    times: [Option<Timestamp>; 2],
    pub(crate) reports: Reports,
}

impl Vmstat {
    pub(crate) fn new(given: Option<Nanos>) -> Vmstat {
        Vmstat {
            given,
            totals: HashMap::new(),
            round: 0,
            times: [None; 2],
            reports: Reports::new(),
        }
    }

    /// True if this line is a header of `vmstat -d`.
    pub(crate) fn begins(text: &str) -> bool {
        text.starts_with("disk- ") && text.contains("-reads-") && text.contains("-writes-")
    }

    /// Begins a run of vmstat.
    pub(crate) fn begin_run(&mut self) {
        self.reports.begin_run();
        self.totals.clear();
        self.round = 0;
        self.times = [None; 2];
    }

    /// Reads a line.
    pub(crate) fn line(
        &mut self,
        line: u64,
        text: &str,
        terminated: bool,
        calendar: &mut Calendar,
        notes: &mut Notes,
    ) {
        if text.trim().is_empty() || is_header(text) {
            return;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((name, counters)) = counters(&words) else {
            notes.garbage.add(line, text);
            return;
        };
        let time = words.get(1 + FIGURES..).filter(|time| !time.is_empty());
        // The last number may be cut off, which would look like a counter that was reset.
        if !terminated && time.is_none() {
            return notes.cut.add(line, text);
        }
        let before = self.totals.get(name).copied();
        if self.round == 0 || before.is_some_and(|(_, round)| round == self.round) {
            let stamp = time.and_then(|time| stamp(&time.join(" ")));
            let at = stamp.and_then(|stamp| calendar.instant(&stamp));
            self.round += 1;
            self.times = [self.times[1], at.map(|at| at.at)];
            self.reports.begin_at(line, at);
            if self.round > 1 {
                self.reports.set_length(Some(self.length(notes)));
            }
        }
        if before.is_some() || self.totals.len() < MAX_NAMES {
            self.totals.insert(name.to_owned(), (counters, self.round));
        }
        // In its first round, and after a round without it, the device has no earlier totals.
        let Some((before, _)) = before.filter(|(_, round)| round + 1 == self.round) else {
            return;
        };
        let seconds = self.length(notes);
        let mut figures = counters.since(&before, seconds);
        figures.busy = figures.busy.filter(|_| seconds >= MIN_BUSY_INTERVAL_S);
        self.reports.row(
            line,
            Row {
                name: name.to_owned(),
                group: false,
                figures,
            },
        );
    }

    /// Seconds between the previous round and this one.
    fn length(&self, notes: &mut Notes) -> f64 {
        let [before, now] = self.times;
        let seconds = before.zip(now);
        let seconds = seconds.map(|(before, now)| now.duration_since(before).as_secs_f64());
        let given = || self.given.map(Nanos::as_secs_f64);
        seconds
            .filter(|seconds| *seconds > 0.0)
            .or_else(given)
            .unwrap_or_else(|| {
                notes.interval_unknown = true;
                DEFAULT_INTERVAL_S
            })
    }
}

fn is_header(text: &str) -> bool {
    let mut words = text.split_whitespace();
    Vmstat::begins(text) || (words.next() == Some("total") && words.next() == Some("merged"))
}

/// The name and the totals of a row.
fn counters<'a>(words: &[&'a str]) -> Option<(&'a str, Counters)> {
    let (name, figures) = words.split_first()?;
    let figures: Option<Vec<f64>> = figures
        .get(..FIGURES)?
        .iter()
        .map(|word| word.parse::<u64>().ok().map(|number| number as f64))
        .collect();
    let figures = figures?;
    let flow = |of: &[f64]| FlowCounters {
        requests: Some(of[0]),
        merged: Some(of[1]),
        bytes: Some(of[2] * SECTOR),
        seconds: Some(of[3] / 1000.0),
    };
    let none = FlowCounters::default();
    let counters = Counters {
        flows: [flow(&figures[..4]), flow(&figures[4..8]), none, none],
        busy: Some(figures[9]),
        weighted: None,
        in_flight: Some(figures[8] as u64),
    };
    Some((name, counters))
}
