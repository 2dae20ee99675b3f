//! A machine of the lab in which plays continue side by side, and what `watch` said there.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::play::{Found, Play, Verdict, judge};
use crate::support::{Place, skipped};

/// Sends a signal to the programs of a device's loads: the machine has no pkill.
const SIGNAL: &str = "signal() { for one in $(pidof dd); do \
                      tr '\\0' ' ' </proc/$one/cmdline | grep -q \"f=/dev/$2 \" && kill -$1 $one; done; }\n";

/// Requests to a device: streams of one at a time, each in order through its own part of a span, which
/// it begins again when it is through. It takes a small program for each and hardly any work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Numbers of streams that read and that write.
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// The size of a request in KiB.
    pub(crate) block: u64,
    /// The span in KiB, from the start of the device.
    pub(crate) span: u64,
}

impl Load {
    /// The shell lines that begin it, one a stream.
    fn streams(&self, device: &str) -> Vec<String> {
        let streams = self.reads + self.writes;
        let blocks = (self.span / self.block / streams).max(1);
        let stream = |number: u64| {
            let what = match number < self.reads {
                true => format!("if=/dev/{device} of=/dev/null iflag=direct skip"),
                false => format!("if=/dev/zero of=/dev/{device} oflag=direct conv=notrunc seek"),
            };
            format!(
                "( while [ ! -e /tmp/{device}.end ]; do dd {what}={} bs={}k count={blocks} || sleep 1; done ) \
                 >/dev/null 2>&1 &",
                number * blocks,
                self.block
            )
        };
        (0..streams).map(stream).collect()
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Load {
            reads,
            writes,
            block,
            span,
        } = self;
        write!(
            f,
            "{reads} readers and {writes} writers of {block} KiB in {span} KiB"
        )
    }
}

/// A machine and its plays.
pub(crate) struct Machine {
    name: &'static str,
    seconds: u64,
    volumes: Vec<String>,
    arrays: usize,
    /// The loads that are there when the plays begin.
    starts: String,
    prepare: String,
    script: String,
    plays: Vec<Play>,
}

impl Machine {
    /// A machine without volumes in which `watch` looks for so many seconds.
    pub(crate) fn new(name: &'static str, seconds: u64) -> Machine {
        Machine {
            name,
            seconds,
            volumes: Vec::new(),
            arrays: 0,
            starts: String::new(),
            prepare: String::new(),
            script: String::new(),
            plays: Vec::new(),
        }
    }

    /// Length of the watch.
    pub(crate) fn seconds(&self) -> u64 {
        self.seconds
    }

    /// Another volume, as `lab run --volumes` has it; gives the name of its device.
    pub(crate) fn volume(&mut self, spec: &str) -> String {
        let letter = |number: usize| char::from(b'a' + u8::try_from(number).unwrap());
        let number = self.volumes.len();
        self.volumes.push(spec.to_owned());
        match number.checked_sub(26) {
            None => format!("vd{}", letter(number)),
            Some(more) => format!("vda{}", letter(more)),
        }
    }

    /// An array of these members, with chunks of so many KiB where its level has any.
    pub(crate) fn array(&mut self, level: u64, chunk: u64, members: &[String]) -> String {
        let name = format!("md{}", self.arrays);
        self.arrays += 1;
        let chunk = match level {
            1 => String::new(),
            _ => format!("--chunk {chunk}K"),
        };
        let paths: Vec<String> = members.iter().map(|name| format!("/dev/{name}")).collect();
        self.prepare(&format!(
            "mdadm --quiet --create /dev/{name} --run --assume-clean --level {level} {chunk} \
             --raid-devices {} {}",
            members.len(),
            paths.join(" "),
        ));
        name
    }

    /// A line that runs before the command, while the volumes have no troubles yet.
    pub(crate) fn prepare(&mut self, line: &str) {
        writeln!(self.prepare, "{line}").unwrap();
    }

    /// A line that runs so many seconds after the command's start, next to all others.
    pub(crate) fn at(&mut self, seconds: u64, line: &str) {
        writeln!(self.script, "( sleep {seconds}; {line} ) >/dev/null 2>&1 &").unwrap();
    }

    /// A load on a device that is there when the plays begin, and stays.
    pub(crate) fn load(&mut self, device: &str, load: &Load) {
        for stream in load.streams(device) {
            writeln!(self.starts, "{stream}").unwrap();
        }
    }

    /// The same from some second on.
    pub(crate) fn load_from(&mut self, from: u64, device: &str, load: &Load) {
        for stream in load.streams(device) {
            self.at(from, &stream);
        }
    }

    /// Ends the loads on a device after so many seconds.
    pub(crate) fn end_loads(&mut self, at: u64, device: &str) {
        self.at(
            at,
            &format!("touch /tmp/{device}.end; signal KILL {device}"),
        );
    }

    /// Adds what is played.
    pub(crate) fn add(&mut self, play: Play) {
        self.plays.push(play);
    }

    /// Runs it. `None`, with a note, where there is no machine to be had.
    pub(crate) fn play(self) -> Option<Vec<Verdict>> {
        let place = Place::new();
        let mut arguments = vec!["lab".to_owned(), "run".to_owned()];
        // A second processor costs more than it brings where both are emulated.
        arguments.extend(["--cpus", "1"].map(str::to_owned));
        for volume in &self.volumes {
            arguments.extend(["--volumes".to_owned(), volume.clone()]);
        }
        let prepare = format!("set -e\n{}{}", self.prepare, self.settle());
        let script = format!(
            "echo \"{{\\\"kind\\\":\\\"began\\\",\\\"at\\\":$(date +%s)}}\"\n\
             {SIGNAL}{}\nsleep {}\nkill $(cat /tmp/watch.pid)\nsleep 1\ncat /tmp/watch.jsonl",
            self.script, self.seconds
        );
        arguments.extend(["--prepare".to_owned(), prepare]);
        arguments.extend(["--", "sh", "-c"].map(str::to_owned));
        arguments.push(script);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = place.run(&arguments);
        let wanting = ["is not installed; install", "cannot be fetched"];
        if said.status == Some(2) && wanting.iter().any(|words| said.err.contains(words)) {
            skipped(&said.err);
            return None;
        }
        let said = said.ends_with(0);
        let plays = format!("{:#?}\n{}", self.plays, arguments.join("\n"));
        keep(self.name, &said.out, &plays);
        let found = findings(&said.out);
        let mut verdicts: Vec<Verdict> =
            self.plays.iter().map(|play| judge(play, &found)).collect();
        verdicts.extend(self.of_nobody(&found));
        for verdict in &verdicts {
            println!("{verdict}");
        }
        Some(verdicts)
    }

    /// Findings about devices of no play, above all the host, are wrong.
    fn of_nobody(&self, found: &[Found]) -> Option<Verdict> {
        let owns = |found: &Found| self.plays.iter().any(|play| play.on.contains(&found.name));
        let names = found.iter().filter(|found| !owns(found));
        let names: Vec<String> = names.map(|found| found.name.clone()).collect();
        let play = Play {
            what: "what is of no play".to_owned(),
            ..Play::nothing(names, self.seconds)
        };
        (!play.on.is_empty()).then(|| judge(&play, found))
    }

    /// Loads that are to be there from the beginning are started before it, and at last `watch`, which
    /// takes seconds to start in an emulated machine.
    fn settle(&self) -> String {
        format!(
            "{}\ndisksmith watch --json >/tmp/watch.jsonl 2>/tmp/watch.err & echo $! >/tmp/watch.pid\n\
             until [ $(wc -l </tmp/watch.jsonl) -gt 2 ]; do sleep 0.3; done",
            self.starts
        )
    }
}

/// Keeps what was seen, and what was played, where a folder for it is named.
pub(crate) fn keep(name: &str, out: &str, played: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let Some(folder) = std::env::var_os("WATCH_TRUTH_KEEP").map(PathBuf::from) else {
        return;
    };
    let name = format!("{:03}-{name}", COUNT.fetch_add(1, Ordering::Relaxed));
    std::fs::write(folder.join(format!("{name}.jsonl")), out).unwrap();
    std::fs::write(folder.join(format!("{name}.plays")), played).unwrap();
}

/// The findings that began, in the order in which they were said.
pub(crate) fn findings(out: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let (mut began, mut at) = (None, 0.0);
    for line in out.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["kind"].as_str().unwrap() {
            "began" => began = line["at"].as_f64(),
            "sample" => {
                let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
                // The script's clock has whole seconds.
                at = time.as_millisecond() as f64 / 1e3 - began.unwrap() - 0.5;
            }
            "finding" if line["change"] == "opened" => {
                let finding = &line["finding"];
                let text = |key: &str| finding[key].as_str().unwrap().to_owned();
                found.push(Found {
                    code: text("code"),
                    name: text("name"),
                    text: text("text"),
                    at,
                });
            }
            _ => {}
        }
    }
    found
}

#[test]
fn what_is_found_of_no_play_is_found_of_nothing() {
    let mut machine = Machine::new("test", 30);
    machine.add(Play::nothing(vec!["vda".to_owned()], 30));
    let found = |name: &str| Found {
        code: "instance-cap".to_owned(),
        name: name.to_owned(),
        text: String::new(),
        at: 10.0,
    };
    assert!(machine.of_nobody(&[found("vda")]).is_none());
    let verdict = machine.of_nobody(&[found("vda"), found("host")]).unwrap();
    assert_eq!((verdict.play.cause, verdict.others.len()), (None, 1));
}
