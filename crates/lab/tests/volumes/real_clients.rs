//! Real NBD clients: libnbd's, QEMU's and fio. A test whose program is not installed reports that it is skipped
//! (Debian: libnbd-bin, qemu-utils, fio).

use std::process::{Command, Output};

use lab::server::{DataMedium, Options, Server};

use crate::specs::specs;

fn serve(groups: &[&str]) -> Server {
    let options = Options {
        keep: DataMedium::Memory,
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..Options::default()
    };
    Server::start(&specs(groups), &options).unwrap()
}

/// The volume's NBD URI on its unix socket.
fn uri(server: &Server, volume: usize) -> String {
    let socket = server.volumes()[volume].socket();
    format!("nbd+unix:///?socket={}", socket.display())
}

/// Runs a program; `None` if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip::skipped(&format!("{program} is not installed"));
            None
        }
        Err(error) => panic!("{program}: {error}"),
        Ok(output) => Some(output_of(program, &output)),
    }
}

fn output_of(program: &str, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{program}: {} {out} {error}",
        output.status
    );
    out
}

#[test]
fn nbdinfo_sees_the_volume_as_it_is() {
    let server = serve(&["gp3,serial=vol-a:16GiB", "gp3,serial=vol-b:1GiB"]);
    let Some(info) = run("nbdinfo", &["--json", &uri(&server, 0)]) else {
        return;
    };
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(
        (&info["protocol"], &info["TLS"]),
        (&"newstyle-fixed".into(), &false.into())
    );
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], 16_u64 << 30);
    for can in [
        "can_flush",
        "can_fua",
        "can_trim",
        "can_zero",
        "can_multi_conn",
    ] {
        assert_eq!(export[can], true, "{can}");
    }
    assert_eq!(
        (&export["is_read_only"], &export["is_rotational"]),
        (&false.into(), &false.into())
    );
    assert_eq!(export["block_size_preferred"], 4096);

    let address = format!("nbd://{}", server.address().unwrap());
    let list = run("nbdinfo", &["--list", "--json", &address]).unwrap();
    assert!(
        list.contains("\"vol-a\"") && list.contains("\"vol-b\""),
        "{list}"
    );
    let size = run("nbdinfo", &["--size", &format!("{address}/vol-b")]).unwrap();
    assert_eq!(size.trim(), (1_u64 << 30).to_string());
}

#[test]
fn qemu_io_reads_back_what_it_wrote() {
    let server = serve(&["latency=0us,jitter=0:64MiB"]);
    let commands = [
        "write -P 0x5a 1M 3M",
        "write -f -P 0x77 512 512",
        "write -z 2M 512k",
        "discard 3M 64k",
        "flush",
        "read -P 0x5a 1M 1M",
        "read -P 0 2M 512k",
        "read -P 0x5a 2560k 512k",
        "read -P 0 3M 64k",
        "read -P 0x77 512 512",
        "aio_read -P 0x5a 1M 64k",
        "aio_read -P 0 32M 2M",
        "aio_flush",
    ];
    let uri = uri(&server, 0);
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
    arguments.push(&uri);
    let Some(out) = run("qemu-io", &arguments) else {
        return;
    };
    assert!(!out.contains("Pattern verification failed"), "{out}");
    let counters = server.volumes()[0].truth().counters;
    assert!(counters.flush >= 1 && counters.write.ops >= 3 && counters.trim.ops >= 1);
}

#[test]
fn qemu_sees_errors_as_errors() {
    let server = serve(&["latency=0us,error=1M+4k:64MiB"]);
    let uri = uri(&server, 0);
    let arguments = ["-f", "raw", "-c", "read 1M 4k", "-c", "read 2M 4k", &uri];
    let output = match Command::new("qemu-io").args(arguments).output() {
        Ok(output) => output,
        Err(error) => return skip::skipped(&format!("qemu-io: {error}")),
    };
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(text.contains("Input/output error"), "{text}");
    assert!(
        text.contains("read 4096/4096 bytes at offset 2097152"),
        "{text}"
    );
}

#[test]
fn nbdcopy_carries_a_volume_over() {
    let server = serve(&["latency=100us:64MiB", "latency=100us:64MiB"]);
    let (from, to) = (uri(&server, 0), uri(&server, 1));
    if run("qemu-io", &["-f", "raw", "-c", "write -P 9 7M 9M", &from]).is_none()
        || run("nbdcopy", &["--connections=4", &from, &to]).is_none()
    {
        return;
    }
    let reads = ["read -P 0 0 7M", "read -P 9 7M 9M", "read -P 0 16M 48M"];
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(reads.iter().flat_map(|read| ["-c", read]));
    arguments.push(&to);
    let out = run("qemu-io", &arguments).unwrap();
    assert!(!out.contains("Pattern verification failed"), "{out}");
}

#[test]
fn fio_never_measures_more_than_the_cap_that_was_set() {
    let server = serve(&["iops=400:64GiB"]);
    let uri = format!("--uri={}", uri(&server, 0));
    let arguments = [
        "--name=cap",
        "--ioengine=nbd",
        &uri,
        "--rw=randread",
        "--bs=4k",
        "--iodepth=32",
        "--time_based",
        "--runtime=3",
        "--size=1g",
        "--output-format=json",
    ];
    let Some(out) = run("fio", &arguments) else {
        return;
    };
    let json: serde_json::Value = serde_json::from_str(&out[out.find('{').unwrap()..]).unwrap();
    let read = &json["jobs"][0]["read"];
    let (ops, iops) = (
        read["total_ios"].as_u64().unwrap(),
        read["iops"].as_f64().unwrap(),
    );
    // A busy host leaves some of the cap unused, and more than it there never is; that all of it can be had is seen in
    // simulated time. The server has counted what fio has.
    assert!(iops < 408.0, "{iops}");
    let served = server.volumes()[0].truth().counters.read.ops;
    assert!((ops..=ops + 32).contains(&served), "{served} of {ops}");
    assert!(ops > 0);
}
