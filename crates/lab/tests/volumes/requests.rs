//! Volumes from the clients' side: over real sockets, in real time.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::{Client, DISC, FLUSH, READ, TRIM, WRITE, ZEROES};
use crate::specs::specs;
use lab::server::{Caps, DataMedium, Options, Server};
use lab::spec::Span;
use record::Bytes;

fn options() -> Options {
    Options {
        keep: DataMedium::Memory,
        ..Options::default()
    }
}

fn serve(groups: &[&str]) -> Server {
    Server::start(&specs(groups), &options()).unwrap()
}

fn connect(server: &Server, volume: usize) -> Client {
    Client::connect(server.volumes()[volume].socket())
}

/// Time for which the rate is measured against a cap.
const WATCHED: Duration = Duration::from_secs(3);

/// Checks a measurement against the truth. A busy host may take its processors away for a while, and then it
/// is not, so it may be measured again; what is wrong stays wrong.
fn holds(of: f64, percent: f64, measure: impl Fn() -> f64) {
    let mut seen = Vec::new();
    for _ in 0..100 {
        let value = measure();
        if (value / of - 1.0).abs() * 100.0 <= percent {
            return;
        }
        seen.push(value);
    }
    panic!("{seen:?} are not within {percent} % of {of}");
}

#[test]
fn a_cap_of_400_iops_holds_in_real_time() {
    holds(400.0, 2.0, || {
        let server = serve(&["iops=400:64GiB"]);
        let mut client = connect(&server, 0);
        let answers = client.load(READ, 4096, 32, WATCHED);
        let truth = server.volumes()[0].truth();
        assert_eq!(truth.counters.read.ops, answers.len() as u64 + 32);
        assert_eq!(truth.counters.counted_ops, truth.counters.read.ops);
        answers.len() as f64 / WATCHED.as_secs_f64()
    });
}

#[test]
fn a_throughput_cap_holds_in_real_time_for_writes() {
    holds(20.0, 2.0, || {
        let server = serve(&["throughput=20MiB:64GiB"]);
        let answers = connect(&server, 0).load(WRITE, 65_536, 32, WATCHED);
        answers.len() as f64 / 16.0 / WATCHED.as_secs_f64()
    });
}

#[test]
fn several_connections_share_one_cap() {
    holds(400.0, 2.0, || {
        let server = serve(&["iops=400:64GiB"]);
        let counts: Vec<usize> = std::thread::scope(|scope| {
            let load = || connect(&server, 0).load(READ, 4096, 16, WATCHED).len();
            let loads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
            loads.into_iter().map(|load| load.join().unwrap()).collect()
        });
        counts.iter().sum::<usize>() as f64 / WATCHED.as_secs_f64()
    });
}

#[test]
fn an_instance_cap_is_shared_in_real_time() {
    let caps = Caps {
        iops: Some(4000.0),
        throughput: None,
        ..Caps::default()
    };
    let options = Options {
        instance: caps,
        scale: 0.25,
        ..options()
    };
    holds(1000.0, 2.0, || {
        let server = Server::start(&specs(&["4xgp3:64GiB"]), &options).unwrap();
        assert_eq!(server.volumes()[3].spec().iops, Some(750.0));
        let counts: Vec<usize> = std::thread::scope(|scope| {
            let load = |volume| {
                connect(&server, volume)
                    .load(READ, 4096, 8 << volume, WATCHED)
                    .len()
            };
            let loads: Vec<_> = (0..4)
                .map(|volume| scope.spawn(move || load(volume)))
                .collect();
            loads.into_iter().map(|load| load.join().unwrap()).collect()
        });
        let (least, most) = (counts.iter().min(), counts.iter().max());
        let shared = least
            .zip(most)
            .is_some_and(|(least, most)| least * 10 > most * 9);
        if !shared {
            eprintln!("not shared alike: {counts:?}");
            return f64::NAN;
        }
        counts.iter().sum::<usize>() as f64 / WATCHED.as_secs_f64()
    });
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
    // How long it takes at most is the host's matter. One after the other, they would be answered in order.
    assert!(took >= Duration::from_millis(60), "{took:?}");
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
    println!("128 warm reads took {:?}", begun.elapsed());
    assert_eq!(server.volumes()[0].truth().cold_blocks_left, 2048 - 128);
}

#[test]
fn no_answer_comes_early() {
    let server = serve(&["latency=2ms,jitter=0:64GiB"]);
    let mut client = connect(&server, 0);
    for _ in 0..100 {
        let took = client.ask(READ, 0, 4096, &[]).took;
        assert!(took >= Duration::from_millis(2), "{took:?}");
    }
}

#[test]
fn writes_read_back_through_every_connection() {
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
        serde_json::from_value::<lab::server::VolumeTruth>(json).unwrap(),
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
fn a_stall_holds_everything_and_counts_from_the_beginning_that_is_reported() {
    let options = Options {
        hold: true,
        ..options()
    };
    let server = Server::start(&specs(&["latency=0us,stall=100ms+300ms:1MiB"]), &options).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    let mut client = connect(&server, 0);
    client.ask(READ, 0, 512, &[]);
    assert_eq!(server.volumes()[0].truth().stalls, 0);
    let begun = Instant::now();
    server.begin();
    std::thread::sleep(Duration::from_millis(150));
    client.ask(READ, 0, 512, &[]);
    let answered = begun.elapsed();
    assert!(answered >= Duration::from_millis(400), "{answered:?}");
    assert_eq!(server.volumes()[0].truth().stalls, 1);
}

#[test]
fn corruption_failures_and_coldness_wait_for_the_beginning() {
    let hold = Options {
        hold: true,
        ..options()
    };
    let what = "latency=0us,jitter=0,cold=1,corrupt=0+512,corrupt-after=1ms,error=4096+512:1MiB";
    let server = Server::start(&specs(&[what]), &hold).unwrap();
    let volume = &server.volumes()[0];
    let mut client = connect(&server, 0);
    // As by a machine that boots: it reads and writes after the times of all faults.
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(client.ask(WRITE, 0, 512, &[7; 512]).error, 0);
    assert_eq!(client.ask(READ, 0, 512, &[]).data, [7; 512]);
    assert_eq!(client.ask(READ, 4096, 512, &[]).error, 0);
    let truth = volume.truth();
    assert_eq!((truth.elapsed.0, truth.cold_blocks_left), (0, 2));
    assert_eq!((truth.corrupt_reads, truth.corrupt_places.len()), (0, 0));

    server.begin();
    std::thread::sleep(Duration::from_millis(20));
    let cold = client.ask(READ, 0, 512, &[]);
    assert!(cold.took >= Duration::from_millis(20), "{:?}", cold.took);
    assert!(cold.data.iter().all(|byte| *byte != 7));
    assert_eq!(client.ask(READ, 4096, 512, &[]).error, 5);
    let truth = volume.truth();
    assert_eq!((truth.corrupt_reads, truth.cold_blocks_left), (1, 1));
}

#[test]
fn a_power_cut_ends_clients_and_takes_back_part_of_what_was_not_flushed() {
    // So long that a flush which is sent after a write comes before its answer, on a busy host too.
    let server = serve(&["volatile=1,latency=1s,jitter=0:1MiB", "gp3:1MiB"]);
    let half = vec![1; 512 << 10];
    for volume in 0..2 {
        let (mut one, mut other) = (connect(&server, volume), connect(&server, volume));
        assert_eq!(one.ask(WRITE, 0, 512 << 10, &half).error, 0);
        // A flush on any connection covers the answered writes of all connections.
        assert_eq!(other.ask(FLUSH, 0, 0, &[]).error, 0);
        assert_eq!(other.force(512 << 10, &[3; 256 << 10]).error, 0);
        // A flush does not cover requests that are in flight when it arrives.
        one.send(WRITE, 768 << 10, 256 << 10, &[4; 256 << 10]);
        one.send(FLUSH, 0, 0, &[]);
        assert!(one.answer().is_some() && one.answer().is_some());
    }
    let unflushed = |volume: usize| server.volumes()[volume].truth().unflushed_blocks;
    assert_eq!((unflushed(0), unflushed(1)), (64, 0));
    let mut waits = connect(&server, 0);
    assert_eq!(waits.ask(WRITE, 0, 256 << 10, &[2; 256 << 10]).error, 0);

    let lost = server.cut_power().unwrap();
    assert!(waits.answer().is_none());
    // Binomial: 64 with a deviation of 6.
    assert!((30..100).contains(&lost), "{lost}");
    let (volatile, stable) = (server.volumes()[0].truth(), server.volumes()[1].truth());
    assert_eq!((volatile.lost_blocks, volatile.unflushed_blocks), (lost, 0));
    assert_eq!((volatile.counters.write.ops, stable.lost_blocks), (4, 0));
    let counts = |volume, at: u64| {
        let data = connect(&server, volume)
            .ask(READ, at << 10, 256 << 10, &[])
            .data;
        let blocks: Vec<u8> = data.chunks(4096).map(|block| block[0]).collect();
        [0, 1, 2, 3, 4].map(|value| blocks.iter().filter(|b| **b == value).count())
    };
    let [first, last] = [0, 768].map(|at| counts(0, at));
    assert!(
        first[1] > 0 && first[2] > 0 && first[1] + first[2] == 64,
        "{first:?}"
    );
    assert!(
        last[0] > 0 && last[4] > 0 && last[0] + last[4] == 64,
        "{last:?}"
    );
    assert_eq!(counts(0, 256), [0, 64, 0, 0, 0]);
    assert_eq!(counts(0, 512), [0, 0, 0, 64, 0]);
    assert_eq!(counts(1, 0), [0, 64, 0, 0, 0]);
    assert_eq!(counts(1, 768), [0, 0, 0, 0, 64]);
}

#[test]
fn a_client_that_leaves_has_its_last_answers_first() {
    let caps = Caps {
        iops: Some(1000.0),
        throughput: None,
        ..Caps::default()
    };
    for instance in [Caps::default(), caps] {
        let options = Options {
            instance,
            ..options()
        };
        let server = Server::start(&specs(&["latency=50ms,jitter=0:1MiB"]), &options).unwrap();
        let mut client = connect(&server, 0);
        for block in 0..10 {
            client.send(READ, block << 12, 512, &[]);
        }
        client.send(DISC, 0, 0, &[]);
        for _ in 0..10 {
            assert_eq!(client.answer().unwrap().data, [0; 512]);
        }
        assert!(client.answer().is_none());
    }
}

#[test]
fn a_server_stops_while_a_client_that_leaves_waits() {
    let server = serve(&["stall=0s+1h:1MiB"]);
    let mut client = connect(&server, 0);
    client.send(READ, 0, 512, &[]);
    client.send(DISC, 0, 0, &[]);
    std::thread::sleep(Duration::from_millis(50));
    drop(server);
    assert!(client.answer().is_none());
}

#[test]
fn caps_that_are_no_rates_are_refused() {
    let error_of = |what: &str, scale: f64, iops: Option<f64>, throughput: Option<u64>| {
        let options = Options {
            scale,
            instance: Caps {
                iops,
                throughput: throughput.map(Bytes),
                ..Caps::default()
            },
            ..options()
        };
        let started = Server::start(&specs(&[what]), &options);
        started.err().map(|error| error.to_string())
    };
    for iops in [0.0, -1.0, 0.0001, f64::NAN, f64::INFINITY] {
        let message = error_of("gp3:1GiB", 1.0, Some(iops), None).unwrap();
        assert!(message.starts_with("the instance's cap is "), "{message}");
        assert!(message.ends_with("at least 0.001, and finite"), "{message}");
    }
    assert!(error_of("gp3:1GiB", 1.0, None, Some(0)).is_some());
    assert!(error_of("gp3:1GiB", 0.1, None, Some(9)).is_some());
    let message = error_of("throughput=1GiB,iops=400:1GiB", 1e-6, None, None).unwrap();
    assert_eq!(
        message,
        "the cap of volume 1 is 400 operations a second at a scale of 0.000001; scaled, it must be \
         at least 0.001, and finite"
    );
    assert!(error_of("gp2:1GiB", 1e-300, None, None).is_some());
    assert!(error_of("gp3:1GiB", 1e300, None, None).is_some());
    assert_eq!(error_of("gp3:1GiB", 0.01, Some(0.1), Some(100)), None);
}

#[test]
fn the_slowest_caps_do_not_end_the_fair_queue() {
    let options = Options {
        instance: Caps {
            iops: Some(0.001),
            throughput: Some(Bytes(1)),
            ..Caps::default()
        },
        ..options()
    };
    let server = Server::start(&specs(&["latency=0us:1GiB"]), &options).unwrap();
    let mut client = connect(&server, 0);
    assert_eq!(client.ask(READ, 0, 512, &[]).error, 0);
    for _ in 0..1000 {
        client.send(READ, 0, 32 << 20, &[]);
    }
    let begun = Instant::now();
    while server.volumes()[0].truth().counters.read.ops < 1001 {
        assert!(begun.elapsed() < Duration::from_secs(600));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_that_breaks_the_protocol_loses_its_connection_and_nothing_else() {
    let server = serve(&["latency=0us:1MiB"]);
    let mut good = connect(&server, 0);
    let mut bad = connect(&server, 0);
    bad.send_raw(&[0x5a; 64]).unwrap();
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
    let state = refusal(&["serial=lab-state:1MiB"], &options());
    assert!(
        state.contains("lab-state is that of the machine's own disk"),
        "{state}"
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
