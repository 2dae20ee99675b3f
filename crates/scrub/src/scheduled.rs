//! Reports of other programs' scheduled checks: before a scrub, and in `--status`.

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
    /// Reads the schedules of the host, and queries systemd.
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
                "disksmith-scrub.timer is installed (by 'disksmith scrub --install-timer').".into(),
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

    /// Obstacles of a scrub that runs or begins now, as sentences. `limit` is the time at which it ends in any case.
    pub(crate) fn obstacles(
        &self,
        array: &str,
        checkpoint: &Checkpoint,
        limit: Option<Timestamp>,
    ) -> Vec<String> {
        let zone = self.now.time_zone();
        let limit = limit.map(|limit| limit.to_zoned(zone.clone()));
        let until = [self.done(checkpoint), limit].into_iter().flatten().min();
        let checks = self.found.scheduled.iter();
        let collisions = checks.filter_map(|one| one.collision(array, &self.now, until.as_ref()));
        let mut notices: Vec<String> = collisions.collect();
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

    /// Time at which the scrub is done at its rate so far.
    fn done(&self, checkpoint: &Checkpoint) -> Option<Zoned> {
        let left = Sectors(checkpoint.of.saturating_sub(checkpoint.done))
            .bytes()
            .0 as f64;
        let left = SignedDuration::try_from_secs_f64(left / checkpoint.rate()?).ok()?;
        self.now.checked_add(left).ok()
    }

    /// The schedules as a part of a document.
    pub(crate) fn document(&self) -> PlansDocument<'_> {
        let checks = self.found.scheduled.iter().map(|one| CheckDocument {
            source: one.source.to_string(),
            checker: one.checker.name(),
            command: &one.command,
            off: one.off.as_deref(),
            next: one.next.as_ref().map(|next| next.timestamp().to_string()),
            unclear: one.times.as_slice(),
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlansDocument<'a> {
    /// The scheduled checks.
    checks: Vec<CheckDocument<'a>>,
    /// Files that could not be read, as sentences.
    unread: &'a [String],
    /// True if the timer of `--install-timer` is installed.
    own_timer: bool,
}

/// A check that is scheduled.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CheckDocument<'a> {
    /// The systemd timer, or the file and line of cron.
    source: String,
    /// Name of the program that checks, such as `checkarray`.
    checker: &'static str,
    /// The command line that is scheduled.
    command: &'a str,
    /// Reason for which the check does nothing, as a clause; null where it is on.
    off: Option<&'a str>,
    /// Time of the next start; null where it is not known.
    next: Option<String>,
    /// Times of starts that are not evaluated, such as those of cron, as sentences.
    unclear: &'a [String],
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::super::checkpoint::example;
    use super::super::schedule::tests::{Host, now};
    use super::*;

    fn plans(host: &Host) -> Plans {
        Plans::read(&Root::under(host.0.path()), &now(), &mut host.systemd())
    }

    /// A scrub with this many seconds left.
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
        let plans = plans(&Host::red_hat());
        let week = left(7 * 24 * 3600);
        let notices = plans.obstacles("md0", &week, None).join(" ");
        assert!(
            notices.contains("runs raid-check at 2026-11-22 01:00 CET, while this scrub"),
            "{notices}"
        );
        assert!(notices.contains("--install-timer"), "{notices}");
        assert!(plans.obstacles("md0", &left(3600), None).is_empty());
        let limit = "2026-11-21T13:00:00Z".parse().unwrap();
        assert!(plans.obstacles("md0", &week, Some(limit)).is_empty());
        let unknown = Checkpoint {
            done: 0,
            ..example()
        };
        let notices = plans.obstacles("md0", &unknown, None).join(" ");
        assert!(
            notices.contains("next at 2026-11-22 01:00 CET"),
            "{notices}"
        );
        let document = serde_json::to_value(plans.document()).unwrap();
        let check = &document["checks"][0];
        assert_eq!(check["next"], "2026-11-22T00:00:00Z");
        assert_eq!(check["unclear"], serde_json::json!([]));
    }

    #[test]
    fn arrays_that_nothing_checks_are_reported() {
        let host = Host::debian();
        let document = serde_json::to_value(plans(&host).document()).unwrap();
        let unclear = &document["checks"][0]["unclear"];
        assert_eq!(unclear[0], "cron starts it at '57 0 * * 0'.");
        host.write("etc/default/mdadm", "AUTOCHECK=false\n");
        let plans = plans(&host);
        let notices = plans.sentences().join(" ");
        assert!(
            notices.contains("does not: AUTOCHECK=false in /etc/default/mdadm."),
            "{notices}"
        );
        assert!(
            notices.contains("Nothing checks the arrays of this host"),
            "{notices}"
        );
        assert!(plans.obstacles("md0", &left(3600), None).is_empty());
    }
}
