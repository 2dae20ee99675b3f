use super::*;

fn one(text: &str) -> VolumeSpec {
    let group: VolumeGroup = text.parse().unwrap();
    assert_eq!(group.count, 1, "{text}");
    group.spec
}

fn error(text: &str) -> String {
    text.parse::<VolumeGroup>().unwrap_err().to_string()
}

#[test]
fn the_examples_of_the_documentation() {
    let group: VolumeGroup = "8xiops=400:1GiB".parse().unwrap();
    assert_eq!((group.count, group.spec.size), (8, Bytes::GIB));
    assert_eq!(group.spec.iops, Some(400.0));
    assert_eq!((group.spec.throughput, group.spec.profile), (None, None));

    let spec = one("gp3,iops=6000:16GiB");
    assert_eq!(
        (spec.iops, spec.throughput),
        (Some(6000.0), Some(Bytes::mib(125)))
    );
    assert_eq!(spec.profile, Profile::named("gp3"));

    let spec = one("cold:8GiB");
    assert_eq!(
        (spec.cold.fraction, spec.cold.block),
        (1.0, Bytes::kib(512))
    );
    assert_eq!(one("cold,cold=25%:8GiB").cold.fraction, 0.25);
    assert_eq!("16xgp3:16GiB".parse::<VolumeGroup>().unwrap().count, 16);
}

#[test]
fn gp2_follows_its_size() {
    let rates = |text| {
        let spec = one(text);
        (spec.iops.unwrap(), spec.burst.map(|b| (b.iops, b.credits)))
    };
    let burst = Some((3000.0, 5_400_000.0));
    assert_eq!(rates("gp2:1GiB"), (100.0, burst));
    assert_eq!(rates("gp2:100GiB"), (300.0, burst));
    assert_eq!(rates("gp2:1000GiB"), (3000.0, None));
    assert_eq!(rates("gp2:16TiB"), (16_000.0, None));
    assert_eq!(
        rates("gp2,credits=600:100GiB"),
        (300.0, Some((3000.0, 600.0)))
    );
    assert_eq!(rates("gp2,iops=4000:100GiB"), (4000.0, None));
    assert_eq!(one("gp2:170GiB").throughput, Some(Bytes::mib(128)));
    assert_eq!(one("gp2:334GiB").throughput, Some(Bytes::mib(250)));
}

#[test]
fn throughput_of_disks_that_turn_bursts_by_their_size() {
    let burst = |text| {
        let spec = one(text);
        let burst = spec.throughput_burst.map(|b| (b.throughput, b.credits));
        (spec.throughput.unwrap(), burst)
    };
    let mib = Bytes::mib;
    assert_eq!(
        burst("st1:1TiB"),
        (mib(40), Some((mib(250), Bytes::gib(1024))))
    );
    assert_eq!(burst("st1:16TiB"), (mib(500), None));
    assert_eq!(
        burst("sc1:4TiB"),
        (mib(48), Some((mib(250), Bytes::gib(4096))))
    );
    assert_eq!(
        burst("sc1,throughput-credits=1GiB:1TiB"),
        (mib(12), Some((mib(80), Bytes::GIB)))
    );
    assert_eq!(burst("st1,throughput=400MiB:1TiB"), (mib(400), None));
    let small = one("st1:1TiB").scaled(0.01).throughput_burst.unwrap();
    assert_eq!(small.throughput.0, mib(250).0 / 100);
}

#[test]
fn io2_buys_throughput_with_iops() {
    assert_eq!(one("io2,iops=400:16GiB").throughput, Some(Bytes::mib(100)));
    assert_eq!(
        one("io2,iops=256000:1TiB").throughput,
        Some(Bytes::mib(4000))
    );
    assert_eq!(one("io2:4GiB").iops, Some(4000.0));
}

#[test]
fn troubles_are_read() {
    let spec = one(
        "iops=400,throughput=none,slow=10s+5s,slow=60s+1s,slow-factor=4,stall=1s+250ms,\
         stall-every=30s,error=1MiB+4k,error-on=read,error-after=5s,corrupt=8k,corrupt=64k+4k,\
         corrupt-places=3,corrupt-after=1m,serial=vol-1,seed=9,latency=1ms,jitter=0:1GiB",
    );
    assert_eq!(spec.slow.when.episodes.len(), 2);
    assert_eq!(spec.stalls.every, Some(Nanos::from_secs(30)));
    assert_eq!(spec.errors.on, ErrorOn::Read);
    assert_eq!(
        spec.corruption.places[0],
        Span {
            offset: 8192,
            length: 512
        }
    );
    assert_eq!(spec.corruption.after, Some(Nanos::from_secs(60)));
    assert_eq!(spec.latency.min, Nanos(500_000));
    assert!(!spec.volatile && one("nvme,volatile=1:1GiB").volatile);
    assert_eq!(
        (spec.serial.as_deref(), spec.seed),
        (Some("vol-1"), Some(9))
    );
}

#[test]
fn several_volumes_get_their_own_serial_and_seed() {
    let group: VolumeGroup = "3xserial=abcdefghijklmnopqrst,seed=5:1MiB".parse().unwrap();
    let volumes: Vec<_> = group.volumes().collect();
    assert_eq!(volumes[2].serial.as_deref(), Some("abcdefghijklmnopqr-3"));
    assert_eq!(volumes[2].seed, Some(7));
    let free: VolumeGroup = "3xiops=4:1MiB".parse().unwrap();
    assert!(
        free.volumes()
            .all(|v| v.serial.is_none() && v.seed.is_none())
    );
}

#[test]
fn scaling_keeps_the_time_that_credits_last() {
    let spec = one("gp2:100GiB");
    let small = spec.scaled(0.1);
    let (burst, less) = (spec.burst.unwrap(), small.burst.unwrap());
    let lasts = |burst: Burst, iops: Option<f64>| burst.credits / (burst.iops - iops.unwrap());
    assert!((lasts(burst, spec.iops) - lasts(less, small.iops)).abs() < 1e-6);
    assert_eq!(small.iops, Some(30.0));
}

#[test]
fn every_error_names_what_is_wrong() {
    for (text, part) in [
        ("gp3", "has no size"),
        ("gp3:", "'' is not the size"),
        ("gp3:1000", "'1000' is not the size"),
        ("gp3:9000PiB", "is not the size"),
        ("0xgp3:1GiB", "'0' volumes"),
        ("999xgp3:1GiB", "'999' volumes"),
        ("gp4:1GiB", "'gp4' is neither a profile"),
        ("iops=3,gp3:1GiB", "'gp3' is neither a profile"),
        (":1GiB", "'' is neither a profile"),
        (
            "iopses=3:1GiB",
            "there is no key 'iopses'; the keys are iops, throughput",
        ),
        ("iops=3,iops=4:1GiB", "iops is given twice"),
        (
            "iops=0:1GiB",
            "iops=0 is not understood; iops takes a number above 0",
        ),
        ("iops=NaN:1GiB", "iops=NaN"),
        ("throughput=fast:1GiB", "throughput takes a size"),
        ("cold=1.5:1GiB", "cold takes a share"),
        ("cold=101%:1GiB", "cold=101% is not understood"),
        (
            "cold-latency=80ms..20ms:1GiB",
            "cold-latency takes a duration or two",
        ),
        ("stall=10s:1GiB", "stall takes START+LENGTH"),
        ("stall=10s+0s:1GiB", "stall takes START+LENGTH"),
        (
            "stall=1s+2s,stall-every=2s:1GiB",
            "the period must be longer",
        ),
        ("slow-every=2s:1GiB", "slow-every is given without slow"),
        ("burst=3000,iops=100:1GiB", "burst is given without credits"),
        (
            "credits=3000,iops=100:1GiB",
            "credits are given without burst",
        ),
        (
            "burst=30,credits=5,iops=100:1GiB",
            "burst=30 is not above iops=100",
        ),
        ("burst=30,credits=5:1GiB", "burst needs a baseline"),
        (
            "throughput-burst=2MiB,throughput=1MiB:1GiB",
            "throughput-burst is given without throughput-credits",
        ),
        (
            "throughput-credits=2GiB,throughput=1MiB:1GiB",
            "throughput-credits are given without throughput-burst",
        ),
        (
            "throughput-burst=1MiB,throughput-credits=2GiB,throughput=1MiB:1GiB",
            "throughput-burst=1 MiB is not above throughput=1 MiB",
        ),
        (
            "throughput-burst=1MiB,throughput-credits=2GiB:1GiB",
            "throughput-burst needs a baseline",
        ),
        (
            "gp3,iops=6000:4GiB",
            "4 GiB has at most 3000 IOPS (500 for each GiB, 80000 in all), not 6000; without a profile",
        ),
        (
            "gp3,throughput=800MiB:100GiB",
            "with 3000 IOPS has at most 750 MiB a second",
        ),
        ("io2,iops=17000:16GiB", "has at most 16000 IOPS"),
        ("latency=1ms,latency-min=2ms:1GiB", "latency-min is 2.00 ms"),
        ("error=1GiB+1:1GiB", "error takes OFFSET+LENGTH inside"),
        ("error=5:1GiB", "error takes OFFSET+LENGTH inside"),
        ("corrupt=18446744073709551615+5:1GiB", "corrupt takes"),
        (
            "corrupt-places=-1:1GiB",
            "corrupt-places takes a whole number",
        ),
        ("error-on=all:1GiB", "error-on takes read, write or both"),
        ("serial=../x:1GiB", "serial takes up to 20"),
        ("serial=..:1GiB", "serial takes up to 20"),
        ("volatile=yes:1GiB", "volatile takes 0 or 1"),
        ("seed=x:1GiB", "seed takes a whole number"),
    ] {
        let message = error(text);
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn a_quantity_without_its_unit_is_refused_and_the_unit_shown() {
    for (pair, shown) in [
        ("throughput=125", "write throughput=125MiB"),
        ("throughput=131072000", "write throughput=131072000MiB"),
        ("merge=256", "write merge=256KiB"),
        ("cold-block=512", "write cold-block=512KiB"),
        ("latency=5", "write latency=5ms"),
        ("latency-min=0.5", "write latency-min=0.5ms"),
        ("cold-latency=20..80", "write cold-latency=20ms..80ms"),
        ("cold-rate=100", "write cold-rate=100MiB"),
        ("cold-latency=20ms..80", "write cold-latency=20ms..80ms"),
        ("slow=10+5s", "write slow=10s+5s"),
        ("slow-every=60", "write slow-every=60s"),
        ("stall=10s+5", "write stall=10s+5s"),
        ("stall-every=60", "write stall-every=60s"),
        ("error-after=5", "write error-after=5s"),
        ("corrupt-after=5", "write corrupt-after=5s"),
    ] {
        let message = error(&format!("{pair}:1GiB"));
        assert!(
            message.contains("lacks a unit") && message.ends_with(shown),
            "{pair}: {message}"
        );
    }
    // Nothing is nothing in every unit, and places are bytes.
    for pair in [
        "throughput=125B",
        "error-after=0",
        "stall=0+5s",
        "error=4096+512",
        "corrupt=8192",
    ] {
        one(&format!("{pair}:1GiB"));
    }
}

#[test]
fn the_documentation_names_every_key() {
    let documented = include_str!("mod.rs");
    for key in KEYS {
        assert!(documented.contains(&format!("//! | `{key}` |")), "{key}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,60}") {
        let _ = text.parse::<VolumeGroup>();
    }

    #[test]
    fn any_pair_is_read_or_refused(key in 0..KEYS.len(), value in "[0-9a-z.+%]{0,12}") {
        let _ = format!("{}={value}:1MiB", KEYS[key]).parse::<VolumeGroup>();
    }
}

#[test]
fn the_users_table_of_keys_is_this_modules() {
    let users: Vec<&str> = include_str!("../../../../docs/lab.md").lines().collect();
    let ours = include_str!("mod.rs").lines();
    let rows: Vec<&str> = ours.filter_map(|line| line.strip_prefix("//! ")).collect();
    for key in super::KEYS {
        let of_key = format!("| `{key}` | ");
        let row = rows.iter().find(|row| row.starts_with(&of_key)).unwrap();
        assert!(users.contains(row), "{row}");
    }
}
