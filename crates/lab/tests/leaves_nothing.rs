//! A server that stops leaves no thread, no open file, no socket and no folder. It is a separate test program, since
//! the counts are those of the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod specs;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use lab::server::{Caps, DataMedium, Options, Server};
use specs::specs;

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn nothing_is_left_when_the_server_stops() {
    let within = tempfile::tempdir().unwrap();
    let before = (count("/proc/self/task"), count("/proc/self/fd"));
    for keep in [DataMedium::Disk, DataMedium::Memory] {
        let options = Options {
            keep,
            folder: Some(within.path().to_owned()),
            instance: Caps {
                iops: Some(10.0),
                throughput: None,
                ..Caps::default()
            },
            listen: Some("127.0.0.1:0".parse().unwrap()),
            ..Options::default()
        };
        let groups = ["3xgp3:16GiB", "stall=0s+1h,serial=held:1GiB"];
        let server = Server::start(&specs(&groups), &options).unwrap();
        stop_with_requests_in_flight(server);
    }
    // The kernel shows a thread for a moment after it was joined.
    let began = Instant::now();
    while count("/proc/self/task") > before.0 && began.elapsed() < Duration::from_secs(600) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((count("/proc/self/task"), count("/proc/self/fd")), before);
    assert_eq!(std::fs::read_dir(within.path()).unwrap().count(), 0);
}

fn stop_with_requests_in_flight(server: Server) {
    let mut clients = [0, 3].map(|volume: usize| {
        let mut stream = UnixStream::connect(server.volumes()[volume].socket()).unwrap();
        stream.write_all(&hundred_reads()).unwrap();
        // The greeting, and the answer to GO.
        stream.read_exact(&mut [0; 18 + 32 + 20]).unwrap();
        stream
    });
    let mut names: Vec<_> = std::fs::read_dir(server.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // The data has no name.
    assert_eq!(
        names,
        ["held.sock", "lab1.sock", "lab2.sock", "lab3.sock", "lock"]
    );
    assert_ne!(server.address().unwrap().port(), 0);
    drop(server);
    for client in &mut clients {
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert!(
            rest.len() < 100 * (16 + 4096),
            "it was not stopped but finished"
        );
    }
}

/// Messages of a client that chooses the default export and reads a hundred blocks.
fn hundred_reads() -> Vec<u8> {
    let mut reply = 3_u32.to_be_bytes().to_vec();
    reply.extend(b"IHAVEOPT");
    reply.extend([7_u32, 6, 0].map(u32::to_be_bytes).concat());
    reply.extend([0; 2]);
    for place in 0..100_u64 {
        reply.extend(0x2560_9513_u32.to_be_bytes());
        reply.extend([0; 4]);
        reply.extend([place, place * 8192].map(u64::to_be_bytes).concat());
        reply.extend(4096_u32.to_be_bytes());
    }
    reply
}
