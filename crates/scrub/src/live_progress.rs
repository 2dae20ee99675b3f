//! Current progress of a running scrub, for `--status`: its rate, and the foreground's latency.
//!
//! It is a file beside the locks, in memory. The ledger is written only every ten seconds, since it may lie on the
//! array.

use std::path::{Path, PathBuf};
use std::{fs, io};

use jiff::{SignedDuration, Timestamp};
use linux::md::sync::Sectors;
use serde::{Deserialize, Serialize};

use super::drive::ScrubProgress;
use super::lock::LOCK_FOLDER;
use study::pace::{HeldBy, Targets};

/// Interval at which the file is written.
const WRITE_INTERVAL: SignedDuration = SignedDuration::from_secs(1);
/// Age above which progress is out of date: the process is stopped, or hangs.
const MAX_AGE: SignedDuration = SignedDuration::from_secs(30);

/// Progress of a scrub. Latencies are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LiveStatus {
    /// Time of the figures.
    pub moment: Timestamp,
    /// Position of md, in sectors.
    live: u64,
    /// Position of the end of the check, in sectors.
    of: u64,
    mismatches: u64,
    /// Recent rate, in bytes a second.
    pub rate: Option<f64>,
    mean: Option<f64>,
    p99: Option<f64>,
    keep_mean: Option<f64>,
    keep_p99: Option<f64>,
    beside: bool,
    measuring: bool,
    /// Time for which latency exceeded a target, in seconds. A process of an older version does not write this key and
    /// the next one.
    #[serde(default)]
    above_s: f64,
    #[serde(default)]
    held: Option<HeldBy>,
}

impl LiveStatus {
    /// Progress at `moment`, with the recent rate in bytes a second.
    pub(super) fn new(at: &ScrubProgress, rate: Option<f64>, moment: Timestamp) -> LiveStatus {
        let targets = at.targets.unwrap_or_default();
        LiveStatus {
            moment,
            live: at.live.0,
            of: at.of.0,
            mismatches: at.mismatches_seen,
            rate,
            mean: at.mean,
            p99: at.p99,
            keep_mean: targets.mean_s,
            keep_p99: targets.p99_s,
            beside: at.beside,
            measuring: at.measuring,
            above_s: at.above_s,
            held: at.held,
        }
    }

    /// The progress of the scrub.
    pub(super) fn at(&self) -> ScrubProgress {
        let targets = Targets {
            mean_s: self.keep_mean,
            p99_s: self.keep_p99,
        };
        ScrubProgress {
            live: Sectors(self.live),
            of: Sectors(self.of),
            mismatches_seen: self.mismatches,
            mean: self.mean,
            p99: self.p99,
            targets: (targets != Targets::default()).then_some(targets),
            beside: self.beside,
            measuring: self.measuring,
            above_s: self.above_s,
            held: self.held,
            ..ScrubProgress::default()
        }
    }

    /// Time until the end at the recent rate, in seconds; `None` without a rate.
    pub(super) fn left_s(&self) -> Option<f64> {
        let left = Sectors(self.of.saturating_sub(self.live)).bytes().0 as f64;
        self.rate.filter(|_| self.of > 0).map(|rate| left / rate)
    }

    /// Expected time of the end at the recent rate.
    pub(super) fn done(&self) -> Option<Timestamp> {
        let left = SignedDuration::try_from_secs_f64(self.left_s()?).ok()?;
        self.moment.checked_add(left).ok()
    }
}

/// The file of a scrub, which is removed when this is dropped.
pub(super) struct StatusFile {
    path: PathBuf,
    last: Option<Timestamp>,
}

impl StatusFile {
    /// File of an array's scrub, by the array's id.
    pub(super) fn of(uuid: &str) -> StatusFile {
        StatusFile::beside(Path::new(LOCK_FOLDER), uuid)
    }

    fn beside(folder: &Path, uuid: &str) -> StatusFile {
        StatusFile {
            path: file(folder, uuid),
            last: None,
        }
    }

    /// Writes the progress, if [`WRITE_INTERVAL`] has passed. A failure is ignored.
    pub(super) fn publish(&mut self, at: &ScrubProgress, rate: Option<f64>, moment: Timestamp) {
        // The absolute value, so that a clock that is set back does not stop the updates.
        let is_due = |last| moment.duration_since(last).abs() >= WRITE_INTERVAL;
        if self.last.is_none_or(is_due) {
            self.last = Some(moment);
            let _ = self.write(&LiveStatus::new(at, rate, moment));
        }
    }

    /// Replaces the file atomically: a reader finds the old one or the new one.
    fn write(&self, now: &LiveStatus) -> io::Result<()> {
        let new = self.path.with_extension("new");
        fs::write(&new, serde_json::to_vec(now)?)?;
        fs::rename(new, &self.path)
    }
}

impl Drop for StatusFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn file(folder: &Path, uuid: &str) -> PathBuf {
    folder.join(format!("scrub-now-{uuid}"))
}

/// Progress of the scrub of an array, by the array's id; `None` where there is no progress that is current at `moment`.
pub(super) fn read(uuid: &str, moment: Timestamp) -> Option<LiveStatus> {
    read_in(Path::new(LOCK_FOLDER), uuid, moment)
}

fn read_in(folder: &Path, uuid: &str, moment: Timestamp) -> Option<LiveStatus> {
    let bytes = fs::read(file(folder, uuid)).ok()?;
    let now: LiveStatus = serde_json::from_slice(&bytes).ok()?;
    (moment.duration_since(now.moment).abs() < MAX_AGE).then_some(now)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A scrub beside a foreground that has done a quarter of 2 GiB.
    pub(in super::super) fn a_quarter_done() -> ScrubProgress {
        ScrubProgress {
            live: Sectors(1 << 20),
            of: Sectors(1 << 22),
            p99: Some(0.0031),
            targets: Some(Targets {
                mean_s: None,
                p99_s: Some(0.005),
            }),
            beside: true,
            ..ScrubProgress::default()
        }
    }

    #[test]
    fn a_notice_is_read_until_it_is_old_or_over() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let at = ScrubProgress {
            mismatches_seen: 8,
            above_s: 4.0,
            held: Some(HeldBy::P99),
            ..a_quarter_done()
        };
        let moment = Timestamp::from_second(1_000).unwrap();
        let mut notice = StatusFile::beside(folder, "a:b");
        assert_eq!(read_in(folder, "a:b", moment), None);
        notice.publish(&at, Some(1_048_576.0), moment);
        let now = read_in(folder, "a:b", moment).unwrap();
        assert_eq!(now.at(), at);
        // Three quarters of 2 GiB at a MiB a second.
        assert_eq!(now.left_s(), Some(1536.0));
        assert_eq!(now.done().unwrap().as_second(), 2_536);
        // Not more than once a second.
        notice.publish(
            &ScrubProgress::default(),
            None,
            moment + SignedDuration::from_millis(500),
        );
        assert_eq!(read_in(folder, "a:b", moment), Some(now));
        let later = moment + WRITE_INTERVAL;
        notice.publish(&ScrubProgress::default(), None, later);
        let now = read_in(folder, "a:b", later).unwrap();
        assert_eq!((now.at(), now.left_s()), (ScrubProgress::default(), None));
        assert_eq!(
            read_in(folder, "a:b", later + MAX_AGE),
            None,
            "it is stopped"
        );
        drop(notice);
        assert_eq!(read_in(folder, "a:b", later), None);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }
}
