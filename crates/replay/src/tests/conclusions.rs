//! Tests of the findings of a replay.

use record::{FindingCode, Severity};

use super::*;
use crate::conclude;

#[test]
fn a_trace_is_as_doubtful_here_as_where_it_is_shown() {
    let ios: Vec<Io> = (0..1000).map(|n| read(n * 10, n * 4096, 4096)).collect();
    let mut played = replayed(ios, 1, settings(Pace::Asap), &volume(10));
    let severity = |replay: &record::Replay| {
        let mut findings = conclude::findings(replay).into_iter();
        let lost = findings.find(|finding| finding.code == FindingCode::LostEvents);
        lost.map(|finding| finding.severity)
    };
    for (lost, ambiguous, cut_off, expected) in [
        (0, 0, false, None),
        (1, 0, false, Some(Severity::Warn)),
        (0, 10, false, Some(Severity::Warn)),
        (0, 11, false, Some(Severity::Invalid)),
        (20, 1, false, Some(Severity::Invalid)),
        (0, 0, true, Some(Severity::Warn)),
    ] {
        let trace = &mut played.replay.trace;
        (trace.lost, trace.ambiguous, trace.cut_off) = (lost, ambiguous, cut_off);
        assert_eq!(severity(&played.replay), expected, "{lost} {ambiguous}");
    }
}

#[test]
fn what_is_clipped_is_not_advised_to_take_the_map_that_it_has() {
    let reads: Vec<Io> = (0..40_000).map(|n| read(n, n << 16, 4096)).collect();
    for map in [OffsetMap::Exact, OffsetMap::Compact] {
        let settings = ReplaySettings {
            map,
            ..settings(Pace::Asap)
        };
        let played = replayed(reads.clone(), 1, settings, &volume(10));
        assert!(played.replay.counts.clipped > 0);
        let findings = conclude::findings(&played.replay);
        let clipped = findings.iter().find(|one| one.code == FindingCode::Clipped);
        let advised = clipped.unwrap().text.contains("--map");
        assert_eq!(advised, map == OffsetMap::Exact, "{clipped:?}");
    }
}

#[test]
fn a_speed_is_named_where_it_counts() {
    for (pace, named) in [(Pace::Recorded, true), (Pace::Asap, false)] {
        let fast = ReplaySettings {
            speed: 1000.0,
            ..settings(pace)
        };
        let played = replayed(vec![read(0, 0, 4096)], 1, fast, &volume(10));
        let sentences = views::sentences(&ReplayAnswer::of(&played.replay));
        assert_eq!(
            sentences[0].contains("times as fast"),
            named,
            "{sentences:?}"
        );
    }
}

#[test]
fn why_there_are_no_commits_depends_on_the_disk_and_on_names_and_discards_are_no_writes() {
    let no_commits = |replay: &record::Replay| {
        let mut findings = conclude::findings(replay).into_iter();
        let found = findings.find(|finding| finding.code == FindingCode::NoCommits);
        found.map(|finding| finding.text)
    };
    let with = |last: Io| {
        let settings = ReplaySettings {
            discards: true,
            ..settings(Pace::Asap)
        };
        let ios = vec![read(0, 0, 4096), last];
        replayed(ios, 1, settings, &volume(10)).replay
    };
    let io = write(1, 8192, 4096);
    let mut replay = with(io);
    for (has_flushes, written_through, written_names, words) in [
        (false, false, false, "Its format has none"),
        (true, false, false, "made none of them durable"),
        (true, false, true, "made none of them durable"),
        (true, true, false, "`trace record --dataset`"),
        (true, true, true, "MariaDB"),
    ] {
        replay.trace.has_flushes = has_flushes;
        replay.trace.has_written_through = written_through;
        replay.trace.has_written_names = written_names;
        let text = no_commits(&replay).unwrap();
        assert!(text.contains(words), "{text}");
    }
    let discard = Io {
        op: trace::Op::Discard,
        ..io
    };
    let durable = Io { fua: true, ..io };
    for last in [discard, durable, flush(1)] {
        assert_eq!(no_commits(&with(last)), None, "{last:?}");
    }
}
