//! Workloads read from entries of fio's JSON.

use crate::support::{fixture, only};
use record::{Bytes, JobOptions, Pattern, PhaseSummary, RandomDistribution, SizeShare, TargetKind};

/// The first entry of fio's groups, with other options than it had.
fn with_options(options: &str) -> PhaseSummary {
    let own =
        "\"numjobs\" : \"4\",\n        \"iodepth\" : \"8\",\n        \"ioengine\" : \"libaio\"";
    let text = fixture("fio-3.33-groups.json");
    assert!(text.contains(own));
    only(&text.replace(own, options)).phases.remove(0)
}

#[test]
fn clones_are_summed_although_the_options_do_not_say_so() {
    let text = fixture("fio-3.33-groups.json");
    assert!(!text.contains("group_reporting"), "given without a value");
    let summary = only(&text);
    let [grouped, paced, sections] = &summary.phases[..] else {
        panic!("{summary:#?}")
    };
    let in_flight = |phase: &PhaseSummary| (phase.work.threads, phase.work.depth);
    assert_eq!(in_flight(grouped), (Some(4), Some(8)));
    assert_eq!(
        grouped.work.rate_per_s,
        Some(0.0),
        "a closed loop, and known to be"
    );
    // fio's share is of the time of all four.
    let user = grouped.cpu.user.unwrap();
    assert!((user - 0.0089798 * 4009.0 / 1004.0).abs() < 1e-9, "{user}");

    assert_eq!(in_flight(paced), (Some(2), Some(1)), "psync waits for each");
    assert_eq!(paced.work.rate_per_s, Some(200.0), "100 for each of two");
    let rate = paced.flows[0].ops_per_s.unwrap();
    assert!((rate - 200.0).abs() < 1.0, "and so it ran: {rate}");

    // Two sections: the name of the first, the options of the second, which had one process.
    assert_eq!(sections.name, "first");
    assert_eq!(in_flight(sections), (None, None));
    assert_eq!(
        (sections.work.pattern, sections.work.rate_per_s),
        (None, None)
    );
}

#[test]
fn clones_that_are_not_summed_are_single() {
    let summary = only(&fixture("fio-3.33-sections.json"));
    let threads: Vec<_> = summary
        .phases
        .iter()
        .map(|phase| {
            (
                phase.name.as_str(),
                phase.work.threads,
                phase.work.rate_per_s,
            )
        })
        .collect();
    assert_eq!(
        threads,
        [
            ("a", Some(1), Some(50.0)),
            // The other clone of a, and another section.
            ("a", None, None),
            ("c", Some(1), Some(10.0)),
            ("c", Some(1), Some(10.0)),
            ("c", Some(1), Some(10.0)),
        ],
        "and what fio wrote of no job is none"
    );
    let client = only(&fixture("fio-3.33-client.json"));
    let threads: Vec<_> = client.phases.iter().map(|p| p.work.threads).collect();
    assert_eq!(threads, [Some(1), Some(1), None]);
}

#[test]
fn how_many_of_some_clones_were_summed_is_not_known() {
    let text = fixture("fio-3.33-sections.json");
    // Of a job of eight there would be one entry or eight.
    let summary = only(&text.replace("\"numjobs\" : \"3\"", "\"numjobs\" : \"8\""));
    assert_eq!(summary.phases[2].name, "c");
    assert_eq!(summary.phases[2].work.threads, None);
    assert_eq!(summary.phases[2].work.rate_per_s, None);
}

#[test]
fn a_depth_is_that_of_the_engine() {
    for (options, depth) in [
        (r#""iodepth": "32""#, Some(1)),
        (r#""iodepth": "32", "ioengine": "pvsync2""#, Some(1)),
        (r#""iodepth": "32", "ioengine": "io_uring""#, Some(32)),
        (r#""iodepth": "32", "io_submit_mode": "offload""#, None),
        (r#""ioengine": "libaio""#, Some(1)),
    ] {
        let options = format!(r#""numjobs": "4", {options}"#);
        assert_eq!(with_options(&options).work.depth, depth, "{options}");
    }
}

#[test]
fn a_rate_is_over_all_clones_and_directions() {
    for (options, rate) in [
        (r#""rate_iops": "50""#, Some(200.0)),
        (r#""rate_iops": "50,10""#, Some(200.0)),
        (r#""rate_iops": "50,10", "rw": "randwrite""#, Some(40.0)),
        (r#""rate_iops": "50,10", "rw": "randrw""#, Some(240.0)),
        (r#""rate_iops": "50", "rw": "randrw""#, Some(400.0)),
        (r#""rate_iops": "50,", "rw": "randrw""#, None),
        (r#""rate_iops": "1k""#, None),
        (r#""rate": "1m""#, None),
        (r#""thinktime": "1ms""#, None),
        (r#""direct": "1""#, Some(0.0)),
    ] {
        let options = format!(r#""numjobs": "4", {options}"#);
        assert_eq!(with_options(&options).work.rate_per_s, rate, "{options}");
    }
}

#[test]
fn details_are_read_where_they_are_understood() {
    let details = |options: &str| {
        with_options(&format!(r#""numjobs": "4", {options}"#))
            .work
            .details
    };
    let share = |kib, share| SizeShare {
        size: Bytes::kib(kib),
        share,
    };
    let plain = *details(r#""direct": "1""#).unwrap();
    assert_eq!(
        plain,
        JobOptions {
            files: 1,
            even_rate: true,
            full_sync: true,
            ..JobOptions::default()
        }
    );
    let split = details(r#""bssplit": "4k/10:16k/,8k""#).unwrap();
    assert_eq!(split.read_sizes, [share(4, 0.1), share(16, 0.9)]);
    assert_eq!(split.write_sizes, [share(8, 1.0)]);
    let pair = details(r#""bs": "4k,16k""#).unwrap();
    assert_eq!(
        (pair.read_sizes[0], pair.write_sizes[0]),
        (share(4, 1.0), share(16, 1.0))
    );
    let rest = r#""random_distribution": "zipf", "offset": "1m", "rate_process": "poisson", "fdatasync": "4""#;
    assert_eq!(
        *details(rest).unwrap(),
        JobOptions {
            spread: RandomDistribution::Zipf(1.1),
            offset: Bytes::mib(1),
            even_rate: false,
            full_sync: false,
            ..plain
        }
    );
    for strange in [
        r#""random_distribution": "zoned:50/5""#,
        r#""random_distribution": "zipf:nan""#,
        r#""offset": "25%""#,
        r#""bssplit": "4k/x""#,
        r#""filename": "a:b""#,
    ] {
        assert_eq!(details(strange), None, "{strange}");
    }
}

#[test]
fn a_target_is_known_by_its_kind() {
    let text = fixture("fio-3.33.json");
    assert_eq!(only(&text).target_kind, None, "a file or a device");
    let text = text.replace("\"filename\" : \"fio.dat\"", "\"directory\" : \"/data\"");
    let summary = only(&text);
    assert_eq!(summary.target.as_deref(), Some("/data"));
    assert_eq!(summary.target_kind, Some(TargetKind::Directory));
    assert_eq!(summary.phases[0].work.pattern, Some(Pattern::Random));
}

#[test]
fn clones_have_files_of_their_own_unless_they_share_a_name() {
    let text = fixture("fio-3.33-groups.json");
    let span = |name: &str| {
        let text = text.replace("\"filename\" : \"fio.dat\"", name);
        only(&text).phases[0].work.span
    };
    let named = "\"filename\" : \"fio.dat\"";
    assert_eq!(span(named), Some(Bytes::mib(4)));
    let shared = "\"filename_format\" : \"disksmith.$filenum\"";
    assert_eq!(span(shared), Some(Bytes::mib(4)));
    let own = "\"directory\" : \"/data\"";
    assert_eq!(span(own), Some(Bytes::mib(16)), "each of four");
}
