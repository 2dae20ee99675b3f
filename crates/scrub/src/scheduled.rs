//! Sentences on the checks that the distribution has scheduled: before a scrub, and in `--status`.

use array::programs::Programs;
use jiff::{SignedDuration, Timestamp, Zoned};
use linux::Root;
use serde::Serialize;

use super::checkpoint::Checkpoint;
use super::schedule::{self, ScheduledChecks};
use super::timer;
use linux::md::sync::Sectors;

/// The checks that are scheduled on a host.
pub(crate) struct Plans {
    found: ScheduledChecks,
    has_own: bool,
    now: Zoned,
}

impl Plans {
    /// Reads them, and asks systemd.
    pub(crate) fn read(root: &Root, now: &Zoned, programs: &mut dyn Programs) -> Plans {
        let system = root.system();
        Plans {
            found: schedule::find(system, now, programs),
            has_own: timer::is_installed(system),
            now: now.clone(),
        }
    }

    /// Scheduled checks, and those turned off, as sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let all = self.found.scheduled.iter();
        let mut notices: Vec<String> = all.map(schedule::Scheduled::sentence).collect();
        notices.extend(self.found.unread.iter().cloned());
        if self.has_own {
            notices.push(
                "disksmith-scrub.timer, which 'disksmith scrub --install-timer' wrote, is there."
                    .into(),
            );
        } else if self.found.running().next().is_none() {
            notices.push(
                "Nothing checks the arrays of this host on a schedule: 'disksmith scrub --install-timer \
                 --all' would."
                    .to_owned(),
            );
        }
        notices
    }

    /// Obstacles of a scrub that is under way or begins now, as sentences. `limit` is when it ends in any
    /// case.
    pub(crate) fn in_the_way(
        &self,
        array: &str,
        kept: &Checkpoint,
        limit: Option<Timestamp>,
    ) -> Vec<String> {
        let zone = self.now.time_zone();
        let limit = limit.map(|limit| limit.to_zoned(zone.clone()));
        let until = [self.done(kept), limit].into_iter().flatten().min();
        let mut notices = match until {
            Some(until) => schedule::collisions(&self.found, array, &self.now, &until),
            // How long it takes is not known before it has begun.
            None => {
                let runs = self
                    .found
                    .running()
                    .filter(|one| !one.skips.iter().any(|skipped| skipped == array));
                runs.map(|one| one.sentence()).collect()
            }
        };
        if !notices.is_empty() {
            notices.push(
                "md runs one check of an array at a time, and what another program writes to its tunables \
                 ends this one, which then goes on with the same command; 'disksmith scrub \
                 --install-timer' replaces what is scheduled."
                    .to_owned(),
            );
        }
        notices
    }

    /// Time at which it is done at its rate so far.
    fn done(&self, kept: &Checkpoint) -> Option<Zoned> {
        let left = Sectors(kept.of.saturating_sub(kept.done)).bytes().0 as f64;
        let left = SignedDuration::try_from_secs_f64(left / kept.rate()?).ok()?;
        self.now.checked_add(left).ok()
    }

    /// The part of a document that tells of them.
    pub(crate) fn document(&self) -> PlansDocument<'_> {
        let checks = self.found.scheduled.iter().map(|one| CheckDocument {
            source: one.source.to_string(),
            checker: one.checker.name(),
            command: &one.command,
            off: one.off.as_deref(),
            next: one.next().map(|next| next.timestamp().to_string()),
            unclear: &one.unclear,
        });
        PlansDocument {
            checks: checks.collect(),
            unread: &self.found.unread,
            own_timer: self.has_own,
        }
    }
}

/// The checks of arrays that are scheduled on a host.
#[derive(Serialize)]
pub(crate) struct PlansDocument<'a> {
    checks: Vec<CheckDocument<'a>>,
    /// Files that could not be read, as sentences.
    unread: &'a [String],
    /// True if the timer of `--install-timer` is there.
    own_timer: bool,
}

/// A check that is scheduled.
#[derive(Serialize)]
struct CheckDocument<'a> {
    /// Its timer, or the file and line of cron.
    source: String,
    checker: &'static str,
    command: &'a str,
    /// Reason for which it does nothing.
    off: Option<&'a str>,
    /// The moment of its next start.
    next: Option<String>,
    /// Parts of the timer's settings that are not understood.
    unclear: &'a [String],
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::super::checkpoint::example;
    use super::super::schedule::tests::{InUtc, has_systemd};
    use super::*;
    use std::fs;

    /// Debian's line of cron, and its setting.
    fn debian(autocheck: &str) -> (tempfile::TempDir, Plans) {
        let place = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "etc/cron.d/mdadm",
                "57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ]; then /usr/share/mdadm/checkarray \
                 --cron --all --idle --quiet; fi\n",
            ),
            ("etc/default/mdadm", autocheck),
        ] {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let now = "2026-11-21T12:00:00[UTC]".parse().unwrap();
        let plans = Plans::read(&Root::under(place.path()), &now, &mut InUtc);
        (place, plans)
    }

    /// A scrub that has so many seconds to go.
    fn left(seconds: u64) -> Checkpoint {
        Checkpoint {
            done: 100,
            of: 100 + 100 * seconds,
            ran_s: 1.0,
            ..example()
        }
    }

    #[test]
    fn a_check_that_would_begin_meanwhile_is_reported_before_it_begins() {
        if !has_systemd() {
            return;
        }
        let (_place, plans) = debian("AUTOCHECK=true\n");
        let notices = plans.in_the_way("md0", &left(24 * 3600), None).join(" ");
        assert!(
            notices.contains("runs checkarray at 2026-11-22 00:57 UTC, while this scrub"),
            "{notices}"
        );
        assert!(notices.contains("--install-timer"), "{notices}");
        assert!(plans.in_the_way("md0", &left(3600), None).is_empty());
        let limit = "2026-11-21T13:00:00Z".parse().unwrap();
        assert!(
            plans
                .in_the_way("md0", &left(24 * 3600), Some(limit))
                .is_empty()
        );
        let unknown = plans
            .in_the_way(
                "md0",
                &Checkpoint {
                    done: 0,
                    ..example()
                },
                None,
            )
            .join(" ");
        assert!(
            unknown.contains("next at 2026-11-22 00:57 UTC"),
            "{unknown}"
        );
        assert_eq!(
            plans.document().checks[0].next.as_deref(),
            Some("2026-11-22T00:57:00Z")
        );
    }

    #[test]
    fn arrays_that_nothing_checks_are_reported() {
        let (_place, plans) = debian("AUTOCHECK=false\n");
        let notices = plans.sentences().join(" ");
        assert!(
            notices.contains("does not: AUTOCHECK=false in /etc/default/mdadm."),
            "{notices}"
        );
        assert!(
            notices.contains("Nothing checks the arrays of this host"),
            "{notices}"
        );
        assert!(plans.in_the_way("md0", &left(24 * 3600), None).is_empty());
    }
}
