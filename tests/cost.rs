//! The verb `cost`, through the real program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use serde_json::Value;
use support::Place;

/// Long enough for a request of a process that other work starves.
const ONE_SECOND: [&str; 6] = ["--size", "8M", "--seconds", "1s", "--phase", "page-read"];

/// A place with a short run.
fn measured() -> Place {
    let place = Place::new();
    place.bench(&ONE_SECOND).ends_with(0);
    place
}

/// The document of `cost` with these arguments.
fn document(place: &Place, arguments: &str, status: i32) -> Value {
    let line = format!("cost --workload last --json {arguments}");
    place.run(&line).ends_with(status).json()
}

/// A price file in which a type carries anything and costs 1 for a GiB.
const ANY: &str = "type,region,as_of,source,currency,gib_month,least_gib,most_gib,most_iops,iops_per_gib,most_mibps,mibps_per_iops\n\
    any,here,2026-11-01,bill,EUR,1,1,9999,1000000000,1000000000,10000000,1\n";

#[test]
fn the_cheapest_is_first_and_the_others_have_a_reason() {
    let place = measured();
    let found = document(&place, "--volumes 3", 0);
    assert_eq!(found["workload"]["kind"], "run");
    let rate = found["workload"]["peak"]["iops"].as_f64().unwrap();
    assert!(rate > 0.0);
    let choices = found["choices"].as_array().unwrap();
    let months: Vec<f64> = choices
        .iter()
        .map(|one| one["month"].as_f64().unwrap())
        .collect();
    assert!(months.is_sorted(), "{months:?}");
    for one in choices {
        let together = one["iops_each"].as_f64().unwrap() * one["count"].as_f64().unwrap();
        assert!(together >= rate - 1e-6, "{one}");
        let size = one["size_gib_each"].as_u64().unwrap() * one["count"].as_u64().unwrap();
        assert!(size >= 100, "{one}");
    }
    let out = found["ruled_out"].as_array().unwrap();
    assert_eq!(choices.len() + out.len(), 6 * 3);
    assert!(
        out.iter()
            .all(|one| !one["reason"].as_str().unwrap().is_empty())
    );
    // The table's prices are of 2024.
    assert!(
        found["warnings"][0]
            .as_str()
            .unwrap()
            .contains("2024-07-01")
    );
    let said = place.run("cost --workload last").ends_with(0);
    said.prints(&["as of 2024-07-01"]);
}

#[test]
fn own_prices_and_instances_count() {
    let place = measured();
    fs::write(place.path("prices.csv"), ANY).unwrap();
    let here = "--prices prices.csv --region here --size 200GiB --volumes 1";
    let found = document(&place, here, 0);
    assert_eq!(found["choices"][0]["month"], 200.0);
    assert_eq!(found["choices"][0]["currency"], "EUR");
    assert_eq!(found["warnings"].as_array().unwrap().len(), 0);
    let limits = r#"{"InstanceTypes": [{"InstanceType": "tiny", "EbsInfo": {"EbsOptimizedInfo": {"BaselineIops": 0.001,
        "BaselineThroughputInMBps": 1, "MaximumIops": 0.002, "MaximumThroughputInMBps": 2}}}]}"#;
    fs::write(place.path("types.json"), limits).unwrap();
    let tiny = format!("{here} --instance tiny --instances types.json");
    let none = document(&place, &tiny, 1);
    let reason = none["ruled_out"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("instance cap"), "{reason}");
    let said = place.run("cost --workload last --p99 1us").ends_with(1);
    said.prints(&["No volume type carries it", "latency: "]);
}

#[test]
fn a_recording_is_a_workload_and_idle_volumes_are_named() {
    let place = Place::new();
    place
        .run("watch --record --plain --count 3 --interval 1s")
        .ends_with(0);
    let words = "cost --workload 1 --json --have io2,1TiB,100000";
    let found = place.run(words).ends_with(0).json();
    assert_eq!(found["workload"]["kind"], "recording");
    let have = &found["have"];
    let idle = have["idle_month"].as_f64().unwrap();
    // 100,000 IOPS cost 2,080 + 1,472 + 1,152.
    assert!(
        (have["month"].as_f64().unwrap() - (128.0 + 4_704.0)).abs() < 1e-6,
        "{have}"
    );
    assert!(idle > 0.0 && idle < 4_704.0, "{have}");
    let said = place.run("cost --workload 1 --device nosuch").ends_with(2);
    said.warns(&["no rates of a device nosuch"]);
}

#[test]
fn misuse_is_refused_with_the_reason() {
    let place = measured();
    fs::write(place.path("bad.toml"), "[[volume]]\ntype = \"gp3\"\n").unwrap();
    for (arguments, reason) in [
        ("--workload 7", "there is no recording 7"),
        ("--workload last --phase nosuch", "has the phases page-read"),
        (
            "--workload last --region mars",
            "no price of the region 'mars'",
        ),
        ("--workload last --prices bad.toml", "bad.toml"),
        ("--workload last --prices nosuch", "cannot be read"),
        ("--workload last --have gp9,1TiB", "no type 'gp9'"),
        (
            "--workload last --instance x --instances bad.toml",
            "describe-instance-types",
        ),
        ("--workload last --size 0", "cannot be 0"),
    ] {
        let said = place.run(&format!("cost {arguments}")).ends_with(2);
        said.warns(&[reason]);
        assert_eq!(said.out, "");
    }
    let said = Place::new().run("cost --workload last").ends_with(2);
    said.warns(&["the ledger is empty"]);
}

#[test]
fn a_trace_is_a_workload_and_its_base_load_has_a_price() {
    let place = Place::new();
    // A load of blkreplay: 16 KiB reads, 100 in each of two seconds and 900 in a third.
    let mut load = String::from("start ; sector ; length ; op ; replay_delay ; replay_duration\n");
    for (second, count) in [(0, 100), (1, 100), (2, 900)] {
        for at in 0..count {
            let time = f64::from(second) + f64::from(at) / 1000.0;
            load.push_str(&format!("{time:.9} ; {} ; 32 ; R ; 0.0 ; 0.001\n", at * 32));
        }
    }
    fs::write(place.path("day.load"), load).unwrap();
    let found = place
        .run("cost --workload day.load --size 1GiB --json")
        .ends_with(0)
        .json();
    assert_eq!(found["workload"]["kind"], "trace");
    assert_eq!(found["workload"]["peak"]["iops"], 900.0);
    assert_eq!(found["workload"]["base"]["iops"], 100.0);
    assert_eq!(found["workload"]["seconds"], 3.0);
    let base = found["base_month"].as_f64().unwrap();
    assert!(base <= found["choices"][0]["month"].as_f64().unwrap());
    let said = place
        .run("cost --workload day.load --size 1GiB")
        .ends_with(0);
    said.prints(&["The base load alone"]);
    // Nobody knows when it was recorded.
    assert!(found["workload"]["at"].is_null());
    assert!(said.out.starts_with("Trace day.load: 900"), "{said:#?}");
    let other = "cost --workload day.load --device nosuch";
    place.run(other).refuses(&["day.load", "nosuch"]);
    place.run("cost --workload ./nosuch").refuses(&["./nosuch"]);
}
