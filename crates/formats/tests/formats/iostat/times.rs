//! Tests of times, dates, the first report of a run, and several runs in one log.

use formats::disk_log::{DateOrder, FirstReport, LogReport, Options};
use record::Nanos;
use record::sample::Gap;

use super::common::{fixture, intervals, read, read_with};

#[test]
fn times_of_every_locale_mean_the_same_instant() {
    let (reference, _) = read("12.6-xt-iso.txt");
    let reference: Vec<_> = intervals(&reference)
        .iter()
        .map(|s| s.at.wall.unwrap())
        .collect();
    for locale in [
        "C", "de_DE", "en_US", "en_GB", "fr_FR", "ja_JP", "pt_BR", "en_CA", "zh_CN", "en_IN",
    ] {
        let (readings, notes) = read(&format!("12.6-xt-{locale}.txt"));
        assert_eq!(notes.date_order, None, "the 22nd is no month");
        let samples = intervals(&readings);
        for (sample, reference) in samples.iter().zip(&reference) {
            let apart = sample.at.wall.unwrap().duration_since(*reference).as_secs();
            assert!(apart.abs() <= 1, "{locale}: {sample:?}");
            assert_eq!(sample.length, Nanos::from_secs(1), "{locale}");
            assert_eq!(sample.gap, None, "{locale}");
        }
        assert!(!notes.interval_unknown);
    }
    for name in ["12.6-xt.json", "12.6-xt-iso.json"] {
        let (readings, _) = read(name);
        let apart = intervals(&readings)[0]
            .at
            .wall
            .unwrap()
            .duration_since(reference[0]);
        assert!(apart.as_secs().abs() <= 1, "{name}");
    }
}

#[test]
fn a_date_in_front_of_a_run_is_that_of_its_first_report() {
    let run = |date: &str| {
        format!(
            "{date}\nLinux 6.1.0 (db1) \t11/22/2026 \t_x86_64_\t(2 CPU)\n\n\
             Device r/s w/s rkB/s wkB/s await %util\nsda 1.00 2.00 3.00 4.00 5.00 6.00\n\n"
        )
    };
    for dates in [
        [
            "Sun Nov 22 12:38:33 UTC 2026",
            "Sun Nov 22 12:39:33 UTC 2026",
        ],
        [
            "Sun 22 Nov 2026 12:38:33 PM UTC",
            "Sun 22 Nov 2026 12:39:33 PM UTC",
        ],
        ["2026-11-22T12:38:33Z", "2026-11-22T12:39:33Z"],
        [
            "--- 2026-11-22T12:38:33Z ---",
            "--- 2026-11-22T12:39:33Z ---",
        ],
        [
            "zzz ***Sun Nov 22 12:38:33 UTC 2026",
            "zzz ***Sun Nov 22 12:39:33 UTC 2026",
        ],
    ] {
        let (readings, notes) = read_with(&dates.map(run).concat(), Options::default());
        let walls = readings.iter().map(|reading| reading.sample.at.wall);
        let walls: Vec<String> = walls.map(|wall| wall.unwrap().to_string()).collect();
        assert_eq!(
            walls,
            ["2026-11-22T12:38:33Z", "2026-11-22T12:39:33Z"],
            "{dates:?}"
        );
        assert_eq!((notes.alone, notes.garbage.count), (2, 0), "{dates:?}");
    }
}

#[test]
fn the_first_report_is_of_the_time_since_boot_unless_y_was_given() {
    let boots = |readings: &[LogReport]| -> Vec<bool> {
        readings.iter().map(|reading| reading.since_boot).collect()
    };
    let (readings, notes) = read("12.6-x.txt");
    assert_eq!(boots(&readings), [true, false, false]);
    assert_eq!((notes.since_boot, notes.samples), (1, 2));
    let (readings, notes) = read("12.6-x-y.txt");
    assert_eq!(boots(&readings), [false; 3]);
    assert_eq!(notes.samples, 3);
    // Where blank lines are missing, the user may give it.
    let text: String = fixture("12.6-x-y.txt")
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        boots(&read_with(&text, Options::default()).0),
        [true, false, false]
    );
    let options = Options {
        first: FirstReport::Interval,
        ..Options::default()
    };
    assert_eq!(boots(&read_with(&text, options).0), [false; 3]);
}

#[test]
fn dates_that_can_be_read_both_ways_are_named() {
    let line = "Device tps await %util\nsda 1.00 1.00 1.00\n";
    let text = format!("03/04/26 10:00:00\n{line}\n03/04/26 10:00:05\n{line}");
    let (readings, notes) = read_with(&text, Options::default());
    assert_eq!(notes.date_order, Some(DateOrder::MonthFirst));
    assert!(
        notes
            .sentences()
            .iter()
            .any(|message| message.contains("--dates dmy"))
    );
    assert_eq!(
        readings[1].sample.at.wall.unwrap().to_string(),
        "2026-03-04T10:00:05Z"
    );
    assert_eq!(readings[1].sample.length, Nanos::from_secs(5));
    let options = Options {
        dates: Some(DateOrder::DayFirst),
        ..Options::default()
    };
    let (readings, notes) = read_with(&text, options);
    assert_eq!(notes.date_order, None);
    assert_eq!(
        readings[1].sample.at.wall.unwrap().to_string(),
        "2026-04-03T10:00:05Z"
    );
}

#[test]
fn runs_of_cron_make_one_series() {
    let run = |minute: u32| {
        format!(
            "Linux 6.1.0 (h) \t11/22/26 \t_x86_64_\t(2 CPU)\n\n\n11/22/26 10:{minute:02}:59\n\
             Device tps await %util\nsda {minute}.00 1.00 1.00\n\n"
        )
    };
    let text: String = (10..20).map(run).collect();
    let (readings, notes) = read_with(&text, Options::default());
    assert_eq!((notes.since_boot, readings.len()), (0, 10));
    for (reading, minute) in readings.iter().zip(1..) {
        assert_eq!(reading.sample.length, Nanos::from_secs(60));
        assert_eq!(reading.sample.gap, None);
        assert_eq!(reading.sample.at.elapsed, Nanos::from_secs(60 * minute));
    }
}

#[test]
fn another_run_after_a_cut_is_read_too() {
    let (json, cut, text) = (
        fixture("12.6-x.json"),
        fixture("12.6-x-term.json"),
        fixture("12.6-x.txt"),
    );
    for joined in [
        format!("{json}{json}"),
        format!("{cut}{json}"),
        format!("{cut}\n{text}"),
        format!("{text}{json}"),
        format!("{text}{text}"),
        format!("{}{json}", cut.trim_end()),
    ] {
        let (readings, _) = read_with(&joined, Options::default());
        let boots: Vec<bool> = readings.iter().map(|reading| reading.since_boot).collect();
        assert_eq!(boots, [true, false, false, true, false, false]);
        assert_eq!(readings[4].sample.gap, Some(Gap::Unseen(Nanos(0))));
        assert_eq!(readings[5].sample.gap, None);
        assert_eq!(readings[4].sample.devices.len(), 2);
    }
}
