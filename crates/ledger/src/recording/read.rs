//! Reads recordings back, in order of time.

use std::collections::VecDeque;

use jiff::Timestamp;
use record::Bytes;
use record::sample::RecordedInterval;
use rusqlite::params;
use study::watch::WatchEvent;

use super::join::Joiner;
use super::{HOURS, MINUTES, RecordingSummary};
use crate::columns::{json_at, sortable, word_at};
use crate::{Ledger, Result};

/// A sample of a recording, with the events that began or ended in it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedSample {
    /// The sample.
    pub recorded: RecordedInterval,
    /// Events that were found in this sample; in the first sample, also those that were found before and still last.
    pub opened: Vec<WatchEvent>,
    /// Events that ended in this sample, and those that last when their recording ends: it is unknown how they
    /// continued, and the next recording finds those again that still last. They are in the last sample of a recording
    /// or, if that cannot be read, in the first of the next one.
    pub closed: Vec<WatchEvent>,
}

/// A time span of a host's recordings, sample by sample. Consecutive recordings are joined into one series: a device
/// has one number in all of them, the clock continues, and the time between them is a gap. A block is read on demand;
/// one that cannot be read is an error, after which the next block is read.
pub struct RecordedSpan<'a> {
    ledger: &'a Ledger,
    host: String,
    from: Timestamp,
    to: Timestamp,
    /// The latest time of a sample so far.
    reached: Timestamp,
    blocks: VecDeque<Block>,
    samples: VecDeque<RecordedInterval>,
    recording: Option<i64>,
    joiner: Joiner,
    /// Events of the recording that is being read, in the order in which they were found.
    to_open: VecDeque<StoredEvent>,
    /// Events that were returned as found and not yet as ended.
    to_close: Vec<StoredEvent>,
    /// End of the last sample of the recording that is being read, if the recording was ended.
    ends: Option<Timestamp>,
    /// Events that still lasted when the previous recording ended.
    left: Vec<WatchEvent>,
}

/// A block to be read. Numbers are reused: when the block is read, its number may belong to another block.
struct Block {
    number: i64,
    recording: i64,
    step: u32,
    began: String,
}

struct StoredEvent {
    event: WatchEvent,
    found: Timestamp,
    over: Option<Timestamp>,
}

impl Ledger {
    /// The recordings of a host between two times.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn replay(&self, host: &str, from: Timestamp, to: Timestamp) -> Result<RecordedSpan<'_>> {
        Ok(RecordedSpan {
            ledger: self,
            from,
            to,
            reached: from,
            blocks: self.blocks(host, from, to)?,
            host: host.to_owned(),
            samples: VecDeque::new(),
            recording: None,
            joiner: Joiner::default(),
            to_open: VecDeque::new(),
            to_close: Vec::new(),
            ends: None,
            left: Vec::new(),
        })
    }

    /// The blocks that overlap a span, in the order of time.
    fn blocks(&self, host: &str, from: Timestamp, to: Timestamp) -> Result<VecDeque<Block>> {
        let read = || {
            let mut statement = self.connection.prepare(
                "SELECT b.number, b.recording, b.step, b.began
                 FROM blocks AS b JOIN recordings AS r ON r.number = b.recording
                 WHERE r.host = ?1 AND b.ended > ?2 AND b.began < ?3
                 ORDER BY r.began, r.number, b.elapsed, b.number",
            )?;
            let rows = statement.query_map(params![host, sortable(from), sortable(to)], |row| {
                Ok(Block {
                    number: row.get(0)?,
                    recording: row.get(1)?,
                    step: row.get(2)?,
                    began: row.get(3)?,
                })
            })?;
            rows.collect::<rusqlite::Result<VecDeque<Block>>>()
        };
        read().map_err(|error| self.explain(error))
    }

    /// Lists all recordings, the oldest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn recordings(&self) -> Result<Vec<RecordingSummary>> {
        let read = || {
            let mut statement = self.connection.prepare(
                "SELECT r.number, r.host, COALESCE(MIN(b.began), r.began),
                        COALESCE(MAX(b.ended), r.began), r.ended IS NULL, r.source,
                        COALESCE(SUM(CASE WHEN b.step <= 1 THEN b.samples END), 0),
                        COALESCE(SUM(CASE WHEN b.step = ?1 THEN b.samples END), 0),
                        COALESCE(SUM(CASE WHEN b.step = ?2 THEN b.samples END), 0),
                        (SELECT COUNT(*) FROM events WHERE recording = r.number),
                        COALESCE(SUM(length(b.body)), 0)
                 FROM recordings AS r LEFT JOIN blocks AS b ON b.recording = r.number
                 GROUP BY r.number ORDER BY 3, 1",
            )?;
            let rows = statement.query_map(params![MINUTES, HOURS], |row| {
                let count = |at: usize| row.get::<_, i64>(at).map(|count| count.max(0) as u64);
                Ok(RecordingSummary {
                    number: row.get(0)?,
                    host: row.get(1)?,
                    from: word_at(row, 2)?,
                    to: word_at(row, 3)?,
                    is_open: row.get(4)?,
                    source: json_at(row, 5)?,
                    taken: count(6)?,
                    minutes: count(7)?,
                    hours: count(8)?,
                    events: count(9)?,
                    bytes: Bytes(count(10)?),
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<RecordingSummary>>>()
        };
        read().map_err(|error| self.explain(error))
    }

    /// End of the last sample of a recording; `None` if the recording was not ended and may still grow.
    fn end_of(&self, recording: i64) -> Result<Option<Timestamp>> {
        let read = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT MAX(b.ended) FROM blocks AS b JOIN recordings AS r ON r.number = b.recording
                 WHERE r.number = ?1 AND r.ended IS NOT NULL",
            )?;
            statement.query_row([recording], |row| {
                row.get::<_, Option<String>>(0)?
                    .map(|_| word_at(row, 0))
                    .transpose()
            })
        };
        read().map_err(|error| self.explain(error))
    }

    /// The events that recordings of a host found since a moment, in the order of time.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn events_since(&self, host: &str, from: Timestamp) -> Result<Vec<WatchEvent>> {
        let read = || {
            let mut statement = self.connection.prepare(
                "SELECT body FROM events JOIN recordings AS r ON r.number = recording
                 WHERE r.host = ?1 AND found > ?2 ORDER BY found, id",
            )?;
            let rows = statement.query_map(params![host, sortable(from)], |row| json_at(row, 0))?;
            rows.collect::<rusqlite::Result<Vec<WatchEvent>>>()
        };
        read().map_err(|error| self.explain(error))
    }

    /// The events of a recording that were not over before `from`.
    fn events(&self, recording: i64, from: Timestamp) -> Result<VecDeque<StoredEvent>> {
        let read = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT body, found, over FROM events
                 WHERE recording = ?1 AND (over IS NULL OR over > ?2) ORDER BY found, id",
            )?;
            let rows = statement.query_map(params![recording, sortable(from)], |row| {
                Ok(StoredEvent {
                    event: json_at(row, 0)?,
                    found: word_at(row, 1)?,
                    over: row
                        .get::<_, Option<String>>(2)?
                        .map(|_| word_at(row, 2))
                        .transpose()?,
                })
            })?;
            rows.collect::<rusqlite::Result<VecDeque<StoredEvent>>>()
        };
        read().map_err(|error| self.explain(error))
    }
}

impl RecordedSpan<'_> {
    /// True if nothing was recorded in the span.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.samples.is_empty()
    }

    /// Reads the next block; false when there is none.
    fn read(&mut self) -> Result<bool> {
        let Some(block) = self.blocks.pop_front() else {
            return Ok(false);
        };
        let ledger = self.ledger;
        let body = ledger.body(block.number, block.recording, block.step, &block.began)?;
        let Some(body) = body else {
            // The block was replaced since it was listed: the remaining blocks are listed again.
            self.from = self.reached;
            self.blocks = ledger.blocks(&self.host, self.from, self.to)?;
            return Ok(true);
        };
        let mut samples = ledger.unpacked(&body)?;
        samples.retain(|recorded| self.is_wanted(recorded));
        let Some(first) = samples.first() else {
            return Ok(true);
        };
        if self.recording != Some(block.recording) {
            self.recording = Some(block.recording);
            let left = self.end_all();
            self.left.extend(left);
            self.joiner.begin(&first.sample);
            self.to_open = ledger.events(block.recording, self.from)?;
            self.ends = ledger.end_of(block.recording)?;
        }
        let last = samples.last().and_then(|last| last.sample.at.wall);
        self.reached = last.map_or(self.reached, |last| self.reached.max(last));
        self.samples.extend(samples);
        Ok(true)
    }

    fn is_wanted(&self, recorded: &RecordedInterval) -> bool {
        let sample = &recorded.sample;
        let began = sample.at.before(sample.length).wall;
        sample.at.wall.is_some_and(|ended| ended > self.from)
            && began.is_some_and(|began| began < self.to)
    }

    /// Ends the events that still last, at the last sample that was returned.
    fn end_all(&mut self) -> Vec<WatchEvent> {
        let last = self.joiner.last();
        let end = |kept: StoredEvent| WatchEvent {
            ended: kept.event.ended.or(last),
            ..kept.event
        };
        self.to_close.drain(..).map(end).collect()
    }

    fn play(&mut self, mut recorded: RecordedInterval) -> ReplayedSample {
        self.joiner.join(&mut recorded);
        let now = recorded.sample.at.wall.unwrap_or_default();
        let (mut opened, mut closed) = (Vec::new(), std::mem::take(&mut self.left));
        while self.to_open.front().is_some_and(|kept| kept.found <= now) {
            let Some(mut kept) = self.to_open.pop_front() else {
                break;
            };
            kept.event = self.joiner.event(kept.event);
            opened.push(WatchEvent {
                ended: None,
                ..kept.event.clone()
            });
            self.to_close.push(kept);
        }
        self.to_close.retain(|kept| {
            let is_over = kept.over.is_some_and(|over| over <= now);
            if is_over {
                closed.push(kept.event.clone());
            }
            !is_over
        });
        if self.ends.is_some_and(|ends| now >= ends) {
            closed.extend(self.end_all());
        }
        ReplayedSample {
            recorded,
            opened,
            closed,
        }
    }
}

impl Iterator for RecordedSpan<'_> {
    type Item = Result<ReplayedSample>;

    fn next(&mut self) -> Option<Result<ReplayedSample>> {
        loop {
            if let Some(recorded) = self.samples.pop_front() {
                return Some(Ok(self.play(recorded)));
            }
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
