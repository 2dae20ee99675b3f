//! Limits on the connections and memory that clients can make the server use, and on the delay of its answers. It is a
//! separate test program, since it examines the memory of the whole process, and delays without other tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "other test programs use more of the client")]

mod client;
mod specs;

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use client::{Client, READ, WRITE};
use lab::server::{DataMedium, Options, Server};
use specs::specs;

const MIB: u64 = 1 << 20;
/// The longest payload of the protocol.
const MAX_PAYLOAD_BYTES: u32 = 32 << 20;
/// Sum of the limits of the module `nbd::limits`, and of the files of the volume, for the clients below.
const BOUND: u64 = 450 * MIB;
/// A time limit for progress, for a busy host.
const LONG: Duration = Duration::from_secs(600);

fn serve(volume: &str) -> Server {
    let options = Options {
        keep: DataMedium::Memory,
        ..Options::default()
    };
    Server::start(&specs(&[volume]), &options).unwrap()
}

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

/// The header of a request.
fn head(command: u16, length: u32) -> Vec<u8> {
    let mut head = 0x2560_9513_u32.to_be_bytes().to_vec();
    head.extend(0_u16.to_be_bytes());
    head.extend(command.to_be_bytes());
    head.extend([0; 16]);
    head.extend(length.to_be_bytes());
    head
}

/// The maximum memory of this process until `done`, and for a while after it.
fn most_resident(done: impl Fn() -> bool) -> u64 {
    let began = Instant::now();
    let mut most = 0;
    while !done() {
        assert!(began.elapsed() < LONG, "it does not end");
        most = most.max(resident());
        std::thread::sleep(Duration::from_millis(20));
    }
    (0..20).fold(most, |most, _| {
        std::thread::sleep(Duration::from_millis(20));
        most.max(resident())
    })
}

#[test]
fn clients_hold_what_they_have_sent_and_no_more_than_a_bound() {
    let server = serve("nvme:1GiB");
    let socket = server.volumes()[0].socket();
    let before = resident();

    // They announce large payloads and send one byte.
    let mut clients: Vec<Client> = (0..100).map(|_| Client::connect(socket)).collect();
    for client in &mut clients {
        client.send_raw(&head(WRITE, MAX_PAYLOAD_BYTES)).unwrap();
        client.send_raw(&[1]).unwrap();
    }
    let most = most_resident(|| true) - before;
    assert!(most < 100 * MIB, "{} MiB for 100 bytes", most / MIB);
    // Other clients are served meanwhile, also with a large request of their own.
    let mut other = Client::connect(socket);
    let payload = vec![7; 4 << 20];
    assert_eq!(other.ask(WRITE, 0, 4 << 20, &payload).error, 0);
    assert!(other.ask(READ, 0, 4 << 20, &[]).data == payload);
    drop(clients);

    // They send all but the last byte: what is not taken waits in the sockets.
    let senders: Vec<_> = (0..40)
        .map(|_| {
            let mut client = Client::connect(socket);
            std::thread::spawn(move || {
                client.send_raw(&head(WRITE, MAX_PAYLOAD_BYTES)).unwrap();
                let part = vec![1; 1 << 20];
                let whole = (0..31).all(|_| client.send_raw(&part).is_ok());
                (client, whole)
            })
        })
        .collect();
    // Those that have room proceed; the others wait for them. No client is held longer than a request may take.
    let through = || senders.iter().filter(|sender| sender.is_finished()).count() >= 8;
    let most = most_resident(through) - before;
    assert!(most < BOUND, "{} MiB", most / MIB);
    drop(server);
    for sender in senders {
        let _ = sender.join().unwrap();
    }

    // They request much data and read nothing.
    let server = serve("nvme:1GiB");
    let socket = server.volumes()[0].socket();
    let mut clients: Vec<Client> = (0..100).map(|_| Client::connect(socket)).collect();
    for client in &mut clients {
        client.send_raw(&head(READ, MAX_PAYLOAD_BYTES)).unwrap();
    }
    let most = most_resident(|| true).saturating_sub(before);
    assert!(most < BOUND, "{} MiB", most / MIB);
    drop(clients);

    // So many clients that there is no room for more, whose connections are closed; and again after they disconnected.
    let greeted = || {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).is_ok().then_some(stream)
    };
    let began = Instant::now();
    let mut inside: Vec<UnixStream> = Vec::new();
    while let Some(stream) = greeted() {
        inside.push(stream);
        assert!(inside.len() <= 1024, "{} clients", inside.len());
    }
    assert!(inside.len() >= 512, "{} clients", inside.len());
    inside.clear();
    while greeted().is_none() {
        assert!(began.elapsed() < LONG, "no client is accepted again");
    }
}

#[test]
#[ignore = "needs a host with little else to do: make prove"]
#[allow(clippy::print_stdout, reason = "a proof says what it measured")]
fn answers_are_on_time() {
    let server = serve("latency=2ms,jitter=0:64GiB");
    let mut client = Client::connect(server.volumes()[0].socket());
    let late = (0..300).map(|_| client.ask(READ, 0, 4096, &[]).took - Duration::from_millis(2));
    let mut late: Vec<Duration> = late.collect();
    late.sort_unstable();
    let (median, p95) = (late[150], late[285]);
    println!(
        "late by {median:?} in the median, {p95:?} at p95, {:?} at most",
        late[299]
    );
    // The median, as other work may hold the processor.
    assert!(median < Duration::from_millis(1), "{median:?}");
}
