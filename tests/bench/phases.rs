//! Phases of the suite, custom workloads, and their length.

use serde_json::Value;

use crate::support::{Place, SHORT};

fn names(run: &Value) -> Vec<&str> {
    let phases = run["phases"].as_array().unwrap();
    phases
        .iter()
        .map(|phase| phase["name"].as_str().unwrap())
        .collect()
}

#[test]
fn phases_can_be_named_in_every_usual_way() {
    let place = Place::new();
    for words in [
        "data --phase seek,scan",
        "data --phase seek scan",
        "data --phase scan --phase seek",
        "--phase seek --phase scan data",
        "--phase seek scan data",
        "--phase seek,scan data",
        "--phase seek scan -- data",
    ] {
        let options = ["bench", "--json", "--size", "4M", "--seconds", "100ms"];
        let words: Vec<&str> = words.split(' ').collect();
        let run = place.run(&[&options[..], &words].concat()).ends_with(0);
        assert_eq!(names(&run.json()), ["seek", "scan"], "{words:?}");
    }
}

#[test]
fn a_workload_of_the_users_own_is_run_as_it_was_written() {
    let place = Place::new();
    let run = place.document(
        "--size 8M --seconds 200ms --workload \
         pattern=random,read=0.5,block=8k,threads=2,depth=3,span=4M",
    );
    assert_eq!(run["suite"], "workload");
    assert_eq!(names(&run), ["workload"]);
    let phase = &run["phases"][0];
    let workload = &phase["workload"];
    for (key, value) in [
        ("block_bytes", 8 << 10),
        ("threads", 2),
        ("depth", 3),
        ("span_bytes", 4 << 20),
    ] {
        assert_eq!(workload[key], value, "{key}");
    }
    let ops = |direction: &str| phase[direction]["ops"].as_f64().unwrap();
    let (reads, all) = (ops("read"), ops("read") + ops("write"));
    // Each is a read by chance, as a busy disk answers few of them: half of all, within six standard deviations.
    let allowed = 3.0 * all.sqrt();
    assert!(all > 0.0 && (reads - all / 2.0).abs() <= allowed, "{phase}");
}

#[test]
fn a_workload_that_syncs_counts_its_syncs() {
    let place = Place::new();
    let synced = || {
        let run = place.document("--size 8M --seconds 300ms --workload pattern=sequential,read=0,block=4k,sync=4,depth=1");
        let phase = &run["phases"][0];
        let ops = |direction: &str| phase[direction]["ops"].as_u64().unwrap();
        // The last sync may be in flight at the end, or may not be due yet.
        let writes = 4 * ops("sync")..=4 * ops("sync") + 4;
        assert!(writes.contains(&ops("write")), "{phase}");
        ops("sync")
    };
    // A busy disk may take longer than the phase for the first one: one of some runs has more.
    assert!((0..50).any(|_| synced() > 0), "nothing was synced");
}

#[test]
fn options_change_every_phase() {
    let place = Place::new();
    let options = "--block 8k --depth 2 --threads 2 --span 4M --read-fraction 0.5";
    let options: Vec<&str> = options.split(' ').collect();
    let run = place.document(&[&SHORT[..], &options].concat());
    let workload = &run["phases"][0]["workload"];
    assert_eq!(workload["block_bytes"], 8 << 10);
    assert_eq!(workload["depth"], 2);
    assert_eq!(workload["threads"], 2);
    assert_eq!(workload["span_bytes"], 4 << 20);
    assert_eq!(workload["read_fraction"], 0.5);
}

#[test]
fn precision_0_lasts_all_of_the_seconds() {
    let place = Place::new();
    // Longer than the 3 s after which a phase may end early.
    let run = place.document("--size 8M --phase seek --seconds 4 --precision 0");
    let phase = &run["phases"][0];
    assert_eq!(phase["stopped"], "time");
    let seconds = phase["seconds"].as_f64().unwrap();
    // A busy host may be late to end it, and never ends it early.
    assert!(seconds > 3.99, "{seconds}");
    let low = phase["read"]["iops"]["low"].as_f64().unwrap();
    let mean = phase["read"]["iops"]["mean"].as_f64().unwrap();
    let high = phase["read"]["iops"]["high"].as_f64().unwrap();
    assert!(low <= mean && mean <= high, "{low} {mean} {high}");
}

#[test]
fn a_phase_that_is_precise_ends_before_its_time() {
    let place = Place::new();
    // An open loop is as steady as its rate, whatever the disk does meanwhile.
    let run = place.document("--size 8M --phase seek --rate 500 --seconds 20 --precision 50%");
    let phase = &run["phases"][0];
    assert_eq!(phase["stopped"], "precise");
    let seconds = phase["seconds"].as_f64().unwrap();
    assert!((2.9..20.0).contains(&seconds), "{seconds}");
}

#[test]
fn an_open_loop_keeps_its_rate_and_shows_service_time_alongside_latency() {
    let place = Place::new();
    let answered = || {
        let run =
            place.document("--size 8M --phase page-read --rate 400 --seconds 2 --precision 0");
        let phase = &run["phases"][0];
        assert_eq!(phase["workload"]["rate_per_s"], 400.0);
        let read = &phase["read"];
        for key in ["min", "mean", "p50", "p99", "max"] {
            let latency = read["latency_ns"][key].as_f64().unwrap();
            let service = read["service_ns"][key].as_f64().unwrap();
            assert!(
                latency >= service,
                "{key}: {latency} from due, {service} served"
            );
        }
        // 800 are expected; chance alone moves that by 28 (one standard deviation).
        let ops = read["ops"].as_f64().unwrap();
        assert!(ops < 960.0, "{ops}");
        ops
    };
    // A disk that answers nothing at the end of the time keeps some of them back: one of some runs has all.
    assert!((0..20).any(|_| answered() > 640.0), "the rate was not kept");
    // A closed loop has no time at which a request was due.
    let run = place.document(&SHORT);
    assert!(run["phases"][0]["read"]["service_ns"].is_null());
}
