//! The commands of the manual for other hosts, on real ones: namespaces of this machine, each with its own sshd.

use std::fs;

use rustix::process::Signal;

use super::net::{Disk, HostFault, HostSetup, Net};
use super::support::requests::database_trace;
use super::support::{ProgramOutput, Running, output_of};

/// Three hosts with a disk of a kind.
pub(crate) struct Hosts {
    kind: Disk,
    net: Net,
}

/// The disk that a command finds on each host.
fn disk_for(words: &[String]) -> Disk {
    let has = |part: &str| words.iter().any(|word| word.ends_with(part));
    if has("=ext4") {
        Disk::Signed(48)
    } else if has("/dev/nvme1n1") {
        Disk::Bare(48)
    } else {
        Disk::Mounted(48)
    }
}

/// Hosts for each kind of disk that these commands need, with the commands; `None`, with a note, where there can be none.
pub(crate) fn for_each(
    commands: &[Vec<String>],
    mut judge: impl FnMut(&[String], ProgramOutput),
) -> Option<()> {
    for kind in [Disk::Mounted(48), Disk::Bare(48), Disk::Signed(48)] {
        let setup = HostSetup {
            disk: kind,
            iops: None,
            more: &[],
            wrong: HostFault::Nothing,
        };
        let hosts = Hosts {
            kind,
            net: Net::new(&[setup, setup, setup])?,
        };
        fs::write(hosts.net.place.path("mysql.trace"), database_trace(200, 50)).unwrap();
        for words in commands
            .iter()
            .filter(|words| disk_for(words) == hosts.kind)
        {
            hosts.reset();
            judge(words, hosts.run(words));
        }
    }
    Some(())
}

impl Hosts {
    /// Takes back what an earlier command wrote to the disks.
    fn reset(&self) {
        let script = match self.kind {
            Disk::Bare(_) => "dd if=/dev/zero of=/run/disk bs=1M count=48 conv=fsync 2>&1",
            Disk::Signed(_) => "mkfs.ext4 -q -F /run/disk",
            Disk::Mounted(_) | Disk::None => return,
        };
        for name in ["h1", "h2", "h3"] {
            self.net.on(name, script);
        }
    }

    /// A word of a command as it is on these hosts.
    fn word(&self, word: &str) -> String {
        match word {
            "db[1-30]" => "h[1-3]".to_owned(),
            "/srv/mysql.trace" => self.net.place.path("mysql.trace").display().to_string(),
            "30s" => "200ms".to_owned(),
            word => word
                .replace("/dev/nvme1n1", "/run/disk")
                .replace(" for 60s", " for 2s"),
        }
    }

    /// Runs a command of the manual: short rounds, and an interrupt for what runs until one.
    fn run(&self, words: &[String]) -> ProgramOutput {
        let end = words
            .iter()
            .position(|word| word == "--")
            .unwrap_or(words.len());
        let (own, after) = words.split_at(end);
        let second = |word: &&String| !word.ends_with("nvme2n1");
        let after: Vec<String> = after
            .iter()
            .filter(second)
            .map(|word| self.word(word))
            .collect();
        // A `--destroy` of the second disk is without its disk now.
        let mut after: Vec<&str> = after.iter().map(String::as_str).collect();
        while after.last() == Some(&"--destroy") {
            after.pop();
        }
        let source = own
            .iter()
            .position(|word| word == "--list" || word == "--hosts")
            .unwrap();
        let named = match own[source].as_str() {
            "--list" => "./hosts".to_owned(),
            _ => self.word(&own[source + 1]),
        };
        let mut rest: Vec<String> = own[2..source].to_vec();
        rest.extend(own[source + 2..].iter().map(|word| self.word(word)));
        for (verb, option, value) in [("race", "--round", "500ms"), ("race", "--rounds", "4")] {
            if own[1] == verb {
                match rest.iter().position(|word| word == option) {
                    Some(at) => rest[at + 1] = value.to_owned(),
                    None => rest.extend([option.to_owned(), value.to_owned()]),
                }
            }
        }
        if after.contains(&"--destroy") {
            rest.push("--yes".to_owned());
        }
        match after.as_slice() {
            ["--", "bench", "/mnt/data", ..] => after.extend(["--size", "8M"]),
            ["--", "bench", ..] => after.extend(["--seconds", "200ms"]),
            ["--", "/mnt/data"] => after.extend(["--size", "8M"]),
            _ => {}
        }
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        let mut command = self
            .net
            .fleet_of([&own[source], &named], &own[1], &rest, &after);
        if own[1] != "top" {
            return output_of(&mut command);
        }
        let mut running = Running::start(&mut command);
        // A line of figures, not of what is being done to reach it.
        let has_figures =
            |line: &str| line.starts_with("h3 ") && line.split_whitespace().count() > 5;
        running.wait_for_output(|text| text.lines().any(has_figures));
        running.signal(Signal::INT);
        running.end()
    }
}
