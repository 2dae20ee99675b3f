//! Recordings in a ledger: written, read, thinned out, removed.

use jiff::{SignedDuration, Timestamp};
use record::sample::{DeviceId, Gap, Sample, SampleSource};
use record::{Bytes, Nanos, Severity, Subject};
use study::watch::{EventCode, WatchEvent};

use crate::owner::tests::owner;
use crate::recording::packed::PackedSamples;
use crate::recording::simulated::Host;
use crate::recording::*;
use crate::testing::Scratch;
use crate::{Error, Ledger, OwnerLiveness};

fn day(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn event(id: u64, at: SampleTime, ended: Option<SampleTime>) -> RecordedEvent {
    RecordedEvent {
        event: WatchEvent {
            id,
            code: EventCode::Stalled,
            severity: Severity::Warn,
            subject: Subject::Device(DeviceId(0)),
            name: "nvme0n1".to_owned(),
            began: at,
            ended,
            text: "What.".to_owned(),
            advice: "Do.".to_owned(),
            figures: Vec::new(),
        },
        found: at,
    }
}

fn begin(ledger: &mut Ledger) -> Recording {
    ledger
        .begin_recording(&owner(7), &SampleSource::default(), |_| OwnerLiveness::Dead)
        .unwrap()
}

/// Records some seconds of a host in batches of five samples.
fn record(ledger: &mut Ledger, recording: &mut Recording, host: &mut Host, seconds: usize) {
    for _ in 0..seconds / 5 {
        let batch: Vec<_> = (0..5).map(|_| host.next()).collect();
        ledger.record(recording, &batch, &[]).unwrap();
    }
}

fn play(ledger: &Ledger, from: &str, to: &str) -> Vec<ReplayedSample> {
    let replay = ledger.replay("db-1", day(from), day(to)).unwrap();
    replay.map(|played| played.unwrap()).collect()
}

#[test]
fn a_recording_is_replayed_with_its_events() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let mut host = Host::new(2, 5, day("2026-11-20T03:00:00Z"));
    record(&mut ledger, &mut recording, &mut host, 60);
    let sample = host.next();
    let at = sample.at;
    ledger
        .record(&mut recording, &[sample], &[event(1, at, None)])
        .unwrap();
    record(&mut ledger, &mut recording, &mut host, 10);
    let sample = host.next();
    let over = event(1, at, Some(sample.at));
    ledger.record(&mut recording, &[sample], &[over]).unwrap();
    for ended in [false, true] {
        let played = play(&ledger, "2026-11-20T03:00:30Z", "2026-11-20T04:00:00Z");
        assert_eq!(played.len(), 72 - 30 + 1, "ended: {ended}");
        let opened: Vec<usize> = (0..played.len())
            .filter(|at| !played[*at].opened.is_empty())
            .collect();
        let closed: Vec<usize> = (0..played.len())
            .filter(|at| !played[*at].closed.is_empty())
            .collect();
        assert_eq!((opened, closed), (vec![31], vec![42]));
        ledger.end_recording(&recording).unwrap();
    }
    assert!(play(&ledger, "2026-11-20T05:00:00Z", "2026-11-20T06:00:00Z").is_empty());
    let listed = ledger.recordings().unwrap().remove(0);
    assert_eq!(
        (listed.taken, listed.events, listed.is_open),
        (72, 1, false)
    );
    ledger.remove_recording(listed.number).unwrap();
    assert!(ledger.recordings().unwrap().is_empty());
    assert_eq!(ledger.recorded_bytes().unwrap(), Bytes(0));
}

#[test]
fn recordings_that_follow_each_other_are_one_series_with_a_gap() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    for (seed, hour) in [(1, "2026-11-20T03:00:00Z"), (2, "2026-11-20T04:00:00Z")] {
        let mut recording = begin(&mut ledger);
        let mut host = Host::new(8, seed, day(hour));
        record(&mut ledger, &mut recording, &mut host, 20);
        ledger.end_recording(&recording).unwrap();
    }
    let played = play(&ledger, "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z");
    assert_eq!(played.len(), 40);
    let sample = |at: usize| &played[at].recorded.sample;
    let Some(Gap::Unseen(missing)) = sample(20).gap else {
        panic!("{:?}", sample(20).gap);
    };
    assert!(
        missing.0.abs_diff(3_580_000_000_000) < 1_000_000_000,
        "{missing}"
    );
    assert_eq!(
        sample(19).devices[3].device.id,
        sample(20).devices[3].device.id
    );
    assert!(
        played
            .iter()
            .skip(1)
            .all(|one| one.recorded.sample.at.elapsed > Nanos(0))
    );
    let lies_on = &sample(39).named("md0").unwrap().device.lies_on;
    assert_eq!(lies_on.len(), 8);
}

#[test]
fn findings_that_last_when_a_recording_ends_end_with_it() {
    let span = ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z");
    for is_killed in [false, true] {
        let scratch = Scratch::new();
        let mut ledger = Ledger::open(scratch.ledger()).unwrap();
        let mut first = begin(&mut ledger);
        let mut host = Host::new(1, 1, day("2026-11-20T03:00:00Z"));
        record(&mut ledger, &mut first, &mut host, 10);
        let sample = host.next();
        let noted = event(1, sample.at, None);
        ledger.record(&mut first, &[sample], &[noted]).unwrap();
        record(&mut ledger, &mut first, &mut host, 10);
        if !is_killed {
            ledger.end_recording(&first).unwrap();
            let played = play(&ledger, span.0, span.1);
            let closed: Vec<usize> = (0..21)
                .filter(|at| !played[*at].closed.is_empty())
                .collect();
            assert_eq!(closed, [20]);
            // A shorter span does not include its end.
            let part = play(&ledger, span.0, "2026-11-20T03:00:15Z");
            assert!(part.iter().all(|one| one.closed.is_empty()));
        }
        let mut second = begin(&mut ledger);
        let mut host = Host::new(1, 2, day("2026-11-20T04:00:00Z"));
        record(&mut ledger, &mut second, &mut host, 10);
        let played = play(&ledger, span.0, span.1);
        let closed: Vec<(usize, &WatchEvent)> = played
            .iter()
            .enumerate()
            .flat_map(|(at, one)| one.closed.iter().map(move |event| (at, event)))
            .collect();
        let [(at, event)] = closed.as_slice() else {
            panic!("{closed:?}");
        };
        assert_eq!(*at, 20, "killed: {is_killed}");
        assert_eq!(event.ended, Some(played[20].recorded.sample.at));
        assert_eq!(event.id, played[10].opened[0].id);
    }
}

#[test]
fn two_recorders_of_a_host_are_refused_and_a_dead_one_is_followed() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut first = begin(&mut ledger);
    let mut host = Host::new(1, 1, day("2026-11-20T03:00:00Z"));
    record(&mut ledger, &mut first, &mut host, 10);
    let again = |ledger: &mut Ledger, liveness: OwnerLiveness| {
        ledger.begin_recording(&owner(8), &SampleSource::default(), move |_| liveness)
    };
    let refused = again(&mut ledger, OwnerLiveness::Alive).unwrap_err();
    assert!(
        matches!(refused, Error::AlreadyRecording { pid: 7, .. }),
        "{refused}"
    );
    let mut other = owner(9);
    other.host = "db-2".to_owned();
    ledger
        .begin_recording(&other, &SampleSource::default(), |_| OwnerLiveness::Alive)
        .unwrap();
    again(&mut ledger, OwnerLiveness::Dead).unwrap();
    let listed = ledger.recordings().unwrap();
    assert_eq!(listed.len(), 3);
    let first = listed
        .iter()
        .find(|one| one.number == first.number())
        .unwrap();
    assert_eq!((first.taken, first.is_open), (10, false));
}

#[test]
fn old_samples_are_thinned_out_and_those_beyond_the_limit_dropped() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let began = day("2026-11-20T03:00:00Z");
    let mut host = Host::new(2, 1, began);
    record(&mut ledger, &mut recording, &mut host, 900);
    ledger.end_recording(&recording).unwrap();
    let later = |hours: i64| began + SignedDuration::from_hours(hours);
    let keep = Retention::default();
    ledger.thin_out(&keep, later(24)).unwrap();
    assert_eq!(ledger.recordings().unwrap()[0].taken, 900);
    let before = ledger.recorded_bytes().unwrap();
    ledger.thin_out(&keep, later(24 * 4)).unwrap();
    let listed = ledger.recordings().unwrap().remove(0);
    assert_eq!((listed.taken, listed.minutes), (0, 16));
    assert!(ledger.recorded_bytes().unwrap() < before);
    let played = play(&ledger, "2026-11-20T03:05:00Z", "2026-11-20T03:10:00Z");
    assert!((5..=6).contains(&played.len()), "{}", played.len());
    assert!(
        played
            .iter()
            .all(|one| one.recorded.samples() == 60 || one.recorded.samples() == 59)
    );
    ledger.thin_out(&keep, later(24 * 70)).unwrap();
    let listed = ledger.recordings().unwrap().remove(0);
    assert_eq!((listed.minutes, listed.hours), (0, 1));
    let nothing = Retention {
        limit: Bytes(0),
        ..keep
    };
    ledger.thin_out(&nothing, later(24 * 70)).unwrap();
    assert!(ledger.recordings().unwrap().is_empty());
}

#[test]
fn a_limit_holds_while_the_newest_are_kept() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let began = day("2026-11-20T03:00:00Z");
    let mut host = Host::new(8, 1, began);
    let keep = Retention {
        limit: Bytes::kib(320),
        ..Retention::default()
    };
    for _ in 0..10 {
        record(&mut ledger, &mut recording, &mut host, 200);
        host.skip(Nanos::from_secs(1700));
        let now = began + SignedDuration::from_nanos(host.elapsed.0 as i64);
        ledger.thin_out(&keep, now).unwrap();
        let bytes = ledger.recorded_bytes().unwrap();
        assert!(bytes <= keep.limit, "{bytes}");
    }
    let listed = ledger.recordings().unwrap().remove(0);
    assert!(listed.taken >= 200 && listed.minutes > 0, "{listed:?}");
}

#[test]
fn repeated_findings_leave_room_for_samples() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let mut host = Host::new(2, 1, day("2026-11-20T03:00:00Z"));
    let keep = Retention {
        limit: Bytes::kib(160),
        ..Retention::default()
    };
    let mut last = SampleTime::default();
    for batch in 0..240 {
        let samples: Vec<_> = (0..5).map(|_| host.next()).collect();
        last = samples[4].at;
        let noted = (0..5).map(|id| event(5 * batch + id, last, Some(last)));
        let noted: Vec<_> = noted.collect();
        ledger.record(&mut recording, &samples, &noted).unwrap();
    }
    let before = ledger.recordings().unwrap().remove(0);
    assert_eq!((before.taken, before.events), (1200, 1200));
    ledger.thin_out(&keep, last.wall.unwrap()).unwrap();
    let bytes = ledger.recorded_bytes().unwrap();
    assert!(bytes <= keep.limit, "{bytes}");
    let after = ledger.recordings().unwrap().remove(0);
    assert!(after.taken > 600 && after.events > 50, "{after:?}");
    // The newest are those that are left.
    let played = play(&ledger, "2026-11-20T03:19:00Z", "2026-11-20T04:00:00Z");
    let closed: usize = played.iter().map(|one| one.closed.len()).sum();
    assert!(closed > 50, "{closed}");
}

#[test]
fn findings_that_last_stay_while_others_come_and_go() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut host = Host::new(1, 1, day("2026-11-20T03:00:00Z"));
    // It lasted when this recording ended, and so does not any more.
    let mut before = begin(&mut ledger);
    let sample = host.next();
    let ended = event(1, sample.at, None);
    ledger.record(&mut before, &[sample], &[ended]).unwrap();
    let mut recording = begin(&mut ledger);
    let sample = host.next();
    let at = sample.at;
    ledger
        .record(&mut recording, &[sample], &[event(0, at, None)])
        .unwrap();
    for batch in 0..10 {
        let sample = host.next();
        let at = sample.at;
        let noted: Vec<_> = (1..=20)
            .map(|id| event(20 * batch + id, at, Some(at)))
            .collect();
        ledger.record(&mut recording, &[sample], &noted).unwrap();
    }
    let keep = Retention {
        limit: Bytes::kib(64),
        ..Retention::default()
    };
    let now = day("2026-11-20T03:10:00Z");
    ledger.thin_out(&keep, now).unwrap();
    let listed = ledger.recordings().unwrap();
    assert_eq!(listed[0].events, 0, "{listed:?}");
    assert!((20..200).contains(&listed[1].events), "{listed:?}");
    let played = play(&ledger, "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z");
    let mut opened = played.iter().flat_map(|one| &one.opened);
    assert_eq!(opened.next().unwrap().began.wall, at.wall);
}

#[test]
fn under_a_small_limit_what_is_old_is_thinned_out_before_it_is_an_hour() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let began = day("2026-11-20T03:05:00Z");
    let mut host = Host::new(8, 1, began);
    record(&mut ledger, &mut recording, &mut host, 3000);
    let before = ledger.recorded_bytes().unwrap();
    let keep = Retention {
        limit: Bytes(before.0 / 2),
        ..Retention::default()
    };
    ledger
        .thin_out(&keep, began + SignedDuration::from_secs(3000))
        .unwrap();
    assert!(ledger.recorded_bytes().unwrap() <= keep.limit);
    let listed = ledger.recordings().unwrap().remove(0);
    // The oldest half is there as minutes, and the newest as it was taken.
    assert!(listed.taken >= 900 && listed.minutes >= 19, "{listed:?}");
}

/// Records three hours, of 5 s each sample; `each` is called every ten minutes.
fn record_a_night(
    ledger: &mut Ledger,
    began: Timestamp,
    each: impl Fn(&Ledger, Timestamp),
) -> Recording {
    let rest = Nanos::from_secs(4);
    let mut recording = begin(ledger);
    let mut host = Host::new(1, 1, began);
    for _ in 0..18 {
        for _ in 0..12 {
            let next = |_| {
                host.skip(rest);
                let sample = host.next();
                Sample {
                    length: sample.length + rest,
                    ..sample
                }
            };
            let batch: Vec<Sample> = (0..10).map(next).collect();
            ledger.record(&mut recording, &batch, &[]).unwrap();
        }
        each(
            ledger,
            began + SignedDuration::from_nanos(host.elapsed.0 as i64),
        );
    }
    ledger.end_recording(&recording).unwrap();
    recording
}

#[test]
fn thinning_out_piece_by_piece_takes_no_more_than_at_once() {
    let began = day("2026-11-20T22:07:31Z");
    let keep = Retention::default();
    let little_less = |ledger: &Ledger| Retention {
        limit: Bytes(ledger.recorded_bytes().unwrap().0 - 1),
        ..keep
    };
    let listed = |ledger: &Ledger| ledger.recordings().unwrap().remove(0);
    let scratch = [Scratch::new(), Scratch::new()];
    let [mut at_once, mut in_pieces] = scratch
        .each_ref()
        .map(|one| Ledger::open(one.ledger()).unwrap());
    let once = record_a_night(&mut at_once, began, |_, _| {});
    // The oldest ten minutes are thinned out whenever there are as many new ones.
    let pieces = record_a_night(&mut in_pieces, began, |ledger, now| {
        if listed(ledger).taken > 480 {
            ledger.thin_out(&little_less(ledger), now).unwrap();
        }
    });
    assert!(listed(&in_pieces).taken < 800, "{:?}", listed(&in_pieces));
    let later = day("2026-11-22T00:00:00Z");
    let by_hour = Retention {
        taken: Nanos::from_secs(3600),
        ..keep
    };
    at_once.thin_out(&by_hour, later).unwrap();
    in_pieces.thin_out(&by_hour, later).unwrap();
    let state = |ledger: &Ledger, recording: &Recording| {
        let listed = listed(ledger);
        let blocks = |step| ledger.bodies(recording.number(), step, None).unwrap().len();
        let counts = [listed.taken, listed.minutes, listed.hours];
        (counts, [blocks(MINUTES), blocks(HOURS)])
    };
    let compare = || {
        let (once, pieces) = (state(&at_once, &once), state(&in_pieces, &pieces));
        assert_eq!(once, pieces);
        let bytes = [&at_once, &in_pieces].map(|ledger| ledger.recorded_bytes().unwrap().0);
        assert!(bytes[1] <= bytes[0] + bytes[0] / 50, "{bytes:?}");
        once
    };
    // Of the first minute and of the last there is a part each.
    assert_eq!(compare(), ([0, 3 * 60 + 1, 0], [4, 0]));

    let by_day = Retention {
        minutes: Nanos::from_secs(1),
        ..by_hour
    };
    at_once
        .thin_out(&by_day, day("2026-11-23T00:00:00Z"))
        .unwrap();
    // The second day is not over.
    while listed(&in_pieces).minutes > 0 {
        let now = day("2026-11-21T10:00:00Z");
        in_pieces.thin_out(&little_less(&in_pieces), now).unwrap();
    }
    assert_eq!(compare(), ([0, 0, 4], [0, 2]));
}

#[test]
fn blocks_that_another_process_thinned_out_meanwhile_are_not_there_twice() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let mut host = Host::new(1, 1, day("2026-11-20T03:00:00Z"));
    record(&mut ledger, &mut recording, &mut host, 120);
    ledger.end_recording(&recording).unwrap();
    // The slower of two processes has read these blocks before the other replaced them.
    let read = ledger.bodies(recording.number(), UNTHINNED, None).unwrap();
    let samples = ledger.unpacked(&read[0]).unwrap();
    let other = Ledger::open(scratch.ledger()).unwrap();
    other
        .thin_out(&Retention::default(), day("2026-12-01T00:00:00Z"))
        .unwrap();
    let after = ledger.recordings().unwrap();
    assert!(after[0].taken == 0 && after[0].minutes > 0, "{after:?}");
    let packed = PackedSamples::of(MINUTES, &samples);
    ledger.replace(&read, packed.as_slice()).unwrap();
    assert_eq!(ledger.recordings().unwrap(), after);
}

#[test]
fn a_batch_that_could_not_be_written_is_written_with_the_next_and_only_once() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let mut host = Host::new(1, 1, day("2026-11-20T03:00:00Z"));
    record(&mut ledger, &mut recording, &mut host, 5);
    let mut waiting: Vec<_> = (0..5).map(|_| host.next()).collect();
    let noted = [event(1, waiting[0].at, None)];
    ledger
        .connection
        .execute_batch("ALTER TABLE events RENAME TO elsewhere")
        .unwrap();
    assert!(ledger.record(&mut recording, &waiting, &noted).is_err());
    ledger
        .connection
        .execute_batch("ALTER TABLE elsewhere RENAME TO events")
        .unwrap();
    waiting.extend((0..5).map(|_| host.next()));
    ledger.record(&mut recording, &waiting, &noted).unwrap();
    let listed = ledger.recordings().unwrap().remove(0);
    assert_eq!((listed.taken, listed.events), (15, 1));
}

#[test]
fn a_recording_that_was_removed_is_distinguished_from_the_one_that_has_its_number_now() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut removed = begin(&mut ledger);
    ledger.remove_recording(removed.number()).unwrap();
    let mut other = begin(&mut ledger);
    assert_eq!(removed.number(), other.number());
    let mut host = Host::new(1, 1, day("2026-11-20T03:00:00Z"));
    let sample = [host.next()];
    assert!(matches!(
        ledger.record(&mut removed, &sample, &[]),
        Err(Error::NoSuchRecording { .. })
    ));
    ledger.end_recording(&removed).unwrap();
    assert!(ledger.recordings().unwrap()[0].is_open);
    ledger.record(&mut other, &sample, &[]).unwrap();
    assert_eq!(ledger.recordings().unwrap()[0].taken, 1);
}

#[test]
fn samples_of_a_killed_recorder_are_gathered_and_within_the_limit() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut killed = begin(&mut ledger);
    let mut host = Host::new(1, 1, day("2026-11-20T03:00:00Z"));
    record(&mut ledger, &mut killed, &mut host, 20);
    // One of its batches is damaged.
    ledger
        .connection
        .execute("UPDATE blocks SET body = x'01' WHERE number = 2", [])
        .unwrap();
    let next = begin(&mut ledger);
    let keep = Retention::default();
    ledger.thin_out(&keep, day("2026-11-20T04:00:00Z")).unwrap();
    assert!(
        ledger
            .bodies(killed.number(), BATCH, None)
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        ledger
            .bodies(killed.number(), UNTHINNED, None)
            .unwrap()
            .len(),
        2
    );
    ledger.end_recording(&next).unwrap();
    let nothing = Retention {
        limit: Bytes(0),
        ..keep
    };
    ledger
        .thin_out(&nothing, day("2026-11-20T04:00:00Z"))
        .unwrap();
    assert!(ledger.recordings().unwrap().is_empty());
}

#[test]
fn a_recording_of_a_host_that_never_came_back_is_ended_after_a_day() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut other = owner(9);
    other.host = "db-2".to_owned();
    let mut forsaken = ledger
        .begin_recording(&other, &SampleSource::default(), |_| OwnerLiveness::Dead)
        .unwrap();
    let began = day("2026-11-20T03:00:00Z");
    let mut host = Host::new(1, 1, began);
    record(&mut ledger, &mut forsaken, &mut host, 20);
    let keep = Retention::default();
    for (hours, batches, is_open) in [(23, 4, true), (25, 0, false)] {
        let now = began + SignedDuration::from_hours(hours);
        ledger.thin_out(&keep, now).unwrap();
        let left = ledger.bodies(forsaken.number(), BATCH, None).unwrap();
        assert_eq!(left.len(), batches);
        let listed = ledger.recordings().unwrap().remove(0);
        assert_eq!((listed.is_open, listed.taken), (is_open, 20));
    }
    // It has only been slow.
    record(&mut ledger, &mut forsaken, &mut host, 5);
    assert_eq!(ledger.recordings().unwrap()[0].taken, 25);
}

#[test]
fn a_block_whose_number_is_another_ones_now_is_searched_for_again() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let mut host = Host::new(1, 1, day("2026-11-20T03:00:00Z"));
    record(&mut ledger, &mut recording, &mut host, 20);
    let reader = Ledger::open(scratch.ledger()).unwrap();
    let (from, to) = (day("2026-11-20T00:00:00Z"), day("2026-11-21T00:00:00Z"));
    let mut replay = reader.replay("db-1", from, to).unwrap();
    let mut seconds = vec![replay.next().unwrap().unwrap()];
    // The batches become a block, and the next ones have their numbers.
    ledger.gather(recording.number()).unwrap();
    record(&mut ledger, &mut recording, &mut host, 20);
    seconds.extend(replay.map(|played| played.unwrap()));
    let ends: Vec<u64> = seconds
        .iter()
        .map(|played| played.recorded.sample.at.elapsed.0)
        .collect();
    assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "{ends:?}");
    assert_eq!(ends.len(), 40);
}

#[test]
fn marks_are_set_listed_and_removed() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let at = day("2026-11-20T03:00:00Z");
    let mark = ledger.mark(at, "db-1", "deploy 1.4.2").unwrap();
    assert_eq!(ledger.marks(at, at).unwrap(), std::slice::from_ref(&mark));
    assert!(
        ledger
            .marks(day("2026-11-20T03:00:01Z"), day("2026-11-21T00:00:00Z"))
            .unwrap()
            .is_empty()
    );
    ledger.remove_mark(mark.number).unwrap();
    assert!(matches!(
        ledger.remove_mark(mark.number),
        Err(Error::NoSuchMark { .. })
    ));
}

/// A simulated week of 16 busy disks with an array over eight of them: `make prove` prints what it
/// takes from day to day.
#[test]
#[ignore = "long proof: make prove"]
fn a_week_of_sixteen_disks_fits() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let mut recording = begin(&mut ledger);
    let began = day("2026-11-20T00:00:00Z");
    let mut host = Host::new(16, 11, began);
    let keep = Retention {
        limit: Bytes::mib(48),
        ..Retention::default()
    };
    println!("day  as taken       minutes  recorded   the file");
    for day in 1..=7 {
        for _ in 0..144 {
            record(&mut ledger, &mut recording, &mut host, 600);
            let now = began + SignedDuration::from_nanos(host.elapsed.0 as i64);
            ledger.thin_out(&keep, now).unwrap();
            assert!(ledger.recorded_bytes().unwrap() <= keep.limit);
        }
        let bytes = ledger.recorded_bytes().unwrap();
        let listed = ledger.recordings().unwrap().remove(0);
        let file = std::fs::metadata(scratch.ledger()).unwrap().len();
        println!(
            "{day:>3} {:>9} {:>13} {:>9} {:>10}",
            listed.taken,
            listed.minutes,
            bytes.to_string(),
            Bytes(file).to_string()
        );
        if day == 1 {
            assert_eq!(listed.taken, 86_400);
            assert!(bytes <= Bytes::mib(20), "{bytes}");
        }
        // Never much more than the limit and what a block needs while it is replaced.
        assert!(Bytes(file) <= keep.limit + Bytes::mib(8), "{file}");
    }
    let played = ledger
        .replay("db-1", began, began + SignedDuration::from_hours(24 * 7))
        .unwrap();
    let samples: u64 = played
        .map(|played| played.unwrap().recorded.samples())
        .sum();
    assert_eq!(samples, 7 * 86_400);
}
