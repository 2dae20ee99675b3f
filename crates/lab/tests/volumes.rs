//! Volumes as their clients see them: over real sockets, in real time.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it measured"
)]

mod client;

use std::path::Path;
use std::time::{Duration, Instant};

use client::{Client, DISC, FLUSH, READ, TRIM, WRITE, ZEROES};
use lab::server::{Caps, Keep, Options, Server};
use lab::spec::{Span, VolumeGroup, VolumeSpec};
use record::Bytes;

fn specs(groups: &[&str]) -> Vec<VolumeSpec> {
    let groups = groups
        .iter()
        .map(|text| text.parse::<VolumeGroup>().unwrap());
    groups
        .flat_map(|group| group.volumes().collect::<Vec<_>>())
        .collect()
}

fn options() -> Options {
    Options {
        keep: Keep::Memory,
        ..Options::default()
    }
}

fn serve(groups: &[&str]) -> Server {
    Server::start(&specs(groups), &options()).unwrap()
}

fn connect(server: &Server, volume: usize) -> Client {
    Client::connect(server.volumes()[volume].socket())
}

fn assert_within(value: f64, of: f64, percent: f64) {
    println!(
        "{value:.1} where {of:.1} is right ({:+.2} %)",
        (value / of - 1.0) * 100.0
    );
    assert!(
        (value / of - 1.0).abs() <= percent / 100.0,
        "{value} is not {of} within {percent} %"
    );
}

#[test]
fn a_cap_of_400_iops_holds_in_real_time() {
    let server = serve(&["iops=400:64GiB"]);
    let mut client = connect(&server, 0);
    let time = Duration::from_secs(3);
    let answers = client.load(READ, 4096, 32, time);
    assert_within(answers.len() as f64 / time.as_secs_f64(), 400.0, 2.0);
    let truth = server.volumes()[0].truth();
    assert_eq!(truth.counters.read.ops, answers.len() as u64 + 32);
    assert_eq!(truth.counters.counted_ops, truth.counters.read.ops);
}

#[test]
fn a_throughput_cap_holds_in_real_time_for_writes() {
    let server = serve(&["throughput=20MiB:64GiB"]);
    let time = Duration::from_secs(3);
    let answers = connect(&server, 0).load(WRITE, 65_536, 32, time);
    let mib = answers.len() as f64 / 16.0 / time.as_secs_f64();
    assert_within(mib, 20.0, 2.0);
}

#[test]
fn several_connections_share_one_cap() {
    let server = serve(&["iops=400:64GiB"]);
    let time = Duration::from_secs(3);
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let load = || connect(&server, 0).load(READ, 4096, 16, time).len();
        let loads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
        loads.into_iter().map(|load| load.join().unwrap()).collect()
    });
    assert_within(counts.iter().sum::<usize>() as f64 / 3.0, 400.0, 2.0);
}

#[test]
fn an_instance_cap_is_shared_in_real_time() {
    let caps = Caps {
        iops: Some(4000.0),
        throughput: None,
    };
    let options = Options {
        instance: caps,
        scale: 0.25,
        ..options()
    };
    let server = Server::start(&specs(&["4xgp3:64GiB"]), &options).unwrap();
    assert_eq!(server.volumes()[3].spec().iops, Some(750.0));
    let time = Duration::from_secs(3);
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let load = |volume| {
            connect(&server, volume)
                .load(READ, 4096, 8 << volume, time)
                .len()
        };
        let loads: Vec<_> = (0..4)
            .map(|volume| scope.spawn(move || load(volume)))
            .collect();
        loads.into_iter().map(|load| load.join().unwrap()).collect()
    });
    assert_within(counts.iter().sum::<usize>() as f64 / 3.0, 1000.0, 2.0);
    for count in counts {
        assert_within(count as f64 / 3.0, 250.0, 5.0);
    }
}

#[test]
fn cold_reads_in_flight_take_as_long_as_one() {
    let server = serve(&["cold=1:1GiB"]);
    let mut client = connect(&server, 0);
    let begun = Instant::now();
    for block in 0..128 {
        client.send(READ, block << 19, 4096, &[]);
    }
    let cookies: Vec<u64> = (0..128).map(|_| client.answer().unwrap().cookie).collect();
    let took = begun.elapsed();
    println!("128 cold reads of 20..80 ms took {took:?}");
    assert!(
        took >= Duration::from_millis(60) && took < Duration::from_millis(160),
        "{took:?}"
    );
    assert!(
        !cookies.is_sorted(),
        "the answers came in the order of the requests"
    );
    // Now they are warm.
    let begun = Instant::now();
    for block in 0..128 {
        client.send(READ, block << 19, 4096, &[]);
    }
    (0..128).for_each(|_| assert_eq!(client.answer().unwrap().error, 0));
    assert!(
        begun.elapsed() < Duration::from_millis(55),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(server.volumes()[0].truth().cold_blocks_left, 2048 - 128);
}

#[test]
fn answers_are_on_time() {
    let server = serve(&["latency=2ms,jitter=0:64GiB"]);
    let mut client = connect(&server, 0);
    let late = (0..300).map(|_| client.ask(READ, 0, 4096, &[]).took - Duration::from_millis(2));
    let mut late: Vec<Duration> = late.collect();
    late.sort_unstable();
    let (median, p95) = (late[150], late[285]);
    println!(
        "late by {median:?} in the median, {p95:?} at p95, {:?} at most",
        late[299]
    );
    // The median, as other work may hold the processor.
    assert!(median < Duration::from_micros(200), "{median:?}");
}

#[test]
fn what_is_written_reads_back_through_every_connection() {
    let server = serve(&["latency=0us,jitter=0:1MiB"]);
    let (mut one, mut other) = (connect(&server, 0), connect(&server, 0));
    assert_eq!(one.size, 1 << 20);
    assert_eq!(one.ask(WRITE, 5000, 3000, &[7; 3000]).error, 0);
    assert_eq!(one.ask(FLUSH, 0, 0, &[]).error, 0);
    assert_eq!(other.ask(READ, 4999, 3, &[]).data, [0, 7, 7]);
    assert_eq!(other.ask(ZEROES, 5000, 1000, &[]).error, 0);
    assert_eq!(other.ask(TRIM, 6000, 1000, &[]).error, 0);
    assert_eq!(one.ask(READ, 6999, 2, &[]).data, [0, 7]);
    // Past the end: ENOSPC for writes, EINVAL for reads; the connection lives on.
    assert_eq!(one.ask(WRITE, (1 << 20) - 1, 2, &[1, 2]).error, 28);
    assert_eq!(one.ask(READ, 1 << 20, 1, &[]).error, 22);
    assert_eq!(one.ask(9, 0, 1, &[]).error, 22);
    let truth = server.volumes()[0].truth();
    assert_eq!(
        (
            truth.counters.write.ops,
            truth.counters.trim.ops,
            truth.counters.flush
        ),
        (2, 1, 1)
    );
    let json = serde_json::to_value(&truth).unwrap();
    assert_eq!(json["counters"]["read"]["bytes"], 5);
    assert_eq!(
        serde_json::from_value::<lab::server::Truth>(json).unwrap(),
        truth
    );
}

#[test]
fn troubles_reach_the_client() {
    let what = "latency=0us,error=64k+4k,corrupt=128k+512,stall=1h+200ms:1MiB";
    let server = serve(&[what]);
    let volume = &server.volumes()[0];
    let mut client = connect(&server, 0);
    assert_eq!(client.ask(READ, 60 << 10, 8192, &[]).error, 5);
    assert_eq!(client.ask(WRITE, 128 << 10, 4096, &[1; 4096]).error, 0);
    let back = client.ask(READ, 128 << 10, 4096, &[]).data;
    assert!(back[..512].iter().all(|b| *b != 1) && back[512..].iter().all(|b| *b == 1));
    volume.corrupt(Span {
        offset: 0,
        length: 1,
    });
    assert_ne!(client.ask(READ, 0, 1, &[]).data, [0]);
    assert_eq!(client.ask(WRITE, 0, 1, &[9]).error, 0);
    assert_eq!(client.ask(READ, 0, 1, &[]).data, [9]);
    let truth = volume.truth();
    assert_eq!(
        (truth.counters.errors, truth.corrupt_reads, truth.stalls),
        (1, 2, 0)
    );
    assert_eq!(
        truth.corrupt_places,
        [Span {
            offset: 128 << 10,
            length: 512
        }]
    );
}

#[test]
fn a_stall_holds_everything_and_counts_from_the_beginning_that_is_told() {
    let server = serve(&["latency=0us,stall=100ms+300ms:1MiB"]);
    std::thread::sleep(Duration::from_millis(450));
    let mut client = connect(&server, 0);
    assert!(client.ask(READ, 0, 512, &[]).took < Duration::from_millis(90));
    server.begin();
    std::thread::sleep(Duration::from_millis(150));
    let took = client.ask(READ, 0, 512, &[]).took;
    assert!(
        took > Duration::from_millis(150) && took < Duration::from_millis(300),
        "{took:?}"
    );
    assert_eq!(server.volumes()[0].truth().stalls, 1);
}

#[test]
fn a_client_that_breaks_the_protocol_loses_its_connection_and_nothing_else() {
    let server = serve(&["latency=0us:1MiB"]);
    let mut good = connect(&server, 0);
    let mut bad = connect(&server, 0);
    bad.send_raw(&[0x5a; 64]);
    assert!(bad.answer().is_none());
    let mut huge = connect(&server, 0);
    huge.send(WRITE, 0, u32::MAX, &[]);
    assert!(huge.answer().is_none());
    let mut leaves = connect(&server, 0);
    leaves.send(DISC, 0, 0, &[]);
    assert!(leaves.answer().is_none());
    assert_eq!(good.ask(READ, 0, 512, &[]).error, 0);
}

#[test]
fn refusals_say_why() {
    let refusal = |groups: &[&str], options: &Options| {
        Server::start(&specs(groups), options)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refusal(&[], &options()).contains("no volumes are given"));
    let twice = refusal(&["serial=a:1MiB", "serial=a:1MiB"], &options());
    assert!(
        twice.contains("two volumes have the serial number a"),
        "{twice}"
    );
    let scale = Options {
        scale: 0.0,
        ..options()
    };
    assert!(refusal(&["gp3:1GiB"], &scale).contains("the scale is 0"));
    let open = Options {
        listen: Some("0.0.0.0:0".parse().unwrap()),
        ..options()
    };
    assert!(refusal(&["gp3:1GiB"], &open).contains("not a loopback address"));
    let nowhere = Options {
        folder: Some(Path::new("/no/such").into()),
        ..options()
    };
    assert!(refusal(&["gp3:1GiB"], &nowhere).contains("/no/such"));
    assert_eq!(Bytes::mib(1), specs(&["gp3:1MiB"])[0].size);
}
