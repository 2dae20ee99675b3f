use super::*;
use proptest::prelude::*;

/// Captured from a virtio disk (6.18).
const STAT: &[u8] = b"   52782     7098  5106762    36907    11311    11671  2206088     4830        0    14024    42533     6552      104   767016      768      773       27\n";

fn stats(reads: u64, sectors_read: u64, busy_ms: u64) -> DiskStats {
    DiskStats {
        reads,
        sectors_read,
        busy_ms,
        ..DiskStats::default()
    }
}

#[test]
fn seventeen_counters_are_read() {
    let stats = DiskStats::parse(STAT).unwrap();
    assert_eq!(stats.reads, 52782);
    assert_eq!(stats.sectors_read, 5_106_762);
    assert_eq!(stats.sectors_written, 2_206_088);
    assert_eq!(stats.busy_ms, 14024);
    assert_eq!(stats.sectors_discarded, 767_016);
    assert_eq!((stats.flushes, stats.flush_ms), (773, 27));
}

#[test]
fn older_kernels_have_fewer_and_newer_ones_may_have_more() {
    let line = |fields: u64| (1..=fields).map(|n| format!("{n} ")).collect::<String>();
    let parse = |fields| DiskStats::parse(line(fields).as_bytes());
    assert_eq!(parse(10), None);
    assert_eq!(parse(11).unwrap().weighted_ms, 11);
    assert_eq!(parse(11).unwrap().discards, 0);
    assert_eq!(parse(15).unwrap().discard_ms, 15);
    assert_eq!(parse(15).unwrap().flushes, 0);
    assert_eq!(parse(20).unwrap().flush_ms, 17);
}

#[test]
fn the_difference_is_what_was_counted_between() {
    let (before, now) = (stats(100, 800, 10), stats(150, 2400, 35));
    let counts = now.since(&before).unwrap();
    assert_eq!((counts.reads, counts.read_bytes), (50, 1600 * 512));
    assert_eq!(counts.busy_ms, 25);
}

#[test]
fn a_counter_that_went_back_says_nothing() {
    assert_eq!(stats(5, 0, 0).since(&stats(100, 0, 0)), None);
    assert_eq!(stats(5, 0, 0).since(&stats(3_000_000_000, 0, 0)), None);
    assert_eq!(stats(5, 0, 0).since(&stats(1 << 40, 0, 0)), None);
}

#[test]
fn a_counter_of_32_bits_wraps() {
    let before = u64::from(u32::MAX) - 9;
    let counts = stats(20, 0, 5).since(&stats(before, 0, before)).unwrap();
    assert_eq!((counts.reads, counts.busy_ms), (30, 15));
}

#[test]
fn busy_time_that_steps_back_is_no_time() {
    assert_eq!(stats(1, 0, 99).since(&stats(0, 0, 100)).unwrap().busy_ms, 0);
}

#[test]
fn diskstats_lists_devices_by_number_and_name() {
    let text = b"   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 254       0 vda 52782 7098 5106762 36907 11311 11671 2206088 4830 0 14024 42533\n   8       1 sda1 1 2 3 4\n";
    let all = parse_all(text);
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].0, DeviceNumber::new(254, 0));
    assert_eq!(all[1].1, "vda");
    assert_eq!(all[1].2.reads, 52782);
}

#[test]
fn the_sum_of_an_array_is_as_busy_as_its_busiest_member() {
    let member = |reads, busy_ms| DeviceCounts {
        reads,
        busy_ms,
        ..DeviceCounts::default()
    };
    assert_eq!(sum([member(10, 700), member(20, 900)]), member(30, 900));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(text: Vec<u8>) {
        let _ = DiskStats::parse(&text);
        let _ = parse_all(&text);
    }

    #[test]
    fn a_difference_never_exceeds_what_was_counted(a in any::<[u64; 17]>(), b in any::<[u64; 17]>()) {
        let (a, b) = (DiskStats::from_counts(a), DiskStats::from_counts(b));
        if let Some(counts) = b.since(&a) {
            prop_assert!(b.reads < a.reads || counts.reads <= b.reads);
        }
    }
}

#[test]
fn the_mean_latency_is_of_what_has_ended_since() {
    let of = |line: &str| DiskStats::parse(line.as_bytes()).unwrap();
    let before = of("100 0 800 50 10 0 80 4294967290 0 55 55");
    // 200 reads in 400 ms, and 100 writes in 200 ms, whose counter has wrapped.
    let after = of("300 0 2400 450 110 0 880 194 0 155 655");
    assert_eq!(after.mean_latency_ns(&before), Some(2e6));
    assert_eq!(after.mean_latency_ns(&after), None);
    let smaller = of("299 0 2400 450 110 0 880 194 0 155 655");
    assert_eq!(smaller.mean_latency_ns(&after), None);
}

#[test]
fn all_counters_move_together_or_none_does() {
    let before = DiskStats {
        discards: 5,
        flush_ms: u64::from(u32::MAX),
        in_flight: 9,
        ..DiskStats::default()
    };
    let now = DiskStats {
        discards: 7,
        flush_ms: 4,
        in_flight: 2,
        ..DiskStats::default()
    };
    let moved = now.moved_since(&before).unwrap();
    assert_eq!((moved.discards, moved.flush_ms, moved.in_flight), (2, 5, 2));
    assert_eq!(before.moved_since(&now), None);
}

#[test]
fn a_counter_of_64_bits_wraps() {
    let moved = stats(5, 0, 0).moved_since(&stats(u64::MAX - 4, 0, 0));
    assert_eq!(moved.unwrap().reads, 10);
}

#[test]
fn a_line_tells_what_its_kernel_counts() {
    let all = " 259       1 nvme0n1p1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
    let line = DiskStatsLine::parse(all).unwrap();
    assert_eq!(line.number, DeviceNumber::new(259, 1));
    assert_eq!(line.name, "nvme0n1p1");
    assert_eq!(line.stats.flush_ms, 17);
    assert!(line.counted.discards && line.counted.flushes);
    let older = DiskStatsLine::parse("8 0 sda 1 2 3 4 5 6 7 8 9 10 11").unwrap();
    assert_eq!(older.counted, CountedFields::default());
    assert_eq!(DiskStatsLine::parse("8 1 sda1 1 2 3 4"), None);
}

#[test]
fn all_devices_are_read_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::under(folder.path());
    std::fs::create_dir_all(&root.proc).unwrap();
    let put = |reads: u32, devices: u32| {
        let lines: String = (0..devices)
            .map(|minor| format!("   8 {minor:7} sd{minor} {reads} 0 0 0 0 0 0 0 0 0 0\n"))
            .collect();
        std::fs::write(root.proc.join("diskstats"), lines).unwrap();
    };
    put(1, 3000);
    let mut all = AllCounters::open(&root).unwrap();
    assert_eq!(all.read().unwrap().count(), 3000);
    put(2, 2);
    let reads: Vec<u64> = all.read().unwrap().map(|line| line.stats.reads).collect();
    assert_eq!(reads, [2, 2]);
}

#[test]
fn where_a_container_hides_the_list_each_device_is_read() {
    for hidden in [None, Some("")] {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        std::fs::create_dir_all(&root.proc).unwrap();
        if let Some(text) = hidden {
            std::fs::write(root.proc.join("diskstats"), text).unwrap();
        }
        let device = |name: &str, number: &str, stat: &str| {
            let folder = root.sys.join("class/block").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("dev"), number).unwrap();
            std::fs::write(folder.join("stat"), stat).unwrap();
        };
        device("cciss!c0d0", "104:0\n", " 1 2 3 4 5 6 7 8 9 10 11\n");
        device("vda", "254:0\n", "  9 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n");
        std::fs::create_dir_all(root.sys.join("class/block/going")).unwrap();
        let mut all = AllCounters::open(&root).unwrap();
        let lines: Vec<_> = all.read().unwrap().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].name, lines[0].stats.reads), ("cciss/c0d0", 1));
        assert_eq!(lines[1].number, DeviceNumber::new(254, 0));
        assert!(lines[1].counted.discards && !lines[1].counted.flushes);
        device("vda", "254:0\n", "  10 2 3 4 5 6 7 8 9 10 11\n");
        let reads: Vec<u64> = all.read().unwrap().map(|line| line.stats.reads).collect();
        assert_eq!(reads, [1, 10]);
    }
    let nothing = tempfile::tempdir().unwrap();
    let error = AllCounters::open(&Root::under(nothing.path())).unwrap_err();
    assert!(error.to_string().contains("diskstats"));
}
