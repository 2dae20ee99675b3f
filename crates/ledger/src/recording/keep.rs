//! Retention of recordings: thins out old samples, and removes the oldest.

use jiff::{SignedDuration, Timestamp};
use record::sample::RecordedInterval;
use record::{Bytes, Nanos};
use rusqlite::OptionalExtension as _;

use super::packed::PackedSamples;
use super::thin::Thinner;
use super::{BATCH, HOURS, MINUTES, UNTHINNED};
use crate::columns::sortable;
use crate::{Error, Ledger, Result};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// Age up to which blocks are never thinned out, whatever the limit: users read them.
const RECENT_AGE: SignedDuration = SignedDuration::from_secs(900);

/// Steps and lengths, in seconds, of the ranges that are thinned out when space is short: whole hours and days first,
/// as usual, then shorter ones, since otherwise old samples would be dropped before an hour, or a day, is complete.
const LOW_SPACE_STEPS: [(u32, i64); 4] = [
    (UNTHINNED, HOUR),
    (UNTHINNED, 600),
    (MINUTES, DAY),
    (MINUTES, HOUR),
];
/// Events take at most 1/n of the space.
const EVENTS_SHARE: u64 = 4;

/// Time without a write after which a recording counts as abandoned.
const ABANDONED_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Time for which samples are kept at each resolution, and the space for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Time for which samples are kept as they were taken. Older ones are thinned out to one a minute.
    pub taken: Nanos,
    /// Time for which samples are kept by the minute. Older ones are thinned out to one an hour.
    pub minutes: Nanos,
    /// Maximum space of all recordings in the ledger, in bytes, counted in pages of the file. Samples beyond it are
    /// thinned out sooner, the oldest first, and then dropped.
    pub limit: Bytes,
}

impl Default for Retention {
    /// Three days, sixty days, and 256 MiB.
    fn default() -> Retention {
        Retention {
            taken: Nanos::from_secs(3 * DAY as u64),
            minutes: Nanos::from_secs(60 * DAY as u64),
            limit: Bytes::mib(256),
        }
    }
}

/// A time range of one recording's blocks of a step.
struct BlockRange {
    recording: i64,
    step: u32,
    /// Seconds since 1970.
    from: i64,
    to: i64,
}

/// The step to which a block is thinned out: the step, the length of its samples, and the length of one block, in
/// seconds. Blocks begin at whole multiples of the block length.
struct Coarser {
    step: u32,
    sample: i64,
    block: i64,
}

impl Coarser {
    fn than(step: u32) -> Coarser {
        let (step, sample, block) = match step {
            MINUTES => (HOURS, HOUR, DAY),
            _ => (MINUTES, 60, HOUR),
        };
        Coarser {
            step,
            sample,
            block,
        }
    }

    /// Number of the block that a sample belongs to. An interval that ends on the full hour belongs to the hour
    /// before, as in [`Thinner`].
    fn block_of(&self, recorded: &RecordedInterval) -> i64 {
        let ended = recorded.sample.at.wall.unwrap_or_default();
        multiple(ended.as_nanosecond() - 1, self.block)
    }
}

impl Ledger {
    /// Thins out samples that are older than their retention, and the oldest beyond the limit. Each range is thinned
    /// out in a transaction of its own. Batches that killed recorders left are first made into blocks.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn thin_out(&self, keep: &Retention, now: Timestamp) -> Result<()> {
        let before = |age: Nanos| {
            let age = SignedDuration::from_nanos(i64::try_from(age.0).unwrap_or(i64::MAX));
            now.checked_sub(age).unwrap_or(Timestamp::MIN)
        };
        let recent = now.checked_sub(RECENT_AGE).unwrap_or(Timestamp::MIN);
        self.end_abandoned(now)?;
        self.gather_ended()?;
        while let Some(stretch) = self.oldest(UNTHINNED, before(keep.taken), HOUR)? {
            self.thin_stretch(&stretch)?;
        }
        while let Some(stretch) = self.oldest(MINUTES, before(keep.minutes), DAY)? {
            self.thin_stretch(&stretch)?;
        }
        self.limit_events(Bytes(keep.limit.0 / EVENTS_SHARE))?;
        while self.recorded_bytes()? > keep.limit {
            if let Some(stretch) = self.oldest_under_pressure(recent)? {
                self.thin_stretch(&stretch)?;
            } else if !self.drop_oldest()? {
                break;
            }
        }
        self.sweep_up()
    }

    /// Drops the oldest events until all of them take at most this space: frequent events would otherwise leave no
    /// space for samples. Events that still last are dropped last, since nothing else would show them; an event does
    /// not outlast its recording.
    fn limit_events(&self, most: Bytes) -> Result<()> {
        self.changed(|change| {
            change.execute(
                "DELETE FROM events WHERE rowid IN
                     (SELECT rowid FROM
                         (SELECT e.rowid, SUM(length(body)) OVER
                              (ORDER BY e.over IS NULL AND r.ended IS NULL DESC, found DESC, e.rowid DESC) AS kept
                          FROM events AS e JOIN recordings AS r ON r.number = e.recording)
                      WHERE kept > ?1)",
                [i64::try_from(most.0).unwrap_or(i64::MAX)],
            )
        })?;
        Ok(())
    }

    /// Bytes that all recordings take: whole pages of the file for blocks, the bytes of batches, and the text of
    /// events.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn recorded_bytes(&self) -> Result<Bytes> {
        let sum = self.connection.query_row(
            "SELECT (SELECT COALESCE(SUM(CASE WHEN step > 0
                        THEN (length(body) + 4095) / 4096 * 4096
                        ELSE length(body) END), 0) FROM blocks)
                  + (SELECT COALESCE(SUM(length(body)), 0) FROM events)",
            [],
            |row| row.get::<_, i64>(0),
        );
        let sum = sum.map_err(|error| self.explain(error))?;
        Ok(Bytes(u64::try_from(sum).unwrap_or(0)))
    }

    /// The range to thin out next when space is short, before `end`.
    fn oldest_under_pressure(&self, end: Timestamp) -> Result<Option<BlockRange>> {
        for (step, length) in LOW_SPACE_STEPS {
            let stretch = self.oldest(step, end, length)?;
            if stretch.is_some() {
                return Ok(stretch);
            }
        }
        Ok(None)
    }

    /// The oldest range of a step, `length` seconds long, that ended before `end`.
    fn oldest(&self, step: u32, end: Timestamp, length: i64) -> Result<Option<BlockRange>> {
        let found = self
            .connection
            .query_row(
                "SELECT recording, began FROM blocks WHERE step = ?1 ORDER BY began LIMIT 1",
                [step],
                |row| {
                    Ok((
                        row.get::<_, i64>(0)?,
                        crate::columns::word_at::<Timestamp>(row, 1)?,
                    ))
                },
            )
            .optional()
            .map_err(|error| self.explain(error))?;
        let stretch = found.and_then(|(recording, began)| {
            let from = multiple(began.as_nanosecond(), length);
            let to = from + length;
            // A block that begins within the stretch may end a few minutes after it.
            (to <= end.as_second()).then_some(BlockRange {
                recording,
                step,
                from,
                to,
            })
        });
        Ok(stretch)
    }

    /// Thins out a range. Its end is rarely the end of a block, and a part of its first hour, or day, may have been
    /// thinned out before: that part is read again. So a minute or an hour that was split becomes one sample again, and
    /// an hour, or a day, is one block in the end, however many ranges it was thinned out in.
    fn thin_stretch(&self, stretch: &BlockRange) -> Result<()> {
        let (from, to) = (second(stretch.from), second(stretch.to));
        let blocks = self.bodies(stretch.recording, stretch.step, Some((&from, &to)))?;
        let coarser = Coarser::than(stretch.step);
        let begun = second(stretch.from - stretch.from.rem_euclid(coarser.block));
        let before = match blocks.first() {
            Some(first) => self.last_before(first, coarser.step, &begun)?,
            None => None,
        };
        let mut thinner = Thinner::new(Nanos::from_secs(coarser.sample as u64));
        let (mut thinned, mut replaced) = (Vec::new(), Vec::new());
        for block in before.into_iter().chain(blocks) {
            match self.unpacked(&block) {
                Ok(samples) => {
                    for sample in samples {
                        thinned.extend(thinner.take(sample));
                    }
                }
                // A damaged block of this step is dropped: its samples were due to be thinned out.
                Err(Error::UnreadableRecording { .. }) if block.step == stretch.step => {}
                Err(Error::UnreadableRecording { .. }) => continue,
                Err(error) => return Err(error),
            }
            replaced.push(block);
        }
        thinned.extend(thinner.finish());
        let blocks = thinned.chunk_by(|one, next| coarser.block_of(one) == coarser.block_of(next));
        let packed = blocks.filter_map(|samples| PackedSamples::of(coarser.step, samples));
        self.replace(&replaced, &packed.collect::<Vec<_>>())
    }

    /// Ends recordings that were abandoned: those of a host that no longer exists, or was renamed. A recorder that
    /// continues after all is not disturbed.
    fn end_abandoned(&self, now: Timestamp) -> Result<()> {
        let before = now.checked_sub(ABANDONED_AGE).unwrap_or(Timestamp::MIN);
        self.changed(|change| {
            change.execute(
                "UPDATE recordings SET ended = seen.newest FROM
                     (SELECT r.number, COALESCE(MAX(b.ended), r.began) AS newest
                      FROM recordings AS r LEFT JOIN blocks AS b ON b.recording = r.number
                      WHERE r.ended IS NULL GROUP BY r.number) AS seen
                 WHERE recordings.number = seen.number AND seen.newest < ?1",
                [sortable(before)],
            )
        })?;
        Ok(())
    }

    /// Makes blocks from the batches that killed recorders left.
    fn gather_ended(&self) -> Result<()> {
        let read = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT number FROM recordings AS r WHERE ended IS NOT NULL
                     AND EXISTS (SELECT 1 FROM blocks WHERE recording = r.number AND step = ?1)",
            )?;
            let rows = statement.query_map([BATCH], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<i64>>>()
        };
        let ended = read().map_err(|error| self.explain(error))?;
        ended.into_iter().try_for_each(|number| self.gather(number))
    }

    /// Drops the oldest block; false if there is none.
    fn drop_oldest(&self) -> Result<bool> {
        let dropped = self.changed(|change| {
            change.execute(
                "DELETE FROM blocks WHERE number =
                     (SELECT number FROM blocks WHERE step > 0 ORDER BY began LIMIT 1)",
                [],
            )
        })?;
        Ok(dropped > 0)
    }

    /// Removes events of times without samples, and recordings without any.
    fn sweep_up(&self) -> Result<()> {
        self.changed(|change| {
            change.execute(
                "DELETE FROM events WHERE COALESCE(over, found) <
                     (SELECT MIN(began) FROM blocks WHERE blocks.recording = events.recording)",
                [],
            )?;
            change.execute(
                "DELETE FROM recordings WHERE ended IS NOT NULL
                     AND NOT EXISTS (SELECT 1 FROM blocks WHERE recording = recordings.number)",
                [],
            )
        })?;
        Ok(())
    }

    /// Removes a recording with all that it holds.
    ///
    /// # Errors
    /// When the ledger cannot be written, or there is no such recording.
    pub fn remove_recording(&mut self, number: i64) -> Result<()> {
        match self.remove_numbered("recordings", number)? {
            true => Ok(()),
            false => Err(Error::NoSuchRecording {
                path: self.path.clone(),
                number,
            }),
        }
    }
}

/// A time in seconds since 1970 as it is stored in a column.
fn second(second: i64) -> String {
    sortable(Timestamp::from_second(second).unwrap_or(Timestamp::MIN))
}

/// The last whole multiple of `length` seconds up to a time in nanoseconds since 1970, in seconds.
fn multiple(time: i128, length: i64) -> i64 {
    let seconds = time.div_euclid(1_000_000_000) as i64;
    seconds - seconds.rem_euclid(length)
}
