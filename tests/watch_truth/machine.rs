//! A machine of the lab in which plays go on side by side, and what `watch` said of each.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Place, skipped};

/// A finding that comes so long before its cause, in seconds, is not of it: the clocks of the volumes
/// and of the machine's script begin within a second or two of each other.
const EARLY_S: f64 = 3.0;
/// A finding may come so long after its cause has ended.
const LATE_S: f64 = 15.0;

/// Sends a signal to the programs of a device's loads: the machine has no pkill.
const SIGNAL: &str = "signal() { for one in $(pidof dd); do \
                      tr '\\0' ' ' </proc/$one/cmdline | grep -q \"f=/dev/$2 \" && kill -$1 $one; done; }\n";

/// A cause that is played on some devices, or nothing.
#[derive(Clone, Debug)]
pub(crate) struct Play {
    /// The finding that it must raise; `None` where nothing may be found.
    pub(crate) cause: Option<&'static str>,
    /// How it varies, for the reader.
    pub(crate) what: String,
    /// The devices that are its own, and `host` where the host as a whole is.
    pub(crate) on: Vec<String>,
    /// When the cause begins and ends, in seconds from the command's start.
    pub(crate) begins: u64,
    pub(crate) ends: u64,
    /// What its cause brings about besides, so that it is true too.
    pub(crate) follows: &'static [&'static str],
}

/// What was found of a play.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// The play.
    pub(crate) play: Play,
    /// Seconds from the beginning of the cause to the finding; `None` where it was not found.
    pub(crate) found: Option<f64>,
    /// What else was found: codes.
    pub(crate) others: Vec<String>,
}

/// A finding that began.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its code, what it is of, and its sentence.
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) text: String,
    /// When it was said, in seconds from the beginning.
    pub(crate) at: f64,
}

/// Requests to a device: streams of one at a time, each in order through its own part of a span, which
/// it begins again when it is through. It takes a small program for each and hardly any work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// How many streams read, and how many write.
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
    options: Vec<String>,
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
            options: Vec::new(),
            volumes: Vec::new(),
            arrays: 0,
            starts: String::new(),
            prepare: String::new(),
            script: String::new(),
            plays: Vec::new(),
        }
    }

    /// For how long is looked.
    pub(crate) fn seconds(&self) -> u64 {
        self.seconds
    }

    /// An option of `lab run`.
    pub(crate) fn option(&mut self, name: &str, value: &str) {
        self.options.extend([name.to_owned(), value.to_owned()]);
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

    /// A line that runs so many seconds after the command's start, beside all others.
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
        arguments.extend(self.options.iter().cloned());
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
        let wanting = ["is not installed: apt-get install", "cannot be fetched"];
        if said.status == Some(2) && wanting.iter().any(|words| said.err.contains(words)) {
            skipped(&said.err);
            return None;
        }
        let said = said.ends_with(0);
        self.keep(&said.out, &arguments);
        let found = findings(&said.out);
        let verdicts: Vec<Verdict> = self.plays.iter().map(|play| judge(play, &found)).collect();
        for verdict in &verdicts {
            println!("{verdict}");
        }
        Some(verdicts)
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

    /// Keeps what was seen, where a folder for it is named.
    fn keep(&self, out: &str, arguments: &[&str]) {
        let Some(folder) = std::env::var_os("WATCH_TRUTH_KEEP").map(PathBuf::from) else {
            return;
        };
        let files = std::fs::read_dir(&folder).unwrap().count();
        let name = format!("{:03}-{}", files, self.name);
        std::fs::write(folder.join(format!("{name}.jsonl")), out).unwrap();
        let plays = format!("{:#?}\n{}", self.plays, arguments.join("\n"));
        std::fs::write(folder.join(format!("{name}.plays")), plays).unwrap();
    }
}

/// The findings that began, in the order in which they were said.
fn findings(out: &str) -> Vec<Found> {
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

/// What was found of a play among all that was.
pub(crate) fn judge(play: &Play, found: &[Found]) -> Verdict {
    let (begins, ends) = (play.begins as f64, play.ends as f64);
    let is_own = |found: &&Found| play.on.contains(&found.name);
    let is_cause = |found: &&Found| {
        play.cause == Some(&found.code) && (begins - EARLY_S..ends + LATE_S).contains(&found.at)
    };
    let own = || found.iter().filter(is_own);
    let first = own().find(is_cause);
    let others = own().filter(|found| !is_cause(found) && !play.follows.contains(&&*found.code));
    Verdict {
        play: play.clone(),
        found: first.map(|found| found.at - begins),
        others: others
            .map(|found| {
                println!("  also at {:.0} s: {}", found.at, found.text);
                found.code.clone()
            })
            .collect(),
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Play {
            cause, what, on, ..
        } = &self.play;
        let found = match (cause, self.found) {
            (None, _) => String::new(),
            (_, None) => ", NOT found".to_owned(),
            (_, Some(seconds)) => format!(", found after {seconds:.0} s"),
        };
        write!(
            f,
            "{} ({what}) on {}{found}",
            cause.unwrap_or("nothing"),
            on.join(" ")
        )?;
        if self.others.is_empty() {
            return Ok(());
        }
        write!(f, "; also {}", self.others.join(", "))
    }
}
