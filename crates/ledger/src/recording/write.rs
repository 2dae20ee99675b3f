//! Writes recordings: batches of samples, and blocks of batches.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use record::Nanos;
use record::sample::{DeviceId, Sample, SampleSource, VendorSample};
use rusqlite::{Transaction, params};

use super::block::LastHead;
use super::blocks::insert;
use super::packed::{PackedSamples, SamplePacker};
use super::thin::add_pages;
use super::{BATCH, RecordedEvent, UNTHINNED};
use crate::columns::{json, json_at, sortable, word_at};
use crate::{Error, Ledger, Owner, OwnerLiveness, Result};

/// Number of device rows at which batches become a block, so that packing it takes little memory.
const BLOCK_ROWS: u64 = 8_000;
/// Time at which batches become a block, so that a short span is read without much other data.
const BLOCK_SPAN: Nanos = Nanos::from_secs(600);
/// Interval at which a volume's statistics page is stored; readings in between are summed.
const PAGE_EVERY: Nanos = Nanos::from_secs(15);
/// Age of the last write up to which a recorder that cannot be seen from here counts as running.
const ACTIVE_AGE: SignedDuration = SignedDuration::from_secs(60);

/// The exclusive right to add to a recording; one process has it.
#[derive(Debug)]
pub struct Recording {
    number: i64,
    /// Start of the recording, which identifies it: the number of a removed recording may be reused.
    began: String,
    /// Sums of the volumes' statistics pages since they were last stored.
    pages: HashMap<DeviceId, VendorSample>,
    /// The head of the last batch.
    head: LastHead,
    /// Number of device rows in the batches that are not yet a block.
    rows: u64,
    /// Time that these batches span.
    span: Nanos,
}

impl Recording {
    /// Number of the recording in the ledger.
    pub fn number(&self) -> i64 {
        self.number
    }
}

impl Ledger {
    /// Begins to record the host of `owner`. A recording of this host that a killed recorder left is ended first;
    /// [`thin_out`](Ledger::thin_out) makes blocks from its batches. `liveness` returns the liveness of an owner.
    ///
    /// # Errors
    /// When the ledger cannot be written, or another process records this host there.
    pub fn begin_recording(
        &mut self,
        owner: &Owner,
        source: &SampleSource,
        liveness: impl Fn(&Owner) -> OwnerLiveness,
    ) -> Result<Recording> {
        self.demand_writable()?;
        let now = Timestamp::now();
        let change = self.change().map_err(|error| self.explain(error))?;
        let left = self.left_open(&change, &owner.host)?;
        for other in &left {
            let is_alive = match liveness(&other.owner) {
                OwnerLiveness::Alive => true,
                OwnerLiveness::Dead => false,
                OwnerLiveness::Elsewhere => now.duration_since(other.last) < ACTIVE_AGE,
            };
            if is_alive {
                return Err(Error::AlreadyRecording {
                    path: self.path.clone(),
                    host: owner.host.clone(),
                    pid: other.owner.pid,
                    began: other.began,
                });
            }
        }
        let number = (|| {
            for other in &left {
                close(&change, other.number, other.last)?;
            }
            change.execute(
                "INSERT INTO recordings (host, began, ended, owner, source)
                 VALUES (?1, ?2, NULL, ?3, ?4)",
                params![owner.host, sortable(now), json(owner)?, json(source)?],
            )?;
            let number = change.last_insert_rowid();
            change.commit()?;
            Ok(number)
        })()
        .map_err(|error| self.explain(error))?;
        Ok(Recording {
            number,
            began: sortable(now),
            pages: HashMap::new(),
            head: LastHead::default(),
            rows: 0,
            span: Nanos(0),
        })
    }

    /// Adds the next samples, and the present state of events. When this returns they are on the disk. After an error
    /// nothing has changed, and the call may be repeated.
    ///
    /// # Errors
    /// When the ledger cannot be written, or the recording was removed from it.
    pub fn record(
        &mut self,
        recording: &mut Recording,
        samples: &[Sample],
        events: &[RecordedEvent],
    ) -> Result<()> {
        let mut pages = recording.pages.clone();
        let summed = |sample: &Sample| {
            let mut sample = sample.clone();
            sum_pages(&mut pages, &mut sample);
            sample
        };
        let taken: Vec<Sample> = samples.iter().map(summed).collect();
        let packed = PackedSamples::batch(&taken, &mut recording.head);
        let number = recording.number;
        let is_there = self.changed(|change| {
            if !exists(change, recording)? {
                return Ok(false);
            }
            insert(change, number, packed.as_slice())?;
            for noted in events {
                note(change, number, noted)?;
            }
            Ok(true)
        })?;
        if !is_there {
            return Err(Error::NoSuchRecording {
                path: self.path.clone(),
                number,
            });
        }
        recording.pages = pages;
        recording.rows += samples
            .iter()
            .map(|one| one.devices.len() as u64)
            .sum::<u64>();
        recording.span += samples
            .iter()
            .map(|one| one.length)
            .fold(Nanos(0), |a, b| a + b);
        // If this fails, the batches are still on the disk, and the next call tries again.
        if (recording.rows >= BLOCK_ROWS || recording.span >= BLOCK_SPAN)
            && self.gather(number).is_ok()
        {
            (recording.rows, recording.span) = (0, Nanos(0));
        }
        Ok(())
    }

    /// Ends a recording. Does nothing if the recording was removed.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn end_recording(&mut self, recording: &Recording) -> Result<()> {
        self.gather(recording.number)?;
        self.changed(|change| {
            if exists(change, recording)? {
                close(change, recording.number, Timestamp::now())?;
            }
            Ok(())
        })
    }

    /// Makes one block of the batches of a recording. A damaged batch becomes a block of its own: reading it is an
    /// error that names it, and it is dropped when it is due to be thinned out.
    pub(super) fn gather(&self, recording: i64) -> Result<()> {
        self.demand_writable()?;
        let batches = self.bodies(recording, BATCH, None)?;
        let (mut whole, mut damaged) = (Vec::new(), Vec::new());
        let mut gathered = SamplePacker::default();
        for batch in batches {
            match self.unpacked(&batch) {
                Ok(unpacked) => {
                    for one in unpacked {
                        gathered.add(&one.sample);
                    }
                    whole.push(batch);
                }
                Err(Error::UnreadableRecording { .. }) => damaged.push(batch),
                Err(error) => return Err(error),
            }
        }
        self.replace(&whole, gathered.finish().as_slice())?;
        if damaged.is_empty() {
            return Ok(());
        }
        self.changed(|change| {
            for batch in &damaged {
                change.execute(
                    "UPDATE blocks SET step = ?2 WHERE number = ?1 AND step = ?3",
                    params![batch.number, UNTHINNED, BATCH],
                )?;
            }
            Ok(())
        })
    }

    /// Recordings of a host that were not ended.
    fn left_open(&self, change: &Transaction<'_>, host: &str) -> Result<Vec<OpenRecording>> {
        let read = || {
            let mut statement = change.prepare(
                "SELECT number, owner, began,
                        COALESCE((SELECT MAX(ended) FROM blocks WHERE recording = r.number), began)
                 FROM recordings AS r WHERE host = ?1 AND ended IS NULL",
            )?;
            let rows = statement.query_map([host], |row| {
                Ok(OpenRecording {
                    number: row.get(0)?,
                    owner: json_at(row, 1)?,
                    began: word_at(row, 2)?,
                    last: word_at(row, 3)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<OpenRecording>>>()
        };
        read().map_err(|error| self.explain(error))
    }
}

/// A recording that was not ended.
struct OpenRecording {
    number: i64,
    owner: Owner,
    began: Timestamp,
    last: Timestamp,
}

/// Sums the volumes' statistics pages over samples; the sum is put into the sample that completes [`PAGE_EVERY`].
fn sum_pages(pages: &mut HashMap<DeviceId, VendorSample>, sample: &mut Sample) {
    for device in &mut sample.devices {
        let id = device.device.id;
        let Some(page) = device.vendor.take() else {
            continue;
        };
        let sum = match pages.remove(&id) {
            Some(before) => add_pages(&before, &page),
            None => VendorSample {
                read_latency: Vec::new(),
                write_latency: Vec::new(),
                ..page
            },
        };
        if sum.length >= PAGE_EVERY {
            device.vendor = Some(sum);
        } else {
            pages.insert(id, sum);
        }
    }
}

/// True if a recording still exists, and its number was not reused.
fn exists(change: &Transaction<'_>, recording: &Recording) -> rusqlite::Result<bool> {
    change.query_row(
        "SELECT EXISTS (SELECT 1 FROM recordings WHERE number = ?1 AND began = ?2)",
        params![recording.number, recording.began],
        |row| row.get(0),
    )
}

fn note(change: &Transaction<'_>, recording: i64, noted: &RecordedEvent) -> rusqlite::Result<()> {
    let over = noted.event.ended.and_then(|ended| ended.wall);
    change.execute(
        "INSERT INTO events (recording, id, found, over, body) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (recording, id) DO UPDATE SET over = ?4, body = ?5",
        params![
            recording,
            noted.event.id as i64,
            sortable(noted.found.wall.unwrap_or_default()),
            over.map(sortable),
            json(&noted.event)?,
        ],
    )?;
    Ok(())
}

fn close(change: &Transaction<'_>, number: i64, at: Timestamp) -> rusqlite::Result<()> {
    change.execute(
        "UPDATE recordings SET ended = ?2 WHERE number = ?1",
        params![number, sortable(at)],
    )?;
    Ok(())
}
