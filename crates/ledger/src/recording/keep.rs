//! For how long recordings are kept, and how closely.

use jiff::{SignedDuration, Timestamp};
use record::{Bytes, Nanos};
use rusqlite::{OptionalExtension as _, params};

use super::packed::Packed;
use super::thin::Thinner;
use super::{BATCH, HOURS, MINUTES, TAKEN};
use crate::runs::sortable;
use crate::{Error, Ledger, Result};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// Blocks of the last while are left as they are, whatever room there is: somebody looks at them.
const RECENT: SignedDuration = SignedDuration::from_secs(900);

/// Where room is short, shorter stretches are thinned out, in seconds: else all that is old would be dropped
/// before an hour, or a day, is whole.
const PRESSED_TAKEN: i64 = 600;
const PRESSED_MINUTES: i64 = HOUR;
/// Events take no more than this part of the room.
const EVENTS_SHARE: u64 = 4;

/// Whose recorder has not written for so long will not go on.
const FORSAKEN: SignedDuration = SignedDuration::from_hours(24);

/// For how long samples are kept, how closely, and in how much room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// As they were taken. Older ones are thinned out to a minute.
    pub taken: Nanos,
    /// By the minute. Older ones are thinned out to an hour.
    pub minutes: Nanos,
    /// All recordings of the ledger take no more than this, in pages of the file. What is too much
    /// is thinned out sooner, the oldest first, and then dropped.
    pub limit: Bytes,
}

impl Default for Keep {
    /// Three days, sixty days, and 256 MiB.
    fn default() -> Keep {
        Keep {
            taken: Nanos::from_secs(3 * DAY as u64),
            minutes: Nanos::from_secs(60 * DAY as u64),
            limit: Bytes::mib(256),
        }
    }
}

/// A stretch of one recording's blocks of a step.
struct Stretch {
    recording: i64,
    from: String,
    to: String,
}

impl Ledger {
    /// Thins out what is older than it is to be kept, and what does not fit. Each stretch that is
    /// thinned out is a transaction of its own. What killed recorders left in batches is put in order
    /// before.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn thin_out(&self, keep: &Keep, now: Timestamp) -> Result<()> {
        let before = |age: Nanos| {
            let age = SignedDuration::from_nanos(i64::try_from(age.0).unwrap_or(i64::MAX));
            now.checked_sub(age).unwrap_or(Timestamp::MIN)
        };
        let recent = now.checked_sub(RECENT).unwrap_or(Timestamp::MIN);
        self.end_forsaken(now)?;
        self.gather_ended()?;
        while let Some(stretch) = self.oldest(TAKEN, before(keep.taken))? {
            self.thin_stretch(&stretch, TAKEN)?;
        }
        while let Some(stretch) = self.oldest(MINUTES, before(keep.minutes))? {
            self.thin_stretch(&stretch, MINUTES)?;
        }
        self.limit_events(Bytes(keep.limit.0 / EVENTS_SHARE))?;
        while self.recorded_bytes()? > keep.limit {
            if let Some(stretch) = self.oldest_of(TAKEN, recent, PRESSED_TAKEN)? {
                self.thin_stretch(&stretch, TAKEN)?;
            } else if let Some(stretch) = self.oldest_of(MINUTES, recent, PRESSED_MINUTES)? {
                self.thin_stretch(&stretch, MINUTES)?;
            } else if !self.drop_oldest()? {
                break;
            }
        }
        self.sweep_up()
    }

    /// Drops the oldest events until all of them take no more than this: what is found again and again would
    /// else leave no room for samples.
    fn limit_events(&self, most: Bytes) -> Result<()> {
        self.changed(|change| {
            change.execute(
                "DELETE FROM events WHERE rowid IN
                     (SELECT rowid FROM
                         (SELECT rowid, SUM(length(body)) OVER (ORDER BY found DESC, rowid DESC) AS newer
                          FROM events)
                      WHERE newer > ?1)",
                [i64::try_from(most.0).unwrap_or(i64::MAX)],
            )
        })?;
        Ok(())
    }

    /// What all recordings take: whole pages of the file for blocks, the bytes of batches, and the
    /// text of events.
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

    /// The oldest stretch of a step of which all was seen before `end`: an hour of samples, a day of
    /// minutes.
    fn oldest(&self, step: u32, end: Timestamp) -> Result<Option<Stretch>> {
        self.oldest_of(step, end, if step == TAKEN { HOUR } else { DAY })
    }

    /// The same of a stretch of so many seconds.
    fn oldest_of(&self, step: u32, end: Timestamp, length: i64) -> Result<Option<Stretch>> {
        let found = self
            .connection
            .query_row(
                "SELECT recording, began FROM blocks WHERE step = ?1 ORDER BY began LIMIT 1",
                [step],
                |row| {
                    Ok((
                        row.get::<_, i64>(0)?,
                        crate::runs::word_at::<Timestamp>(row, 1)?,
                    ))
                },
            )
            .optional()
            .map_err(|error| self.explain(error))?;
        let stretch = found.and_then(|(recording, began)| {
            let from = began.as_second().div_euclid(length) * length;
            let (from, to) = (at(from)?, at(from + length)?);
            // A block that begins within the stretch may end a few minutes after it.
            (to <= end).then(|| Stretch {
                recording,
                from: sortable(from),
                to: sortable(to),
            })
        });
        Ok(stretch)
    }

    fn thin_stretch(&self, stretch: &Stretch, step: u32) -> Result<()> {
        let (next, seconds) = if step == TAKEN {
            (MINUTES, 60)
        } else {
            (HOURS, HOUR as u64)
        };
        let within = Some((stretch.from.as_str(), stretch.to.as_str()));
        let mut thinner = Thinner::new(Nanos::from_secs(seconds));
        let mut thinned = Vec::new();
        let blocks = self.bodies(stretch.recording, step, within)?;
        for block in &blocks {
            match self.unpacked(step, block) {
                Ok(samples) => {
                    for sample in samples {
                        thinned.extend(thinner.take(sample));
                    }
                }
                // What is damaged has had its time too.
                Err(Error::UnreadableRecording { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        thinned.extend(thinner.finish());
        self.replace(step, &blocks, next, Packed::of(next, &thinned).as_ref())
    }

    /// Ends recordings that nobody ended and nobody went on with for long: of a host that is gone, or has
    /// another name now. One that goes on after all is not disturbed by it.
    fn end_forsaken(&self, now: Timestamp) -> Result<()> {
        let before = now.checked_sub(FORSAKEN).unwrap_or(Timestamp::MIN);
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

    /// Makes blocks of the batches that killed recorders left.
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

    /// Drops the oldest block; whether there was one.
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

    /// Removes events of times of which no sample is left, and recordings without any.
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
        let removed = self.changed(|change| {
            change.execute("DELETE FROM recordings WHERE number = ?1", params![number])
        })?;
        match removed {
            0 => Err(Error::NoSuchRecording {
                path: self.path.clone(),
                number,
            }),
            _ => Ok(()),
        }
    }
}

fn at(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}
