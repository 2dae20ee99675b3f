//! `tally --from kafka://` with Kafka's own broker and console producer, which `make prove` installs
//! (`bench/install-kafka`): tally is killed 200 times while events come, the broker in each compression, and each event
//! counts once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tally/services.rs"]
mod services;
mod support;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use services::{free_port, wait_until};
use support::{Place, Words, has_program, output_of, skipped};

/// Events that come at each kill.
const EVENTS_OF_KILL: u32 = 75;
/// Kills of tally while a producer's events come.
const KILLS: usize = 40;

/// A broker with its own folder, in one process with its controller.
struct Broker {
    jars: String,
    folder: PathBuf,
    port: u16,
    process: Option<Child>,
}

impl Broker {
    fn start(place: &Place) -> Option<Broker> {
        if !has_program("java") {
            return None;
        }
        let lib = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .unwrap()
            .join("kafka/lib");
        if !lib.is_dir() {
            skipped("Kafka's broker is not installed (bench/install-kafka)");
            return None;
        }
        let (port, controller) = (free_port(), free_port());
        let folder = place.path("kafka");
        fs::create_dir(&folder).unwrap();
        let settings = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\nlog.dirs={}\nnum.partitions=3\n\
             offsets.topic.replication.factor=1\n",
            folder.join("logs").display()
        );
        fs::write(folder.join("server.properties"), settings).unwrap();
        let mut broker = Broker {
            jars: format!("{}/*", lib.display()),
            folder,
            port,
            process: None,
        };
        let settings = broker.settings();
        output_of(&mut broker.java(
            "kafka.tools.StorageTool",
            &[
                "format",
                "--cluster-id=MkU3OEVBNTcwNTJENDM2Qk",
                "--config",
                &settings,
            ],
        ))
        .ends_with(0);
        broker.begin();
        Some(broker)
    }

    fn settings(&self) -> String {
        self.folder.join("server.properties").display().to_string()
    }

    fn java(&self, class: &str, arguments: &[&str]) -> Command {
        let mut java = Command::new("java");
        java.args([
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            &self.jars,
            class,
        ])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
        java
    }

    fn begin(&mut self) {
        let mut java = self.java("kafka.Kafka", &[&self.settings()]);
        let log = || fs::File::create(self.folder.join("log")).unwrap();
        self.process = Some(java.stdout(log()).stderr(log()).spawn().unwrap());
        wait_until("the broker does not answer", || self.topics("--list"));
    }

    fn topics(&self, arguments: &(impl Words + ?Sized)) -> bool {
        let server = format!("127.0.0.1:{}", self.port);
        let mut command = self.java(
            "org.apache.kafka.tools.TopicCommand",
            &["--bootstrap-server", &server],
        );
        command
            .args(arguments.words())
            .output()
            .unwrap()
            .status
            .success()
    }

    /// Ends it as a power cut would.
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Kafka's console producer: each line of its standard input is a record.
    fn produce(&self, compression: &str) -> Child {
        let server = format!("127.0.0.1:{}", self.port);
        let mut producer = self.java(
            "org.apache.kafka.tools.ConsoleProducer",
            &[
                "--bootstrap-server",
                &server,
                "--topic",
                "events",
                "--batch-size",
                "2000",
            ],
        );
        if !compression.is_empty() {
            producer.arg(format!("--compression-codec={compression}"));
        }
        producer.stdin(Stdio::piped()).spawn().unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn sums(place: &Place) -> (f64, f64) {
    let words = "tally query t --store sqlite:t.db --from 2020-01-01 --by month";
    let said = place.run(&format!("{words} --json"));
    if said.status != Some(0) {
        return (0.0, 0.0);
    }
    let total = &said.json()["total"];
    (
        total["count"].as_f64().unwrap(),
        total["sum"].as_f64().unwrap(),
    )
}

#[test]
#[ignore = "needs Kafka's broker, of Maven"]
fn records_of_the_real_broker_are_counted_once() {
    let place = Place::new();
    let Some(mut broker) = Broker::start(&place) else {
        return;
    };
    assert!(broker.topics("--create --topic events --partitions 3"));
    let source = format!("kafka://127.0.0.1:{}/events", broker.port);
    let words = format!("tally --from {source} --store sqlite:t.db --flush-every 100ms");
    let start = || {
        let log = fs::File::options()
            .append(true)
            .create(true)
            .open(place.path("err"));
        place.command(&words).stderr(log.unwrap()).spawn().unwrap()
    };
    let (mut count, mut sum, mut random) = (0.0, 0.0, 1_u64);
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    for compression in ["", "gzip", "snappy", "lz4", "zstd"] {
        let mut producer = broker.produce(compression);
        let mut records = producer.stdin.take().unwrap();
        for _ in 0..KILLS {
            for _ in 0..EVENTS_OF_KILL {
                let (value, at) = (draw(3000), 1_760_000_000 + draw(3 * 86_400));
                writeln!(records, "t:{value}|ms|T{at}").unwrap();
                count += 1.0;
                sum += value as f64;
            }
            let mut tally = start();
            std::thread::sleep(Duration::from_millis(draw(500)));
            tally.kill().unwrap();
            tally.wait().unwrap();
        }
        drop(records);
        assert!(producer.wait().unwrap().success());
        let mut tally = start();
        // The broker ends in the middle of a flush, or between two.
        wait_until("nothing is read", || sums(&place).0 > 0.0);
        broker.kill();
        broker.begin();
        wait_until("not all is read", || sums(&place).0 >= count);
        kill_process(Pid::from_child(&tally), Signal::TERM).unwrap();
        assert!(tally.wait().unwrap().success());
        let log = fs::read_to_string(place.path("err")).unwrap();
        assert_eq!(sums(&place), (count, sum), "{compression}: {log}");
    }
}
